"""Conditions on configuration symbols: one that does not exist is bad input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import series, tree
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.model import Condition
from harness.series import conditions
from harness.tree import Store
from tests import fake
from tests.unit.test_pipeline import Bench

KCONFIG = fake.KCONFIG + "\nmenuconfig MENU\n\tbool\n\n\tconfig\tINDENTED  \n\tbool\n\tselect SELECTED\n# config COMMENTED\n"


@pytest.fixture
def source(tmp_path: Path) -> tuple[Store, str]:
    repository = fake.repository(tmp_path / "linux")
    (repository / "Kconfig").write_text(KCONFIG)
    (repository / "lib").mkdir()
    (repository / "lib/Kconfig.debug").write_text("config DEEP\n\tbool\n")
    (repository / "lib/notes").write_text("config ELSEWHERE\n")
    fake.git(repository, "add", "--all")
    fake.git(repository, "commit", "--quiet", "--message=more")
    cache = Cache(tmp_path / "cache")
    return Store(cache), tree.resolve(f"git:{repository}#main", cache).commit


def test_defined(source: tuple[Store, str]) -> None:
    asked = ["TINY", "FTRACE", "MENU", "INDENTED", "DEEP", "TIN", "TINYY", "SELECTED", "COMMENTED", "ELSEWHERE", "tiny"]
    assert conditions.defined_in(*source, asked) == {"TINY", "FTRACE", "MENU", "INDENTED", "DEEP"}
    assert conditions.defined_in(*source, ["NOWHERE"]) == set()


def test_tree_that_cannot_be_searched(source: tuple[Store, str]) -> None:
    with pytest.raises(InfrastructureError, match="cannot search"):
        conditions.defined_in(source[0], "0" * 40, ["TINY"])


def condition(symbol: str, line: int = 1, suite: str = "claims") -> Condition:
    return Condition(symbol, suite, f"{suite}.toml:{line}")


def test_symbol_that_does_not_exist(source: tuple[Store, str]) -> None:
    conditions.check([], *source, (), "6.12.99")
    conditions.check([condition("TINY"), condition("DEEP")], *source, (), "6.12.99")
    with pytest.raises(UserError) as raised:
        conditions.check([condition("TINY"), condition("TINNY", 7), condition("FTARCE", 9, "bench")], *source, (), "6.12.99")
    assert raised.value.exit_code == 2
    assert raised.value.message.splitlines() == [
        "claims.toml:7: no Kconfig file of 6.12.99 or of the series defines TINNY",
        "bench.toml:9: no Kconfig file of 6.12.99 or of the series defines FTARCE",
    ]
    assert "correct the symbol's name" in raised.value.hint
    assert "without bench and claims" in raised.value.hint


def test_many_are_not_all_named(source: tuple[Store, str]) -> None:
    with pytest.raises(UserError) as raised:
        conditions.check([condition(f"NO{number}", number) for number in range(1, 8)], *source, (), "6.12.99")
    assert len(raised.value.message.splitlines()) == 6
    assert raised.value.message.endswith("claims.toml:5: no Kconfig file of 6.12.99 or of the series defines NO5\nand 2 more")


def test_symbol_that_the_series_brings(tmp_path: Path, source: tuple[Store, str]) -> None:
    changed = fake.KCONFIG + "\nconfig BROUGHT\n\tbool\n"
    patches = series.load(
        str(fake.series(tmp_path / "s", {"Kconfig": changed}, {"main.c": "config IN_C\n", "notes": "config IN_NOTES\n"}))
    ).patches
    assert conditions.added_by(patches) == {"BROUGHT"}
    conditions.check([condition("BROUGHT"), condition("TINY")], *source, patches, "6.12.99")
    with pytest.raises(UserError, match="IN_NOTES"):
        conditions.check([condition("IN_NOTES")], *source, patches, "6.12.99")
    with pytest.raises(UserError, match="NEITHER"):
        conditions.check([condition("BROUGHT"), condition("NEITHER")], *source, patches, "6.12.99")


def test_symbol_that_a_patch_removes_is_not_brought(tmp_path: Path) -> None:
    removed = re.sub(r"config TINY\n.*\n", "", fake.KCONFIG)
    patches = series.load(str(fake.series(tmp_path / "s", {"Kconfig": removed}))).patches
    assert conditions.added_by(patches) == set()


CLAIM = """\
[[claim]]
case = "01 colour"
says = "It turns red."
needs = ["{}"]
base = "blue"
patched = "red"
script = "value red"
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_run_with_a_condition_on_no_symbol_is_bad_input(bench: Bench) -> None:
    """It ends with exit code 2 before anything is configured or built, and names the line."""
    directory = bench.series({"other.c": "changed\n"})
    (directory / "claims.toml").write_text(CLAIM.format("FTRACES"))
    report = bench.run(bench.parse(directory, suite_specs=["claims"]))
    assert report.finished and report.finished.exit_code == 2
    assert f"{directory}/claims.toml:4: no Kconfig file of 6.12.99 or of the series defines FTRACES" in report.finished.error
    assert "hint: correct the symbol's name there" in report.finished.error
    assert not report.jobs


def test_run_without_the_suite_does_not_ask(bench: Bench) -> None:
    directory = bench.series({"other.c": "changed\n"})
    (directory / "claims.toml").write_text(CLAIM.format("FTRACES"))
    report = bench.run(bench.parse(directory))
    assert report.finished and report.finished.exit_code == 0


def test_series_that_does_not_apply_is_red_for_that(bench: Bench) -> None:
    """It may be meant for another tree, which has the symbol."""
    directory = bench.series({"other.c": "changed\n"})
    (directory / "claims.toml").write_text(CLAIM.format("FTRACES"))
    fake.git(bench.path / "linux", "rm", "--quiet", "other.c")
    fake.git(bench.path / "linux", "commit", "--quiet", "--message=without")
    report = bench.run(bench.parse(directory, suite_specs=["claims"]))
    assert report.finished and report.finished.exit_code == 1
    assert "FTRACES" not in report.finished.error


def test_series_check_names_it_as_well(tmp_path: Path, source: tuple[Store, str]) -> None:
    directory = fake.series(tmp_path / "s", {"other.c": "changed\n"})
    (directory / "claims.toml").write_text(CLAIM.format("FTRACES"))
    cache = source[0].cache
    where = tree.resolve(f"git:{tmp_path}/linux#main", cache)
    verdict = series.check(series.load(str(directory)), where, cache)
    complaint = f"{directory}/claims.toml:4: no Kconfig file of this tree or of the series defines FTRACES"
    assert (verdict.good, verdict.complaints) == (False, (complaint,))
    (directory / "claims.toml").write_text(CLAIM.format("FTRACE"))
    assert series.check(series.load(str(directory)), where, cache).good
