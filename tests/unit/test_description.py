"""series.toml: what is refused, with file, line and what to do; and what the bundled series must hold."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from harness import request, series, suites
from harness.errors import UserError
from harness.model import Series
from harness.options import RunOptions
from tests import fake
from tests.unit.test_cli import harness

GOOD = """\
description = '''
Words.
'''
tested-on = ["6.12.117"]
fragment = "own.config"

[[must-run]]
case = "kunit:fprobe_test.*"
reason = "it proves the series"

[[must-run]]
case = "samples:fprobe_example/*"
arch = ["arm64"]
reason = "it proves it, too"

[[must-run]]
case = "claims:01*"
reason = "it is said"

[[checkpatch]]
type = "ODD"
reason = "so"
patch = "0001-*"

[origin]
title = "theirs"

[[origin.patch]]
title = "one"
patches = ["0001"]
"""

CHANGES = [
    ("description = ", "descriptoin = ", 1, "descriptoin"),
    ('tested-on = ["6.12.117"]', 'tested-on = "6.12.117"', 4, "array"),
    ('tested-on = ["6.12.117"]', 'tested-on = ["6.12.x"]', 4, "'6.12.x' is no version"),
    ('fragment = "own.config"', 'fragment = "gone.config"', 5, "no fragment gone.config"),
    ('fragment = "own.config"', 'needs = ["another"]', 5, "needs"),
    ('fragment = "own.config"', 'tests-with = ["another"]', 5, "tests-with"),
    ("[[must-run]]", "[[mustrun]]", 7, "mustrun"),
    ('case = "kunit:fprobe_test.*"', 'caes = "kunit:fprobe_test.*"', 8, "caes"),
    ('case = "kunit:fprobe_test.*"', 'case = "kunti:fprobe_test.*"', 8, "'kunti:fprobe_test.*' can match no case"),
    ('case = "kunit:fprobe_test.*"', 'case = "kunit"', 8, "can match no case"),
    ('case = "kunit:fprobe_test.*"', 'case = "*"', 8, "can match no case"),
    ('case = "kunit:fprobe_test.*"', 'case = "command:true"', 8, "can match no case"),
    ('case = "samples:fprobe_example/*"', 'case = "samples:fprobe_exmaple/*"', 12, "can match no case"),
    ('case = "claims:01*"', 'case = "claims:02*"', 17, "can match no case"),
    ('case = "claims:01*"', 'case = "bench:entry"', 17, "can match no case"),
    ('arch = ["arm64"]', 'arch = ["arm46"]', 13, "unknown architecture 'arm46'"),
    ('reason = "it proves the series"', 'reason = " "', 7, "has no reason"),
    ('reason = "it proves the series"', "", 7, "reason"),
    ('patch = "0001-*"', 'patch = "0007-*"', 23, "no patch of the series matches '0007-*'"),
    ('reason = "so"', 'reason = ""', 20, "without a reason"),
    ('patches = ["0001"]', 'patches = ["0007"]', 30, "'one' refers to patch 0007"),
    ('patches = ["0001"]', "patches = [1]", 30, "Expected `str`"),
    ('title = "theirs"', 'title = "theirs', 26, "Illegal character"),
]


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = fake.series(tmp_path_factory.mktemp("described") / "s", {"main.c": "int first;\n"})
    (directory / "own.config").write_text("CONFIG_FTRACE=y\n")
    claim = 'case = "01 it is"\nsays = "It is."\nscript = "echo value: 1"\npatched = "1"\nbase = "0"\n'
    (directory / "claims.toml").write_text(f"[[claim]]\n{claim}")
    return directory


def parsed(directory: Path) -> Series:
    return request.parse(RunOptions(series_spec=str(directory), jobs=1, accel="tcg")).series


def test_good_description(patches: Path) -> None:
    (patches / "series.toml").write_text(GOOD)
    found = parsed(patches)
    assert found.tested_on == ("6.12.117",)
    assert [entry.case for entry in found.must_run] == ["kunit:fprobe_test.*", "samples:fprobe_example/*", "claims:01*"]
    assert found.must_run[1].arch == ("arm64",)
    assert found.fragment == patches / "own.config"
    assert [argued.type for argued in found.argued] == ["ODD"]
    assert found.written_after and found.written_after.title == "theirs"
    assert [claim.case for claim in found.claims] == ["01 it is"]
    assert found.home == patches


@pytest.mark.parametrize(("old", "new", "line", "why"), CHANGES)
def test_bad_description_is_refused_with_file_and_line(patches: Path, old: str, new: str, line: int, why: str) -> None:
    (patches / "series.toml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        parsed(patches)
    assert caught.value.message.startswith(f"{patches / 'series.toml'}:{line}: ")
    assert why in caught.value.message
    assert caught.value.hint


def test_command_line_says_so(patches: Path, tmp_path: Path) -> None:
    (patches / "series.toml").write_text(GOOD.replace("kunit:", "kunti:"))
    done = harness("run", "--series", patches, "--arch", "arm64", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{patches / 'series.toml'}:8: must-run 'kunti:fprobe_test.*' can match no case" in done.stderr
    assert "hint: write SUITE:NAME" in done.stderr


# The bundled series: what it promises is tested, and cannot be taken out unnoticed.

BUNDLED = "fprobe-on-fgraph"

PROMISES = {
    "arm64 and riscv64 get an fprobe": ("claims:01 fprobe exists", "kunit:fprobe_test.x", "samples:fprobe_example/one symbol"),
    "fprobe events": ("claims:15 arguments by name", "ftracetest:dynevent/add_remove_fprobe.tc"),
    "BPF kprobe.multi": ("claims:12 BPF kprobe.multi",),
    "from pt_regs to ftrace_regs": ("claims:02 handlers' registers",),
    "moves fprobe onto the function graph": (
        "claims:04 no rethook",
        "claims:06 shared space",
        "claims:10 one ftrace_ops",
        "claims:11 graph instances beside probes",
        "ftracetest:ftrace/fgraph-filter.tc",
        "boot:selftest/tracer function_graph",
        "boot:selftest/multiple fgraph storage on a function",
    ),
    "its returns are no longer hooked beside those of the function graph": ("claims:03 hooked once", "claims:14 memory"),
}
"""Statements of the series' description, each with the cases that prove it: claims, or tests that must run."""


