"""What decides whether a kernel, a build directory or a configuration is used again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import arch, kernel, process, series, tree
from harness.arch import Arch
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.kernel import identity, inputs, kconfig, opaque
from harness.kernel.toolchain import Toolchain
from harness.model import Kernel, Point
from harness.tree import Store
from tests import fake
from tests.unit.test_build import Bench, bench

__all__ = ["bench"]

X86 = arch.load("x86_64")


def build(bench: Bench, target: Arch = X86, **toolchain: Any) -> tuple[Kernel, bool]:
    """With a toolchain that differs from the machine's own in these fields."""
    found = tree.resolve(f"git:{bench.repository}#main", bench.cache)
    return kernel.build(
        *(Point("base", found.commit), target, [bench.fragment], changed(target, **toolchain), bench.cache, bench.log.parent),
        jobserver=kernel.Jobserver(2),
    )


def changed(target: Arch, **fields: Any) -> Toolchain:
    return msgspec.structs.replace(kernel.detect(target), **fields)


# The digest.


def test_another_linker_makes_another_kernel(bench: Bench) -> None:
    first, _ = build(bench)
    second, cached = build(bench, tools=("GNU ld of tomorrow",))
    assert not cached
    assert second.digest != first.digest


def test_another_variable_of_make_makes_another_kernel(bench: Bench) -> None:
    first, _ = build(bench)
    second, cached = build(bench, variables=(*kernel.detect(X86).variables, "KCFLAGS=-O1"))
    assert not cached
    assert second.digest != first.digest


def test_another_make_target_makes_another_kernel(bench: Bench) -> None:
    first, _ = build(bench)
    other = msgspec.structs.replace(X86.kernel, target="Image", image="arch/arm64/boot/Image")
    second, cached = build(bench, msgspec.structs.replace(X86, kernel=other))
    assert not cached
    assert (second.digest != first.digest, second.image.name) == (True, "Image")


# The cache.


def test_a_whole_other_kernel_in_the_place_of_one_that_was_built(bench: Bench) -> None:
    """Its image and its vmlinux fit together, but they are another kernel's."""
    bench.commit("main.c", "int num = 1;\n")
    first, _ = bench.build()
    bench.commit("main.c", "int num = 2;\n")
    second, _ = bench.build()
    shutil.copyfile(first.image, second.image)
    shutil.copyfile(first.vmlinux, second.vmlinux)
    again, cached = bench.build()
    assert not cached
    assert again.build_ids == second.build_ids
    assert b"num = 2" in again.image.read_bytes()


def test_a_module_that_is_missing_from_a_kernel(bench: Bench) -> None:
    built, _ = bench.build()
    identity.check(built, bench.cache)
    with pytest.raises(identity.NotProved, match="modules"):
        identity.check(msgspec.structs.replace(built, module_ids={"kernel/a.ko": "0" * 40}), bench.cache)


def test_the_record_of_a_cache_that_was_copied(bench: Bench) -> None:
    """It names a folder of the old place, which may be gone, or may be changed there."""
    first, _ = bench.build()
    moved = Cache(bench.directory / "moved")
    shutil.copytree(bench.cache.root, moved.root, symlinks=True, ignore=shutil.ignore_patterns("work"))
    bench.cache = moved
    again, _ = bench.build()
    assert (again.digest, again.directory.parent) == (first.digest, moved.root / "kernels")


def test_what_cannot_be_proved_is_made_again_without_ccache(bench: Bench) -> None:
    if not kernel.detect(X86).ccache:
        pytest.skip("no ccache")
    bench.build()
    assert "harness-ccache" in bench.log.read_text()
    bench.commit("Makefile", fake.MAKEFILE.replace(".incbin", ".asciz"))
    bench.commit("main.c", "int other;\n")
    with pytest.raises(InfrastructureError, match="made from another kernel"):
        bench.build()
    assert "harness-ccache" not in bench.log.read_text()


# What is built from.


