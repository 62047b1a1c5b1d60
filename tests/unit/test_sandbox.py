from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import process, sandbox
from harness.cache import Cache
from harness.errors import InfrastructureError
from harness.sandbox import Sandbox


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    found = Cache(tmp_path / "cache")
    if (said := sandbox.enter(Sandbox.AUTO, found)) != "bubblewrap":
        pytest.skip(said)
    yield found
    sandbox.leave()


def test_only_work_and_scratch_can_be_written(cache: Cache, tmp_path: Path) -> None:
    work, store = cache.directory("work/build/source"), cache.directory("linux.git")
    (work / ".git").write_text("gitdir: elsewhere\n")
    output = cache.directory("work/build/x86_64-gcc")
    inside = process.run(["sh", "-c", f"echo x >{output}/inside; mktemp"], confined=(output,))
    assert (output / "inside").exists()
    # Git obeys what it finds there, outside of the sandbox as well.
    for forbidden in (
        work / ".git",
        work / "x",
        store / "config",
        cache.directory("kernels") / "x",
        cache.directory("scratch") / "x",
    ):
        assert process.run(["sh", "-c", f"echo x >{forbidden}"], confined=(output,), check=False).returncode != 0, forbidden
    for move in (f"rm -f {work}/.git", f"mv {work} {output}", f"mv {output} {work.parent}/other"):
        assert process.run(["sh", "-c", move], confined=(output,), check=False).returncode != 0, move
    assert process.run(["sh", "-c", f"echo x >{store}/config"], confined=(store,)).returncode == 0
    assert not Path(inside.stdout.strip()).exists()
    outside = tmp_path / "outside"
    assert process.run(["touch", outside], confined=(), check=False).returncode != 0
    assert not outside.exists()
    assert process.run(["touch", outside]).returncode == 0


def test_no_network_and_no_other_process(cache: Cache) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        assert process.run([sys.executable, "-c", connect]).returncode == 0
        assert process.run([sys.executable, "-c", connect], confined=(), check=False).returncode != 0
    seen = process.run(["sh", "-c", "cd /proc; echo [0-9]*"], confined=()).stdout.split()
    assert len(seen) < 5


def test_cpu_time_is_counted(cache: Cache) -> None:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    work = "import time\nwhile time.process_time() < 0.3: pass\nprint(time.process_time())"
    before = used()
    took = process.run([sys.executable, "-c", work], confined=()).stdout
    assert used() - before >= float(took)


def test_status_output_and_end_are_those_of_the_command(cache: Cache) -> None:
    assert process.run(["sh", "-c", "echo said; exit 7"], confined=(), check=False).returncode == 7
    with process.start(["sh", "-c", "sleep 1000 & sleep 1000"], confined=()) as child:
        pass
    assert child.returncode is not None


def test_without_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "which", lambda name: None)
    assert sandbox.enter(Sandbox.AUTO, Cache(tmp_path)) == "none: bubblewrap is not installed"
    assert sandbox.enter(Sandbox.OFF, Cache(tmp_path)) == "none: --sandbox off"
    with pytest.raises(InfrastructureError, match="bubblewrap is not installed"):
        sandbox.enter(Sandbox.ON, Cache(tmp_path))