def test_each_promise_of_the_bundled_series_has_its_cases() -> None:
    found = series.load(BUNDLED)
    text = " ".join(found.description.split()).lower()
    claims = {f"claims:{claim.case}" for claim in found.claims}
    for promise, cases in PROMISES.items():
        assert promise.lower() in text
        for case in cases:
            must = any(fnmatch.fnmatchcase(case, entry.case) for entry in found.must_run)
            assert case in claims or must, case


def test_claims_of_the_bundled_series_are_numbered_without_a_gap() -> None:
    claims = series.load(BUNDLED).claims
    assert [claim.case[:2] for claim in claims] == [f"{number:02d}" for number in range(1, len(claims) + 1)]
    assert len(claims) >= 23
    assert all(claim.says and claim.script and claim.patched for claim in claims)


def test_tests_that_the_bundled_series_brings_must_run() -> None:
    found = series.load(BUNDLED)
    files = {file for patch in found.patches for file in patch.files}
    folder = "tools/testing/selftests/ftrace/test.d/"
    brought = [f"ftracetest:{file.removeprefix(folder)}" for file in files if file.startswith(folder) and file.endswith(".tc")]
    brought += ["kunit:fprobe_test.test_fprobe"] if "lib/tests/test_fprobe.c" in files or "lib/test_fprobe.c" in files else []
    samples = suites.ALL["samples"].cases or ()
    brought += [f"samples:{name}" for name in samples if f"samples/fprobe/{name.partition('/')[0]}.c" in files]
    assert {case.partition(":")[0] for case in brought} == {"ftracetest", "kunit", "samples"}
    assert not [case for case in brought if not any(fnmatch.fnmatchcase(case, entry.case) for entry in found.must_run)]
    assert not [entry.case for entry in found.must_run if entry.arch], "on every architecture"


def test_bundled_series_measures_what_it_costs() -> None:
    measured = {measure.case for measure in series.load(BUNDLED).measures}
    assert {"no probe", "entry", "exit", "entry and exit", "function_graph", "kprobe.multi", "memory, task"} <= measured
