"""The wheel, which is what `pipx install` gets: built once, installed outside of the checkout, and
run from there. No test needs the network: the packages that the wheel depends on are those of the
environment that runs the tests. `.ci/run` installs the wheel with all of them from the index."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from harness import __version__
from tests import docs, fake

DATA = ("configs", "patches", "qemu")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that git knows, as in a new clone."""
    clone = tmp_path_factory.mktemp("clone")
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=docs.ROOT, text=True)
    for name in filter(None, names.split("\0")):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(docs.ROOT / name, clone / name)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=clone,
        check=True,
    )
    (built,) = out.glob("*.whl")
    return built


class Installed:
    """A virtual environment with the wheel in it. It reads no checkout."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder / "venv", with_pip=False)
        self._python = folder / "venv" / "bin" / "python"
        self._program = folder / "venv" / "bin" / "harness"
        self.folder = folder / "elsewhere"
        self.folder.mkdir()
        install = ["pip", "--python", str(self._python), "install", "--no-deps", "--no-index", "--quiet"]
        subprocess.run([sys.executable, "-m", *install, str(wheel)], check=True)
        # A path in a .pth file is searched last, and the .pth files there are not read: an editable
        # install of this checkout stays invisible.
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    @property
    def packages(self) -> Path:
        (found,) = self._python.parents[1].glob("lib/python*/site-packages")
        return found

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(str(self._program), *arguments)

    def python(self, code: str) -> str:
        done = self._run(str(self._python), "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


def in_checkout(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(docs.ROOT)}
    words = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)


def test_every_data_file_is_in_the_wheel(wheel: Path) -> None:
    """With its content and its mode: the guest runs some of them."""
    names = subprocess.check_output(["git", "ls-files", "-z", "harness", *DATA], cwd=docs.ROOT, text=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in filter(None, names.split("\0")):
            inside = name if name.startswith("harness/") else f"harness/data/{name}"
            file = docs.ROOT / name
            assert archive.read(inside) == file.read_bytes(), name
            executable = archive.getinfo(inside).external_attr >> 16 & 0o111
            assert bool(executable) == os.access(file, os.X_OK), name


def test_programs_are_executable_after_the_installation(installed: Installed) -> None:
    for name in ("data/qemu/guest/init", "data/qemu/guest/agent", "kernel/bin/harness-ccache"):
        assert os.access(installed.packages / "harness" / name, os.X_OK), name


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.split("/")[0] for name in archive.namelist()}
        data = {name.split("/")[2] for name in archive.namelist() if name.startswith("harness/data/")}
    assert roots == {"harness", f"fgraph_harness-{__version__}.dist-info"}
    assert data == set(DATA)


def test_version_is_the_packages(installed: Installed) -> None:
    assert installed.run("--version").stdout.strip() == f"harness, version {__version__}"
    read = "from importlib.metadata import version; print(version('fgraph-harness'))"
    assert installed.python(read) == __version__


def test_it_runs_its_own_code_and_data(installed: Installed) -> None:
    """Also beside other packages' folders that are named like ours."""
    for name in DATA:
        (installed.packages / name).mkdir(exist_ok=True)
    code = "import harness; from harness import paths as p; print(harness.__file__, p.DATA, p.PATCHES)"
    for file in installed.python(code).split():
        assert Path(file).exists()
        assert Path(file).is_relative_to(installed.packages / "harness"), file


@pytest.mark.parametrize(
    "command",
    ["series list", "series show fprobe-on-fgraph", "doctor --arch x86_64 --json", "run --help"],
)
def test_commands_answer_as_in_the_checkout(installed: Installed, command: str) -> None:
    here = in_checkout(*command.split(), cwd=installed.folder)
    there = installed.run(*command.split())
    own = re.compile(re.escape(str(installed.packages / "harness" / "data")))
    assert there.returncode == here.returncode == 0, there.stderr
    assert own.sub(str(docs.ROOT), there.stdout) == here.stdout.replace("python -m harness", "harness")


def test_build_is_the_checkouts(installed: Installed, tmp_path: Path) -> None:
    """A kernel that the wheel has built is taken from the cache by the checkout: both use the same
    configuration, modules and flags."""
    symbols = {
        symbol for path in (docs.ROOT / "configs").rglob("*.config") for symbol in re.findall(r"CONFIG_(\w+)", path.read_text())
    }
    fake.repository(tmp_path / "linux", {"Kconfig": fake.kconfig(sorted(symbols))})
    words = ["build", "--series", "none", "--arch", "x86_64", "--cache", str(tmp_path / "cache")]
    words += ["--tree", f"git:{tmp_path}/linux#main", "--out", str(tmp_path / "runs")]
    built = installed.run(*words)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "objects in" in built.stderr
    again = in_checkout(*words, cwd=tmp_path)
    assert again.returncode == 0
    assert "in the cache" in again.stderr
    assert built.stdout.splitlines()[-1] == again.stdout.splitlines()[-1]
