"""The kernel in the cache is the kernel that was built."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cache import Cache
from harness.errors import InfrastructureError
from harness.kernel import identity
from harness.model import from_json, to_json
from harness.shared import opened
from tests import fake
from tests.unit.test_build import Bench, bench

__all__ = ["bench"]


def _elf(path: Path, text: str) -> Path:
    """An ELF file with a build id that depends on `text`."""
    (path.parent / "text").write_text(text)
    link = ["ld", "-shared", "--build-id=sha1", "empty.o", "--format=binary", "text", "-o", path.name]
    for words in (["as", "-o", "empty.o", "/dev/null"], link):
        subprocess.run(words, cwd=path.parent, check=True)
    return path


def _holds(bench: Bench) -> None:
    """The kernel that is built now holds the source that it is built from."""
    built, _ = bench.build()
    text = (bench.repository / "main.c").read_bytes()
    assert text in built.vmlinux.read_bytes()
    assert text in built.image.read_bytes()
    assert bytes.fromhex(built.build_ids[0]) in built.image.read_bytes()


def test_ids_of_modules(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "modules" / "6.12.0" / "kernel"
    folder.mkdir(parents=True)
    module = _elf(folder / "a.ko", "a")
    (folder / "b.ko.xz").write_bytes(lzma.compress(module.read_bytes()))
    (folder / "c.ko.gz").write_bytes(gzip.compress(module.read_bytes()))
    (folder / "d.ko.zst").write_bytes(b"")
    (folder / "e.ko.old").write_bytes(module.read_bytes())
    ids = {"kernel/a.ko": identity.build_id(module), "kernel/b.ko.xz": "", "kernel/c.ko.gz": "", "kernel/d.ko.zst": ""}
    assert len(ids["kernel/a.ko"]) == 40
    assert identity.module_ids(tmp_path) == ids


def test_two_kernels_that_differ_in_one_constant(bench: Bench) -> None:
    if shutil.which("ccache") is None:
        pytest.skip("no ccache")
    bench.commit("main.c", "int num = 1;\n")
    _holds(bench)
    bench.commit("main.c", "int num = 2;\n")
    _holds(bench)
    # A new build directory, so that all objects come from ccache or the compiler.
    shutil.rmtree(bench.cache.root / "work")
    shutil.rmtree(bench.cache.root / "kernels")
    bench.commit("main.c", "int num = 3;\n")
    _holds(bench)


def test_an_image_of_another_vmlinux_is_never_kept(bench: Bench) -> None:
    """A Makefile that keeps its old image: once the build directory is gone, it has none to keep."""
    stale = fake.MAKEFILE.replace("$(O)/piggy.o: $(O)/vmlinux", "$(O)/piggy.o: | $(O)/vmlinux")
    assert stale != fake.MAKEFILE
    bench.commit("Makefile", stale)
    _holds(bench)
    bench.commit("main.c", "int num = 2;\n")
    _holds(bench)


def test_a_tree_whose_image_is_never_its_vmlinux(bench: Bench) -> None:
    bench.commit("Makefile", fake.MAKEFILE.replace(".incbin", ".asciz"))
    with pytest.raises(InfrastructureError, match="made from another kernel"):
        bench.build()
    assert not list((bench.cache.root / "kernels").glob("*"))


@pytest.mark.parametrize("damaged", ["image", "vmlinux"])
def test_a_kernel_that_cannot_be_proved_is_made_again(bench: Bench, damaged: str) -> None:
    built, _ = bench.build()
    other = _elf(bench.directory / "other", "another kernel")
    path: Path = getattr(built, damaged)
    path.write_bytes(other.read_bytes())
    again, cached = bench.build()
    assert not cached
    assert f"made again: kernel {built.digest} was in the cache, but" in bench.log.read_text()
    assert again.build_ids[0] == built.build_ids[0]
    assert bytes.fromhex(again.build_ids[0]) in again.image.read_bytes()


def test_a_module_that_is_not_the_one_that_was_built(bench: Bench) -> None:
    built, _ = bench.build()
    extra = built.modules / "lib/modules/6.12.99/kernel/extra.ko"
    extra.parent.mkdir(parents=True)
    _elf(extra, "a module")
    assert bench.build()[1] is False


def test_a_shared_kernel_is_proved_when_it_comes(bench: Bench, tmp_path: Path) -> None:
    messages: list[str] = []
    depot = tmp_path / "depot"
    with opened(str(depot), bench.cache, messages.append) as bench.cache.shared:
        built, _ = bench.build()
        # Somebody shared an image of another vmlinux under this digest: every sum is right.
        shutil.rmtree(depot)
        built.image.write_bytes(_elf(tmp_path / "other", "another kernel").read_bytes())
        assert bench.cache.shared is not None
        bench.cache.shared.store("kernels", built.digest, built.directory)
        shutil.rmtree(built.directory)
        again, cached = bench.build()
        assert not cached
        assert bytes.fromhex(again.build_ids[0]) in again.image.read_bytes()
        assert f"shared cache: kernels/{built.digest} is damaged, and made again" in messages
        # The wrong kernel in the shared cache was replaced.
        shutil.rmtree(built.directory)
        assert bench.build()[1] is True


def test_variables_of_the_environment_have_no_say(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.commit("compile", fake.COMPILE + 'echo "// $KCFLAGS$KBUILD_EXTRA" >>"$2"\n')
    for name in ("KCFLAGS", "KBUILD_EXTRA", "CC", "MAKEFLAGS", "W"):
        monkeypatch.setenv(name, "-DEVIL")
    assert b"EVIL" not in bench.build()[0].vmlinux.read_bytes()


def test_settings_of_ccache_that_call_equal_what_is_not(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_SLOPPINESS", "include_file_mtime,file_macro,system_headers")
    monkeypatch.setenv("CCACHE_COMPILERCHECK", "none")
    bench.build()
    line = bench.log.read_text().splitlines()[0]
    assert "CCACHE_SLOPPINESS= " in line.replace("''", "")
    assert "CCACHE_COMPILERCHECK=content" in line


def test_sources_of_one_time_are_compiled_again(bench: Bench) -> None:
    """An object as old as its changed source, as on a file system whose clock ticks slowly, or newer, as after the clock was
    set back."""
    for number, ahead in enumerate((0, 3600), 1):
        bench.commit("main.c", f"int first{number};\n")
        bench.build()
        future = max(path.stat().st_mtime for path in (bench.cache.root / "work/build").rglob("*")) + ahead
        for path in (bench.cache.root / "work/build/x86_64-gcc").rglob("*"):
            os.utime(path, (future, future))
        bench.commit("main.c", f"int other{number};\n")
        _holds(bench)


def test_a_build_that_reads_what_its_digest_leaves_out(bench: Bench) -> None:
    """Documentation is no part of a kernel's digest, unless the build is seen to read it."""
    notes_of = "$(src)/Documentation/notes"
    compiled = "\t@sh $(src)/compile $< $@\n"
    reads = f"\t@echo 'source := {notes_of}' >$(O)/.main.o.cmd; cat {notes_of} >>$@\n"
    makefile = fake.MAKEFILE.replace("$(src)/main.c\n", f"$(src)/main.c {notes_of}\n", 1)
    makefile = makefile.replace(compiled, compiled + reads)
    notes = bench.repository / "Documentation" / "notes"
    notes.parent.mkdir()
    notes.write_text("// one\n")
    fake.git(bench.repository, "add", "--all")
    bench.commit("Makefile", makefile)
    first, _ = bench.build()
    bench.commit("Documentation/notes", "// two\n")
    second, cached = bench.build()
    assert not cached
    assert b"// two" in second.image.read_bytes()
    assert second.digest != first.digest
    assert "Documentation/notes" in bench.log.read_text()


