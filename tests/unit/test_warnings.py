"""What stands in a build directory after make has compiled a part of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.kernel.warnings import Standing, new


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    source, output = tmp_path / "source", tmp_path / "output"
    for name in ("kernel/a.c", "kernel/b.c", "kernel/part.c", "include/h.h"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    output.mkdir()
    return source, output


def after(folders: tuple[Path, Path], *lines: str) -> tuple[str, ...]:
    standing = Standing(*folders)
    with standing:
        for line in lines:
            standing.read(f"{line}\n")
    return standing.list()


def test_they_stand_until_their_unit_is_compiled_again(folders: tuple[Path, Path]) -> None:
    source, _ = folders
    told = after(folders, "  CC      kernel/a.o", f"{source}/kernel/a.c:3:1: warning: odd", "  CC      kernel/b.o")
    assert told == ("kernel/a.c:3:1: warning: odd",)
    assert after(folders, "  CC      kernel/b.o") == told
    assert after(folders, "  CC [M]  kernel/a.o") == ()


GCC = ["In file included from ./include/other.h:3,", "                 from {source}/kernel/a.c:7:"]
CLANG = ["In file included from {source}/kernel/a.c:7:", "In file included from ./include/other.h:3:"]


@pytest.mark.parametrize("chain", [GCC, CLANG])
def test_those_in_a_header_are_the_units_that_includes_it(folders: tuple[Path, Path], chain: list[str]) -> None:
    source, _ = folders
    lines = [line.format(source=source) for line in chain]
    lines += [
        "./include/h.h: In function 'f':",
        "./include/h.h:1:2: warning: odd",
        "   1 | code",
        "./include/h.h:9:2: warning: more",
    ]
    assert len(after(folders, *lines)) == 2
    assert after(folders, "  CC      kernel/a.o") == ()


def test_those_in_an_included_source(folders: tuple[Path, Path]) -> None:
    source, _ = folders
    after(folders, f"In file included from {source}/kernel/a.c:7:", f"{source}/kernel/part.c:1:2: warning: odd")
    assert after(folders, "  CC      kernel/a.o") == ()


def test_inlined(folders: tuple[Path, Path]) -> None:
    source, _ = folders
    lines = ["In function 'memcpy',", f"    inlined from 'f' at {source}/kernel/b.c:12:3:", "./include/h.h:5:1: warning: odd"]
    assert after(folders, *lines)
    assert after(folders, "  CC      kernel/b.o") == ()


def test_scripts_and_modpost(folders: tuple[Path, Path]) -> None:
    lines = ["<stdin>:1517:2: warning: #warning syscall foo not implemented", "WARNING: modpost: vmlinux: section mismatch"]
    assert len(after(folders, *lines)) == 2
    assert len(after(folders, "  CALL    scripts/checksyscalls.sh")) == 1
    assert after(folders, "  MODPOST Module.symvers") == ()


def test_what_is_gone_or_damaged(folders: tuple[Path, Path]) -> None:
    source, output = folders
    assert after(folders, f"{source}/kernel/a.c:3:1: warning: odd")
    (source / "kernel/a.c").unlink()
    assert after(folders) == ()
    with (output / ".warnings").open("a") as file:
        file.write('["kernel/b.c", "cut sh')
    assert not Standing(*folders).known


def test_objects_that_are_left_over(folders: tuple[Path, Path]) -> None:
    """Of another configuration: what is in vmlinux tells, from wherever the harness is called."""
    source, output = folders
    (output / "kernel").mkdir()
    for name in ("kernel/a.o", "kernel/b.o"):
        subprocess.run(["gcc", "-c", "-x", "c", "-", "-o", output / name], input=b"int a;", check=True)
    # As the kernel's Makefile does.
    for archive in ("kernel/built-in.a", "vmlinux.a"):
        subprocess.run(["ar", "cDPrST", archive, "kernel/a.o"], cwd=output, check=True)
    (output / "modules.order").write_text("")
    assert after(folders, *(f"{source}/kernel/{name}.c:3:1: warning: odd" for name in "ab")) == ("kernel/a.c:3:1: warning: odd",)


def test_a_moved_line_is_not_new() -> None:
    assert new(["a.c:7:1: warning: odd"], ["a.c:3: warning: odd"]) == []
    assert new(["a.c:7:1: warning: odd", "a.c:9:1: warning: odd"], ["a.c:3:1: warning: odd"]) == ["a.c:9:1: warning: odd"]
