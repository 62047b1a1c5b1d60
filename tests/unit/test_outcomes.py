"""Every way in which a case can end, and what the runner makes of it: real sessions against a fake guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.guest import Guest
from harness.model import CaseResult, Outcome
from harness.suites import Suite, Target
from harness.suites.base import Case
from tests.fake_guest import (
    KASAN,
    OOPS,
    WARNING,
    Script,
    Step,
    agent_dies,
    dies,
    dropped,
    exits,
    exits_without_fence,
    garbage,
    hangs,
    prints,
    raw,
    says,
)
from tests.play import play

CLOCK = "tsc: Marking TSC unstable due to could not calculate TSC khz"
SELFTEST = (
    "Testing tracer irqsoff: .. no entries found ..FAILED!",
    "------------[ cut here ]------------",
    "WARNING: CPU: 0 PID: 1 at kernel/trace/trace.c:2093 run_tracer_selftest+0x1f1/0x210",
    "CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.99 #1",
    "---[ end trace 0000000000000000 ]---",
)


class Plain(Suite):
    """Cases that pass if their command's exit status is 0."""

    name = "plain"

    def __init__(self, *cases: str, in_order: bool = False) -> None:
        self.in_order = in_order
        self._cases = cases or ("one", "two", "three")

    def plan(self, target: Target) -> list[Case]:
        return [Case((case,), 10.0) for case in self._cases]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        answer = guest.run("true", f"plain:{case.label}", case.seconds)
        outcome = Outcome.FAIL if answer.status else Outcome.PASS
        return [CaseResult(self.name, case.label, outcome, answer.seconds, "", answer.output)]


def when_two(*steps: Step) -> Script:
    return Script(commands={"plain:two": steps})


def test_all_is_well(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script())
    assert found.outcomes() == {f"plain:{name}": "pass" for name in ("one", "two", "three")}
    assert len(found.place.boots) == 1


@pytest.mark.parametrize(
    ("steps", "outcome", "why", "boots"),
    [
        ((exits(1),), "fail", "", 1),
        ((prints(*WARNING),), "crash", WARNING[1], 2),
        ((prints(*WARNING), exits(1)), "crash", WARNING[1], 2),
        ((prints(*KASAN),), "crash", KASAN[1], 2),
        ((prints(*OOPS), dies), "crash", OOPS[0], 2),
        ((prints(*WARNING), hangs), "crash", WARNING[1], 2),
        ((raw("[    9.1][   T50] " + OOPS[-1]), dies), "crash", OOPS[-1], 2),
        ((hangs,), "timeout", "no answer before the deadline", 2),
        ((dies,), "lost", "the guest is gone", 2),
        ((raw("[    9.1][   T50] half a"), dies), "lost", "the guest is gone", 2),
        ((agent_dies,), "lost", "the agent that ran the command died", 2),
        ((garbage(b"\n0123 end 0\n\xff\x00"), hangs), "timeout", "no answer before the deadline", 2),
        ((dropped(3),), "lost", "3 printk messages dropped", 1),
        ((dropped(3), exits(1)), "lost", "3 printk messages dropped", 1),
        ((dropped(3), prints(*WARNING)), "crash", f"{WARNING[1]}\n** 3 printk messages dropped **", 2),
    ],
)
@pytest.mark.parametrize("arch", ["x86_64", "arm"])
def test_how_a_case_ends(tmp_path: Path, arch: str, steps: tuple[Step, ...], outcome: str, why: str, boots: int) -> None:
    """x86_64 has a serial line for commands; arm uses one line for the console and commands."""
    found = play(tmp_path, [Plain()], when_two(*steps), Script(), arch=arch)
    assert found.outcomes("plain") == {"one": "pass", "two": outcome, "three": "pass"}
    assert why in found["plain:two"].diagnostic
    assert len(found.place.boots) == boots
    assert found.red == {"plain:two"}


def test_console_that_falls_silent(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], when_two(exits_without_fence()), Script())
    assert found.outcomes("plain") == {"one": "pass", "two": "lost", "three": "pass"}
    assert found["plain:two"].diagnostic == "the console fell silent while the command channel still answered"


