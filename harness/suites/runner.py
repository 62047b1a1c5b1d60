"""Run the selected suites: boot a guest, judge its log, run case after case, boot again when one takes it along
or leaves a splat behind."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager

import msgspec
from msgspec import Struct

from harness.durations import Durations
from harness.errors import CommandFailed, InfrastructureError
from harness.guest import Boot, Guest, GuestGone, GuestTimeout, PlaceLost
from harness.logs.splat import Splat
from harness.model import CaseResult, Outcome
from harness.suites.base import Case, Selection, Suite, Target

Emit = Callable[[CaseResult], None]
Start = Callable[[Boot, str], AbstractContextManager[Guest]]
"""Starts a guest, whose console goes to <name>.log, for the length of a block."""


_CASE_SECONDS = 2.0
_BOOT_SECONDS = 5.0
"""What a case and a boot are taken to last as long as nobody knows."""

_WORTH_A_BOOT = 4
"""Another guest helps only if there is work for so many times its boot."""


_MISBOOTS = 3
"""How often in a row a guest is started again because its machine went wrong; then it has to do."""

_LEEWAY = 3
"""A case has at least so many times what it took before: a machine is not always as busy as it was then."""

_FRESH = 10
"""How often a guest that splatted is replaced: a kernel that splats at everything would boot for ever."""


class Before(Struct, frozen=True):
    """What was finished before a run was cut short: case ids, and the judgement of the first boot, which is noted when it is."""

    cases: Collection[str]
    judged: bool
    note_judged: Callable[[], None]


NOTHING = Before((), False, lambda: None)


class _Planned(Struct, frozen=True):
    suite: Suite
    case: Case
    names: tuple[str, ...]
    """Those of the case's names that are wanted."""

    @property
    def id(self) -> str:
        return f"{self.suite.name}:{self.case.label}"


class _Serving:
    """How one guest of several has fared so far."""

    def __init__(self, who: str, judged: bool) -> None:
        """`who` tells it from the others; `judged` is whether somebody has looked at a first boot."""
        self.who = who
        self.judged = judged
        self.booted = False
        """The last time."""
        self.boots = 0
        self.misboots = 0
        self.excuses = _MISBOOTS


