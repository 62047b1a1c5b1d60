from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest
from msgspec import Struct

from harness.kernel import Symbols
from harness.model import Kernel

SOURCE = """\
int inner(int x) { return x + 1; }

int outer(int x)
{
	int y = inner(x);
	return y * 2;
}

int main(void)
{
	return outer(3);
}
"""


class Built(Struct, frozen=True):
    vmlinux: Path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program in the place of a kernel: functions, debugging information, and its System.map."""
    (tmp_path / "source" / "kernel").mkdir(parents=True)
    (tmp_path / "source" / "kernel" / "x.c").write_text(SOURCE)
    compiler = shutil.which("gcc")
    assert compiler
    source = tmp_path / "source" / "kernel" / "x.c"
    subprocess.run([compiler, "-g", "-O0", "-no-pie", "-fno-pie", "-o", tmp_path / "vmlinux", source], check=True)
    names = subprocess.run(["nm", "-n", str(tmp_path / "vmlinux")], check=True, capture_output=True, text=True).stdout
    (tmp_path / "System.map").write_text("".join(line + "\n" for line in names.splitlines() if len(line.split()) == 3))
    return tmp_path / "vmlinux"


def address(program: Path, name: str) -> int:
    return next(start for start, other in symbols_of(program) if other == name)


def size(program: Path, name: str) -> int:
    start = address(program, name)
    return min(other for other, _ in symbols_of(program) if other > start) - start


def symbols_of(program: Path) -> list[tuple[int, str]]:
    rows = (line.split() for line in (program.parent / "System.map").read_text().splitlines())
    return [(int(start, 16), name) for start, _, name in rows]


def test_file_and_line_behind_every_frame(program: Path) -> None:
    symbols = Symbols(cast(Kernel, Built(program)), "addr2line")
    inner, outer = (f"{size(program, name):x}" for name in ("inner", "outer"))
    report = f"RIP: 0010:inner+0x0/0x{inner}\n outer+0x4/0x{outer}\n unknown+0x1/0x2\n f+0x1/0x2 [module]"
    first, *lines = symbols.locate(report, {"kernel/x.c"}).splitlines()
    assert first == "first in the series' own files: kernel/x.c:1"
    assert lines[0].endswith(" (kernel/x.c:1)")
    assert lines[1].endswith(" (kernel/x.c:4)")
    assert lines[2:] == report.splitlines()[2:]
    assert "first in" not in symbols.locate(report, {"kernel/other.c"})


def test_bare_address_gets_its_name(program: Path) -> None:
    where = address(program, "outer")
    told = Symbols(cast(Kernel, Built(program)), "addr2line").locate(f"CPU 0 is at 0x{where:x}")
    assert told == f"CPU 0 is at 0x{where:x} outer+0x0 (kernel/x.c:4)"


@pytest.mark.parametrize("tool", ["no-such-program", "false", "echo"])
def test_report_is_told_without_it(program: Path, tool: str) -> None:
    report = f"outer+0x4/0x{size(program, 'outer'):x}"
    assert Symbols(cast(Kernel, Built(program)), tool).locate(report) == report
