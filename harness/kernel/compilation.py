"""Run make for a build, write its output to a log, count the objects and collect the warnings."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness import process
from harness.errors import CommandFailed
from harness.kernel.jobserver import Jobserver
from harness.kernel.toolchain import LAUNCHER
from harness.kernel.warnings import Standing

FULL = "No space left on device"

_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "Sat Jan  1 00:00:00 UTC 2000",
    "KBUILD_BUILD_USER": "fgraph-harness",
    "KBUILD_BUILD_HOST": "localhost",
    "KBUILD_BUILD_VERSION": "1",
}

_OBJECT = re.compile(r"^  (?:CC|AS)(?: \[M\])?  +(?!.*/tools/)(?P<file>\S+)")
"""kbuild's short form of a command. Host tools (objtool, resolve_btfids) are compiled too, but are no kernel objects."""
_ERROR = re.compile(
    r"^(?P<where>\S+?:\d+(?::\d+)?): (?:fatal )?error: |^(?:\S*ld|\S*ld\.bfd|ld\.lld): .*undefined"
    r"|^ERROR: modpost: |\*\*\* .*Error \d+"
)

Progress = Callable[[int, str], None]
"""Called with the number of objects that were compiled, and the name of the newest."""


class Compilation:
    def __init__(self, log: Path, progress: Progress, jobserver: Jobserver, output: Path, standing: Standing) -> None:
        self.objects = 0
        self._standing = standing
        self._jobserver = jobserver
        self._output = output
        self._log = log
        self._progress = progress
        log.unlink(missing_ok=True)

    def note(self, text: str) -> None:
        """Write a line of the harness's own to the log."""
        with self._log.open("a") as file:
            file.write(f"# {text}\n")

    def run(self, argv: Sequence[str | Path], env: Mapping[str, str], *writable: Path, ours: bool = False) -> None:
        """Run make, which may write to the build directory and to the `writable` paths only. With `ours` it builds our own
        modules, whose warnings do not count as warnings of the kernel.

        Raises CommandFailed with all of the output from the first error on."""
        path = f"{LAUNCHER.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        env = {**_REPRODUCIBLE, "PATH": path, **env}
        failing: list[str] = []
        with self._log.open("a") as file, self._standing, self._jobserver.slot() as slot:
            by_hand = [*argv, f"-j{self._jobserver.jobs}"]
            file.write(f"$ {process.command_line(by_hand, env=env)}\n")
            with process.start(
                argv,
                env={**env, **slot.env},
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=slot.fds,
                confined=(self._output, *writable),
            ) as make:
                assert make.stdout is not None
                for line in make.stdout:
                    file.write(line)
                    self._read(line, failing, ours)
                status = make.wait()
        if status != 0:
            raise CommandFailed(f"make ended with {status}", status, "".join(failing))

    def _read(self, line: str, failing: list[str], ours: bool) -> None:
        if match := _OBJECT.match(line):
            self.objects += 1
            self._progress(self.objects, match["file"])
        if not ours:
            self._standing.read(line)
        if failing or _ERROR.search(line) or FULL in line:
            failing.append(line)


def first_error(output: str) -> str:
    """The first line of make's output that says why it failed; empty if there is no output."""
    lines = output.splitlines()
    found = (line.strip() for line in lines if _ERROR.search(line) and "***" not in line)
    return next(found, lines[0] if lines else "")
