"""Run the selected suites in a guest: boot it, judge its log, run case after case, boot again when one takes it along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness.arch import Arch
from harness.guest import Accelerator, Boot, Guest, GuestGone, GuestTimeout
from harness.guest.guest import started
from harness.logs.splat import Splat
from harness.model import CaseResult, Outcome
from harness.suites.base import Case, Selection, Suite, Target

Emit = Callable[[CaseResult], None]


class _Planned(Struct, frozen=True):
    suite: Suite
    case: Case
    names: tuple[str, ...]
    """Those of the case's names that are wanted."""


def run_suites(
    suites: Sequence[tuple[Suite, Selection]],
    target: Target,
    arch: Arch,
    accelerator: Accelerator,
    boot: Boot,
    directory: Path,
    quiet: Sequence[str],
    emit: Emit,
) -> None:
    """Run every wanted case and `emit` one result for each, whatever becomes of the guest.

    `quiet` are the kernel parameters for a boot that nobody judges: the ones after a crash."""
    queue = [
        _Planned(suite, case, wanted)
        for suite, selection in suites
        for case in suite.plan(target)
        if (wanted := tuple(name for name in case.names if selection.wants(name)))
    ]
    boots, judged = 0, False
    while queue or not judged:
        boots += 1
        cmdline = boot.cmdline if not judged else tuple(dict.fromkeys([*boot.cmdline, *quiet]))
        with started(arch, accelerator, Boot(boot.image, boot.initramfs, cmdline), directory) as guest:
            begin = guest.console.offset
            try:
                guest.wait_for_agent()
            except GuestGone as gone:
                emit(_boot_failure(gone, guest))
                for planned in queue:
                    _emit_lost(planned, "the guest did not boot", emit)
                return
            splats = guest.console.take_splats()
            if splats:
                _emit_console(splats, "console" if boots == 1 else f"console of boot {boots}", emit)
            if not judged:
                _judge(suites, target, guest, begin, emit, clean=not splats)
                judged = True
            queue = _run_queue(queue, guest, target, emit)


def _judge(suites: Sequence[tuple[Suite, Selection]], target: Target, guest: Guest, begin: int, emit: Emit, clean: bool) -> None:
    lines = list(guest.console.read(begin, guest.booted_at))
    for suite, selection in suites:
        for result in suite.judge_boot(lines, target, guest):
            # A splat on the console was said already, whether that case was asked for or not.
            if selection.wants(result.name) and (clean or result.id != "boot:console"):
                emit(result)


def _run_queue(queue: list[_Planned], guest: Guest, target: Target, emit: Emit) -> list[_Planned]:
    """Run cases until none is left or the guest is gone. Returns what remains for the next guest."""
    while queue:
        planned, queue = queue[0], queue[1:]
        try:
            results = planned.suite.run(planned.case, guest, target)
        except GuestGone as gone:
            _emit_gone(planned, gone, guest, emit)
            return queue
        _emit_results(planned, results, guest.console.take_splats(), emit)
    try:
        guest.run("true", "end", 10)
    except GuestGone as gone:
        outcome, title, evidence = _what_killed(gone, guest)
        emit(CaseResult("boot", "console after the last case", outcome, diagnostic=title, log=evidence))
    if splats := guest.console.take_splats():
        _emit_console(splats, "console after the last case", emit)
    return queue


def _emit_results(planned: _Planned, results: Sequence[CaseResult], splats: Sequence[Splat], emit: Emit) -> None:
    """A splat turns what the case said into a crash; a name that it did not report is lost."""
    reported = {result.name: result for result in results}
    for name in planned.names:
        result = reported.get(name)
        if result is None:
            said = next((other for other in results), None)
            why = f"planned, but never reported ({said.diagnostic})" if said else "planned, but never reported"
            result = CaseResult(planned.suite.name, name, Outcome.LOST, diagnostic=why, log=said.log if said else "")
        if splats:
            evidence = "\n".join(splat.text for splat in splats)
            said_so = f"{splats[0].title} (the test itself: {result.outcome})"
            result = msgspec.structs.replace(
                result, outcome=Outcome.CRASH, diagnostic=said_so, log=f"{evidence}\n{result.log}".strip()
            )
        emit(result)


def _emit_gone(planned: _Planned, gone: GuestGone, guest: Guest, emit: Emit) -> None:
    outcome, title, evidence = _what_killed(gone, guest)
    for name in planned.names:
        emit(CaseResult(planned.suite.name, name, outcome, diagnostic=title, log=evidence))


def _emit_lost(planned: _Planned, why: str, emit: Emit) -> None:
    for name in planned.names:
        emit(CaseResult(planned.suite.name, name, Outcome.LOST, diagnostic=why))


def _boot_failure(gone: GuestGone, guest: Guest) -> CaseResult:
    outcome, title, evidence = _what_killed(gone, guest)
    return CaseResult("boot", "agent", outcome, diagnostic=title, log=evidence)


def _what_killed(gone: GuestGone, guest: Guest) -> tuple[Outcome, str, str]:
    splats = guest.console.take_splats()
    tail = gone.console or guest.console.tail()
    if splats:
        return Outcome.CRASH, splats[0].title, "\n".join(splat.text for splat in splats)
    return (Outcome.TIMEOUT if isinstance(gone, GuestTimeout) else Outcome.LOST), gone.message, tail


def _emit_console(splats: Sequence[Splat], name: str, emit: Emit) -> None:
    text = "\n".join(splat.text for splat in splats)
    emit(CaseResult("boot", name, Outcome.CRASH, diagnostic=splats[0].title, log=text))
