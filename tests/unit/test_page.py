"""report.html as text: what a browser makes of it is in tests/integration/test_page.py."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model import CaseResult, Difference, Kind, Outcome, label_of
from harness.results import RunReport, journal, page
from harness.results.page import configs, consoles
from harness.results.page.symbols import SYMBOLS, WORST
from tests import sample


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_every_outcome_has_a_symbol_of_its_own() -> None:
    assert len({SYMBOLS[outcome] for outcome in Outcome}) == len(Outcome)
    assert set(WORST) == {outcome for outcome in Outcome if not outcome.green}


def test_page_needs_nothing_else(tmp_path: Path) -> None:
    html = page.render(sample.run(tmp_path / "run"))
    found = Tags(html)
    assert found.tags.count("script") == found.tags.count("style") == 1
    assert not {"link", "img", "iframe", "object"} & set(found.tags)
    assert "http:" not in html.replace("http-equiv", "")
    assert "https:" not in html


def test_links_lead_somewhere(tmp_path: Path) -> None:
    report = sample.run(tmp_path / "run")
    found = Tags(page.render(report))
    assert len(found.ids) == len(set(found.ids))
    inside = {link[1:] for link in found.links if link.startswith("#")}
    assert inside
    assert inside <= set(found.ids)
    beside = [link for link in found.links if not link.startswith("#")]
    assert beside
    assert all((report.directory / link).is_file() for link in beside)


def test_matrix_comes_first_and_reds_before_all_cases(tmp_path: Path) -> None:
    html = page.render(sample.run(tmp_path / "run"))
    places = [html.index(f'<section id="{name}"') for name in ("matrix", "red", "effect", "measured", "cases", "configs", "jobs")]
    assert places == sorted(places)
    assert "✗ 2 red" in html
    assert "harness run --cmd &#39;echo &#39;&#34;&#39;&#34;&#39;a b&#39;" in html
    assert "1.25 of base" in html


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text() | st.sampled_from(["<script>x</script>", "]]>", "</style>", "--><b>", "{{ 7 * 7 }}", '" onload="x']))
def test_nothing_a_guest_says_becomes_markup(text: str, tmp_path: Path) -> None:
    def tags(said: str) -> list[str]:
        report = RunReport(tmp_path)
        report.add(journal.RunStarted(1, "s", said, ("run", said)))
        report.add(journal.JobProperties(1, "arm64", "last", {"release": said}))
        for outcome in Outcome:
            result = CaseResult("kunit", f"{said}{outcome}", outcome, 0.0, f"why {said}", f"log {said}")
            report.add(journal.CaseFinished(1, "arm64", "last", result))
        html = page.render(report)
        html.encode()
        return Tags(html).tags

    assert tags(text) == tags("harmless")


def test_run_that_was_killed(tmp_path: Path) -> None:
    report = RunReport(tmp_path)
    report.add(journal.RunStarted(1, "s", "t", ("run", "--arch", "arm64")))
    html = page.render(report)
    assert "killed before it ended" in html
    assert f"harness run --resume {tmp_path}" in html


def test_what_is_new_leads(tmp_path: Path) -> None:
    report = RunReport(tmp_path)
    report.add(journal.RunStarted(1, "s", "t", ("run",)))
    before, after = (CaseResult("kunit", "a", outcome) for outcome in (Outcome.PASS, Outcome.FAIL))
    report.add(journal.CaseFinished(1, "arm64", "last", after))
    change = Difference("arm64", "last", "kunit:a", Kind.NEWLY_RED, before, after)
    report.add(journal.Compared(2, {"arm64/last": "/runs/yesterday"}, (change,)))
    html = page.render(report)
    assert "New since /runs/yesterday" in html
    assert '<a href="#red-1">kunit:a</a>: pass → fail' in html


def test_tries_are_all_there(tmp_path: Path) -> None:
    tries = (CaseResult("kunit", "a", Outcome.CRASH, log="the splat"), CaseResult("kunit", "a", Outcome.PASS, log="it went well"))
    report = RunReport(tmp_path)
    report.add(journal.CaseFinished(1, "arm64", "last", CaseResult("kunit", "a", Outcome.FLAKY, tries=tries)))
    html = page.render(report)
    assert "the splat" in html
    assert "it went well" in html


def log(path: Path, *sections: tuple[str, int]) -> consoles.Log:
    lines = []
    for label, count in sections:
        lines += [f"[    1.000000][   T50] harness: 0123456789ab begin {label}"] if label else []
        lines += [f"line {number}\x1b[0m\r" for number in range(count)]
    path.write_text("\n".join(lines) + "\n")
    return consoles.read(path, "here")


def test_console_is_cut_at_the_cases(tmp_path: Path) -> None:
    found = log(tmp_path / "console.log", ("", 5), ("a:1", 3), ("a:2", 0), ("a:1", 1))
    assert list(found.anchors()) == [("", "here-0"), ("a:1", "here-1"), ("a:2", "here-2"), ("a:1", "here-3")]
    assert [section.lines for section in found.sections] == [5, 4, 1, 2]
    assert list(found.sections[0].shown(99)) == [f"line {number}" for number in range(5)]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    (section,) = log(tmp_path / "console.log", ("", 10_000)).sections
    for limit in (3, 4, 100):
        shown = list(section.shown(limit))
        assert len(shown) == limit + 1
        assert f"… {10_000 - limit} lines left out …" in shown
        assert (shown[0], shown[-1]) == ("line 0", "line 9999")


@pytest.mark.parametrize("size", [10**9, 100_000, 20_000])
def test_consoles_fit_and_what_is_red_comes_first(size: int, tmp_path: Path) -> None:
    found = log(tmp_path / "console.log", ("", 500), *((f"a:{number}", 1000) for number in range(50)))
    limits = consoles.limits([found], {"here-8"}, size)
    shown = sum(len(line) + 1 for section in found.sections for line in section.shown(limits[section.anchor]))
    assert shown <= size
    assert limits["here-8"] >= 200
    assert limits["here-1"] == limits["here-2"]


def test_flood_is_not_held_in_memory(tmp_path: Path) -> None:
    (section,) = log(tmp_path / "console.log", ("", 50_000)).sections
    assert section.lines == 50_000
    assert len(section.head) + len(section.tail) == 3000


def test_configurations_are_compared(tmp_path: Path) -> None:
    report = sample.run(tmp_path / "run")
    archs = configs.between_archs(report.directory, ["arm64", "ppc64le"], "last")
    assert archs.kernels == ("arm64", "ppc64le")
    assert archs.rows == (("FUNCTION_GRAPH_FREGS", ("y", "m")),)
    (report.directory / "arm64" / "last" / ".config").write_text("CONFIG_FTRACE=y\nCONFIG_NEW=3\n")
    points = configs.between_points(report.directory, "arm64", ["base", "last", "0007"])
    assert points.rows == (("FUNCTION_GRAPH_FREGS", ("y", "-")), ("NEW", ("-", "3")))


def test_damaged_run_still_has_a_page(tmp_path: Path) -> None:
    report = sample.run(tmp_path / "run", archs=("arm64", "riscv64"))
    (report.directory / "run.toml").write_text('command = ["harn')
    (report.directory / "arm64" / "base" / ".config").write_bytes(b"CONFIG_FTRACE=y\n\xff\xfe\n")
    for point in ("base", "last"):
        (report.directory / "riscv64" / point / "console.log").unlink()
    (report.directory / "riscv64" / "base" / "console.log").mkdir()
    (report.directory / "riscv64" / "last" / "console.log").symlink_to("nowhere")
    html = page.render(report)
    assert "✗ 2 red" in html
    assert "it cannot be read: Is a directory" in html


def test_restarted_guest_is_not_taken_for_the_case_before(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    boot = "[    0.000000][    T0] Linux version 6.12.117"
    path.write_text(f"{boot}\n[    9.0] harness: 0123456789ab begin a:1\nOops\n{boot}\nagain\n")
    found = consoles.read(path, "here")
    assert [section.label for section in found.sections] == ["", "a:1", ""]
    assert list(found.sections[1].shown(9))[1:] == ["Oops"]


def test_commands_and_pairs_lead_to_their_lines() -> None:
    assert label_of("ftracetest:00basic/snapshot1.tc@instance") == label_of("ftracetest:00basic/snapshot1.tc")
    assert label_of("command:uname -a") != label_of("command:uname")
    assert all(re.fullmatch(r"\S{1,20}", label_of(f"command:{command}")) for command in ("uname -a", "a" * 5000, "\udcff"))


def test_verdict_and_copied_commands_run_from_left_to_right(tmp_path: Path) -> None:
    report = RunReport(tmp_path)
    report.add(journal.RunStarted(1, "se\u202eries", "t", ("run",)))
    assert "\u202e" not in page.render(report)
