"""The tests of fprobe_claims.ko as a program, on an fprobe that does not do what was asked: none shows a value that is wanted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness import paths, series

FAKE = Path(__file__).parents[1] / "data" / "modules"
SOURCES = ("main.c", "limits.c", "lifetime.c")

CLAIMS = {
    match[1]: claim
    for claim in series.load("fprobe-on-fgraph").claims
    if (match := re.fullmatch(r"value_of module (\w+)", claim.script))
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    sources = [paths.MODULES / name for name in SOURCES]
    for header in re.findall(
        r"#include <(linux/.*)>", "".join(path.read_text() for path in [*sources, *paths.MODULES.glob("*.h")])
    ):
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text('#include "fake.h"\n')
    built = folder / "program"
    flags = ["-Wall", "-Werror", "-Wno-unused-function", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-pthread"]
    include = [f"-I{folder}", f"-I{FAKE}", f"-I{paths.MODULES}", "-include", f"{FAKE}/fake.h"]
    subprocess.run(["gcc", *flags, *include, "-o", built, *sources, FAKE / "fprobe.c"], check=True)
    return built


def value(program: Path, mode: str, *tests: str) -> str:
    done = subprocess.run([program, mode, *tests], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def test_every_test_is_a_claim(program: Path) -> None:
    named = set(
        re.findall(r'^\t\{ "(\w+)", test_', "".join((paths.MODULES / name).read_text() for name in SOURCES), re.MULTILINE)
    )
    assert named == set(CLAIMS) | {"wide1", "wide2", "narrow"}


@pytest.mark.parametrize("test", CLAIMS)
def test_an_fprobe_that_works_shows_what_the_series_promises(program: Path, test: str) -> None:
    wanted = CLAIMS[test].patched
    if test == "rollback":
        wanted = "-22, 0 hit; 0, 1 hit"
    assert value(program, "works", test) == wanted


@pytest.mark.parametrize("mode", ["refused", "idle", "missed", "no-exit"])
@pytest.mark.parametrize("test", CLAIMS)
def test_an_fprobe_that_does_not_work_shows_nothing_that_is_wanted(program: Path, test: str, mode: str) -> None:
    claim = CLAIMS[test]
    for before in ([], [test]):  # a test that went well before leaves nothing that would do
        seen = value(program, mode, *before, test)
        assert seen not in {claim.patched, claim.base, *claim.base_on.values(), *claim.patched_on.values()}, seen


def test_one_probe_does_not_make_up_for_another(program: Path) -> None:
    assert value(program, "uneven", "deep") != CLAIMS["deep"].patched
    assert not value(program, "uneven", "deep").startswith("0 lost")


def test_counting_by_a_kprobe_that_does_not_fire(program: Path) -> None:
    assert value(program, "no-kprobe", "rethooks") == "the kprobe on rethook_alloc does not fire"


def test_what_a_registration_returned_is_the_value(program: Path) -> None:
    assert value(program, "works", "wide1") == "0"
    assert value(program, "refused", "wide1") == "-22"
    assert value(program, "works", "wide1", "wide2", "narrow") == "0, 0"
    assert value(program, "refused", "narrow") == "-22, -22"