def test_files_that_only_kconfig_has_read(tmp_path: Path) -> None:
    source, output = tmp_path / "source", tmp_path / "output"
    for path in (source / "Documentation" / "rst.conf", source / "init" / "Kconfig"):
        path.parent.mkdir(parents=True)
        path.touch()
    record = output / "include" / "config" / "auto.conf.cmd"
    record.parent.mkdir(parents=True)
    record.write_text(f"deps_config := \\\n\t{source}/init/Kconfig \\\n\t{source}/Documentation/rst.conf \\\n")
    assert inputs.outside_of_digest(source, output, ("x86",)) == ["Documentation/rst.conf"]


def test_headers_of_its_architecture_are_searched_and_no_others(tmp_path: Path) -> None:
    """arch/s390/include/asm/fpu-insn.h is the one that 6.12 has."""
    fake.repository(tmp_path / "linux")
    for name in ("s390", "arm"):
        folder = tmp_path / "linux/arch" / name / "include/asm"
        folder.mkdir(parents=True)
        (folder / f"{name}.h").write_text(f'asm(".include \\"asm/{name}-asm.h\\"\\n");\n')
        (folder / f"{name}-asm.h").write_text(".macro one\n.endm\n")
        (folder / "blob.h").write_text('asm(".incbin \\"blob\\"");\n')
    fake.git(tmp_path / "linux", "add", "--all")
    found = opaque.find(tmp_path / "linux", ("s390",))
    assert [path.name for path in found.files] == ["s390-asm.h"]
    assert [where.partition(":")[0] for where in found.unknown] == ["arch/s390/include/asm/blob.h"]
    nothing = opaque.find(tmp_path / "linux", ())
    assert (nothing.files, nothing.unknown) == ((), ())


def test_nothing_of_another_commit_stays_in_a_work_tree(bench: Bench) -> None:
    store = Store(bench.cache)
    first = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
    bench.commit("main.c", "int changed;\n")
    second = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
    path = tree.move(store, "x", first)
    (path / "stray.h").touch()
    (path / "other.c").write_text("changed by hand\n")
    assert tree.move(store, "x", second) == path
    assert not (path / "stray.h").exists()
    assert (path / "other.c").read_text() == fake.FILES["other.c"]


@pytest.mark.parametrize("name", ["scripts/cc-version.sh", "init/late", "Kconfig", "lib/Kconfig.debug", "arch/x86/Makefile"])
def test_what_configures_a_kernel(bench: Bench, name: str) -> None:
    """The same configuration is taken for another tree if nothing of this changed."""
    first = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
    (bench.repository / name).parent.mkdir(parents=True, exist_ok=True)
    (bench.repository / name).write_text("changed\n")
    fake.git(bench.repository, "add", "--all")
    fake.git(bench.repository, "commit", "--quiet", "--message=change")
    second = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
    store = Store(bench.cache)
    assert store.configuration(first) != store.configuration(second)


@pytest.mark.parametrize("field", ["version", "tools", "variables"])
def test_another_toolchain_configures_anew(bench: Bench, field: str) -> None:
    """Kconfig asks the compiler and the linker what they can do."""
    makefile = fake.MAKEFILE.replace("olddefconfig:\n", "olddefconfig:\n\t@echo run >>$(O)/configured\n")
    assert makefile != fake.MAKEFILE
    bench.commit("Makefile", makefile)
    source, output = bench.repository, bench.directory / "output"
    own = kernel.detect(X86)
    other = msgspec.structs.replace(own, **{field: "another" if field == "version" else (*getattr(own, field), "X=another")})
    for number, toolchain in enumerate((own, own, other, other)):
        kconfig.configure(source, output, X86, [bench.fragment], toolchain, made_from="the same")
        assert (output / "configured").read_text().count("run") == (1 if number < 2 else 2)


# The environment.


@pytest.mark.parametrize(
    "name", ["ARCH", "LLVM", "CROSS_COMPILE", "LOCALVERSION", "KCONFIG_ALLCONFIG", "KCONFIG_CONFIG", "CPATH", "GCC_EXEC_PREFIX"]
)
def test_what_no_digest_has_is_kept_from_builds(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "from outside")
    assert "from outside" not in process.run(["env"], confined=()).stdout
    assert "from outside" in process.run(["env"]).stdout


