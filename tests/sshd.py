"""An SSH server on this machine."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil

from harness.guest import Accelerator
from harness.hosts import HostSpec

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


class Sshd:
    """On a free port of the loopback device, with keys of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("host", "key", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        (folder / "authorized").write_text((folder / "key.pub").read_text())
        (folder / "authorized").chmod(0o600)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.known = folder / "known_hosts"
        self.known.write_text(f"[127.0.0.1]:{self.port} {(folder / 'host.pub').read_text()}")
        (folder / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
            f"StrictModes no\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\nPermitRootLogin yes\n"
            f"SetEnv XDG_RUNTIME_DIR={folder}/run\n"
        )
        (folder / "run").mkdir()
        self.start()

    def start(self) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where it locks itself up, on Debian
        self.process = subprocess.Popen([SSHD or "sshd", "-D", "-e", "-f", self.folder / "config"], stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None
                time.sleep(0.05)

    def stop(self) -> None:
        """With all its connections."""
        if self.process.poll() is not None:
            return
        mine = psutil.Process(self.process.pid)
        for one in [*mine.children(recursive=True), mine]:
            with contextlib.suppress(psutil.NoSuchProcess):
                if "sshd" in one.name():
                    one.send_signal(signal.SIGKILL)
        self.process.wait()

    def spec(self, **more: object) -> HostSpec:
        words = {
            "key": str(self.folder / "key"),
            "known_hosts": str(self.known),
            "accel": Accelerator.TCG,
            "folder": str(self.folder / "files"),
            **more,
        }
        return HostSpec("loopback", f"127.0.0.1:{self.port}", getpass.getuser(), archs=("x86_64", "arm64"), **words)  # type: ignore[arg-type]


def hosts_toml(path: Path, *specs: HostSpec) -> Path:
    fields = ("name", "address", "user", "key", "known_hosts", "accel", "folder", "slots")
    lines = []
    for spec in specs:
        lines += ["[[host]]", f"archs = {json.dumps(spec.archs)}"]
        lines += [f"{field.replace('_', '-')} = {json.dumps(getattr(spec, field))}" for field in fields]
    path.write_text("\n".join(lines) + "\n")
    return path
