"""What the pages tell to type exists, and so do the places that they name. That the commands work
is in tests/integration/test_docs.py."""

from __future__ import annotations

import pkgutil
import re
import shlex
from pathlib import Path

import click
import pytest

from harness import __version__, arch
from harness.cli.root import cli
from harness.model import Outcome
from tests import docs

SESSIONS = set(re.findall(r"^def (\w+)\(session", (docs.ROOT / "noxfile.py").read_text(), re.MULTILINE))
ASSIGNMENT = re.compile(r"\w+=\S*")
KILOBYTE = 1024
EACH_PAGE = pytest.mark.parametrize("page", docs.PAGES, ids=lambda page: page.name)


def check(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises click's errors for options that do not exist, and KeyError for a command."""
    command: click.Command = cli
    # A group may be a command itself, as `harness cache --json` is.
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        command = command.commands[name]
    for parameter in command.params:
        # Whether the file exists is tried where the command is run.
        if isinstance(parameter.type, click.Path | click.File):
            monkeypatch.setattr(parameter, "type", click.Path())
    if "--help" not in words:
        command.make_context(name, words)


def check_line(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Check the commands of a line. Returns how many of them are ours."""
    ours = 0
    for part in re.split(r"&&|\||>.*", line):
        words = shlex.split(part)
        while words and ASSIGNMENT.fullmatch(words[0]):
            del words[0]
        if words[:1] == ["harness"]:
            check(words[1:], monkeypatch)
            ours += 1
        elif words[:2] == ["nox", "-s"]:
            end = words.index("--") if "--" in words else len(words)
            assert set(words[2:end]) <= SESSIONS
            if {"run", "nightly"} & set(words[2:end]):
                check(["run", *words[end + 1 :]], monkeypatch)
            ours += 1
    return ours


@EACH_PAGE
def test_commands_can_be_typed(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in docs.typed(page):
        check_line(command, monkeypatch)


def test_commands_of_every_kind_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a block that is run, in one that is not, and in the text."""
    found = {command for page in docs.PAGES for command in docs.typed(page)}
    assert "nox -s nightly" in found
    assert "harness run --hosts hosts.toml" in found
    assert "harness run --series none --arch arm --suite boot" in found
    assert sum(check_line(command, monkeypatch) for command in found) > 40


@pytest.mark.parametrize("wrong", ["harness run --no-such", "nox -s none", "nox -s run -- --x"])
def test_a_wrong_command_is_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((click.ClickException, AssertionError)):
        check_line(wrong, monkeypatch)


@EACH_PAGE
def test_commands_stand_in_blocks_of_shell(page: Path) -> None:
    """A command in an indented block would be tried by no test."""
    wrong = re.findall(r"^(?: {4}|\t)\$? *(?:harness|nox|pip|dask|pytest)\b.*", docs.prose(page), re.M)
    assert not wrong


def anchors(page: Path) -> set[str]:
    """The anchors that forges give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", docs.prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not link.startswith("https://"):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.is_file(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_is_linked() -> None:
    linked = {link for page in docs.PAGES for link in re.findall(r"\]\((?:docs/)?([\w.-]+)(?:#[\w-]+)?\)", page.read_text())}
    assert {page.name for page in docs.PAGES if page.name != "README.md"} <= linked


@EACH_PAGE
def test_code_that_is_named_exists(page: Path) -> None:
    """Names such as `harness.guest.started`, and paths below the top level. A path with a
    placeholder or a glob stands for several files."""
    text = page.read_text()
    for name in re.findall(r"`(harness(?:\.\w+)+)(?:\(\))?`", text):
        assert _exists(name), name
    for path in re.findall(r"`((?:harness|tests|configs|qemu|patches|docs|\.ci|\.github)/[^`\s]*)`", text):
        if path == "harness/data/" or re.search(r"[<*]", path):
            continue
        assert (docs.ROOT / path).exists(), path


def _exists(name: str) -> bool:
    """True if it is a module, or something in a module or a class."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_a_name_that_does_not_exist_is_found() -> None:
    assert _exists("harness.suites.policy.Policy.judge")
    assert _exists("harness.guest.started")
    assert not _exists("harness.suites.policy.Policy.no_such")
    assert not _exists("harness.guest.no_such")


def test_every_command_is_listed() -> None:
    page = (docs.ROOT / "docs" / "commands.md").read_text()
    for name, command in cli.commands.items():
        assert f"harness {name}" in page
        # Groups list their own.
        if not isinstance(command, click.Group):
            for option in (option for option in command.params if isinstance(option, click.Option)):
                assert any(name in page for name in option.opts), f"{name} {option.opts}"


def test_every_variable_is_listed() -> None:
    page = (docs.ROOT / "docs" / "commands.md").read_text()
    code = "\n".join(path.read_text() for path in (docs.ROOT / "harness").rglob("*.py"))
    # HARNESS_GUARD_* marks processes of a run, and is no setting.
    read = set(re.findall(r"\bHARNESS_[A-Z_]+[A-Z]\b", code)) - {"HARNESS_GUARD"}
    assert read == set(re.findall(r"^\| `(HARNESS_\w+)`", page, re.MULTILINE))


def test_readme_counts_the_architectures() -> None:
    """In the column of the harness, in the comparison with other tools."""
    row = re.search(r"^\| boots architectures \| (\d+) \|", docs.PAGES[0].read_text(), re.MULTILINE)
    assert row
    assert int(row[1]) == len(arch.names())


def test_readme_fits_two_screens() -> None:
    assert len((docs.ROOT / "README.md").read_text().splitlines()) <= 100


@EACH_PAGE
def test_lines_have_100_columns(page: Path) -> None:
    assert not [line for line in page.read_text().splitlines() if len(line) > 100]


FOREIGN = (
    *("known red", "outlived", "argued", "patience", "slowness", "trespass", "unfounded"),
    *("mended", "errand", "nobody", "somebody", "no one", "reds"),
)
"""Words of this project's own that a reader from elsewhere stops at, and people that are programs."""


@EACH_PAGE
def test_words_are_the_fields(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", docs.prose(page)).lower()
    assert not [word for word in FOREIGN if re.search(rf"\b{word}\b", text)]


def test_pictures_are_small() -> None:
    pictures = list((docs.ROOT / "docs").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert picture.stat().st_size < 200 * KILOBYTE


def glossary() -> list[str]:
    page = (docs.ROOT / "docs" / "glossary.md").read_text()
    return re.findall(r"^\*\*([^*]+)\*\*: \S", page, re.MULTILINE)


def test_glossary_has_the_words_of_the_reports() -> None:
    terms = glossary()
    assert terms == sorted(set(terms), key=str.lower)
    wanted = "Point Job Claim Measure Must-run Outcome Batch Host Executor Suite Case Series Tree"
    assert {*wanted.split(), "Known failure", "Kernel report", "Timeout factor"} <= set(terms)


def test_every_outcome_is_explained() -> None:
    page = (docs.ROOT / "docs" / "pipeline.md").read_text()
    rows = re.findall(r"^\| (`[^|]*) \| (green|red) \|", page, re.MULTILINE)
    listed = {name: colour for names, colour in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {one.value: "green" if one.green else "red" for one in Outcome}


def test_change_log_begins_with_this_version() -> None:
    page = (docs.ROOT / "docs" / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", page, re.MULTILINE)[0] == __version__
