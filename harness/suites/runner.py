"""Run the selected suites: boot a guest, judge its log, run case after case, boot again when one takes it along
or leaves a splat behind."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

import msgspec
from msgspec import Struct

from harness.durations import Durations
from harness.errors import CommandFailed, InfrastructureError
from harness.guest import Boot, Guest, GuestGone, PlaceLost
from harness.model import CaseResult, Outcome
from harness.suites import identity, verdict
from harness.suites.base import Case, Selection, Suite, Target
from harness.suites.verdict import Complaints, Explain

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
"""How often a session replaces a guest that splatted. Without a limit, a kernel that splats in every case
would boot for every case. Green results of a guest that is not replaced become lost: lockdep is off after
its first report (debug_locks_off in lib/debug_locks.c), UBSAN reports each place once, and ftrace may
have switched itself off."""


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
        self.lost = False
        """The last guest was lost."""
        self.clean = True
        """The last boot had no splat, or there was none yet."""
        self.boots = 0
        self.misboots = 0
        self.excuses = _MISBOOTS

    def named(self, case: str) -> str:
        """The name of a case of suite boot, as this boot of this guest reports it."""
        which = "" if self.boots == 1 else f" of boot {self.boots}"
        return f"{case}{which}{self.who}"


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
        explain: Explain = str,
        known: Callable[[CaseResult], bool] = lambda result: False,
    ) -> None:
        """`quiet` are the kernel parameters for a boot that nobody judges: all but the first. `name` tells this session's guests
        from those of another one of the same kernel. `hangs` says why a case, by its id, must not be run unless it is named, if
        so. `before` is what is not to be done once more. `explain` adds source lines and symbols to the kernel's reports. `known`
        is true for a red case that an entry of known.toml covers: a splat at boot that is expected costs no case."""
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
        self._known = known
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
            now.lost = False
            guest = None
            try:
                with self._start(self._quiet if now.judged else self._boot, log) as guest:
                    useful = self._use(guest, number, now)
                # By now all output of the kernel has been read, up to the end of QEMU. If the guest was lost, its case
                # is red already, and our own NMI may have caused more reports.
                if not now.lost and (complaints := _complaints(guest)):
                    self._emit(self._console(complaints, f"console after the last case{now.who}"))
                if not useful:
                    break
            except PlaceLost:
                # The connection to the host broke, which is no fault of the kernel; the next guest is started on another host.
                # Reports that the kernel printed before that still count.
                if guest and (splats := guest.console.take_splats()):
                    self._emit(self._console(Complaints(tuple(splats)), now.named("console")))
                now.boots -= 1

    def _use(self, guest: Guest, number: int, now: _Serving) -> bool:
        """Wait for the agent, judge the boot, and run cases. False if there is no use in another boot."""
        try:
            guest.wait_for_agent()
            proof = identity.prove(guest, self._target.kernel)
        except GuestGone as error:
            outcome, title, evidence = verdict.gone(error, self._explain)
            which = f" at boot {now.boots}" if now.booted else ""
            self._emit(CaseResult("boot", f"agent{now.who}{which}", outcome, diagnostic=title, log=evidence))
            now.lost = True
            # If it could boot before, once more; it is not tried a third time.
            again, now.booted = now.booted, False
            self._unbootable |= not again
            return again
        now.booted = True
        if not proof.outcome.green:
            # The guest runs another kernel, so no result of it counts, and the next guest would run the same one.
            self._emit(msgspec.structs.replace(proof, name=now.named(proof.name)))
            self._unbootable = True
            return False
        complaints = _complaints(guest)
        if now.excuses and guest.misboot:
            self._report_misboot(guest, complaints, now)
            return True
        distrust = self._judge(guest, complaints, now, proof)
        was_clean, now.clean = now.clean, not distrust
        if distrust and was_clean and self._replace():
            return True
        self._take_cases(guest, number, now, distrust)
        return True

    def _report_misboot(self, guest: Guest, complaints: Complaints, now: _Serving) -> None:
        """Report a failed clock calibration. It excuses the reports that it is known to cause, and no others."""
        now.misboots += 1
        now.excuses -= 1
        now.boots -= 1
        excused = not complaints.gaps and all(guest.follows_from_misboot(splat) for splat in complaints.splats)
        outcome = Outcome.SKIP if excused else complaints.outcome
        why = f"started again: {guest.misboot}\n{complaints.titles}".strip()
        log = complaints.log(self._explain)
        self._emit(CaseResult("boot", f"misboot {now.misboots}{now.who}", outcome, diagnostic=why, log=log))
        for suite, selection in () if now.judged else self._suites:
            for result in suite.judge_boot(guest.boot_log, self._target, guest):
                if not result.outcome.green and suite.concerns(result, selection) and not suite.needs_clock(result):
                    self._emit(result)

    def _judge(self, guest: Guest, complaints: Complaints, now: _Serving, proof: CaseResult) -> str:
        """Report the results of the boot. Returns the reason for distrust of the guest; empty if there is none."""
        distrust = ""
        if complaints:
            result = self._console(complaints, now.named("console"))
            self._emit(result)
            if complaints.splats and not self._known(result):
                distrust = f"the kernel had splatted while it booted: {complaints.splats[0].title}"
        now.excuses = _MISBOOTS
        if now.judged:
            self._durations.note("boot", guest.boot_seconds)
        else:
            self._judge_first(guest, proof, clean=not complaints)
            self._before.note_judged()
            now.judged = True
        return distrust

    def _judge_first(self, guest: Guest, proof: CaseResult, clean: bool) -> None:
        for suite, selection in self._suites:
            first = [proof] if suite.name == proof.suite else []
            for result in (*first, *suite.judge_boot(guest.boot_log, self._target, guest)):
                # A splat on the console was reported already, whether that case was asked for or not.
                if suite.concerns(result, selection) and (clean or result.id != "boot:console"):
                    self._emit(result)

    def _replace(self) -> bool:
        """True if a guest that splatted is to be replaced; counts it."""
        with self._lock:
            if not self._fresh:
                return False
            self._fresh -= 1
            return True

    def _take_cases(self, guest: Guest, number: int, now: _Serving, distrust: str) -> None:
        """Until none is left, or the guest is gone, or cannot be trusted any more: a bug may have switched tracing off for good
        (ftrace_kill in kernel/trace/ftrace.c), and then all that comes after it fails. `distrust` is the reason why it
        cannot be trusted from the beginning."""
        while planned := self._take(number):
            try:
                results = planned.suite.run(self._with_deadline(planned, guest), guest, self._target)
            except PlaceLost:
                self._way_broke(planned, guest)
                raise
            except GuestGone as error:
                outcome, title, evidence = verdict.gone(error, self._explain)
                for name in planned.names:
                    self._emit(CaseResult(planned.suite.name, name, outcome, diagnostic=title, log=evidence))
                self._lose_the_order(planned)
                now.lost = True
                return
            self._durations.note(planned.id, sum(result.seconds for result in results))
            complaints = _complaints(guest)
            self._emit_all(planned, results, complaints, distrust)
            if complaints.splats:
                if not planned.suite.in_order and self._replace():
                    return
                distrust = distrust or self._why_kept(planned, complaints)
        now.lost = not self._end(guest, now.who)

    def _end(self, guest: Guest, who: str) -> bool:
        """Check that the guest still answers after its last case. False if it does not, which is reported."""
        try:
            guest.ping("end")
        except GuestGone as error:
            outcome, title, evidence = verdict.gone(error, self._explain)
            self._emit(CaseResult("boot", f"console after the last case{who}", outcome, diagnostic=title, log=evidence))
            return False
        return True

    def _with_deadline(self, planned: _Planned, guest: Guest) -> Case:
        seconds = self._durations.expect(planned.id, 0.0) / guest.patience
        return msgspec.structs.replace(planned.case, seconds=max(planned.case.seconds, _LEEWAY * seconds))

    def _why_kept(self, planned: _Planned, complaints: Complaints) -> str:
        title = complaints.splats[0].title
        if planned.suite.in_order:
            return f"its guest had splatted in an earlier case ({planned.case.label}): {title}"
        return f"its guest had splatted before ({title}), and {_FRESH} such guests were replaced already, which is the limit"

    def _way_broke(self, planned: _Planned, guest: Guest) -> None:
        """The connection broke during a case, so the case runs again; but if the kernel has splatted, that is its result."""
        complaints = _complaints(guest)
        if not complaints.splats:
            self._give_back(planned)
            return
        self._emit_all(planned, [], complaints, "")
        self._lose_the_order(planned)

    def _lose_the_order(self, planned: _Planned) -> None:
        """Report the cases as lost that depend on earlier cases in a guest that is gone."""
        while planned.suite.in_order and self._in_order:
            self._lose(self._in_order.popleft(), "the guest that ran what comes before it is gone")

    def _emit_all(self, planned: _Planned, results: Sequence[CaseResult], complaints: Complaints, distrust: str) -> None:
        completed = verdict.complete(planned.suite.name, planned.names, results, complaints, distrust, self._explain)
        for result in completed:
            self._emit(result)

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

    def _console(self, complaints: Complaints, name: str) -> CaseResult:
        return verdict.console(name, complaints, self._explain)


def _complaints(guest: Guest) -> Complaints:
    """The kernel's reports and the gaps in the console since the last call."""
    return Complaints(tuple(guest.console.take_splats()), tuple(guest.console.take_gaps()))
