"""What the pages say can be typed and can be found. That it works, too, is in tests/integration/test_docs.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from harness.cli.root import cli
from tests import docs

SESSIONS = set(re.findall(r"^def (\w+)\(session", (docs.ROOT / "noxfile.py").read_text(), re.MULTILINE))


def check(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises click's errors for options that are not there, and KeyError for a command."""
    command: click.Command = cli
    # A group may be a command itself, as `harness cache --json` is.
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        command = command.commands[name]
    for parameter in command.params:
        # Whether a file is there is for those who run it.
        if isinstance(parameter.type, click.Path | click.File):
            monkeypatch.setattr(parameter, "type", click.Path())
    command.make_context(name, words)


@pytest.mark.parametrize("page", docs.PAGES, ids=lambda page: page.name)
def test_commands_can_be_typed(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in docs.commands(page):
        for part in re.split(r"&&|\||>.*", command):
            words = shlex.split(part)
            if words[:1] == ["harness"]:
                check(words[1:], monkeypatch)
            elif words[:2] == ["nox", "-s"]:
                assert words[2] in SESSIONS
                check(["run", *words[4:]], monkeypatch)


@pytest.mark.parametrize("page", docs.PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / link).is_file(), link


def test_every_page_is_linked() -> None:
    linked = {link for page in docs.PAGES for link in re.findall(r"\]\((?:docs/)?([\w.-]+)\)", page.read_text())}
    assert {page.name for page in docs.PAGES if page.name != "README.md"} <= linked


def test_every_command_is_listed() -> None:
    page = (docs.ROOT / "docs" / "commands.md").read_text()
    for name, command in cli.commands.items():
        assert f"harness {name}" in page
        # Groups list their own.
        if not isinstance(command, click.Group):
            for option in (option for option in command.params if isinstance(option, click.Option)):
                assert any(name in page for name in option.opts), f"{name} {option.opts}"


def test_readme_fits_two_screens() -> None:
    assert len((docs.ROOT / "README.md").read_text().splitlines()) <= 100
