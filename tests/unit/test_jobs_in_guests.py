"""A whole run on the fake kernel tree, whose kernels boot in fake guests: what a job hands on from its build to its guests, and
from one point to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import paths
from harness.cache import Cache, digest_of
from harness.errors import InfrastructureError
from harness.guest.channel import Question
from harness.guest.initramfs import SELFTESTS
from harness.job.shared import Shared
from harness.kernel.identity import build_id
from harness.model import CaseResult, Initramfs, Outcome
from harness.results import RunReport
from harness.tree import Store
from tests import fake
from tests.fake_guest import WARNING, FakePlace, Machine, Script, Step, exits, prints, says
from tests.unit.test_completeness import finished
from tests.unit.test_pipeline import ARCH, Bench, bench, main

__all__ = ["bench"]

A = "ftracetest:a.tc"
NOTES = {"Documentation/notes": "more\n"}


def running(place: FakePlace) -> Step:
    """Tells the build id of the kernel that was booted last."""

    def step(machine: Machine, question: Question) -> None:
        vmlinux = place.boots[-1].image.with_name("vmlinux")
        machine.say(f"{build_id(vmlinux)} /sys/kernel/notes\n")

    return step


def tap(*results: str) -> tuple[Step, ...]:
    red = any(result.startswith("not ok") for result in results)
    return (says("\n".join(["TAP version 13", *results, f"1..{len(results)}\n"])), exits(int(red)))


PASSES = {A: tap("ok 1 first")}


def guests(monkeypatch: pytest.MonkeyPatch, *scripts: dict[str, tuple[Step, ...]], boot: tuple[Step, ...] = ()) -> FakePlace:
    """In place of QEMU on this machine: a script for each boot, the last one for all that follow."""
    place = FakePlace(Script())
    place._scripts = [
        Script(boot=boot, commands={"boot:identity": (running(place),), **PASSES, **script}) for script in (scripts or ({},))
    ]
    for module in ("harness.hosts.fleet", "harness.job.way", "harness.job.testing"):
        monkeypatch.setattr(f"{module}.HERE", place)
    monkeypatch.setattr("harness.guest.build_initramfs", initramfs)
    return place


def initramfs(kernel: Any, commit: str, arch: Any, compiler: Any, cache: Cache) -> tuple[Initramfs, bool]:
    """One without programs: it only differs with the selftests in it."""
    digest = digest_of(Store(cache).rev_parse(f"{commit}:{SELFTESTS}"))
    path = cache.directory("initramfs") / digest
    path.write_text(digest)
    return Initramfs(path, digest), True


def with_symbols(bench: Bench) -> None:
    """Reports are explained by the kernel's symbols, so it needs some."""
    makefile = fake.MAKEFILE.replace("echo map", "echo 0000000000000000 T _text")
    assert makefile != fake.MAKEFILE
    (bench.path / "linux" / "Makefile").write_text(makefile)
    fake.git(bench.path / "linux", "commit", "--quiet", "--all", "--message=symbols")


def seen(report: RunReport, case: str = A, point: str = "last") -> Outcome:
    return report.jobs[ARCH, point].cases[case].result.outcome


def run(bench: Bench, series: Path, points: str | None = "last", suites: tuple[str, ...] = (A,), **more: Any) -> RunReport:
    return bench.run(bench.parse(series, points=points, suite_specs=[*suites], **more))


@pytest.mark.parametrize(("answer", "outcome", "code"), [("ok 1 first", Outcome.PASS, 0), ("not ok 1 first", Outcome.FAIL, 1)])
def test_what_the_guest_reports_is_what_the_run_answers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, answer: str, outcome: Outcome, code: int
) -> None:
    guests(monkeypatch, {A: tap(answer)})
    report = run(bench, bench.series(main("int one;")), suites=("boot", A))
    assert (seen(report), finished(report).exit_code) == (outcome, code)
    # The first boot is judged.
    assert {case for case in report.jobs[ARCH, "last"].cases if case.startswith("boot:")} == {
        "boot:agent",
        "boot:console",
        "boot:identity",
    }
    assert seen(report, "boot:identity") is Outcome.PASS


