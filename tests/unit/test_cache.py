"""What is in the cache, and what is removed from it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cache import Cache, contents, locks, sessions
from harness.cache.contents import Kind
from harness.cache.prune import prune
from harness.cli.root import cli
from harness.errors import UserError
from harness.tree import Store
from tests.unit.test_two_runs import Bench, bench, wait_until

__all__ = ["bench"]

DAY = 86400.0
_INCREMENT = """
import sys
from pathlib import Path
from harness.cache import Cache
cache, file = Cache(Path(sys.argv[1])), Path(sys.argv[2])
for _ in range(50):
    with cache.making("kernels/x", "counting"):
        file.write_text(str(int(file.read_text()) + 1))
"""


def age(cache: Cache, name: str, days: float) -> None:
    """Let it be used last so many days ago."""
    path = cache.root / "used" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{time.time() - days * DAY:.3f}\n")


def fill(cache: Cache, name: str, kilobytes: int, days: float) -> Path:
    path = cache.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * (kilobytes << 10))
    age(cache, name, days)
    return path


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Cache]:
    """Four initramfs of 1 MB, 1 to 4 days old."""
    cache = Cache(tmp_path / "cache")
    for days in range(1, 5):
        fill(cache, f"initramfs/{days}", 1024, days)
    yield cache


def left(cache: Cache) -> list[str]:
    return sorted(path.name for path in (cache.root / "initramfs").iterdir())


def invoke(cache: Cache, *words: str) -> Result:
    return CliRunner().invoke(cli, ["cache", *words, "--cache", str(cache.root)])


def test_what_was_not_used_for_days_is_removed(filled: Cache) -> None:
    result = prune(filled, 2.5 * DAY, None)
    assert [entry.name for entry in result.removed] == ["initramfs/4", "initramfs/3"]
    assert left(filled) == ["1", "2"]


def test_what_was_not_used_for_longest_is_removed_until_the_rest_fits(filled: Cache) -> None:
    result = prune(filled, None, 2 << 20 | 1 << 19)
    assert [entry.name for entry in result.removed] == ["initramfs/4", "initramfs/3"]
    assert 2 << 20 <= result.freed < 3 << 20
    assert left(filled) == ["1", "2"]


def test_the_time_of_reading_does_not_count(filled: Cache) -> None:
    """A backup, or grep, reads everything; and some file systems note no reading at all."""
    for path in (filled.root / "initramfs").iterdir():
        path.read_bytes()
        path.touch()
    prune(filled, 2.5 * DAY, None)
    assert left(filled) == ["1", "2"]


def test_a_use_counts(filled: Cache) -> None:
    other = Cache(filled.root)
    other.session.use("initramfs/4")
    del other
    prune(filled, 2.5 * DAY, None)
    assert left(filled) == ["1", "2", "4"]


def test_what_is_in_use_stays(filled: Cache) -> None:
    other = Cache(filled.root)
    other.session.use("initramfs/4")
    age(filled, "initramfs/4", 40)  # a run of forty days
    result = prune(filled, 0, None)
    assert [entry.name for entry in result.in_use] == ["initramfs/4"]
    assert left(filled) == ["4"]
    del other
    prune(filled, 0, None)
    assert not left(filled)


def test_what_is_used_while_it_is_looked_at_stays(
    filled: Cache,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process has used it and has ended since."""
    look = contents.names_in_use

    def later(cache: Cache) -> set[str]:
        found = look(cache)
        Cache(cache.root).session.use("initramfs/4")
        return found

    monkeypatch.setattr(contents, "names_in_use", later)
    result = prune(filled, 0, None)
    assert [entry.name for entry in result.in_use] == ["initramfs/4"]
    assert left(filled) == ["4"]


def test_dry_run_says_the_same_and_removes_nothing(filled: Cache) -> None:
    planned = prune(filled, 2.5 * DAY, None, dry_run=True)
    assert left(filled) == ["1", "2", "3", "4"]
    done = prune(filled, 2.5 * DAY, None)
    assert [entry.name for entry in planned.removed] == [entry.name for entry in done.removed]
    assert planned.freed == done.freed


