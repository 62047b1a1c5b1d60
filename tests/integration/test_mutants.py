"""`nox -s mutants` on a small project, whose tests notice one change and miss another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow  # mutmut is installed for the slow tier only

CODE = """\
import re

WORD = re.compile(r"^(red|green)$")
KINDS = ("red", "green")


def known(word: str) -> bool:
    return WORD.match(word) is not None


def steps(many: int) -> int:
    count = 0
    while count < many:
        count += 1
    return count
"""
TESTS = """\
from harness.thing import KINDS, known, steps


def test_known():
    assert known("red") and known("green")
    assert not known("blue") and not known("redder") and not known("evergreen")
    assert KINDS == ("red", "green")


def test_steps():
    assert steps(3) == 3
"""
ENTRY = """
[[equivalent]]
file = "harness/thing.py"
function = "{function}"
before = "{before}"
after = "{after}"
reason = "so"
"""


class Project:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.state = folder / "state"
        for name in ("harness", "tests", "tests/unit"):
            (self.root / name).mkdir(parents=True)
            (self.root / name / "__init__.py").write_text("")
        shutil.copytree(ROOT / "tests" / "mutants", self.root / "tests" / "mutants")
        self.write(CODE, TESTS)
        self.listed()

    def write(self, code: str, tests: str) -> None:
        (self.root / "harness" / "thing.py").write_text(code)
        (self.root / "tests" / "unit" / "test_thing.py").write_text(tests)

    def listed(self, text: str = "", modules: str = '"harness/thing.py"') -> None:
        (self.root / "tests" / "mutants.toml").write_text(f"modules = [{modules}]\nat-least = 0.5\n{text}")

    def run(self, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "tests.mutants", "--root", str(self.root), "--state", str(self.state), *words]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def verdicts(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("killed", "timeout", "survived", "untested"):
            found.setdefault(word, []).append(rest)
    return found


def test_changes_are_tried_and_remembered(project: Project) -> None:
    code, text = project.run()
    found = verdicts(text)
    # Tables, patterns and conditions, outside of functions as well.
    for change in (
        'KINDS = ("red", "green") -> KINDS = ("green",)',
        'WORD = re.compile(r"^(red|green)$") -> WORD = re.compile(r"^(green)$")',
        'WORD = re.compile(r"^(red|green)$") -> WORD = re.compile(r"^(red|green)")',
        "while count < many: -> while count <= many:",
    ):
        assert any(change in line for line in found["killed"]), text
    # It never ends; without the change the test is quick.
    assert any("count += 1 -> count -= 1" in line for line in found["timeout"]), text
    assert any('r"(red|green)$"' in line for line in found["survived"]), text  # match() needs no ^
    assert "untested" not in found
    assert code == 1
    assert '+WORD = re.compile(r"(red|green)$")' in text

    entry = text[text.index("[[equivalent]]") : text.index('reason = ""')]
    count = len(found["survived"])
    entries = "".join(f'{part}reason = "match() begins there"\n' for part in _entries(text))
    project.listed(entries)
    code, text = project.run()
    assert (code, verdicts(text)) == (0, {}), text  # nothing is tried again
    assert entry in entries
    assert f"  {count}  " in text

    # An entry that excuses nothing is red, be it that the change is gone or that a test notices it.
    project.listed(entries + ENTRY.format(function="gone", before="a", after="b"))
    code, text = project.run()
    assert (code, "there is no such mutant any more" in text) == (1, True), text
    project.listed(entries + ENTRY.format(function="steps", before="while count < many:", after="while count <= many:"))
    code, text = project.run()
    assert (code, "test_steps does" in text) == (1, True), text


def _entries(text: str) -> list[str]:
    return [part.partition("reason")[0] for part in ("[[equivalent]]" + rest for rest in text.split("[[equivalent]]")[1:])]


def test_other_lines_may_move(project: Project) -> None:
    """Only what has changed is tried again."""
    project.run()
    moved = CODE.replace("\n\ndef steps", "\n\n\n# A remark.\ndef steps")
    moved = moved.replace("    count = 0\n", '    """A docstring."""\n    count = 0\n')
    project.write(moved.replace("return WORD.match(word) is", "return WORD.search(word) is"), TESTS)
    _, text = project.run()
    tried = [line for lines in verdicts(text).values() for line in lines]
    assert tried
    assert not any("count" in line for line in tried)


def test_helper_of_tests_changes(project: Project) -> None:
    """Verdicts of the tests that import it, even through another one, are out of date; others hold."""
    helpers = project.root / "tests"
    (helpers / "first.py").write_text("from tests import second\n\nRED = second.RED\n")
    (helpers / "second.py").write_text('RED = "red"\n')
    (helpers / "other.py").write_text("")
    project.write(CODE, "from tests.first import RED\n" + TESTS.replace('known("red")', "known(RED)"))
    killed = len(verdicts(project.run()[1])["killed"])
    (helpers / "other.py").write_text("OTHER = 1\n")
    assert "killed" not in verdicts(project.run()[1])
    (helpers / "second.py").write_text('RED = "re" + "d"\n')
    assert len(verdicts(project.run()[1])["killed"]) == killed


def test_time_is_bounded_and_unfinished_is_red(project: Project) -> None:
    code, text = project.run("--minutes", "0.0001")
    assert code == 1
    assert "unfinished: " in text
    assert verdicts(text) == {}


@pytest.mark.parametrize(
    ("code", "tests", "modules", "status", "why"),
    [
        (CODE, TESTS + "\n\ndef test_red():\n    assert False\n", '"harness/thing.py"', 1, "fail without any mutant"),
        (CODE, TESTS, '"harness/nothing*.py"', 2, "names no file"),
        ("", "def test_nothing():\n    pass\n", '"harness/thing.py"', 1, "nothing to change"),
        (CODE, "from harness.thing import steps\n\n\ndef test():\n    steps(2)\n", '"harness/thing.py"', 1, "is the least"),
    ],
)
def test_silence_is_no_pass(code: str, tests: str, modules: str, status: int, why: str, project: Project) -> None:
    project.write(code, tests)
    project.listed(modules=modules)
    found, text = project.run()
    assert (found, why in text) == (status, True), text