class Session:
    """All wanted cases of one kernel, run by one guest or by several that take turns at one queue.

    Each case is reported through `emit` exactly once, whatever becomes of the guests. `emit` is called from several threads."""

    def __init__(
        self,
        suites: Sequence[tuple[Suite, Selection]],
        target: Target,
        boot: Boot,
        quiet: Sequence[str],
        start: Start,
        durations: Durations,
        emit: Emit,
        name: str = "",
        hangs: Callable[[str], str] = lambda case: "",
        before: Before = NOTHING,
        explain: Callable[[str], str] = str,
    ) -> None:
        """`quiet` are the kernel parameters for a boot that nobody judges: all but the first. `name` tells this session's guests
        from those of another one of the same kernel. `hangs` says why a case, by its id, must not be run unless it is named, if
        so. `before` is what is not to be done once more. `explain` adds to the kernel's reports what its symbols tell."""
        self._suites = suites
        self._target = target
        self._boot = boot
        self._quiet = msgspec.structs.replace(boot, cmdline=tuple(dict.fromkeys([*boot.cmdline, *quiet])))
        self._start = start
        self._durations = durations
        self._emit = emit
        self._name = name
        self._lock = threading.Lock()
        self._before = before
        self._explain = explain
        self._stranded = Outcome.LOST
        """What becomes of cases for which no guest is left: our fault, if it was we who could not start one."""
        self._joined = 0
        self._fresh = _FRESH
        self._running = 0
        self._unbootable = False
        """A guest did not get as far as its agent: no other one is asked to help."""
        planned = []
        for suite, selection in suites:
            for case in suite.plan(target):
                wanted = tuple(name for name in case.names if selection.wants(name))
                if wanted and (why := hangs(f"{suite.name}:{case.label}")) and case.label not in selection.globs:
                    for name in wanted:
                        emit(CaseResult(suite.name, name, Outcome.SKIP, diagnostic=f"not run, it hangs: {why}"))
                elif wanted:
                    planned.append(_Planned(suite, case, wanted))
        left = [one for one in planned if any(f"{one.suite.name}:{name}" not in before.cases for name in one.names)]
        self._queue = deque(one for one in left if not one.suite.in_order)
        # They build upon each other: if one is left, all run again, for the guest that they ran in is gone.
        self._in_order = deque(one for one in planned if one.suite.in_order and any(other.suite is one.suite for other in left))
        """For the first guest alone."""
        self._all_in_order = tuple(self._in_order)

    @property
    def seconds(self) -> float:
        """What is left to do, by earlier runs."""
        return sum(self._durations.expect(planned.id, _CASE_SECONDS) for planned in list(self._queue))

    def join(self) -> int | None:
        """A number for another guest, counted from 1; None if it is not worth a boot. Whoever gets one must `run` it."""
        with self._lock:
            worth = self.seconds > _WORTH_A_BOOT * self._durations.expect("boot", _BOOT_SECONDS)
            if self._joined and (self._unbootable or not (self._running and worth)):
                return None
            self._joined += 1
            self._running += 1
            return self._joined

    def run(self, number: int) -> bool:
        """Be guest `number`: boot, take cases until none is left, boot again when one takes the guest along. The first guest's
        first boot is judged as well. True for the guest that ends last: all is reported then."""
        try:
            self._serve(number)
        except (InfrastructureError, CommandFailed):
            self._stranded = Outcome.ERROR
            self._leave()
            raise
        return self._leave()

    def _leave(self) -> bool:
        """Whoever goes last says what nobody ran. After an error that ends the whole run, nobody does: nothing is known of it."""
        with self._lock:
            self._running -= 1
            last = not self._running
        while last and (planned := self._take(1)):
            self._lose(planned, "no guest was there to run it", self._stranded)
        return last

    def _serve(self, number: int) -> None:
        name = "-".join(filter(None, [self._name, str(number) if number > 1 else ""]))
        log = f"console-{name}" if name else "console"
        now = _Serving(f" of guest {name}" if name else "", number > 1 or self._before.judged)
        while self._queue or not now.judged or (number == 1 and self._in_order):
            now.boots += 1
            try:
                with self._start(self._quiet if now.judged else self._boot, log) as guest:
                    if not self._use(guest, number, now):
                        break
            except PlaceLost:
                # The way to it broke, which says nothing of the kernel; the next one is started elsewhere.
                now.boots -= 1

    def _use(self, guest: Guest, number: int, now: _Serving) -> bool:
        """Wait for it, judge it if nobody has, and run cases. False if there is no use in another boot."""
        try:
            guest.wait_for_agent()
        except GuestGone as gone:
            outcome, title, evidence = self._what_killed(gone)
            which = f" at boot {now.boots}" if now.booted else ""
            self._emit(CaseResult("boot", f"agent{now.who}{which}", outcome, diagnostic=title, log=evidence))
            # If it could boot before, once more; it is not tried a third time.
            again, now.booted = now.booted, False
            self._unbootable |= not again
            return again
        now.booted = True
        splats = guest.console.take_splats()
        if now.excuses and guest.misboot:
            now.misboots += 1
            now.excuses -= 1
            now.boots -= 1
            titles, text = self._told(splats)
            said = f"started again: {guest.misboot}\n{titles}".strip()
            self._emit(CaseResult("boot", f"misboot {now.misboots}{now.who}", Outcome.SKIP, diagnostic=said, log=text))
            return True
        if splats:
            which = "" if now.boots == 1 else f" of boot {now.boots}"
            self._emit(self._console(splats, f"console{which}{now.who}"))
        now.excuses = _MISBOOTS
        if now.judged:
            self._durations.note("boot", guest.boot_seconds)
        else:
            self._judge(guest, clean=not splats)
            self._before.note_judged()
            now.judged = True
        self._take_cases(guest, number, now.who)
        return True

    def _judge(self, guest: Guest, clean: bool) -> None:
        for suite, selection in self._suites:
            for result in suite.judge_boot(guest.boot_log, self._target, guest):
                # A splat on the console was said already, whether that case was asked for or not.
                if selection.wants(result.name) and (clean or result.id != "boot:console"):
                    self._emit(result)

    def _take_cases(self, guest: Guest, number: int, who: str) -> None:
        """Until none is left, or the guest is gone, or cannot be trusted any more: a bug may have switched tracing off for good
        (ftrace_kill in kernel/trace/ftrace.c), and then all that comes after it fails."""
        while planned := self._take(number):
            known = self._durations.expect(planned.id, 0.0) / guest.patience
            case = msgspec.structs.replace(planned.case, seconds=max(planned.case.seconds, _LEEWAY * known))
            try:
                results = planned.suite.run(case, guest, self._target)
            except PlaceLost:
                self._give_back(planned)
                raise
            except GuestGone as gone:
                outcome, title, evidence = self._what_killed(gone)
                for name in planned.names:
                    self._emit(CaseResult(planned.suite.name, name, outcome, diagnostic=title, log=evidence))
                while planned.suite.in_order and self._in_order:
                    self._lose(self._in_order.popleft(), "the guest that ran what comes before it is gone")
                return
            self._durations.note(planned.id, sum(result.seconds for result in results))
            splats = guest.console.take_splats()
            for result in self._complete(planned, results, splats):
                self._emit(result)
            if splats and not planned.suite.in_order and self._fresh:
                self._fresh -= 1
                return
        try:
            guest.run("true", "end", 10)
        except GuestGone as gone:
            outcome, title, evidence = self._what_killed(gone)
            self._emit(CaseResult("boot", f"console after the last case{who}", outcome, diagnostic=title, log=evidence))
        if splats := guest.console.take_splats():
            self._emit(self._console(splats, f"console after the last case{who}"))

    def _lose(self, planned: _Planned, why: str, outcome: Outcome = Outcome.LOST) -> None:
        for name in planned.names:
            self._emit(CaseResult(planned.suite.name, name, outcome, diagnostic=why, ran=False))

    def _give_back(self, planned: _Planned) -> None:
        """Nothing is known of it. Of cases that build upon each other, all run again."""
        if planned.suite.in_order:
            self._in_order = deque(self._all_in_order)
        else:
            self._queue.appendleft(planned)

    def _take(self, number: int) -> _Planned | None:
        with contextlib.suppress(IndexError):
            return self._queue.popleft()
        with contextlib.suppress(IndexError):
            return self._in_order.popleft() if number == 1 else None
        return None

    def _complete(self, planned: _Planned, results: Sequence[CaseResult], splats: Sequence[Splat]) -> Iterator[CaseResult]:
        """A splat turns what the case said into a crash; a name that it did not report is lost."""
        reported = {result.name: result for result in results}
        titles, evidence = self._told(splats)
        for name in planned.names:
            result = reported.get(name)
            if result is None:
                said = next((other for other in results), None)
                why = f"planned, but never reported ({said.diagnostic})" if said else "planned, but never reported"
                result = CaseResult(planned.suite.name, name, Outcome.LOST, diagnostic=why, log=said.log if said else "")
            if splats:
                log = f"{evidence}\nthe test itself: {result.outcome}\n{result.log}".strip()
                result = msgspec.structs.replace(result, outcome=Outcome.CRASH, diagnostic=titles, log=log)
            yield result

    def _what_killed(self, gone: GuestGone) -> tuple[Outcome, str, str]:
        if not gone.splats:
            outcome = Outcome.TIMEOUT if isinstance(gone, GuestTimeout) else Outcome.LOST
            return outcome, gone.message, self._explain(gone.console)
        titles, text = self._told(gone.splats)
        if isinstance(gone, GuestTimeout):
            text += f"\n{gone.message}\n{self._explain(gone.console)}"
        return Outcome.CRASH, titles, text

    def _console(self, splats: Sequence[Splat], name: str) -> CaseResult:
        titles, text = self._told(splats)
        return CaseResult("boot", name, Outcome.CRASH, diagnostic=titles, log=text)

    def _told(self, splats: Sequence[Splat]) -> tuple[str, str]:
        """The titles, one a line, and the texts."""
        text = "\n".join(splat.text for splat in splats)
        return "\n".join(splat.title for splat in splats), self._explain(text) if text else ""