def test_records_go_with_what_they_are_about(filled: Cache) -> None:
    filled.write_record("initramfs", "4", "digest")
    prune(filled, 3.5 * DAY, None)
    assert not (filled.root / "records" / "initramfs" / "4").exists()
    assert not (filled.root / "used" / "initramfs" / "4").exists()
    assert not list((filled.root / "scratch").iterdir())


def test_folder_that_is_no_cache_is_left_alone(tmp_path: Path) -> None:
    """Somebody's home may have a folder `work`, too."""
    (tmp_path / "work" / "mine").mkdir(parents=True)
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "file").write_text("mine")
    with pytest.raises(UserError, match="is no cache of the harness"):
        prune(Cache(tmp_path), 0, 0)
    assert (tmp_path / "work" / "mine").is_dir()
    assert (tmp_path / "downloads" / "file").exists()


def test_lock_excludes_other_processes(tmp_path: Path) -> None:
    """Its file is removed by each owner, and made again by the next."""
    file = tmp_path / "number"
    file.write_text("0")
    words = [sys.executable, "-c", _INCREMENT, str(tmp_path / "cache"), str(file)]
    counters = [subprocess.Popen(words) for _ in range(4)]
    assert [counter.wait(60) for counter in counters] == [0] * 4
    assert file.read_text() == "200"
    assert not list((tmp_path / "cache" / "locks").iterdir())


def test_shared_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = (locks.attempt(path, shared=True) for _ in range(2))
    assert first and second
    assert locks.attempt(path) is None
    first.release()
    assert locks.attempt(path) is None
    second.release()
    alone = locks.attempt(path, "somebody")
    assert alone and locks.owner_of(path) == "somebody"
    assert locks.attempt(path, shared=True) is None
    assert alone.share()
    assert locks.attempt(path, shared=True)


# The command, and what runs leave behind.


def test_what_builds_use_is_known(bench: Bench) -> None:
    run = bench.start()
    assert run.status == 0, run.text
    found = {entry.name: entry for entry in contents.entries(bench.cache)}
    (digest,) = (path.name for path in (bench.cache.root / "kernels").iterdir())
    names = {
        f"kernels/{digest}": Kind.KERNEL,
        "work/build/x86_64-gcc": Kind.BUILD,
        "work/build/source": Kind.SOURCES,
        "linux.git": Kind.SOURCES,
    }
    assert {name: found[name].kind for name in names} == names
    assert found[f"kernels/{digest}"].label == "x86_64 6.12.99"
    for name in names:
        assert sessions.last_used(bench.cache.root, name)
        assert found[name].size > 0
    # All that is on the disk is part of something, but for the folders that hold the entries.
    root = bench.cache.root
    above = {folder for name in found for folder in (root / name).parents}
    own = sum(path.stat().st_blocks * 512 for path in above if path.is_relative_to(root))
    assert sum(entry.size for entry in found.values()) + own == contents.disk_size(root)
    before = sessions.last_used(bench.cache.root, f"kernels/{digest}")
    assert bench.start().status == 0
    after = sessions.last_used(bench.cache.root, f"kernels/{digest}")
    assert before and after and after > before
    assert not contents.names_in_use(bench.cache)


def test_prune_beside_a_build(bench: Bench) -> None:
    """What it builds from stays; what it does not need goes. What was removed is made again."""
    old = bench.start(target="arm64")
    assert old.status == 0, old.text
    bench.commit("main.c", "int changed;\n")
    hanging, gate = bench.start_hanging()
    result = prune(Cache(bench.cache.root), 0, None)
    assert {entry.name for entry in result.in_use} == {
        "work/build/x86_64-gcc",
        "work/build/source",
        "linux.git",
    }
    assert "work/build/arm64-gcc" in {entry.name for entry in result.removed}
    assert not list((bench.cache.root / "kernels").iterdir())
    gate.unlink()
    assert hanging.status == 0, hanging.text
    assert [entry.kind for entry in contents.entries(bench.cache)].count(Kind.KERNEL) == 1
    result = prune(Cache(bench.cache.root), 0, None)
    assert not result.in_use
    kept = {entry.kind for entry in contents.entries(bench.cache)}
    assert kept <= {Kind.RECORDS, Kind.TEMPORARY}
    for target in ("x86_64", "arm64"):
        again = bench.start(target=target)
        assert again.status == 0, again.text
        assert "in the cache" not in again.text


