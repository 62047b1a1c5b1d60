"""Several processes that use one cache at the same time, on the fake kernel tree, through real git
and make. The fake compiler hangs as long as a file is there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import arch, kernel, paths, tree
from harness.cache import Cache
from harness.guest import initramfs
from harness.guest.userland import Userland
from harness.model import Kernel
from tests import fake
from tests.conftest import default_signals

_PROGRAM = """
import sys
from pathlib import Path
from harness import paths
paths.CONFIGS = Path(sys.argv.pop(1))
from harness.cli import main
main()
"""
_SECONDS = 300.0
"""A loaded machine takes long for what it does in a second otherwise."""
_COMPILE = """\
#!/bin/sh
echo "$2" >>{folder}/compiled
while [ -e {folder}/hang-$(basename $(dirname "$2")) ]; do sleep 0.05; done
cp "$1" "$2"
"""


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


class Run:
    """A process of the harness, and what it has printed so far."""

    def __init__(self, bench: Bench, *words: str) -> None:
        self.output = bench.path / f"output-{len(bench.runs)}"
        out = bench.path / f"runs-{len(bench.runs)}"
        argv = [sys.executable, "-c", _PROGRAM, str(bench.path / "configs"), *words]
        argv += ["--cache", str(bench.cache.root), "--out", str(out)]
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                argv,
                cwd=bench.path,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=default_signals,
            )

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def status(self) -> int:
        """How it ends."""
        try:
            return self.process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end: {self.text}") from None


class Bench:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.cache = Cache(path / "cache")
        self.runs: list[Run] = []
        for name in ("base", "tracing", "selftests", "arch/x86_64", "arch/arm64"):
            fragment = path / "configs" / f"{name}.config"
            fragment.parent.mkdir(parents=True, exist_ok=True)
            fragment.write_text("CONFIG_FTRACE=y\n")
        (path / "configs" / "known.toml").write_text("")
        self.repository = fake.repository(path / "linux")
        self.commit("compile", _COMPILE.format(folder=path))

    def commit(self, name: str, content: str) -> str:
        (self.repository / name).write_text(content)
        fake.git(self.repository, "commit", "--quiet", "--all", "--message=change")
        return fake.git(self.repository, "rev-parse", "HEAD")

    def hang(self, target: str = "x86_64") -> Path:
        """Let the compiler hang for this architecture until the file is removed."""
        gate = self.path / f"hang-{target}-gcc"
        gate.touch()
        return gate

    @property
    def compiled(self) -> list[str]:
        """The objects that were made, or are being made."""
        path = self.path / "compiled"
        return path.read_text().splitlines() if path.exists() else []

    def start(self, *more: str, target: str = "x86_64", reference: str = "main") -> Run:
        tree_spec = f"git:{self.repository}#{reference}"
        words = ["build", "--series", "none", "--tree", tree_spec, "--arch", target]
        run = Run(self, *words, "--toolchain", "gcc", "--sandbox", "off", *more)
        self.runs.append(run)
        return run

    def start_hanging(self, target: str = "x86_64") -> tuple[Run, Path]:
        """A run whose compiler hangs, and the file that makes it hang."""
        gate, before = self.hang(target), len(self.compiled)
        run = self.start(target=target)
        wait_until(lambda: len(self.compiled) > before or run.process.poll() is not None)
        assert run.process.poll() is None, run.text
        return run, gate


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    for run in found.runs:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize("more", [(), ("--wait",)])
def test_cached_kernel_beside_a_build_that_hangs(bench: Bench, more: tuple[str, ...]) -> None:
    first = bench.start()
    assert first.status == 0, first.text
    cached = fake.git(bench.repository, "rev-parse", "HEAD")
    bench.commit("main.c", "int changed;\n")
    hanging, _ = bench.start_hanging()
    second = bench.start(*more, reference=cached)
    assert second.status == 0, second.text
    assert "in the cache" in second.text
    assert "waiting" not in second.text
    assert hanging.process.poll() is None


def test_prebuilt_kernel_in_the_cache_beside_a_build_that_hangs(bench: Bench) -> None:
    image = bench.path / "bzImage"
    image.write_bytes(b"Linux version 6.12.99 (a@b) #1\n")
    (bench.path / "config-6.12.99").write_text("CONFIG_FTRACE=y\n")
    target = arch.load("x86_64")
    (bench.repository / "scripts" / "extract-ikconfig").write_text("exit 1\n")
    fake.git(bench.repository, "add", "--all")
    commit = bench.commit("main.c", "int prebuilt;\n")
    tree.resolve(f"git:{bench.repository}#main", bench.cache)
    words = (kernel.Given(image), target, kernel.detect(target), commit)
    first, cached = kernel.adopt(*words, bench.cache)
    assert not cached
    bench.commit("main.c", "int changed;\n")
    hanging, _ = bench.start_hanging()
    assert kernel.adopt(*words, Cache(bench.cache.root)) == (first, True)
    assert hanging.process.poll() is None


def test_guest_of_a_cached_kernel_beside_a_build_that_hangs(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a run and a shell do once they have their kernel."""
    busybox = bench.path / "busybox"
    busybox.write_text("a program")
    monkeypatch.setattr(initramfs, "userland", lambda target, cache: Userland(busybox, busybox))
    monkeypatch.setattr(paths, "GUEST", bench.path / "guest")
    (bench.path / "guest").mkdir()
    assert bench.start().status == 0
    commit = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
    (digest,) = (path.name for path in (bench.cache.root / "kernels").iterdir())
    bench.commit("main.c", "int changed;\n")
    hanging, _ = bench.start_hanging()
    for made in (False, True):
        cache = Cache(bench.cache.root)
        built = cache.read_record("kernels", digest, Kernel)
        assert built
        words = (built, commit, arch.load("x86_64"), ["gcc"], cache)
        guest, cached = initramfs.build_initramfs(*words)
        assert guest.path.is_file()
        assert cached == made
    assert hanging.process.poll() is None


