"""Jobs on other machines: a real Dask scheduler on this one, with workers that are processes of their own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from harness.model import Outcome
from harness.results import read_run
from tests import surroundings
from tests.conftest import default_signals, survivors
from tests.daskd import Daskd, running
from tests.integration.conftest import harness

ARCHS = ("x86_64", "arm64")
WANTED = ("--arch", "x86_64", "--arch", "arm64", "--points", "24,last", "--suite", "kunit")
GUEST = "-kernel"
"""On QEMU's command line."""
ALONE = ("--arch", "x86_64", "--suite", "kunit")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Daskd]:
    folder = tmp_path / "dask"
    folder.mkdir()
    found = Daskd(folder)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a cluster."""
    folder = tmp_path_factory.mktemp("here")
    done = harness("run", *WANTED, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "runs" / "latest").resolve()


def comparable(junit: Path, job: str = "") -> list[str]:
    """All that a junit.xml says, of one job or of all, but for times and hosts, whichever job came first."""
    root = ElementTree.parse(junit).getroot()
    for element in root.iter():
        for name in ("time", "timestamp"):
            element.attrib.pop(name, None)
    for properties in root.iter("properties"):
        for one in properties.findall("property[@name='host']"):
            properties.remove(one)
    return sorted(ElementTree.tostring(suite).decode() for suite in root if suite.get("file", "").startswith(job))


def wait_for(worker: subprocess.Popen[bytes], word: str) -> list[psutil.Process]:
    while not (found := running(worker, word)):
        assert worker.poll() is None
        time.sleep(0.05)
    return found


@pytest.mark.slow  # kernels of two more points
@pytest.mark.parametrize("workers", [2, 4])
def test_report_is_that_of_a_local_run(workers: int, cluster: Daskd, here: Path, tmp_path: Path) -> None:
    for _ in range(workers):
        cluster.worker(*ARCHS)
    done = harness("run", *WANTED, "--executor", f"dask:{cluster.address}", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    there = (tmp_path / "runs" / "latest").resolve()
    assert comparable(there / "junit.xml") == comparable(here / "junit.xml")
    files = [{path.relative_to(run) for path in run.rglob("*")} for run in (here, there)]
    assert files[0] == files[1]
    assert len([job.properties["host"] for job in read_run(there).jobs.values()]) == 4


def without_kernels(cache: Path) -> Path:
    """A cache that has all that the default one has, but for what is built."""
    cache.mkdir()
    for name in ("linux.git", "downloads", "series"):
        (cache / name).symlink_to(surroundings.cache_folder() / name)
    shutil.copytree(
        surroundings.cache_folder() / "records", cache / "records", ignore=shutil.ignore_patterns("kernels", "initramfs")
    )
    return cache


@pytest.mark.slow  # a kernel is built anew for each
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_worker_that_ends_in_mid_build(number: signal.Signals, cluster: Daskd, here: Path, tmp_path: Path) -> None:
    first = cluster.worker("x86_64", HARNESS_CACHE=str(without_kernels(tmp_path / "cache")))
    words = ["run", *ALONE, "--points", "24,last", "--executor", f"dask:{cluster.address}"]
    with subprocess.Popen([sys.executable, "-m", "harness", *words], cwd=tmp_path) as run:
        building = wait_for(first, "make")
        cluster.worker("x86_64")
        first.send_signal(number)
        assert run.wait() == 0
    assert survivors(building) == []
    there = tmp_path / "runs" / "latest"
    assert comparable(there / "junit.xml") == comparable(here / "junit.xml", "x86_64/")
    events = [json.loads(line) for line in (there / "journal.jsonl").read_text().splitlines()]
    assert "job-lost" in [event["event"] for event in events]


def test_scheduler_that_is_killed_is_an_error(cluster: Daskd, tmp_path: Path) -> None:
    """Nobody is left who could say anything of the cases."""
    worker = cluster.worker("x86_64")
    words = ["run", "--arch", "x86_64", "--cmd", "sleep 1000", "--executor", f"dask:{cluster.address}"]
    with subprocess.Popen([sys.executable, "-m", "harness", *words], cwd=tmp_path) as run:
        wait_for(worker, GUEST)
        cluster.scheduler.kill()
        assert run.wait() == 3
    (job,) = read_run(tmp_path / "runs" / "latest").jobs.values()
    assert not job.finished
    assert Outcome.ERROR in [result.outcome for result in job.results]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_nothing_runs_on_for_a_harness_that_is_gone(number: signal.Signals, cluster: Daskd, tmp_path: Path) -> None:
    worker = cluster.worker("x86_64")
    words = ["run", "--arch", "x86_64", "--cmd", "sleep 1000", "--executor", f"dask:{cluster.address}"]
    with subprocess.Popen([sys.executable, "-m", "harness", *words], cwd=tmp_path, preexec_fn=default_signals) as run:
        guests = wait_for(worker, GUEST)
        run.send_signal(number)
        assert run.wait() == {signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert survivors(guests) == []
    assert worker.poll() is None


def test_run_that_was_killed_goes_on(cluster: Daskd, tmp_path: Path) -> None:
    worker = cluster.worker("x86_64")
    words = ["run", *ALONE, "--executor", f"dask:{cluster.address}"]
    with subprocess.Popen([sys.executable, "-m", "harness", *words], cwd=tmp_path) as run:
        wait_for(worker, GUEST)
        run.kill()
    done = harness("run", "--resume", "runs/latest", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = read_run(tmp_path / "runs" / "latest").jobs.values()
    assert job.finished


def test_what_no_worker_takes_is_refused(cluster: Daskd, tmp_path: Path) -> None:
    cluster.worker("arm64")
    done = harness("run", "--arch", "x86_64", "--executor", f"dask:{cluster.address}", cwd=tmp_path)
    assert done.returncode == 2
    assert "arch:x86_64=1" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_worker_with_another_harness_is_refused(cluster: Daskd, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    here = Path(__file__).parents[2]
    for name in ("harness", "configs", "qemu", "patches"):
        shutil.copytree(here / name, checkout / name)
    (checkout / "configs" / "base.config").write_text("CONFIG_OTHER=y\n")
    cluster.worker("x86_64", PYTHONPATH=str(checkout))
    done = harness("run", "--arch", "x86_64", "--executor", f"dask:{cluster.address}", cwd=tmp_path)
    assert done.returncode == 2
    assert "another harness" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--executor", "dask:nowhere"), 2, "unknown executor"),
        (("--executor", "slurm:tcp://a:1"), 2, "unknown executor"),
        (("--executor", "dask:tcp://127.0.0.1:1"), 3, "no Dask scheduler at tcp://127.0.0.1:1"),
        (("--executor", "dask:tcp://127.0.0.1:1", "--hosts", "hosts.toml"), 2, "HARNESS_HOSTS"),
    ],
)
def test_executors_that_are_wrong(words: tuple[str, ...], code: int, why: str, tmp_path: Path) -> None:
    done = harness("run", "--arch", "x86_64", *words, cwd=tmp_path)
    assert done.returncode == code
    assert why in done.stderr
    assert not (tmp_path / "runs").exists()