def test_the_top_of_documentation_is_read_by_kconfig(bench: Bench) -> None:
    first, _ = bench.build()
    path = bench.repository / "Documentation" / "Kconfig"
    path.parent.mkdir()
    path.write_text("config WARN_MISSING_DOCUMENTS\n")
    fake.git(bench.repository, "add", "--all")
    bench.commit("Documentation/Kconfig", "config OTHER\n")
    assert bench.build()[0].digest != first.digest


def test_a_header_that_makes_the_assembler_read_another_file(bench: Bench) -> None:
    """Nothing that make or ccache can see changes: the build directory is made anew, and the file is passed to ccache."""
    include = bench.repository / "include"
    include.mkdir()
    (include / "insn.h").write_text('asm(".include \\"asm/insn-asm.h\\"\\n");\n')
    (include / "asm").mkdir()
    (include / "asm" / "insn-asm.h").write_text(".macro one\n.endm\n")
    fake.git(bench.repository, "add", "--all")
    bench.commit("include/insn.h", 'asm(".include \\"asm/insn-asm.h\\"\\n"); // changed\n')
    bench.build()
    assert "insn-asm.h" in bench.log.read_text().splitlines()[0].partition("CCACHE_EXTRAFILES=")[2]
    bench.objects.clear()
    bench.commit("include/asm/insn-asm.h", ".macro other\n.endm\n")
    bench.build()
    assert any("main.o" in line for line in bench.objects)


