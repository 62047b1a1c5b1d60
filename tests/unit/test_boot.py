"""What the boot log says of ftrace's startup tests."""

from __future__ import annotations

from harness.model import Outcome
from harness.suites import QUIET, Selection
from harness.suites.boot import BootSuite, _startup_tests


def outcomes(*lines: str) -> dict[str, Outcome]:
    return {result.name: result.outcome for result in _startup_tests(lines)}


def test_verdict_on_the_same_line_and_later() -> None:
    assert outcomes(
        "[    0.1][    T1] Testing tracer function: PASSED",
        "[    0.2][    T1] Testing dynamic ftrace: ",
        "[    0.3][    T1] something else",
        "[    0.4][    T1] PASSED",
        "[    0.5][    T1] trace_kprobe: Testing kprobe tracing: OK",
    ) == {
        "selftest/tracer function": Outcome.PASS,
        "selftest/dynamic ftrace": Outcome.PASS,
        "selftest/kprobe tracing": Outcome.PASS,
    }


def test_every_way_to_say_no() -> None:
    assert outcomes("Testing tracer x: .. no entries found ..FAILED!") == {"selftest/tracer x": Outcome.FAIL}
    assert outcomes("Testing kprobe tracing: ", "NG: Some tests are failed. Please check them.") == {
        "selftest/kprobe tracing": Outcome.FAIL
    }


def test_not_ok_is_not_ok() -> None:
    assert outcomes("Testing write buffer coherency: ok") == {"selftest/write buffer coherency": Outcome.PASS}
    assert outcomes("Testing x: not ok") == outcomes("Testing x: ", "is NOT OK") == {"selftest/x": Outcome.FAIL}


def test_no_verdict_is_lost_even_at_the_end() -> None:
    assert outcomes("Testing tracer x: ", "Testing tracer y: PASSED") == {
        "selftest/tracer x": Outcome.LOST,
        "selftest/tracer y": Outcome.PASS,
    }
    assert outcomes("Testing tracer x: ", "and then the kernel went on") == {"selftest/tracer x": Outcome.LOST}


def test_lost_startup_test_shows_its_lines() -> None:
    lost, passed = _startup_tests(["Testing tracer x: ", "one", "two", "Testing tracer y: PASSED", "OK"])
    assert (lost.diagnostic, lost.log) == ("no verdict", "Testing tracer x: \none\ntwo")
    assert (passed.diagnostic, passed.log) == ("", "")


def test_boot_that_need_not_run_the_startup_tests() -> None:
    """They take most of a boot; a run that wants none of them goes without."""
    noisy = BootSuite().noisy
    assert not noisy(Selection("boot", ("agent",)))
    assert not noisy(Selection("boot", ("agent", "console")))
    assert noisy(Selection("boot", ("agent", "selftest/tracer nop")))
    assert noisy(Selection("boot", ("selftest/*",)))
    assert noisy(Selection("boot"))
    assert QUIET == ("ftrace=nop", "kunit.enable=0")
