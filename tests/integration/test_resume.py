"""A run that is killed goes on where it was, as often as it takes, and its report is that of a run that nobody disturbed."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from tests.conftest import survivors
from tests.integration.conftest import harness

WANTED = ("--arch", "x86_64", "--suite", "claims", "--suite", "ftracetest:dynevent/*fprobe*")


def events(directory: Path) -> list[str]:
    """Whole lines of the journal."""
    journal = directory / "journal.jsonl"
    return journal.read_text().split("\n")[:-1] if journal.exists() else []


def started_by(pid: int) -> list[psutil.Process]:
    """What a harness started, as its mark in the environment tells: also in the moment before it was killed."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(name.startswith(f"HARNESS_GUARD_{pid}_") for name in one.environ()):
                found.append(one)
    return found


def finished(directory: Path) -> list[tuple[str, str]]:
    found = [json.loads(line)["result"] for line in events(directory) if '"event":"case-finished"' in line]
    return [(case["suite"], case["name"]) for case in found]


def cases(directory: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    """Of junit.xml, all but times; guests take turns, so the order may differ, and a machine may go wrong and start again."""
    found = ElementTree.parse(directory / "junit.xml").iter("testcase")
    told = [(case.get("classname", ""), case.get("name", ""), tuple(child.tag for child in case)) for case in found]
    return sorted(case for case in told if not case[1].startswith("misboot"))


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_at_random_moments(kills: int, tmp_path: Path) -> None:
    undisturbed = harness("run", *WANTED, "--out", tmp_path / "undisturbed", cwd=tmp_path)
    assert undisturbed.returncode == 0, undisturbed.stdout + undisturbed.stderr
    directory = tmp_path / "runs" / "latest"
    words: list[str] = list(WANTED)
    chance = random.Random(0)
    finished_before: list[tuple[set[str], dict[Path, int]]] = []
    for _ in range(kills):
        before = len(events(directory))
        with subprocess.Popen(
            [sys.executable, "-m", "harness", "run", *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            # By what it has done, not by the clock: most of these are before its guests are up.
            moment = before + chance.randrange(12)
            while len(events(directory)) < moment and run.poll() is None:
                time.sleep(0.01)
            time.sleep(chance.random())
            run.kill()
        assert not survivors(started_by(run.pid))
        # A kill may come before the run has said anything: then there is nothing to go on with.
        if events(directory):
            words = ["--resume", str(directory.resolve())]
            sizes = {path: path.stat().st_size for path in directory.resolve().glob("*/*/console*.log")}
            labels = {re.sub(r"\s", "_", f"{suite}:{name}") for suite, name in finished(directory)}
            finished_before.append((labels, sizes))
    done = harness("run", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cases(directory) == cases(tmp_path / "undisturbed" / "latest")
    names = finished(directory)
    assert len(names) == len(set(names))
    # The guests tell what was run: nothing that was finished by then.
    for labels, sizes in finished_before:
        for path in directory.resolve().glob("*/*/console*.log"):
            began = re.findall(rb"harness: [0-9a-f]+ begin (\S+)", path.read_bytes()[sizes.get(path, 0) :])
            assert not labels & {label.decode() for label in began}
    again = harness("run", "--resume", directory, cwd=tmp_path)
    assert again.returncode == 0
    assert cases(directory) == cases(tmp_path / "undisturbed" / "latest")


def test_what_cannot_go_on_says_so(tmp_path: Path) -> None:
    nothing = harness("run", "--resume", tmp_path, cwd=tmp_path)
    assert (nothing.returncode, "no run in" in nothing.stderr) == (2, True)
    red = harness("run", "--series", "none", "--arch", "x86_64", "--config", "missing", cwd=tmp_path)
    assert red.returncode == 2
    built = harness("build", "--series", "none", "--arch", "x86_64", "--tree", f"git:{tmp_path}#none", cwd=tmp_path)
    assert built.returncode == 2
    refused = harness("run", "--resume", "runs/latest", cwd=tmp_path)
    assert (refused.returncode, "was made by `harness build`" in refused.stderr) == (2, True)
    mixed = harness("run", "--resume", "runs/latest", "--arch", "arm64", cwd=tmp_path)
    assert (mixed.returncode, "--resume together with --arch" in mixed.stderr) == (2, True)
