"""A run as the harness leaves it, of any size, without a guest."""

from __future__ import annotations

from pathlib import Path

from harness.model import CaseResult, Outcome
from harness.results import Journal, RunReport, journal, read_run, rundir

ARCHS = ("x86_64", "arm64", "riscv64", "s390x", "loongarch64", "ppc64le")
POINTS = ("base", "last")
HOSTILE = "<script>document.title = 'owned'</script>"
SPLAT = f"""\
first in the series' own files: kernel/trace/fprobe.c:117
BUG: kernel NULL pointer dereference, address: 0000000000000008
Call Trace:
 fprobe_entry+0x42/0x1b0 kernel/trace/fprobe.c:117
{HOSTILE} &amp; \x1b[31mred\x07
---[ end trace 0000000000000000 ]---
"""


def run(directory: Path, cases: int = 10, archs: tuple[str, ...] = ARCHS, points: tuple[str, ...] = POINTS) -> RunReport:
    """`cases` of a suite for each job. The second one crashes and the third one fails on the last architecture at the last
    point, and the fourth is skipped everywhere; there is a case whose name is a script, and a number that was measured."""
    directory.mkdir(parents=True)
    rundir.write_manifest(directory, {"command": ["harness", "run", "--cmd", "echo 'a b'"], "versions": {"git": "git 2"}})
    with Journal(directory) as events:
        events.write(journal.RunStarted(1e9, "fprobe", "debian:linux-source-6.12", ("run",), scope="all"))
        for arch in archs:
            for point in points:
                _job(events, directory, arch, point, cases, red=(arch, point) == (archs[-1], points[-1]))
        events.write(journal.RunFinished(1e9 + 4000, 1))
    return read_run(directory)


def _job(events: Journal, directory: Path, arch: str, point: str, cases: int, red: bool) -> None:
    folder = directory / arch / point
    folder.mkdir(parents=True)
    names = [f"dynevent/some_of_many/case_{number}.tc" for number in range(cases)]
    (folder / ".config").write_text(f"CONFIG_FTRACE=y\nCONFIG_FUNCTION_GRAPH_FREGS={'y' if arch != 'ppc64le' else 'm'}\n")
    lines = [f"[    0.{number:06}] booting {arch} {HOSTILE}" for number in range(300)]
    for number, name in enumerate(names):
        lines += [f"[    1.{number:06}][   T50] harness: {number:012x} {word} ftracetest:{name}" for word in ("begin", "end")]
    (folder / "console.log").write_text("\n".join(lines) + "\n")
    events.write(journal.JobStarted(1e9, arch, point))
    properties = {"release": "6.12.117", "number": "0" if point == "base" else "25", "patch": "none", "tested": point}
    events.write(journal.JobProperties(1e9, arch, point, properties))
    events.write(journal.StageFinished(1e9, arch, point, "build", 210.0, False))

    def told(result: CaseResult) -> None:
        events.write(journal.CaseFinished(1e9, arch, point, result))

    told(CaseResult("config", "config", Outcome.PASS))
    told(CaseResult("build", "build", Outcome.PASS, 210.0))
    told(CaseResult("kunit", f"fprobe_test.{HOSTILE}", Outcome.PASS, 0.1, log=HOSTILE))
    told(CaseResult("bench", "an entry handler", Outcome.PASS, value=40.0 if point == "base" else 50.0, unit="instructions"))
    for number, name in enumerate(names):
        outcome, why, log = Outcome.PASS, "", ""
        if red and number == 1:
            outcome, why, log = Outcome.CRASH, f"BUG: kernel NULL pointer dereference\n{HOSTILE}", SPLAT
        elif red and number == 2:
            outcome, why, log = Outcome.FAIL, "no event", "+ grep -q myevent trace"
        elif number == 3:
            outcome, why = Outcome.SKIP, "no such tracer"
        told(CaseResult("ftracetest", name, outcome, 1.0 + number % 7, why, log))
    events.write(journal.JobFinished(1e9, arch, point))
