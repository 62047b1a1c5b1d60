"""What `--suite` and `--cmd` mean."""

from __future__ import annotations

import pytest

from harness import suites
from harness.errors import UserError
from harness.request import parse_suites


def names(*specs: str, commands: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    return {one.suite: one.globs for one in parse_suites(specs, commands)}


def test_all_suites_but_not_commands_that_nobody_gave() -> None:
    assert set(names()) == set(suites.ALL) - {"command"}


def test_globs_add_up_and_a_whole_suite_swallows_them() -> None:
    assert names("kunit:a*", "kunit:b*") == {"kunit": ("a*", "b*")}
    assert names("kunit:a*", "kunit") == {"kunit": ()}


def test_none_just_boots() -> None:
    assert names("none") == {"boot": ("agent", "console")}
    assert not suites.ALL["boot"].noisy(parse_suites(["none"])[0])
    assert suites.ALL["boot"].noisy(parse_suites(["boot"])[0])


def test_commands_boot_a_guest_and_nothing_else() -> None:
    assert names(commands=("true",)) == {"boot": ("agent", "console"), "command": ()}
    assert names("kunit", commands=("true",)) == {"kunit": (), "command": ()}


@pytest.mark.parametrize(
    ("specs", "commands"), [(["none:x"], ()), (["command"], ()), (["x"], ()), ([], ("true", "true")), ([], (" ",))]
)
def test_what_means_nothing(specs: list[str], commands: tuple[str, ...]) -> None:
    with pytest.raises(UserError):
        parse_suites(specs, commands)