@pytest.mark.parametrize(
    ("boot", "outcome", "why"),
    [
        ((prints("booting"), dies), "lost", "the guest is gone"),
        ((prints(*OOPS), dies), "crash", OOPS[0]),
    ],
)
def test_guest_that_never_reaches_its_agent(tmp_path: Path, boot: tuple[Step, ...], outcome: str, why: str) -> None:
    found = play(tmp_path, [Plain()], Script(boot=boot))
    assert found.outcomes("boot") == {"agent": outcome}
    assert found["boot:agent"].diagnostic.startswith(why)
    assert set(found.outcomes("plain").values()) == {"lost"}
    assert len(found.place.boots) == 1


def test_guest_that_is_never_ready(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(boot=(prints("booting"),), ready=False, sysrq=(prints("sysrq: help"),)))
    assert found.outcomes("boot") == {"agent": "timeout"}
    assert set(found.outcomes("plain").values()) == {"lost"}


def test_qemu_that_never_starts(tmp_path: Path) -> None:
    assert set(play(tmp_path, [Plain()], Script(qemu="no such machine")).outcomes("plain").values()) == {"error"}


# The console as a whole.


def test_splat_between_two_cases(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(commands={"plain:one": (exits(), prints(*WARNING))}), Script())
    # Whichever of the two was in flight when it was read.
    assert sorted(found.outcomes("plain").values()) == ["crash", "pass", "pass"]
    assert found.red < {"plain:one", "plain:two"}


@pytest.mark.parametrize(("step", "outcome"), [(prints(*KASAN), "crash"), (prints(KASAN[1]), "crash"), (dropped(7), "lost")])
def test_last_lines_of_a_guest(tmp_path: Path, step: Step, outcome: str) -> None:
    """Between the last command and the end of QEMU."""
    found = play(tmp_path, [Plain()], Script(last=(step,)))
    assert found.outcomes("boot") == {"console after the last case": outcome}


@pytest.mark.parametrize(("step", "outcome"), [(prints(*KASAN), "crash"), (dropped(7), "lost")])
def test_boot_that_is_not_clean(tmp_path: Path, step: Step, outcome: str) -> None:
    found = play(tmp_path, [Plain()], Script(boot=(step,)), Script())
    assert found.outcomes("boot") == {"console": outcome}
    assert set(found.outcomes("plain").values()) == {"pass"}


def test_report_during_the_backtraces_counts(tmp_path: Path) -> None:
    """A report that no NMI provoked is the kernel's own, whenever it comes."""
    found = play(tmp_path, [Plain()], Script(commands={"plain:two": (hangs,)}, sysrq=(prints(*KASAN),)), Script())
    assert found.outcomes("plain")["two"] == "crash"
    assert KASAN[1] in found["plain:two"].diagnostic


def test_panic_that_our_nmi_provoked_does_not(tmp_path: Path) -> None:
    script = Script(commands={"plain:two": (hangs,)}, sysrq=(), nmi=(prints("Kernel panic - not syncing: NMI: Not continuing"),))
    assert play(tmp_path, [Plain()], script, Script(), last_words=0.1).outcomes("plain")["two"] == "timeout"


# A failed clock calibration.


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ((), "skip"),
        (SELFTEST, "skip"),
        (KASAN, "crash"),
        ((*SELFTEST, *KASAN), "crash"),
        ((SELFTEST[2].replace("trace.c", "ftrace.c"), *SELFTEST[3:]), "crash"),
    ],
)
def test_clock_that_failed_excuses_only_what_follows_from_it(tmp_path: Path, lines: tuple[str, ...], outcome: str) -> None:
    found = play(tmp_path, [Plain()], Script(boot=(prints(CLOCK, *lines),)), Script())
    assert found.outcomes("boot") == {"misboot 1": outcome}
    assert CLOCK in found["boot:misboot 1"].diagnostic
    assert set(found.outcomes("plain").values()) == {"pass"}
    assert len(found.place.boots) == 2


def test_dropped_lines_of_a_boot_with_a_failed_clock(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(boot=(prints(CLOCK), dropped(2))), Script())
    assert found.outcomes("boot") == {"misboot 1": "lost"}


def test_three_failed_clocks_and_a_clean_boot(tmp_path: Path) -> None:
    bad = Script(boot=(prints(CLOCK, *KASAN),))
    found = play(tmp_path, [Plain()], bad, bad, bad, Script())
    assert found.outcomes("boot") == {f"misboot {number}": "crash" for number in (1, 2, 3)}


def test_clock_that_fails_always_has_to_do(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(boot=(prints(CLOCK),)))
    assert found.outcomes("boot") == {f"misboot {number}": "skip" for number in (1, 2, 3)}
    assert len(found.place.boots) == 4