def test_two_architectures_build_at_the_same_time(bench: Bench) -> None:
    hanging, gate = bench.start_hanging("x86_64")
    second = bench.start(target="arm64")
    assert second.status == 0, second.text
    assert "arm64/base: kernel 6.12.99: 2 objects" in second.text
    assert hanging.process.poll() is None
    gate.unlink()
    assert hanging.status == 0, hanging.text
    # They share the work tree.
    assert sorted(path.name for path in (bench.cache.root / "work").iterdir()) == ["build"]


def test_two_commits_are_built_at_the_same_time(bench: Bench) -> None:
    hanging, gate = bench.start_hanging()
    bench.commit("main.c", "int changed;\n")
    second = bench.start(target="arm64")
    assert second.status == 0, second.text
    gate.unlink()
    assert hanging.status == 0, hanging.text
    images = [path.read_bytes() for path in bench.cache.root.glob("kernels/*/vmlinux")]
    assert sorted(b"changed" in image for image in images) == [False, True]


def test_one_kernel_is_built_once(bench: Bench) -> None:
    hanging, gate = bench.start_hanging()
    second = bench.start()
    pid = hanging.process.pid
    wait_until(lambda: "waiting" in second.text or second.process.poll() is not None)
    assert f"waiting for process {pid}: building the kernel x86_64/base" in second.text
    assert second.process.poll() is None
    gate.unlink()
    assert (hanging.status, second.status) == (0, 0), second.text
    assert "in the cache" in second.text
    assert len(bench.compiled) == 1


def test_killed_run_leaves_no_lock(bench: Bench) -> None:
    hanging, gate = bench.start_hanging()
    hanging.process.kill()
    hanging.process.wait()
    gate.unlink()
    second = bench.start()
    assert second.status == 0, second.text
    assert "waiting" not in second.text
    # Nor anything else; a run removes its own as well.
    folders = [bench.cache.root / name for name in ("scratch", "sessions", "builders")]
    assert not [path for folder in folders for path in folder.iterdir()]


