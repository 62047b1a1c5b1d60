"""What `--suite`, `--cmd` and `--points` mean."""

from __future__ import annotations

import msgspec
import pytest

from harness import series, suites
from harness.errors import UserError
from harness.model import Claim, Measure
from harness.options import RunOptions
from harness.request import parse, parse_suites


def names(*specs: str, commands: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    return {one.suite: one.globs for one in parse_suites(specs, commands)}


CLAIMING = msgspec.structs.replace(
    series.NONE,
    name="s",
    claims=(Claim("1", "it is", "value it", patched="it", base="it"),),
    measures=(Measure("1", "it costs", "value 1"),),
)


def test_all_suites_but_not_commands_that_nobody_gave_nor_claims_of_a_series_that_has_none() -> None:
    assert set(names()) == set(suites.ALL) - {"command", "claims", "bench"}
    assert {one.suite for one in parse_suites([], (), CLAIMING)} == set(suites.ALL) - {"command"}


def test_claims_of_a_series() -> None:
    assert parse_suites(["claims:1*"], (), CLAIMING) == (suites.Selection("claims", ("1*",)),)
    for name in ("claims", "bench"):
        with pytest.raises(UserError, match=f"the series 'none' has no {name}"):
            parse_suites([name])


def points(spec: str | None, of: str = "fprobe-on-fgraph", per_patch: bool = False) -> tuple[str, ...]:
    options = RunOptions(series_spec=of, archs=("x86_64",), points=spec, per_patch=per_patch)
    found = parse(options)
    return tuple(series.points.name_of(number, found.series) for number in found.points)


def test_points() -> None:
    assert points("last") == ("last",)
    assert points("base,last") == ("base", "last")
    assert points("base,base") == ("base",)
    assert points(None) == ("last",)
    last = len(series.load("fprobe-on-fgraph").patches)
    assert points(f"last,3,0001,0,base,{last}") == ("base", "0001", "0003", "last")  # in the order of the series
    each = points(None, per_patch=True)
    assert (len(each), each[:2], each[-2:]) == (last + 1, ("base", "0001"), (f"{last - 1:04d}", "last"))
    with pytest.raises(UserError, match="together"):
        points("last", per_patch=True)
    assert points("base,last", of="none") == ("base",)  # there is nothing else
    for odd in ("base,", "middle", "last;base", "-1", f"{last + 1}", "\N{SUPERSCRIPT TWO}"):
        with pytest.raises(UserError, match="unknown point"):
            points(odd)


def test_globs_add_up_and_a_whole_suite_swallows_them() -> None:
    assert names("kunit:a*", "kunit:b*") == {"kunit": ("a*", "b*")}
    assert names("kunit:a*", "kunit") == {"kunit": ()}


def test_none_just_boots() -> None:
    assert names("none") == {"boot": ("agent", "console", "identity")}
    assert not suites.ALL["boot"].noisy(parse_suites(["none"])[0])
    assert suites.ALL["boot"].noisy(parse_suites(["boot"])[0])


def test_commands_boot_a_guest_and_nothing_else() -> None:
    assert names(commands=("true",)) == {"boot": ("agent", "console", "identity"), "command": ()}
    assert names("kunit", commands=("true",)) == {"kunit": (), "command": ()}


@pytest.mark.parametrize(
    ("specs", "commands"), [(["none:x"], ()), (["command"], ()), (["x"], ()), ([], ("true", "true")), ([], (" ",))]
)
def test_what_means_nothing(specs: list[str], commands: tuple[str, ...]) -> None:
    with pytest.raises(UserError):
        parse_suites(specs, commands)
