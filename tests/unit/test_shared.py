"""What one machine has built, another one takes: on the fake kernel tree, with a cache for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import ccache, process, sandbox
from harness.cache import Cache
from harness.errors import UserError
from harness.results import RunReport
from harness.shared import Artefacts, opened
from harness.shared.folder import Folder
from tests.unit.test_pipeline import ARCH, Bench, main


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    found = Bench(tmp_path, monkeypatch)
    found.series(main("int one;"))
    return found


def run_on(machine: str, bench: Bench, shared: Path) -> tuple[RunReport, bool]:
    """And whether its kernel was there."""
    bench.cache = Cache(bench.path / machine)
    report = bench.run(bench.parse(bench.path / "s", shared_cache=str(shared)))
    assert report.finished and report.finished.exit_code == 0, report.finished
    return report, report.job(ARCH, "last").stages["build"].cached


def test_kernel_of_another_machine(bench: Bench, shared: Path) -> None:
    first, cached = run_on("one", bench, shared)
    assert not cached
    second, cached = run_on("two", bench, shared)
    assert cached
    digests = {report.job(ARCH, "last").properties["kernel"] for report in (first, second)}
    (digest,) = digests
    here, there = (bench.path / machine / "kernels" / digest for machine in ("one", "two"))
    for name in (".config", "bzImage", "vmlinux", "System.map"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    # What was fetched is found again, without anybody's help.
    assert run_on("two", bench, shared)[1]
    (known,) = (bench.path / "two" / "records" / "kernels").iterdir()
    assert str(bench.path / "one") not in known.read_text()


def test_what_is_damaged_is_made_again(bench: Bench, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_on("one", bench, shared)
    (file,) = (shared / "files").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-100] + bytes(100))
    assert not run_on("two", bench, shared)[1]
    # And others have it whole, then.
    assert run_on("three", bench, shared)[1]


@pytest.mark.parametrize("left", ["name", "file"])
def test_what_somebody_tidied_away_is_made_again(left: str, bench: Bench, shared: Path) -> None:
    run_on("one", bench, shared)
    for file in (shared / {"name": "files", "file": "kernels"}[left]).iterdir():
        file.unlink()
    assert not run_on("two", bench, shared)[1]
    assert run_on("three", bench, shared)[1]


def test_nobody_waits_for_one_that_cannot_be_reached(tmp_path: Path) -> None:
    said: list[str] = []
    artefacts = Artefacts(Folder(tmp_path / "file" / "no folder"), Cache(tmp_path / "cache"), said.append)
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert not artefacts.fetch("kernels", "digest", tmp_path)
        artefacts.store("kernels", "digest", tmp_path)
    assert len(said) == 1


@pytest.mark.parametrize("spec", ["/nowhere", "sftp://", "sftp://host", "sftp://host:port/a", "https://host/a"])
def test_specs_that_are_wrong(spec: str, bench: Bench) -> None:
    with pytest.raises(UserError, match="no shared cache at"):
        bench.parse(bench.path / "s", shared_cache=spec)


def test_what_ccache_compiled_on_another_machine(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CCACHE_REMOTE_STORAGE", raising=False)
    (tmp_path / "a.c").write_text("int a;\n")
    told = []
    for machine in ("one", "two"):
        monkeypatch.setenv("CCACHE_DIR", str(tmp_path / machine))
        cache = Cache(tmp_path / f"{machine}-cache")
        with opened(str(shared), cache, print) as cache.shared:
            try:
                sandbox.enter(sandbox.Sandbox.AUTO, cache)
                argv: list[str | Path] = ["ccache", "gcc", "-c", tmp_path / "a.c", "-o", tmp_path / "a.o"]
                log = tmp_path / f"{machine}.log"
                process.run(argv, env={**ccache.environment(cache), "CCACHE_STATSLOG": str(log)}, confined=[tmp_path])
            finally:
                sandbox.leave()
        told.append("remote_storage_hit" in log.read_text())
    assert told == [False, True]


def test_ccache_that_needs_the_network_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And who reads run.toml knows."""
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", f"http://127.0.0.1:1|layout=bazel file:{tmp_path}/far")
    assert ccache.storage(Cache(tmp_path)) == ([tmp_path / "far"], True)
    try:
        name = sandbox.enter(sandbox.Sandbox.AUTO, Cache(tmp_path))
        if not name.startswith("none"):
            assert "network" in name
    finally:
        sandbox.leave()