def test_run_that_waits_can_be_interrupted(bench: Bench) -> None:
    bench.start_hanging()
    second = bench.start()
    wait_until(lambda: "waiting" in second.text)
    second.process.send_signal(signal.SIGINT)
    assert second.status == 130, second.text


def test_wait_builds_after_others(bench: Bench) -> None:
    hanging, gate = bench.start_hanging("x86_64")
    second = bench.start("--wait", target="arm64")
    wait_until(lambda: "waiting until process" in second.text or second.process.poll() is not None)
    assert f"waiting until process {hanging.process.pid} has built its kernels" in second.text
    assert len(bench.compiled) == 1
    gate.unlink()
    assert (hanging.status, second.status) == (0, 0), second.text
    assert len(bench.compiled) == 2


def test_many_runs_begin_in_an_empty_cache(bench: Bench) -> None:
    """They import one tree, apply different series to it, and build them."""
    texts = [f"int series{number};\n" for number in range(3)]
    folders = [bench.path / f"s{number}" for number in range(3)]
    for folder, text in zip(folders, texts, strict=True):
        fake.series(folder, {"main.c": text})
    runs = [bench.start("--series", str(folder)) for folder in folders]
    assert [run.status for run in runs] == [0, 0, 0], "".join(run.text for run in runs)
    images = [path.read_bytes() for path in bench.cache.root.glob("kernels/*/vmlinux")]
    assert len(images) == 3
    for text in texts:
        assert sum(text.encode() in image for image in images) == 1
    # Each is what it is alone.
    records = bench.cache.root / "records" / "applied"
    assert len(list(records.iterdir())) == 3


def test_tarball_is_imported_once(bench: Bench) -> None:
    tarball = fake.write_tarball(bench.path / "linux.tar.gz")
    runs = [bench.start("--tree", f"tarball:{tarball}") for _ in range(2)]
    assert [run.status for run in runs] == [0, 0], "".join(run.text for run in runs)
    built = [run for run in runs if "in the cache" not in run.text]
    assert len(built) == 1


def test_move_that_was_killed(bench: Bench) -> None:
    """The work tree was on its way to the commit that is built next: it is not there yet."""
    assert bench.start().status == 0
    commit = bench.commit("main.c", "int changed;\n")
    (bench.cache.root / "work" / "build" / "commit").write_text(f"moving to {commit}")
    again = bench.start()
    assert again.status == 0, again.text
    images = [path.read_bytes() for path in bench.cache.root.glob("kernels/*/vmlinux")]
    assert sum(b"changed" in image for image in images) == 1


def test_lock_of_a_killed_git(bench: Bench) -> None:
    assert bench.start().status == 0
    store = bench.cache.root / "linux.git"
    (store / "shallow.lock").touch()
    (work_tree,) = (store / "worktrees").iterdir()
    (work_tree / "index.lock").touch()
    bench.commit("main.c", "int changed;\n")
    again = bench.start()
    assert again.status == 0, again.text


def test_more_commits_than_work_trees(bench: Bench) -> None:
    """A run that finds all in use waits for one of them."""
    gate = bench.hang()
    runs = []
    for number in range(5):
        bench.commit("main.c", f"int number{number};\n")
        runs.append(bench.start())
        while len(bench.compiled) <= min(number, 3):
            assert runs[-1].process.poll() is None, runs[-1].text
            time.sleep(0.05)
    wait_until(lambda: "waiting for a work tree" in runs[-1].text)
    gate.unlink()
    assert [run.status for run in runs] == [0] * 5, "".join(run.text for run in runs)
    images = [path.read_bytes() for path in bench.cache.root.glob("kernels/*/vmlinux")]
    for number in range(5):
        assert sum(f"number{number};".encode() in image for image in images) == 1
