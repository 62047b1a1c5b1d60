"""Keys do not depend on the names of classes, and do not change by accident.

If a golden value changes, so do all such keys of a user: cached kernels are built again, and runs
are no longer compared with earlier ones. If that is meant, give the key a new version."""

from __future__ import annotations

import enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from harness.arch import Build
from harness.kernel import Given
from harness.keys import key
from harness.model import CasePattern, Claim, Measure, Position, Series
from harness.request import Request
from harness.suites import Selection

SERIES = Series(name="a", origin="", digest="0" * 64)
REQUEST = Request(SERIES, "debian:linux", (), (Selection("kunit", ("a*",)),), (1,), fragments=(Path("/a/b.config"),))
BUILD = Build("x86", ("x86",), "bzImage", "arch/x86/boot/bzImage")
CLAIM = Claim("01 one", "It is.", "value 1", "1", base_on={"arm64": "2"}, needs=("FPROBE",))
MEASURE = Measure("exit", "It exits.", "value 1", at_least={"arm64": 1.5}, at_most={"arm64": 2}, limits_for={"KASAN": "n"})

MUST_RUN = CasePattern("kunit:*", "it is the point", ("arm64",))

GOLDEN = {
    "c84c4a4e3f0f6774873c32c1df07019d7d678a6c1a9d4067d8624e499b2223e6": REQUEST.scope,
    "94ac943c7a3043746e6b66c9c3937fa063c0ebd11991bd0f70be7c8f6f92df25": key("x", 1, build=BUILD),
    "33202a44f6004ca1152bb54bcd2312c92fd3e199d1d5fbfdcaab38799d447028": key(
        "x", 1, expected=(Position.WHOLE, (CLAIM,), (MEASURE,))
    ),
    "ffb96938566428b0a7dad7acaa00ae43dbb12c58da9c393f248fe7aac6b7781b": key("x", 1, must_run=(MUST_RUN,)),
}


@pytest.mark.parametrize(("golden", "now"), GOLDEN.items())
def test_golden_values(golden: str, now: str) -> None:
    assert now == golden


def test_scope_depends_on_what_is_tested_and_not_on_how_much() -> None:
    def scope(**changes: object) -> str:
        return Request(**{name: getattr(REQUEST, name) for name in Request.__struct_fields__} | changes).scope

    assert scope(points=(0, 1), jobs=7, retries=2) == REQUEST.scope
    others = [
        scope(tree="debian:other"),
        scope(commands=("true",)),
        scope(selections=()),
        scope(fragments=()),
        scope(accel="kvm"),
        scope(toolchain="llvm"),
        scope(selftests="git:."),
        scope(given=Given(Path("/a/bzImage"))),
        scope(series=Series(name="b", origin="", digest="0" * 64)),
    ]
    assert len({REQUEST.scope, *others}) == 1 + len(others)


class One(Struct):
    a: int
    b: tuple[str, ...] = ()


class Other(Struct):
    b: list[str]
    a: float


class Word(enum.Enum):
    ONE = "one"


def test_names_of_classes_and_the_order_of_fields_do_not_count() -> None:
    assert key("x", 1, value=One(1, ("a",))) == key("x", 1, value=Other(["a"], 1)) == key("x", 1, value={"b": ["a"], "a": 1})
    assert key("x", 1, value={Word.ONE}, path=Path("/a")) == key("x", 1, path="/a", value=["one"])
    assert key("x", 1, a=1, b=2) == key("x", 1, b=2, a=1)


@given(st.lists(st.tuples(st.sampled_from("xy"), st.integers(1, 2), st.dictionaries(st.sampled_from("ab"), st.text()))))
def test_different_values_have_different_keys(values: list[tuple[str, int, dict[str, str]]]) -> None:
    different = [one for number, one in enumerate(values) if one not in values[:number]]
    assert len({key(kind, version, **names) for kind, version, names in different}) == len(different)


def test_what_has_no_canonical_form_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="cannot depend on a object"):
        key("x", 1, value=object())
