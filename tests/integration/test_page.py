"""report.html in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from harness.results import page
from tests import sample
from tests.browser import Browser

_SECONDS = 60


def opened(javascript: bool) -> Iterator[Browser]:
    browser = Browser(javascript)
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from opened(javascript=True)


@pytest.fixture(scope="module")
def plain() -> Iterator[Browser]:
    """Without JavaScript."""
    yield from opened(javascript=False)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("small") / "run", 10)


def written(directory: Path, cases: int) -> Path:
    path = directory / "report.html"
    page.write(sample.run(directory, cases), path)
    return path


def test_loads_without_a_complaint(browser: Browser, small: Path) -> None:
    browser.show(small)
    assert browser.driver.title == "fprobe: 2 red"
    assert browser.shown(".matrix td.crash")[0].text == "✸ 2 of 10"
    assert browser.filter("case_3") == 1
    assert browser.complaints() == []


def test_what_a_guest_says_is_text(browser: Browser, small: Path) -> None:
    browser.show(small)
    assert browser.ask("document.scripts.length") == 1
    assert browser.driver.title != "owned"
    for place in ("#suite-kunit tbody th", "#red-1 pre", "#arm64-base-0-0"):
        assert sample.HOSTILE in str(browser.find(place).get_attribute("textContent"))


def test_script_that_got_in_would_not_run(browser: Browser, small: Path) -> None:
    smuggled = small.with_name("smuggled.html")
    smuggled.write_text(small.read_text().replace("<main>", f"<main>{sample.HOSTILE}"))
    browser.show(smuggled)
    assert browser.driver.title != "owned"
    assert any("Content Security Policy" in entry["message"] for entry in browser.complaints())


def test_filter(browser: Browser, small: Path) -> None:
    browser.show(small)
    cases = browser.filter()
    assert cases == 10 + 4
    assert browser.filter("FTRACETEST: case_1") == 1
    assert browser.filter("case_ nowhere") == 0
    assert browser.filter(outcome="red") == 2
    assert [one.get_attribute("id") for one in browser.shown("details.red")] == ["red-1", "red-2"]
    assert browser.filter(outcome="crash") == 1
    assert [one.get_attribute("id") for one in browser.shown("details.red")] == ["red-1"]
    assert [one.get_attribute("id") for one in browser.shown("details.suite")] == ["suite-ftracetest"]
    assert browser.shown("#suite-ftracetest td.crash")
    assert browser.filter("case_1", "skip") == 0
    assert browser.filter() == cases
    assert not browser.shown("#suite-ftracetest tbody")


def test_from_the_matrix_to_the_evidence_to_the_command(browser: Browser, small: Path) -> None:
    browser.show(small)
    browser.find(".matrix td.crash a").click()
    assert "fprobe_entry+0x42/0x1b0 kernel/trace/fprobe.c:117" in browser.find("#red-1 pre").text
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    browser.find("#red-1 .command button").click()
    WebDriverWait(browser.driver, _SECONDS).until(lambda _: browser.find("#red-1 .command button").text == "copied")
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == "harness run --arch ppc64le --points last --suite ftracetest:dynevent/some_of_many/case_1.tc"


def test_from_the_evidence_to_the_console(browser: Browser, small: Path) -> None:
    browser.show(small)
    browser.find(".matrix td.crash a").click()
    browser.find("#red-1 a").click()
    lines = browser.find("pre:target")
    assert lines.is_displayed()
    assert "begin ftracetest:dynevent/some_of_many/case_1.tc" in lines.text


def test_console_of_a_case_that_passed(browser: Browser, small: Path) -> None:
    browser.show(small, "#suite-ftracetest")
    browser.find("#suite-ftracetest td.pass a").click()
    assert "begin ftracetest:dynevent/some_of_many/case_0.tc" in browser.find("pre:target").text


def test_without_javascript_it_can_be_read(plain: Browser, small: Path) -> None:
    plain.show(small)
    assert not plain.shown("#filter, button")
    assert plain.shown(".matrix td.crash")
    plain.find("#red-1 summary").click()
    assert "harness run --arch ppc64le" in plain.find("#red-1 code").text
    assert "fprobe_entry" in plain.find("#red-1 pre").text


def test_fits_a_phone(browser: Browser, small: Path) -> None:
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.show(small)
        browser.filter("case_")
        assert browser.ask("document.documentElement.scrollWidth") <= size["width"]
        assert browser.shown("#suite-ftracetest tbody th")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_night_of_six_architectures(browser: Browser, tmp_path: Path) -> None:
    path = written(tmp_path / "run", 500)
    assert path.stat().st_size < 2_000_000
    browser.show(path)
    assert browser.filter("case_49") == 11
    assert browser.complaints() == []


@pytest.mark.slow
def test_50_000_cases(browser: Browser, tmp_path: Path) -> None:
    browser.show(written(tmp_path / "run", 50_000 // 12))
    assert browser.filter("case_4165") == 1
    assert browser.filter(outcome="red") == 2
    browser.find(".matrix td.crash a").click()
    assert browser.find("#red-1 pre").is_displayed()
    assert browser.complaints() == []
