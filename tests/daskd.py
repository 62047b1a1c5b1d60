"""A Dask cluster on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil


class Daskd:
    """A scheduler on a free port of the loopback device, and workers that are processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start("scheduler", "--port", str(port))
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                assert self.scheduler.poll() is None
                time.sleep(0.05)

    def worker(self, *archs: str, **env: str) -> subprocess.Popen[bytes]:
        """One that takes one job of each of these architectures at a time. `env` is added to its environment."""
        number = len(self._workers)
        resources = " ".join(f"arch:{arch}=1" for arch in archs)
        words = ("--nthreads", "1", "--no-nanny", "--name", f"w{number}", "--resources", resources)
        found = self._start("worker", self.address, *words, "--local-directory", str(self._folder / f"w{number}"), **env)
        self._workers.append(found)
        return found

    def stop(self) -> None:
        for one in (*self._workers, self.scheduler):
            one.send_signal(signal.SIGKILL)
            one.wait()

    def _start(self, what: str, *words: str, **env: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "dask", what, "--host", "127.0.0.1", "--no-dashboard", *words]
        log = (self._folder / f"{what}{len(self._workers)}.log").open("wb")
        return subprocess.Popen(argv, cwd=self._folder, env={**os.environ, **env}, stdout=log, stderr=subprocess.STDOUT)


def running(worker: subprocess.Popen[bytes], word: str) -> list[psutil.Process]:
    """The harness that a worker has started, with what that has, once one of them has `word` on its command line."""
    found: list[psutil.Process] = []
    words: list[str] = []
    for one in psutil.Process(worker.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "harness" in one.cmdline():
                found += [one, *one.children(recursive=True)]
    for one in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            words += one.cmdline()
    return found if word in words else []