# A guest that has splatted.


def test_kernel_that_splats_at_every_boot_is_not_trusted(tmp_path: Path) -> None:
    """A second boot may be clean. If it is not, a pass proves nothing: a checker may be off until the next boot."""
    found = play(tmp_path, [Plain()], Script(boot=(prints(*WARNING),), commands={"plain:two": (exits(1),)}))
    assert found.outcomes("boot") == {"console": "crash", "console of boot 2": "crash"}
    assert found.outcomes("plain") == {"one": "lost", "two": "fail", "three": "lost"}
    assert WARNING[1] in found["plain:one"].diagnostic
    assert len(found.place.boots) == 2


def test_splat_at_boot_that_is_known(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(boot=(prints(*WARNING),)), known=lambda result: WARNING[1] == result.diagnostic)
    assert found.outcomes("boot") == {"console": "crash"}
    assert set(found.outcomes("plain").values()) == {"pass"}
    assert len(found.place.boots) == 1


def test_kernel_that_splats_at_every_case(tmp_path: Path) -> None:
    cases = [str(number) for number in range(20)]
    splats = {f"plain:{case}": (prints(*WARNING),) for case in cases if case != "15"}
    found = play(tmp_path, [Plain(*cases)], Script(commands=splats))
    assert len(found.place.boots) == 11
    assert found.outcomes("plain") == {case: "lost" if case == "15" else "crash" for case in cases}
    assert "10 such guests" in found["plain:15"].diagnostic


def test_commands_after_one_that_left_a_splat(tmp_path: Path) -> None:
    """They share a guest, so it cannot be replaced."""
    script = Script(commands={"plain:two": (prints(*WARNING),), "plain:four": (says("output"), exits(1))})
    found = play(tmp_path, [Plain("one", "two", "three", "four", in_order=True)], script)
    assert found.outcomes("plain") == {"one": "pass", "two": "crash", "three": "lost", "four": "fail"}
    assert WARNING[1] in found["plain:three"].diagnostic
    assert len(found.place.boots) == 1


def test_commands_after_one_that_took_the_guest_along(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain(in_order=True)], when_two(dies))
    assert found.outcomes("plain") == {"one": "pass", "two": "lost", "three": "lost"}
    assert len(found.place.boots) == 1


# The way to the host.


def test_way_that_breaks_does_not_take_a_splat_along(tmp_path: Path) -> None:
    script = Script(commands={"plain:two": (prints(*KASAN), hangs)}, lost=True)
    found = play(tmp_path, [Plain()], script, Script())
    assert found.outcomes("plain") == {"one": "pass", "two": "crash", "three": "pass"}


def test_way_that_breaks_costs_no_case(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(commands={"plain:two": (dies,)}, lost=True), Script())
    assert set(found.outcomes().values()) == {"pass"}
    assert len(found.reported) == 3


# What a result says.


class Silent(Plain):
    """Reports what it was not asked for, or nothing."""

    def __init__(self, *results: CaseResult) -> None:
        super().__init__("one")
        self._results = list(results)

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        super().run(case, guest, target)
        return self._results


@pytest.mark.parametrize(
    ("results", "why", "log"),
    [
        ((), "planned, but never reported", ""),
        ((CaseResult("plain", "two", Outcome.PASS),), "planned, but never reported ()", ""),
        (
            (CaseResult("plain", "two", Outcome.FAIL, 0.0, "reason", "its log"),),
            "planned, but never reported (reason)",
            "its log",
        ),
    ],
)
def test_planned_case_that_never_reported(tmp_path: Path, results: tuple[CaseResult, ...], why: str, log: str) -> None:
    found = play(tmp_path, [Silent(*results)], Script())
    (result,) = found.reported
    assert result == CaseResult("plain", "one", Outcome.LOST, diagnostic=why, log=log)


def explain(text: str) -> str:
    return f"explained: {text}"


def test_log_of_a_crash_has_the_report_and_what_the_test_said(tmp_path: Path) -> None:
    script = when_two(says("output"), prints(*WARNING), exits(1))
    result = play(tmp_path, [Plain()], script, Script(), explain=explain)["plain:two"]
    assert result.diagnostic == f"{WARNING[1]}\nthe test itself: fail"
    assert result.log.startswith("explained: [")
    assert WARNING[3] in result.log
    assert result.log.endswith("\nthe test itself: fail\noutput")


