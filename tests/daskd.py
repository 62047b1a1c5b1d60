"""A Dask cluster on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil


class Daskd:
    """A scheduler on a free port of the loopback device, and workers that are processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = folder / "scheduler.json"
        self._workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--scheduler-file", str(self._address))
        while not self._address.exists():
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        self.address: str = json.loads(self._address.read_text())["address"]

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


def running(worker: subprocess.Popen[bytes], name: str) -> list[psutil.Process]:
    """What a worker has started, and what that has, if one of them is called `name`; else nothing."""
    children = psutil.Process(worker.pid).children(recursive=True)
    names = []
    for one in children:
        try:
            names.append(one.name())
        except psutil.NoSuchProcess:
            continue
    return children if any(name in found for found in names) else []
