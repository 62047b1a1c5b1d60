"""Failures of the kernel are reported red: a KUnit case that fails, a sample that miscounts, a WARN in a module."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from junitparser import JUnitXml

from harness import series, tree
from harness.cache import Cache
from harness.model import Outcome
from harness.paths import PATCHES
from harness.results import read_run
from tests import fake, surroundings
from tests.integration.conftest import harness

ARCH = "x86_64"

pytestmark = pytest.mark.slow
BREAKS = {
    "lib/test_fprobe.c": ("KUNIT_EXPECT_EQ(test, 0, exit_val);", "KUNIT_EXPECT_EQ(test, 1, exit_val);"),
    "samples/fprobe/fprobe_example.c": ("symbol, nhit, sample_probe.nmissed", "symbol, nhit + 1, sample_probe.nmissed"),
    "samples/kprobes/kprobe_example.c": ("\tint ret;\n", "\tint ret;\n\n\tWARN_ON_ONCE(1);\n"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled series, and a patch after it that breaks what is tested."""
    folder = shutil.copytree(PATCHES / "fprobe-on-fgraph", tmp_path_factory.mktemp("red") / "fprobe-on-fgraph")
    cache = Cache(surroundings.cache_folder())
    with cache.opened():
        source = tree.resolve(tree.default_spec(()), cache)
        tip = series.apply(series.load(str(folder)), source, cache).tip
    work = folder.parent / "work"
    texts = {name: tree.Store(cache).read_file(tip, name) for name in BREAKS}
    for number in (0, 1):
        for name, text in texts.items():
            old, new = BREAKS[name]
            assert old in text
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text.replace(old, new, 1) if number else text)
        if not number:
            fake.git(work, "init", "--quiet", "--initial-branch=main")
        fake.git(work, "add", "--all")
        fake.git(work, "commit", "--quiet", f"--message=lib: state {number}")
    count = len(list(folder.glob("*.patch")))
    words = ("format-patch", "--quiet", "--zero-commit", "--no-signature", "-1", f"--start-number={count + 1}")
    fake.git(work, *words, "-o", str(folder))
    added = next(folder.glob(f"{count + 1:04}-*.patch")).name
    with (folder / "series").open("a") as file:
        file.write(f"{added}\n")
    return folder


def test_each_is_red_and_the_rest_is_not(broken: Path, tmp_path: Path) -> None:
    wanted = ("--suite", "kunit", "--suite", "samples")
    done = harness("run", "--series", broken, "--arch", ARCH, *wanted, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    run = tmp_path / "runs" / "latest"
    (job,) = read_run(run).jobs.values()
    results = {result.id: result for result in job.results}
    red = {name: result.outcome for name, result in results.items() if not result.outcome.green}
    fprobe = {name for name in results if name.startswith("samples:fprobe_example")}
    assert len(fprobe) >= 5
    assert red == {
        "kunit:fprobe_test.test_fprobe_entry": Outcome.FAIL,
        "samples:kprobe_example": Outcome.CRASH,
        **dict.fromkeys(fprobe, Outcome.FAIL),
    }
    assert "WARNING" in results["samples:kprobe_example"].diagnostic
    failed = [case for suite in JUnitXml.fromfile(str(run / "junit.xml")) for case in suite if not case.is_passed]
    assert sorted(case.name for case in failed) == sorted(name.partition(":")[2] for name in red)
    assert f"{len(red)} failed" in done.stdout