def test_log_of_a_gap_is_what_the_test_said(tmp_path: Path) -> None:
    script = when_two(says("output"), dropped(1))
    result = play(tmp_path, [Plain()], script, explain=explain)["plain:two"]
    assert result.log == "the test itself: pass\noutput"


def test_log_of_a_deadline_has_the_cpus(tmp_path: Path) -> None:
    result = play(tmp_path, [Plain()], when_two(prints("last words"), hangs), Script(), explain=explain)["plain:two"]
    assert result.log.startswith("explained: CPU 0 is at 0xffffffff81000042\n")
    assert "last words" in result.log
    assert "Show backtrace of all active CPUs" in result.log


def test_log_of_a_deadline_with_a_report(tmp_path: Path) -> None:
    result = play(tmp_path, [Plain()], when_two(prints(*WARNING), hangs), Script(), explain=explain)["plain:two"]
    first, _, rest = result.log.partition("\nno answer before the deadline\nexplained: ")
    assert WARNING[3] in first
    assert "CPU 0 is at 0x" in rest


def test_why_a_green_result_is_lost(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain("one", "two", in_order=True)], Script(commands={"plain:one": (prints(*WARNING),)}))
    assert found["plain:two"].diagnostic == f"pass, but its guest had splatted in an earlier case (one): {WARNING[1]}"
    found = play(tmp_path, [Plain("one")], Script(boot=(prints(*WARNING),)))
    assert found["plain:one"].diagnostic == f"pass, but the kernel had splatted while it booted: {WARNING[1]}"


def test_what_was_not_run_did_not_run(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain(in_order=True)], Script(commands={"plain:one": (dies,)}))
    assert [(one.outcome.value, one.ran, one.diagnostic) for one in found.reported] == [
        ("lost", True, "the guest is gone"),
        ("lost", False, "the guest that ran what comes before it is gone"),
        ("lost", False, "the guest that ran what comes before it is gone"),
    ]


def test_guest_that_dies_after_the_last_case(tmp_path: Path) -> None:
    found = play(tmp_path, [Plain()], Script(commands={"end": (prints(*OOPS), dies)}))
    assert found.outcomes("boot") == {"console after the last case": "crash"}
    found = play(tmp_path, [Plain()], Script(commands={"end": (dies,)}))
    assert found.outcomes("boot") == {"console after the last case": "lost"}


def test_guest_that_booted_before_is_tried_once_more(tmp_path: Path) -> None:
    dead = Script(boot=(prints("booting"), dies))
    found = play(tmp_path, [Plain()], Script(commands={"plain:one": (dies,)}), dead, Script())
    assert found.outcomes() == {
        "plain:one": "lost",
        "boot:agent at boot 2": "lost",
        "plain:two": "pass",
        "plain:three": "pass",
    }
    found = play(tmp_path, [Plain()], Script(commands={"plain:one": (dies,)}), dead, dead, Script())
    assert found.outcomes() == {
        "plain:one": "lost",
        "boot:agent at boot 2": "lost",
        "boot:agent": "lost",
        "plain:two": "lost",
        "plain:three": "lost",
    }


def test_quiet_boots_after_the_first(tmp_path: Path) -> None:
    """Only the first boot runs what is judged by it."""
    found = play(tmp_path, [Plain()], when_two(dies), Script(), quiet=("calm=1", "calm=1"))
    assert [boot.cmdline for boot in found.place.boots] == [(), ("calm=1",)]


def test_excuses_are_for_three_failed_clocks_in_a_row(tmp_path: Path) -> None:
    bad = Script(boot=(prints(CLOCK),))
    found = play(tmp_path, [Plain()], bad, bad, Script(commands={"plain:one": (dies,)}), bad, bad, bad, Script())
    assert found.outcomes("boot") == {f"misboot {number}": "skip" for number in range(1, 6)}
    assert found.outcomes("plain") == {"one": "lost", "two": "pass", "three": "pass"}


def test_boot_that_splats_now_and_then_is_replaced_each_time(tmp_path: Path) -> None:
    bad, good = Script(boot=(prints(*WARNING),)), Script(commands={"plain:*": (dies,)})
    found = play(tmp_path, [Plain()], bad, good, bad, good, bad, good)
    assert found.outcomes("boot") == {"console": "crash", "console of boot 3": "crash", "console of boot 5": "crash"}
    assert set(found.outcomes("plain").values()) == {"lost"}
    assert all(found[f"plain:{name}"].diagnostic == "the guest is gone" for name in ("one", "two", "three"))