@pytest.mark.parametrize(
    "text", ['#define BLOB asm(".incbin \\"blob\\"");\n', '/* x */ asm(".incbin \\"x\\"");\n', 'asm(".INCBIN" " \\"x\\"");\n']
)
def test_a_header_with_incbin_switches_ccache_off(bench: Bench, text: str) -> None:
    include = bench.repository / "include"
    include.mkdir()
    (include / "blob.h").write_text(text)
    fake.git(bench.repository, "add", "--all")
    bench.commit("other.c", "one\n")
    bench.build()
    assert "harness-ccache" not in bench.log.read_text()
    assert "include/blob.h:1" in bench.log.read_text()


@pytest.mark.parametrize("name", ["a.S", "a.s", "a.c"])
def test_the_launcher_passes_by_ccache(tmp_path: Path, name: str) -> None:
    """`ccache` is a script here, which records its calls."""
    for program in ("ccache", "cc"):
        path = tmp_path / program
        path.write_text(f"#!/bin/sh\necho {program} $#\n")
        path.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    launcher = Path(identity.__file__).parent / "bin" / "harness-ccache"

    def called(text: str, word: str) -> str:
        (tmp_path / word).write_text(text)
        words: list[str | Path] = [launcher, "cc", "-c", word]
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout.strip()

    for text in ('\t.incbin\t"x"\n', '.include "x"\n', '"\\t.incbin \\"x\\"\\n"', "# embed <x>\n"):
        assert called(text, name) == "cc 2"
    for text in (
        'asm(".INCBIN \\"x\\"");\n',
        'asm(".incbin" " \\"x\\"");\n',
        'asm(".inc" "bin \\"x\\"");\n',
        '#include "part.c"\n',
    ):
        assert called(text, name) == "cc 2"
    plain = called("int binary, include; /* embedded incbin */\n", name)
    assert plain == ("ccache 3" if name == "a.c" else "cc 2")


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "bzip2": bz2.compress,
    "none": bytes,
}


@pytest.mark.parametrize("name", _PACKERS)
def test_build_id_in_a_compressed_image(tmp_path: Path, name: str) -> None:
    cache = Cache(tmp_path / "cache")
    vmlinux, other = _elf(tmp_path / "vmlinux", "text"), _elf(tmp_path / "other", "else")
    image = tmp_path / "image"
    image.write_bytes(b"\0MZ]\0\0BZh\x1f\x8b\x08" + _PACKERS[name](vmlinux.read_bytes()) + b"\x10\0\0\0tail")
    assert identity.prove(image, vmlinux, cache) == identity.build_id(vmlinux)
    assert identity.image_ids(image, cache) == (identity.build_id(vmlinux),)
    with pytest.raises(identity.NotProved, match="made from another kernel"):
        identity.prove(image, other, cache)


def _packed_by(directory: Path, *command: str) -> str:
    """The build id that is found in an image which `command` has compressed."""
    vmlinux = _elf(directory / "vmlinux", "text")
    packed = subprocess.run([*command, "-c", "-q"], input=vmlinux.read_bytes(), capture_output=True, check=True).stdout
    image = directory / "image"
    image.write_bytes(b"head" + packed + b"\x10\0\0\0")
    return identity.prove(image, vmlinux, Cache(directory / "cache"))


def test_build_id_behind_lz4(tmp_path: Path) -> None:
    assert _packed_by(tmp_path, "lz4", "-l")


@pytest.mark.parametrize("program", ["zstd", "lzop"])
def test_build_id_behind_another_program(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    assert _packed_by(tmp_path, program)


@given(st.binary(max_size=300))
def test_what_is_no_elf_file_has_no_build_id(data: bytes) -> None:
    path = Path(os.environ["HARNESS_HISTORY"]).parent / "elf"
    path.write_bytes(data)
    assert identity.build_id(path) == ""
    path.write_bytes(b"\x7fELF\x02\x01\x01" + data)
    assert identity.build_id(path) == ""


def test_a_kernel_survives_json(bench: Bench) -> None:
    built, _ = bench.build()
    assert len(built.build_ids[0]) == 40
    assert from_json(to_json(built), type(built)) == built
