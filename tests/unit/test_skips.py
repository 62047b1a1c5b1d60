"""A test that does not run in CI is red, unless it is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import skips

pytest_plugins = "pytester"

SKIPS = {
    "mark": "@pytest.mark.skip(reason='no sshd')\ndef test_it(): pass",
    "condition": "@pytest.mark.skipif(True, reason='no sshd')\ndef test_it(): pass",
    "call": "def test_it(): pytest.skip('no sshd')",
    "fixture": "@pytest.fixture\ndef it(): pytest.skip('no sshd')\ndef test_it(it): pass",
    "module": "pytest.skip('no sshd', allow_module_level=True)",
    "import": "pytest.importorskip('no_sshd')",
    "xfail": "@pytest.mark.xfail(reason='no sshd')\ndef test_it(): assert False",
    "xpass": "@pytest.mark.xfail(reason='no sshd')\ndef test_it(): pass",
    "xfail call": "def test_it(): pytest.xfail('no sshd')",
    "parameters": "@pytest.mark.parametrize('x', [])\ndef test_it(x): pass",
}
PASSES = "def test_that_passes(): pass\n"


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "skips.toml"
    path.write_text("")
    monkeypatch.setattr(skips, "LISTED", path)
    return path


def outcome(pytester: pytest.Pytester, body: str, monkeypatch: pytest.MonkeyPatch, listed: Path, ci: str) -> tuple[int, str]:
    monkeypatch.setenv("CI", ci)
    pytester.makepyfile(test_one=f"import pytest\n{body}\n", test_two=PASSES)
    monkeypatch.setattr(skips.read, "__defaults__", (listed,))
    done = pytester.runpytest_inprocess("-p", "tests.skips", "-p", "no:cacheprovider")
    return int(done.ret), "\n".join(done.outlines + done.errlines)


@pytest.mark.parametrize("kind", SKIPS)
def test_skip_in_ci_is_red(kind: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path) -> None:
    code, text = outcome(pytester, SKIPS[kind], monkeypatch, listed, ci="true")
    assert code in (1, 2), text
    assert "in CI" in text
    assert "skips.toml" in text


@pytest.mark.parametrize("kind", SKIPS)
@pytest.mark.parametrize("ci", ["", "false", "0"])
def test_elsewhere_it_is_a_skip(
    kind: str, ci: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path
) -> None:
    assert outcome(pytester, SKIPS[kind], monkeypatch, listed, ci)[0] == 0


@pytest.mark.parametrize("kind", ["mark", "fixture", "xfail", "module"])
def test_skip_that_is_listed_is_one(kind: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path) -> None:
    listed.write_text('[[skip]]\ntest = "test_one.py*"\nreason = "there is no sshd here"\n')
    code, text = outcome(pytester, SKIPS[kind], monkeypatch, listed, ci="true")
    assert code == 0, text


def test_other_failures_stay(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path) -> None:
    listed.write_text('[[skip]]\ntest = "test_one.py*"\nreason = "there is no sshd here"\n')
    assert outcome(pytester, "def test_it(): assert False", monkeypatch, listed, ci="true")[0] == 1


def test_entry_without_a_test_is_refused(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path) -> None:
    listed.write_text('[[skip]]\ntest = "test_two.py::test_gone"\nreason = "there is no sshd here"\n')
    code, text = outcome(pytester, "", monkeypatch, listed, ci="true")
    assert (code, "which is no test" in text) == (4, True), text


@pytest.mark.parametrize("text", ['[[skip]]\ntest = "a"\nreason = " "', '[[skip]]\ntest = "a"', '[[skips]]\ntest = "a"'])
def test_list_that_is_wrong_is_refused(
    text: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path
) -> None:
    listed.write_text(text)
    assert outcome(pytester, "", monkeypatch, listed, ci="true")[0] not in (0, 1)


def test_folder_without_tests_is_red(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listed: Path) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(skips.read, "__defaults__", (listed,))
    for folder in skips.FOLDERS:
        (pytester.path / folder).mkdir(parents=True)
    words = ("-p", "tests.skips", "-p", "no:cacheprovider", "--import-mode=importlib")
    (pytester.path / "tests" / "unit" / "test_one.py").write_text(PASSES)
    assert pytester.runpytest_inprocess(*words, "tests/unit").ret == 0
    assert pytester.runpytest_inprocess(*words, "tests").ret == 4
    (pytester.path / "tests" / "integration" / "test_two.py").write_text(PASSES)
    assert pytester.runpytest_inprocess(*words, "tests").ret == 0


def test_every_listed_skip_has_its_test() -> None:
    root = Path(__file__).parents[2]
    for one in skips.read():
        file, _, name = one.test.partition("::")
        assert f"def {name.rstrip('*')}(" in (root / file).read_text()