@pytest.mark.parametrize(("lines", "outcomes"), [(KASAN, {"console": "crash"}), ((), {})])
def test_way_that_breaks_while_a_guest_boots(tmp_path: Path, lines: tuple[str, ...], outcomes: dict[str, str]) -> None:
    """It costs no case, and hides no splat."""
    found = play(tmp_path, [Plain()], Script(boot=(prints("booting", *lines), dies), lost=True), Script())
    assert found.outcomes("boot") == outcomes
    assert set(found.outcomes("plain").values()) == {"pass"}


def test_way_that_breaks_under_commands_that_share_a_guest(tmp_path: Path) -> None:
    script = Script(commands={"plain:two": (prints(*KASAN), hangs)}, lost=True)
    found = play(tmp_path, [Plain(in_order=True)], script, Script())
    assert found.outcomes("plain") == {"one": "pass", "two": "crash", "three": "lost"}
    # Nothing is known of a case that the kernel had no complaint about: all run again.
    script = Script(commands={"plain:two": (dies,)}, lost=True)
    found = play(tmp_path, [Plain(in_order=True)], script, Script())
    assert [one.id for one in found.reported] == ["plain:one", "plain:one", "plain:two", "plain:three"]
    assert not found.red


PROVOKED = (prints("Kernel panic - not syncing: NMI: Not continuing"),)


@pytest.mark.parametrize(
    ("script", "outcomes"),
    [
        (Script(commands={"end": (hangs,)}, last=PROVOKED), {"boot:console after the last case": "timeout"}),
        (Script(commands={"plain:one": (hangs,)}, last=PROVOKED), {"plain:one": "timeout"}),
        (Script(boot=(prints("booting"),), ready=False, last=PROVOKED), {"boot:agent": "timeout", "plain:one": "lost"}),
    ],
)
def test_what_a_guest_says_that_was_lost_is_not_counted_again(tmp_path: Path, script: Script, outcomes: dict[str, str]) -> None:
    found = play(tmp_path, [Plain("one")], script, last_words=0.1)
    assert {case: outcome for case, outcome in found.outcomes().items() if outcome != "pass"} == outcomes


@pytest.mark.parametrize(
    ("first", "case"),
    [
        (Script(boot=(prints("booting"), dies), lost=True), "console"),
        (Script(boot=(prints(CLOCK),)), "console"),
        (Script(commands={"plain:one": (dies,)}), "console of boot 2"),
    ],
)
def test_boots_are_counted_as_they_were_judged(tmp_path: Path, first: Script, case: str) -> None:
    """A boot that counts for nothing has no number."""
    found = play(tmp_path, [Plain()], first, Script(boot=(prints(*WARNING),)), Script())
    assert case in found.outcomes("boot")


def test_commands_that_share_a_guest_wait_for_the_first(tmp_path: Path) -> None:
    """Another guest that is there before it leaves them alone."""

    class Ordered(Plain):
        name = "ordered"

    many = Plain(*(str(number) for number in range(40)))
    found = play(tmp_path, [many, Ordered(in_order=True)], Script(), guests=2)
    assert set(found.outcomes().values()) == {"pass"}
    helper, first = found.place.machines
    assert [one.label for one in helper.asked] == [
        "boot-end",
        "boot:identity",
        *(f"plain:{number}" for number in range(40)),
        "end",
    ]
    assert [one.label for one in first.asked] == ["boot-end", "boot:identity", "plain:one", "plain:two", "plain:three", "end"]


def test_splat_of_a_second_guest_has_its_name(tmp_path: Path) -> None:
    many = Plain(*(str(number) for number in range(40)))
    found = play(tmp_path, [many], Script(boot=(prints(*WARNING),)), Script(last=(prints(*KASAN),)), Script(), guests=2)
    assert found.outcomes("boot") == {"console of guest 2": "crash", "console after the last case of guest 2": "crash"}


@pytest.mark.parametrize("in_order", [False, True])
def test_only_what_is_wanted_is_run(tmp_path: Path, in_order: bool) -> None:
    found = play(tmp_path, [Plain(in_order=in_order)], Script(), globs=("tw*",))
    assert found.outcomes() == {"plain:two": "pass"}
    assert [one.label for one in found.place.asked()] == ["boot-end", "boot:identity", "plain:two", "end"]
