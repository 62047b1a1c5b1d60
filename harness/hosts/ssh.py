"""A machine behind SSH: kernels and initramfs travel there once, QEMU runs there, and its lines come back over channels of the
connection."""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec
import paramiko

from harness import process
from harness.arch import Arch
from harness.cache import Cache, file_digest
from harness.guest import Accelerator, Boot, PlaceLost, kvm_runs, qemu
from harness.hosts.config import HostSpec
from harness.hosts.connect import CONNECT_SECONDS, connected, put

_HERE = Path(__file__).parent
_COMMAND_SECONDS = 120.0
_CHUNK = 1 << 16


class SshHost:
    """Each guest has a connection of its own. Nothing is left there but the files that were sent."""

    def __init__(self, spec: HostSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self._sending = threading.Lock()
        self._sent_before: set[str] = set()
        """Digests of what was seen there in this run."""
        self._known: dict[str, tuple[str, str]] = {}

    def key(self, arch: Arch) -> str:
        return f"{self._facts(arch)[0]}-{arch.name}"

    def version(self, arch: Arch) -> str:
        return self._facts(arch)[1]

    def _facts(self, arch: Arch) -> tuple[str, str]:
        """Since when the machine runs, and which QEMU it has: asked once."""
        if arch.name not in self._known:
            told = self.ask(f"cat /proc/sys/kernel/random/boot_id; {shlex.quote(arch.guest.program)} --version").splitlines()
            self._known[arch.name] = told[0].strip(), told[1]
        return self._known[arch.name]

    def accelerator(self, arch: Arch, boot: Boot, cache: Cache, wanted: str) -> Accelerator:
        """As hosts.toml says. Raises PlaceLost if that is not what is wanted, or if no guest was seen to run on it."""
        if Accelerator.TCG in (self.spec.accel, wanted):
            if wanted == Accelerator.KVM:
                raise PlaceLost(f"{self.name} only lends its cores", hint="--accel auto takes them")
            return Accelerator.TCG
        if not kvm_runs(self, arch, boot, cache):
            raise PlaceLost(f"{self.name} has no KVM that runs", hint='accel = "tcg" if it only lends its cores')
        return Accelerator.KVM

    @contextlib.contextmanager
    def start(self, arch: Arch, accelerator: Accelerator, boot: Boot, log: Path) -> Iterator[qemu.Qemu]:
        """As qemu.start. Raises PlaceLost if the connection cannot be made, or breaks before QEMU's lines are there."""
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(connected(self.spec))
            stack.enter_context(process.ended_by(client.close))
            image, initramfs = self._sent(client, boot.image), self._sent(client, boot.initramfs)
            names = qemu.lines(arch)
            chardevs = [f"socket,id={name},fd={{{name}}}" for name in names]
            there = msgspec.structs.replace(boot, image=image, initramfs=initramfs)
            keeper = self._run(client, "keeper.py")
            asked = {"argv": qemu.arguments(arch, accelerator, there, chardevs), "lines": names}
            lines = self._told(keeper, asked)
            file = stack.enter_context(log.open("ab", buffering=0))
            _pump(lambda: keeper.recv(_CHUNK), file.write)
            ours = {name: self._line(client, lines, name, stack) for name in names}

            def check() -> None:
                try:
                    # Its channels end a moment before a connection says that it is over: only an answer tells.
                    self._command(client, "true")
                except PlaceLost as lost:
                    hint = f"is {self.spec.address} still there?"
                    raise PlaceLost(f"the connection to {self.name} broke", hint=hint) from lost

            end = functools.partial(_close, keeper)
            stack.callback(end)
            yield qemu.Qemu(log, ours["console"], ours["monitor"], ours.get("channel"), end, check)

    def _sent(self, client: paramiko.SSHClient, path: Path) -> Path:
        """Where the file is there, sent unless it was before. What is there is believed when its digest is right."""
        digest = file_digest(path)
        there = PurePosixPath(self.spec.folder) / digest
        quoted = shlex.quote(str(there))
        # Guests that start at once send it once.
        with self._sending:
            if digest in self._sent_before:
                return Path(there)
            if self._command(client, f"sha256sum {quoted} 2>/dev/null || true").partition(" ")[0] == digest:
                self._sent_before.add(digest)
                return Path(there)
            self._command(client, f"mkdir -p {shlex.quote(self.spec.folder)}")
            try:
                with client.open_sftp() as sftp:
                    put(sftp, path, there)
            except (OSError, EOFError, paramiko.SSHException) as error:
                hint = "is its disk full?"
                raise PlaceLost(f"{path.name} cannot be sent to {self.name}: {error}", hint=hint) from error
            self._sent_before.add(digest)
        return Path(there)

    def ask(self, command: str) -> str:
        """What a shell command prints there. Raises PlaceLost if it fails."""
        with connected(self.spec) as client:
            return self._command(client, command)

    def succeeds(self, command: str) -> bool:
        """Raises PlaceLost if that cannot be found out."""
        return self.ask(f"if {command} >/dev/null 2>&1; then echo yes; else echo no; fi").strip() == "yes"

    def _command(self, client: paramiko.SSHClient, command: str) -> str:
        """What it prints. Raises PlaceLost if it fails."""
        try:
            _, output, errors = client.exec_command(command, timeout=_COMMAND_SECONDS)
            said, complained = output.read().decode(errors="replace"), errors.read().decode(errors="replace")
            status = output.channel.recv_exit_status()
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise PlaceLost(f"{self.name}: `{command}`: {error}", hint="is the connection still there?") from error
        if status:
            raise PlaceLost(f"{self.name}: `{command}` ended with {status}", hint=complained.strip()[-500:])
        return said

    def _run(self, client: paramiko.SSHClient, program: str, *arguments: str) -> paramiko.Channel:
        """One of our own programs."""
        transport = client.get_transport()
        try:
            assert transport
            channel = transport.open_session(timeout=CONNECT_SECONDS)
            channel.set_combine_stderr(True)
            channel.exec_command(shlex.join(["python3", "-I", "-S", "-c", (_HERE / program).read_text(), *arguments]))
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise PlaceLost(f"{self.name}: {program}: {error}", hint="has it python3?") from error
        return channel

    def _told(self, keeper: paramiko.Channel, asked: Mapping[str, object]) -> str:
        """Where the keeper hands out the lines of what it was asked for."""
        said = b""
        try:
            keeper.sendall(f"{json.dumps(asked)}\n".encode())
            while not said.endswith(b"\n") and (more := keeper.recv(1)):
                said += more
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise PlaceLost(f"{self.name}: {error}", hint="is the connection still there?") from error
        told = said.decode(errors="replace").strip()
        if not told.startswith("/"):
            raise PlaceLost(f"{self.name} cannot keep a guest: {told or 'no word'}", hint="harness doctor --hosts FILE")
        return told

    def _line(self, client: paramiko.SSHClient, lines: str, name: str, stack: contextlib.ExitStack) -> socket.socket:
        """Our end of one of the keeper's lines."""
        channel = self._run(client, "relay.py", lines, name)
        here, ours = socket.socketpair()
        stack.enter_context(here)
        stack.callback(_close, channel)

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            _close(channel)

        _pump(lambda: channel.recv(_CHUNK), ours.sendall, hang_up)
        _pump(lambda: ours.recv(_CHUNK), channel.sendall, hang_up)
        stack.callback(ours.close)
        return here


def _pump(read: Callable[[], bytes], write: Callable[[bytes], object], end: Callable[[], None] = lambda: None) -> None:
    """In a thread of its own, until either side ends."""

    def pump() -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while data := read():
                write(data)
        end()

    threading.Thread(target=pump, name="ssh", daemon=True).start()


def _close(channel: paramiko.Channel) -> None:
    """Whether there is anybody left to be told or not."""
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        channel.close()