def test_work_tree_whose_store_is_gone_is_made_again(bench: Bench) -> None:
    assert bench.start().status == 0
    store = Store(bench.cache)
    store.path.rename(bench.path / "gone")
    bench.commit("main.c", "int changed;\n")
    again = bench.start()
    assert again.status == 0, again.text


def test_killed_prune_leaves_what_the_next_run_removes(bench: Bench) -> None:
    assert bench.start().status == 0
    with bench.cache.scratch() as trash:
        (bench.cache.root / "work").rename(trash / "0")
        killed = trash.with_name("1-killed")
        trash.rename(killed)
        trash.mkdir()
    assert bench.start().status == 0
    assert not killed.exists()


def test_command_shows_the_cache(bench: Bench) -> None:
    assert bench.start().status == 0
    shown = invoke(bench.cache)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith(f"{bench.cache.root}: ")
    lines = {line.split("  ")[0]: line for line in shown.output.splitlines()}
    assert {"kernels", "build folders", "sources"} <= lines.keys()
    found = json.loads(invoke(bench.cache, "--json").output)
    assert found["path"] == str(bench.cache.root)
    sizes = [one["size"] for one in found["entries"]]
    assert found["size"] == sum(found["kinds"].values()) == sum(sizes)
    (kernel,) = (one for one in found["entries"] if one["kind"] == "kernels")
    assert time.time() - kernel["last_used"] < 600
    assert kernel["in_use"] is False


def test_command_shows_what_is_in_use(bench: Bench) -> None:
    bench.start_hanging()
    found = json.loads(invoke(bench.cache, "--json").output)
    used = {one["name"] for one in found["entries"] if one["in_use"]}
    assert used == {"linux.git", "work/build/source", "work/build/x86_64-gcc"}


def test_command_prunes(filled: Cache) -> None:
    planned = invoke(filled, "prune", "--max-size", "2.5M", "--dry-run")
    assert "initramfs/4, last used" in planned.output
    assert "2 removed, 2.0 MB would be freed" in planned.output
    assert left(filled) == ["1", "2", "3", "4"]
    done = invoke(filled, "prune", "--max-size", "2.5M")
    assert done.exit_code == 0
    assert "2 removed, 2.0 MB freed" in done.output
    assert left(filled) == ["1", "2"]


@pytest.mark.parametrize(
    "words",
    [(), ("--max-size", "big"), ("--max-size", "-1"), ("--keep-days", "x")],
)
def test_command_that_does_not_say_what_to_remove(filled: Cache, words: tuple[str, ...]) -> None:
    assert invoke(filled, "prune", *words).exit_code != 0
    assert left(filled) == ["1", "2", "3", "4"]


def test_cache_that_is_not_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "nowhere")
    shown = invoke(cache)
    assert shown.exit_code == 0
    assert shown.output.startswith(f"{cache.root}: 0 B")
    assert not cache.root.exists()
    assert invoke(cache, "prune", "--keep-days", "1").exit_code == 0


def test_session_that_was_killed_uses_nothing(filled: Cache) -> None:
    program = "import sys, time; from pathlib import Path; from harness.cache import Cache\n"
    program += "cache = Cache(Path(sys.argv[1])); cache.session.use('initramfs/4'); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program, str(filled.root)]) as user:
        wait_until(lambda: "initramfs/4" in contents.names_in_use(filled))
        assert prune(filled, 0, None).in_use
        user.kill()
    assert not prune(filled, 0, None).in_use
    assert not left(filled)
