"""Runs on another machine, with nothing but Python's own library: starts QEMU, says what it says, and ends it, whatever ends us.

The first line of the input is a JSON object: `argv`, QEMU's command line, and `lines`, the names of its serial lines and its
monitor; {name} in it becomes the number of a file descriptor. The output begins with the path of a socket: whoever sends it a
name gets the other end of that line. QEMU lives until the input ends."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

_PR_SET_PDEATHSIG = 1


def _die_with_us() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _pair() -> tuple[socket.socket, socket.socket]:
    """TCP takes millions of the single bytes that QEMU writes, a Unix socket a few hundred (harness/guest/qemu.py)."""
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
            here = socket.create_connection(server.getsockname())
            there, peer = server.accept()
    except OSError:
        return socket.socketpair()
    if peer != here.getsockname():
        raise SystemExit("another program has connected to the guest's console")
    for end in (here, there):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return here, there


def _hand_out(server: socket.socket, ours: dict[str, socket.socket]) -> None:
    while True:
        asker, _ = server.accept()
        with asker:
            name = asker.recv(100).decode()
            with contextlib.suppress(KeyError, OSError):
                socket.send_fds(asker, [b"!"], [ours.pop(name).fileno()])


def main() -> None:
    folder = tempfile.mkdtemp(prefix="harness-", dir=os.environ.get("XDG_RUNTIME_DIR"))
    try:
        # sshd says so if the connection ends while nobody reads.
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, lambda *_: sys.exit(1))
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"{folder}/lines")
        server.listen()
        print(f"{folder}/lines", flush=True)
        asked = json.loads(sys.stdin.readline())
        pairs = {name: _pair() for name in asked["lines"]}
        fds = {name: there.fileno() for name, (_, there) in pairs.items()}
        argv = asked["argv"]
        for name, fd in fds.items():
            argv = [word.replace("{" + name + "}", str(fd)) for word in argv]
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, pass_fds=[*fds.values()], preexec_fn=_die_with_us
        )
        for _, there in pairs.values():
            there.close()
        ours = {name: here for name, (here, _) in pairs.items()}
        threading.Thread(target=_hand_out, args=(server, ours), daemon=True).start()

        def wait_for_the_end() -> None:
            sys.stdin.read()
            child.kill()

        threading.Thread(target=wait_for_the_end, daemon=True).start()
        try:
            child.wait()
        finally:
            child.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