def test_who_builds_when_and_where_is_not_in_a_kernel(bench: Bench) -> None:
    bench.commit("compile", fake.COMPILE + 'env | grep ^KBUILD_BUILD_ >>"$2"\n')
    text = bench.build()[0].vmlinux.read_bytes()
    for name, value in {
        "TIMESTAMP": "Sat Jan  1 00:00:00 UTC 2000",
        "USER": "fgraph-harness",
        "HOST": "localhost",
        "VERSION": "1",
    }.items():
        assert f"KBUILD_BUILD_{name}={value}\n".encode() in text


# Prebuilt kernels, and series that were applied before.


def prebuilt(bench: Bench, release: str = "6.12.99") -> tuple[kernel.Given, str]:
    """A kernel as somebody else would give it, with a module, and the commit whose headers it gets."""
    script = bench.repository / "scripts" / "extract-ikconfig"
    script.write_text("exit 1\n")
    fake.git(bench.repository, "add", "--all")
    bench.commit("main.c", "int given;\n")
    built, _ = bench.build()
    folder = bench.directory / "given"
    (folder / "lib/modules" / release / "kernel").mkdir(parents=True)
    (folder / "lib/modules" / release / "kernel/a.ko").write_text("a module\n")
    shutil.copyfile(built.image, folder / "vmlinuz-6.12.99")
    (folder / "config-6.12.99").write_text("CONFIG_FTRACE=y\n")
    commit = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
    return kernel.Given(folder / "vmlinuz-6.12.99", folder), commit


def test_prebuilt_kernel_is_known_by_its_build_id_and_kept_whole(bench: Bench) -> None:
    given, commit = prebuilt(bench)
    first, cached = kernel.adopt(given, X86, kernel.detect(X86), commit, bench.cache)
    assert not cached
    assert first.build_ids == bench.build()[0].build_ids
    assert kernel.adopt(given, X86, kernel.detect(X86), commit, bench.cache) == (first, True)
    # What was kept is not what was given any more.
    first.image.write_bytes(b"another kernel")
    again, cached = kernel.adopt(given, X86, kernel.detect(X86), commit, bench.cache)
    assert not cached
    assert again.image.read_bytes() == given.image.read_bytes()


def test_prebuilt_kernel_with_another_module_is_another_one(bench: Bench) -> None:
    given, commit = prebuilt(bench)
    first, _ = kernel.adopt(given, X86, kernel.detect(X86), commit, bench.cache)
    assert given.modules
    (given.modules / "lib/modules/6.12.99/kernel/a.ko").write_text("b module\n")
    second, cached = kernel.adopt(given, X86, kernel.detect(X86), commit, bench.cache)
    assert not cached
    assert second.digest != first.digest
    assert (second.modules / "lib/modules/6.12.99/kernel/a.ko").read_text() == "b module\n"


def test_prebuilt_kernel_with_modules_of_another_release(bench: Bench) -> None:
    given, commit = prebuilt(bench, "6.12.98")
    with pytest.raises(UserError, match=r"6\.12\.99.*6\.12\.98"):
        kernel.adopt(given, X86, kernel.detect(X86), commit, bench.cache)


def test_series_on_another_tree_is_applied_again(bench: Bench) -> None:
    found = series.load(str(fake.series(bench.directory / "s", {"other.c": "four\n"})))
    store = Store(bench.cache)
    for number in range(2):
        bench.commit("main.c", f"int tree{number};\n")
        base = tree.resolve(f"git:{bench.repository}#main", bench.cache)
        applied = series.apply(found, base, bench.cache)
        assert applied.base == base.commit
        assert store.read_file(applied.tip, "main.c") == f"int tree{number};\n"


def test_series_whose_commits_are_gone_is_applied_again(bench: Bench) -> None:
    found = series.load(str(fake.series(bench.directory / "s", {"other.c": "four\n"})))
    first = series.apply(found, tree.resolve(f"git:{bench.repository}#main", bench.cache), bench.cache)
    shutil.rmtree(bench.cache.root / "linux.git")
    base = tree.resolve(f"git:{bench.repository}#main", bench.cache)
    assert series.apply(found, base, bench.cache).tip == first.tip
    assert Store(bench.cache).read_file(first.tip, "other.c") == "four\n"
