"""Several guests at one queue: every case is reported once, whatever becomes of which guest."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cache import Cache
from harness.durations import Durations
from harness.errors import InfrastructureError
from harness.guest import Boot, Guest, PlaceLost
from harness.model import CaseResult, Outcome
from harness.suites import Selection, Session, Suite, Target
from harness.suites.base import Case
from harness.suites.runner import NOTHING, Before
from tests.fake_guest import FakePlace, Script, a_target, dies, prints

CASES = 40
SLOWNESS = 5


class Numbers(Suite):
    """Case 7 takes its guest along."""

    name = "numbers"

    def __init__(self) -> None:
        self.deadlines: dict[str, float] = {}
        self.breaks: list[str] = []
        """Cases at which the way to the guest breaks, once each."""

    def plan(self, target: Target) -> list[Case]:
        return [Case((str(number),), 1) for number in range(CASES)]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        self.deadlines[case.label] = case.seconds
        if case.label in self.breaks:
            self.breaks.remove(case.label)
            raise PlaceLost("the way is broken", "")
        guest.run("true", f"case-{case.label}", 10)
        return [CaseResult(self.name, case.label, Outcome.PASS)]


class Bench:
    def __init__(
        self,
        directory: Path,
        dead: tuple[str, ...] = (),
        broken: tuple[str, ...] = (),
        hangs: Callable[[str], str] = lambda case: "",
        globs: tuple[str, ...] = (),
        before: Before = NOTHING,
    ) -> None:
        self.reported: list[CaseResult] = []
        self.booted: list[str] = []
        self._dead = dead
        self._broken = broken
        self._directory = directory
        self.misboots = 0
        self.numbers = Numbers()
        suites = [(self.numbers, Selection("numbers", globs))]
        earlier = Durations(Cache(directory), "none")
        earlier.note("numbers:3", 100.0)
        earlier.save()
        boot, durations = Boot(Path("image"), Path("initramfs"), slowness=SLOWNESS), Durations(Cache(directory), "none")
        self.session = Session(
            suites,
            a_target(),
            boot,
            (),
            self.start,
            durations,
            self.reported.append,
            hangs=hangs,
            before=before,
        )

    @contextlib.contextmanager
    def start(self, boot: Boot, name: str) -> Iterator[Guest]:
        self.booted.append(name)
        if name in self._broken:
            raise InfrastructureError("no QEMU")
        script = Script(commands={"case-7": (dies,)})
        if name in self._dead:
            script = Script(boot=(prints("booting"), dies))
        elif self.misboots:
            self.misboots -= 1
            wrong = prints("tsc: Marking TSC unstable due to could not calculate TSC khz")
            script = Script(boot=(wrong,), commands={"case-7": (dies,)})
        with FakePlace(script).guest(self._directory, boot=boot, name=name) as guest:
            yield guest

    def run(self, guests: int) -> list[bool]:
        numbers = [self.session.join() for _ in range(guests)]
        assert numbers == list(range(1, guests + 1))
        last: list[bool] = []

        def run(number: int | None) -> None:
            with contextlib.suppress(InfrastructureError):
                last.append(self.session.run(number or 0))

        threads = [threading.Thread(target=run, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return last

    def outcomes(self) -> Counter[Outcome]:
        cases = [result for result in self.reported if result.suite == "numbers"]
        assert sorted(int(result.name) for result in cases) == list(range(CASES))
        return Counter(result.outcome for result in cases)


@pytest.mark.parametrize("guests", [1, 2, 5])
def test_each_case_once_and_one_guest_is_the_last(tmp_path: Path, guests: int) -> None:
    bench = Bench(tmp_path)
    assert sorted(bench.run(guests)) == [False] * (guests - 1) + [True]
    assert bench.outcomes() == {Outcome.PASS: CASES - 1, Outcome.LOST: 1}
    assert bench.session.join() is None


def test_case_that_hangs_is_skipped_and_says_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hangs=lambda case: "for ever" if case == "numbers:5" else "")
    bench.run(1)
    assert bench.outcomes() == {Outcome.PASS: CASES - 2, Outcome.LOST: 1, Outcome.SKIP: 1}
    (skipped,) = [result for result in bench.reported if result.outcome is Outcome.SKIP]
    assert (skipped.id, skipped.diagnostic) == ("numbers:5", "not run, it hangs: for ever")


def test_case_that_hangs_is_run_if_it_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hangs=lambda case: "for ever", globs=("5", "1*"))
    bench.run(1)
    found = {result.name: result.outcome for result in bench.reported if result.suite == "numbers"}
    assert found.pop("5") is Outcome.PASS
    assert found
    assert set(found.values()) == {Outcome.SKIP}


def test_helper_that_does_not_boot_costs_no_case(tmp_path: Path) -> None:
    bench = Bench(tmp_path, dead=("console-2",))
    assert (bench.session.join(), bench.session.join()) == (1, 2)
    assert not bench.session.run(2)
    assert bench.session.run(1)
    assert bench.outcomes() == {Outcome.PASS: CASES - 1, Outcome.LOST: 1}
    assert [result.id for result in bench.reported if result.suite == "boot"] == ["boot:agent of guest 2"]


def test_no_guest_boots(tmp_path: Path) -> None:
    bench = Bench(tmp_path, dead=("console", "console-2"))
    bench.run(2)
    assert bench.outcomes() == {Outcome.LOST: CASES}


def test_nobody_helps_a_kernel_that_does_not_boot(tmp_path: Path) -> None:
    """Each helper would be asked for one more, as long as it has not failed itself."""
    bench = Bench(tmp_path, dead=("console",))
    assert (bench.session.join(), bench.session.join()) == (1, 2)
    assert not bench.session.run(1)
    assert bench.session.join() is None
    assert bench.session.run(2)


def test_qemu_that_does_not_start(tmp_path: Path) -> None:
    bench = Bench(tmp_path, broken=("console",))
    assert bench.run(1) == []
    assert bench.outcomes() == {Outcome.ERROR: CASES}


def test_another_guest_only_where_it_is_worth_its_boot(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.session.join() == 1
    assert bench.session.join() == 2
    Durations(Cache(tmp_path), "none").save()
    slow = Durations(Cache(tmp_path), "none")
    slow.note("boot", 1000)
    slow.save()
    bench = Bench(tmp_path)
    assert bench.session.join() == 1
    assert bench.session.join() is None


def test_machine_that_goes_wrong_is_started_again_but_not_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.misboots = 2
    bench.run(1)
    assert bench.booted == ["console"] * 4  # two wrong, one right, one more after case 7
    assert bench.outcomes() == {Outcome.PASS: CASES - 1, Outcome.LOST: 1}
    bench = Bench(tmp_path)
    bench.misboots = 100
    bench.run(1)
    assert bench.outcomes() == {Outcome.PASS: CASES - 1, Outcome.LOST: 1}


def test_what_took_long_before_is_given_longer(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run(1)
    assert bench.numbers.deadlines["3"] == 3 * 100 / SLOWNESS
    assert bench.numbers.deadlines["4"] == 1


def test_what_was_done_before_is_not_done_again(tmp_path: Path) -> None:
    noted: list[bool] = []
    done = {f"numbers:{number}" for number in range(CASES) if number != 5}
    bench = Bench(tmp_path, before=Before(done, True, lambda: noted.append(True)))
    bench.run(1)
    assert [result.id for result in bench.reported] == ["numbers:5"]
    assert (len(bench.booted), noted) == (1, [])
    bench = Bench(tmp_path, before=Before({*done, "numbers:5"}, True, lambda: noted.append(True)))
    assert bench.run(1) == [True]
    assert (bench.reported, bench.booted) == ([], [])
    bench = Bench(tmp_path, before=Before({*done, "numbers:5"}, False, lambda: noted.append(True)))
    bench.run(1)
    assert (len(bench.booted), noted) == (1, [True]), "the first boot was not judged yet"


@pytest.mark.parametrize("guests", [1, 3])
def test_way_that_breaks_costs_no_case(guests: int, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.numbers.breaks = ["3", "11", "39"]
    assert sorted(bench.run(guests)) == [False] * (guests - 1) + [True]
    assert bench.outcomes() == {Outcome.PASS: CASES - 1, Outcome.LOST: 1}
    assert not [result for result in bench.reported if result.suite == "boot"]