def test_what_was_asked_for_and_is_not_there_is_red(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    guests(monkeypatch)
    report = run(bench, bench.series(main("int one;")), suites=(A, "ftracetest:nowhere/*.tc"))
    assert seen(report, "ftracetest:nowhere/*.tc") is Outcome.LOST
    assert finished(report).exit_code == 1


def test_nothing_is_green_in_a_kernel_that_always_splats(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with_symbols(bench)
    guests(monkeypatch, boot=(prints(*WARNING),))
    report = run(bench, bench.series(main("int one;")))
    assert (seen(report), seen(report, "boot:console")) == (Outcome.LOST, Outcome.CRASH)


def test_what_is_red_in_a_second_chance_alone_is_red(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with_symbols(bench)
    place = guests(monkeypatch, {A: tap("not ok 1 first")}, {})
    place._scripts[1] = Script(boot=(prints(*WARNING),), commands=place._scripts[1].commands)
    report = run(bench, bench.series(main("int one;")), retries=1)
    reds = {result.id for result in report.results if not result.outcome.green}
    assert reds - {A}, "the boot of the second chance splatted"
    assert finished(report).exit_code == 1


def test_job_that_an_error_of_ours_ended_is_not_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    guests(monkeypatch)

    def broken(*words: object) -> None:
        raise InfrastructureError("no busybox")

    with monkeypatch.context() as patch:
        patch.setattr("harness.guest.build_initramfs", broken)
        report = run(bench, bench.series(main("int one;")))
    job = report.jobs[ARCH, "last"]
    assert (job.finished, finished(report).exit_code) == (False, 3)
    again = bench.run(bench.parse(bench.path / "s", points="last", suite_specs=[A]), again=report.directory)
    assert (seen(again), finished(again).exit_code) == (Outcome.PASS, 0)


def test_session_that_an_error_of_ours_ended_is_not_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = guests(monkeypatch)
    place._scripts = [Script(qemu="no such machine")]
    report = run(bench, bench.series(main("int one;")))
    assert (report.jobs[ARCH, "last"].finished, finished(report).exit_code) == (False, 3)


# Results that are shared between points.


def test_same_kernel_and_same_guest_run_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = guests(monkeypatch)
    report = run(bench, bench.series(NOTES), "base,last")
    assert (seen(report, A, "base"), seen(report), len(place.boots)) == (Outcome.PASS, Outcome.PASS, 1)


def test_other_selftests_on_the_same_kernel_run_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = guests(monkeypatch, {}, {A: tap("not ok 1 first")})
    report = run(bench, bench.series({f"{SELFTESTS}/test.d/a.tc": "#!/bin/sh\n# description: other\n"}), "base,last")
    assert (seen(report, A, "base"), seen(report), len(place.boots)) == (Outcome.PASS, Outcome.FAIL, 2)


def test_must_run_case_that_skips_on_the_same_kernel_is_red_with_the_series(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests(monkeypatch, {A: tap("ok 1 first # SKIP")})
    directory = bench.series(NOTES)
    (directory / "series.toml").write_text(f'[[must-run]]\ncase = "{A}"\nreason = "it proves the series"\n')
    report = run(bench, directory, "base,last")
    assert (seen(report, A, "base"), seen(report)) == (Outcome.SKIP, Outcome.FAIL)


def test_failure_on_the_same_kernel_that_the_series_fixes_is_red_with_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    guests(monkeypatch, {A: tap("not ok 1 first # it fails")})
    (bench.path / "patches" / "s").mkdir(parents=True)
    monkeypatch.setattr(paths, "PATCHES", bench.path / "patches")
    (bench.path / "configs" / "known.toml").write_text(
        f'[[known]]\ncase = "{A}"\noutcome = ["fail"]\ndiagnostic = ["*it fails*"]\nreason = "it is a test"\n'
        'any-version = "it is a test"\nfixed-by = ["s"]\n'
    )
    report = run(bench, bench.series(NOTES), "base,last")
    assert (seen(report, A, "base"), seen(report)) == (Outcome.XFAIL, Outcome.FAIL)


def test_claim_on_the_same_kernel_is_judged_at_each_point(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    guests(monkeypatch, {"claims:*": (says("value: red\n"), exits(0))})
    directory = bench.series(NOTES)
    (directory / "claims.toml").write_text(
        '[[claim]]\ncase = "01 colour"\nsays = "It turns blue."\nbase = "red"\npatched = "blue"\nscript = "value red"\n'
    )
    report = run(bench, directory, "base,last", ("claims",))
    case = "claims:01 colour"
    assert (seen(report, case, "base"), seen(report, case)) == (Outcome.PASS, Outcome.FAIL)


def test_who_joins_early_ends_when_the_guests_do() -> None:
    results: list[CaseResult] = []
    ends: list[bool] = []
    shared = Shared("base", [], ended=False)
    shared.join(results.append, lambda: ends.append(True))
    assert not ends
    shared.report(CaseResult("kunit", "a", Outcome.FAIL))
    shared.end()
    shared.join(results.append, lambda: ends.append(True))
    assert ([result.name for result in results], ends) == (["a", "a"], [True, True])


# From the series and the configuration to the guest.


def test_kernel_that_watches_itself_has_more_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = guests(monkeypatch)
    (bench.path / "linux" / "Kconfig").write_text(fake.KCONFIG + '\nconfig KASAN\n\tbool "Checks"\n')
    fake.git(bench.path / "linux", "commit", "--quiet", "--all", "--message=KASAN")
    (bench.path / "configs" / "base.config").write_text("CONFIG_FTRACE=y\nCONFIG_KASAN=y\n")
    run(bench, Path("none"))
    assert [boot.slowness for boot in place.boots] == [4]


def test_what_the_series_itself_asks_for_is_optional_nowhere(bench: Bench) -> None:
    directory = bench.series(main("int one;"))
    (directory / "series.config").write_text(f"# optional {ARCH}: not there\nCONFIG_NEEDS_MORE=y\n")
    (directory / "series.toml").write_text('fragment = "series.config"\n')
    report = bench.run(bench.parse(directory, points="base,last"))
    assert (seen(report, "config:config", "base"), seen(report, "config:config")) == (Outcome.PASS, Outcome.FAIL)


def test_patch_that_is_said_to_be_upstream_and_is_not_is_red(bench: Bench) -> None:
    directory = bench.series(main("int one;"))
    upstream = '{ file = "other.c", has = "nothing like it" }'
    (directory / "series.toml").write_text(f'[origin]\ntitle = "t"\n[[origin.patch]]\ntitle = "a"\nupstream = {upstream}\n')
    report = bench.run(bench.parse(directory))
    assert (seen(report, "apply:upstream"), finished(report).exit_code) == (Outcome.FAIL, 1)


def given_kernel(bench: Bench) -> Path:
    """An image of which nothing is known but its release, and its configuration beside it."""
    script = bench.path / "linux" / "scripts" / "extract-ikconfig"
    script.write_text("exit 1\n")
    fake.git(bench.path / "linux", "add", "--all")
    fake.git(bench.path / "linux", "commit", "--quiet", "--message=more")
    image = bench.path / "vmlinuz-6.13.0"
    image.write_text("an image\n")
    (bench.path / "config-6.13.0").write_text("CONFIG_FTRACE=y\n")
    return image


@pytest.mark.parametrize(("asks", "outcome"), [("FTRACE", Outcome.PASS), ("NEEDS_MORE", Outcome.FAIL)])
def test_prebuilt_kernel_without_what_the_series_asks_for_is_red(bench: Bench, asks: str, outcome: Outcome) -> None:
    image = given_kernel(bench)
    directory = bench.series(main("int one;"))
    (directory / "series.config").write_text(f"CONFIG_{asks}=y\n")
    (directory / "series.toml").write_text('fragment = "series.config"\n')
    assert seen(bench.run(bench.parse(directory, kernel_image=image)), "config:config") is outcome


@pytest.mark.parametrize(("versions", "outcome"), [(">=6.13", Outcome.XFAIL), ("<6.13", Outcome.FAIL)])
def test_known_failures_are_those_of_the_prebuilt_kernels_version(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, versions: str, outcome: Outcome
) -> None:
    """The tree that gives the selftests is another one's."""
    image = given_kernel(bench)
    place = guests(monkeypatch)
    identity = (says(f"{'0' * 40} /sys/kernel/notes\n"),)
    place._scripts = [Script(commands={"boot:identity": identity, A: tap("not ok 1 first # it fails")})]
    (bench.path / "configs" / "known.toml").write_text(
        f'[[known]]\ncase = "{A}"\noutcome = ["fail"]\ndiagnostic = ["*it fails*"]\nreason = "a test"\nversions = "{versions}"\n'
    )
    report = run(bench, Path("none"), points=None, kernel_image=image)
    assert [result.outcome for result in report.results if result.id == A] == [outcome], finished(report).error
