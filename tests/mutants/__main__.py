"""`nox -s mutants`: change the modules that decide about red and green, and check that a unit test notices each change.

python -m tests.mutants --minutes 30 --module 'suites/policy.py'
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from tests import surroundings
from tests.mutants import listed, report, tree
from tests.mutants.choose import Chooser
from tests.mutants.generate import RECIPE, Mutant, mutants
from tests.mutants.judge import Attempt, Tried, Verdict
from tests.mutants.state import State

ROOT = Path(__file__).resolve().parents[2]
TESTS = "tests/unit"


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    root = options.root.resolve()
    state = options.state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        wanted = listed.read(root / "tests" / "mutants.toml")
        files = listed.modules(wanted, root, options.module)
        digests = tree.digests(root)
        every = {file: _mutants_of(root, file, digests[file], state) for file in files}
        imported = tree.imported(root)
        verdicts = State(state / f"verdicts-{RECIPE}.jsonl", digests, imported, TESTS, options.afresh)
        found = _try_all([one for ones in every.values() for one in ones], verdicts, root, state, deadline, options)
    except listed.Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 2
    except tree.BaselineFailed as failed:
        print(f"{failed}\nThe unit tests fail without any mutant: fix them first.", file=sys.stderr)
        return 1
    chosen = [one for one in wanted.equivalent if one.file in every or not options.module]
    return _reported(report.Report(every, found, chosen, wanted.at_least), root)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s mutants --", description=__doc__)
    parser.add_argument("--minutes", type=float, default=0, help="begin no mutant after this time; the next run goes on there")
    parser.add_argument("--module", action="append", default=[], metavar="GLOB", help="only these modules, like suites/*.py")
    parser.add_argument("--tests", action="append", default=[], metavar="GLOB", help="only these tests, like test_policy*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many mutants are tried at the same time")
    parser.add_argument("--afresh", action="store_true", help="use no verdict of an earlier run")
    parser.add_argument("--state", type=Path, default=_default_state(), help="where verdicts are kept between runs")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project that is changed, in a copy")
    return parser


def _default_state() -> Path:
    return surroundings.cache_folder() / "mutants"


def _mutants_of(root: Path, file: str, digest: str, state: Path) -> list[Mutant]:
    """The mutants of a file. They are cached, because it takes seconds to make those of a long file."""
    kept = state / "made" / f"{RECIPE}-{file.replace('/', '.')}-{digest}.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=list[Mutant])
    made = mutants(file, (root / file).read_text(encoding="utf-8"))
    kept.parent.mkdir(exist_ok=True)
    for old in kept.parent.glob(f"*-{file.replace('/', '.')}-*"):
        old.unlink()
    partial = kept.with_suffix(".part")
    partial.write_bytes(msgspec.json.encode(made))
    partial.rename(kept)
    return made


def _try_all(
    every: Sequence[Mutant], verdicts: State, root: Path, state: Path, deadline: float, options: argparse.Namespace
) -> dict[str, Tried]:
    found = {one.id: tried for one in every if (tried := verdicts.known(one))}
    left = [one for one in every if one.id not in found]
    print(f"{len(every)} mutants, {len(left)} of them to be tried", flush=True)
    if not left:
        return found
    work = state / f"work-{os.getpid()}"
    for old in state.glob("work-*"):  # of runs that were killed
        if not psutil.pid_exists(int(old.name.removeprefix("work-"))):
            shutil.rmtree(old, ignore_errors=True)
    try:
        work.mkdir()
        first, passed = tree.baseline(root, work, TESTS, tree.digests(root), state / "baseline.json", options.tests)
        chooser = Chooser(passed)
        trees = [first, *(tree.with_bytecode(first, work / f"tree{number}") for number in range(1, options.jobs))]
        _run(left, chooser, trees, verdicts, found, deadline, whole=not options.tests)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return found


class _Trial(NamedTuple):
    """A mutant, and what runs of it now."""

    mutant: Mutant
    attempt: Attempt
    batches: Sequence[list[str]] = ()
    """The tests that run if it survives those that run now."""
    timeout: Tried | None = None
    """The verdict that `attempt` checks: it runs without the mutant."""


def _run(
    left: Iterable[Mutant],
    chooser: Chooser,
    trees: list[Path],
    verdicts: State,
    found: dict[str, Tried],
    deadline: float,
    whole: bool,
) -> None:
    """Try mutants in all trees at the same time until the deadline. Unless all tests run (`whole`), a survivor
    is not recorded, because another test may notice it."""
    waiting = iter(left)
    running: list[_Trial] = []
    free = list(trees)

    def ended(mutant: Mutant, tried: Tried) -> None:
        found[mutant.id] = tried
        if whole or tried.verdict is not Verdict.SURVIVED:
            verdicts.add(mutant, tried)
        if tried.verdict is Verdict.KILLED:
            chooser.killed(mutant, tried.by)
        place = f"{mutant.file}:{mutant.first}"
        print(f"{tried.verdict.value:8} {place}  {mutant.before} -> {mutant.after}  {tried.by}", flush=True)

    def begin(mutant: Mutant, batches: Sequence[list[str]], tree: Path) -> None:
        attempt = Attempt(mutant, batches[0], chooser.expected, tree)
        running.append(_Trial(mutant, attempt, batches[1:]))

    try:
        while True:
            while free and time.monotonic() < deadline and (mutant := next(waiting, None)):
                if batches := chooser.batches(mutant):
                    begin(mutant, batches, free.pop())
                else:
                    ended(mutant, Tried(Verdict.SURVIVED, "no test runs it"))
            if not running:
                return
            for trial in running[:]:
                if (tried := trial.attempt.poll()) is None:
                    continue
                running.remove(trial)
                tree = trial.attempt.tree
                if trial.timeout is not None:
                    ended(trial.mutant, _checked(trial.timeout, tried))
                elif tried.verdict is Verdict.TIMEOUT:
                    # Run the same test without the mutant, to find out whether the mutant or a busy machine made it slow.
                    test = tried.by if tried.by in chooser.expected else trial.attempt.tests[0]
                    control = Attempt(None, [test], chooser.expected, tree)
                    running.append(_Trial(trial.mutant, control, timeout=tried))
                    continue
                elif tried.verdict is Verdict.SURVIVED and trial.batches:
                    begin(trial.mutant, trial.batches, tree)
                    continue
                else:
                    ended(trial.mutant, tried)
                free.append(tree)
            time.sleep(0.01)
    finally:
        for trial in running:
            trial.attempt.stop()


def _checked(timeout: Tried, control: Tried) -> Tried:
    if control.verdict is Verdict.SURVIVED and control.seconds < timeout.seconds / 2:
        return timeout
    return Tried(Verdict.UNTESTED, f"{timeout.by} is as slow without the mutant", timeout.seconds)


def _reported(result: report.Report, root: Path) -> int:
    for mutant in result.survivors():
        print(f"\n{report.difference(mutant, root)}")
    print()
    print(report.table(list(result.rows())))
    problems = list(result.problems())
    for problem in problems:
        print(f"mutants: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
