"""What lies in a build directory, or in ccache, is used only if a build from nothing would make the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from harness import arch, kernel, paths, process, tree
from harness.guest import initramfs
from harness.guest.userland import Userland
from harness.shared import opened
from tests import fake
from tests.unit.test_build import Bench, bench

__all__ = ["bench"]

_COPY = "\t@sh $(src)/compile $< $@\n"
_COMPILED = (
    "\t@$(CC) -MMD -MF $(O)/.main.o.d -MT $@ -I$(src)/include -I$(src)/include/uapi -c -o $@ $<\n\n-include $(O)/.main.o.d\n"
)
_SOURCE = '#include "value.h"\nconst char text[] = "value " VALUE;\n'


def _commit(bench: Bench, files: dict[str, str], remove: str = "", makefile: str = "") -> None:
    """Commit `files`, with `makefile` in place of the line that compiles main.c."""
    files = {**files, "Makefile": fake.MAKEFILE.replace(_COPY, makefile)} if makefile else files
    for name, content in files.items():
        path = bench.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    if remove:
        (bench.repository / remove).unlink()
    fake.git(bench.repository, "add", "--all")
    fake.git(bench.repository, "commit", "--quiet", "--message=change")


def _image(bench: Bench) -> bytes:
    return bench.build()[0].image.read_bytes()


def _forget_directories(bench: Bench) -> None:
    """Leave nothing but what ccache keeps."""
    shutil.rmtree(bench.cache.root / "work" / "build" / "x86_64-gcc")


@pytest.mark.parametrize("by_ccache", [False, True])
def test_a_new_header_hides_another_one(bench: Bench, by_ccache: bool) -> None:
    """The old one is still there, and unchanged; that is all that make and ccache know of."""
    _commit(bench, {"include/uapi/value.h": '#define VALUE "old"\n', "main.c": _SOURCE}, makefile=_COMPILED)
    assert b"value old" in _image(bench)
    _commit(bench, {"include/value.h": '#define VALUE "new"\n'})
    if by_ccache:
        _forget_directories(bench)
    assert b"value new" in _image(bench)


def test_a_link_that_leads_elsewhere(bench: Bench) -> None:
    """Both files are older than the object."""
    files = {"include/one.h": '#define VALUE "old"\n', "include/two.h": '#define VALUE "new"\n', "main.c": _SOURCE}
    (bench.repository / "include").mkdir()
    link = bench.repository / "include" / "value.h"
    link.symlink_to("one.h")
    _commit(bench, files, makefile=_COMPILED)
    assert b"value old" in _image(bench)
    link.unlink()
    link.symlink_to("two.h")
    _commit(bench, {})
    assert b"value new" in _image(bench)


def test_a_generated_file_that_becomes_a_source(bench: Bench) -> None:
    """A build directory comes first in kbuild's VPATH and in some include paths."""
    made = "\t@test -f $(src)/value.h || echo '#define VALUE \"old\"' >$(O)/value.h\n" + _COMPILED
    made = made.replace("-I$(src)/include", "-I$(O) -I$(src)")
    source = _SOURCE.replace('"value.h"', "<value.h>")
    _commit(bench, {"main.c": source}, makefile=made)
    assert b"value old" in _image(bench)
    _commit(bench, {"value.h": '#define VALUE "new"\n', "main.c": source + "\n"})
    assert b"value new" in _image(bench)


def test_a_build_that_was_killed(bench: Bench) -> None:
    """make does not remove the target of a recipe when it is killed, and takes it for finished the next time."""
    killed = "\t@cp $< $@; test ! -e $(src)/kill || kill -9 $$PPID $$$$; echo finished >>$@\n"
    _commit(bench, {"main.c": "int one;\n"}, makefile=killed)
    assert b"finished" in _image(bench)
    _commit(bench, {"main.c": "int two;\n", "kill": ""})
    with pytest.raises(kernel.BuildFailed):
        bench.build()
    _commit(bench, {}, remove="kill")
    image = _image(bench)
    assert b"int two;\nfinished" in image


@pytest.mark.parametrize("cached", [True, False])
def test_a_compiler_that_is_ccache_in_disguise(bench: Bench, monkeypatch: pytest.MonkeyPatch, cached: bool) -> None:
    """Debian's /usr/lib/ccache in PATH: what the launcher keeps from ccache must not get there all the same."""
    folder = bench.directory / "disguise"
    folder.mkdir()
    compiler = kernel.detect(arch.load("x86_64")).compiler[0]
    (folder / compiler).symlink_to(process.which("ccache") or "")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    wrapped = (
        "\t@cp $< $(O)/blob; printf '.section .rodata\\n\\t.incbin\\t\"blob\"\\n' >$(O)/wrap.S\n"
        "\t@cd $(O) && $(CC) -Wp,-MMD,.main.o.d -c -o main.o wrap.S\n"
    )
    header = {} if cached else {"include/blob.h": '#define BLOB asm(".incbin " BLOB);\n'}
    _commit(bench, {"main.c": "int num = 1;\n", **header}, makefile=wrapped)
    assert b"num = 1" in _image(bench)
    _commit(bench, {"main.c": "int num = 2;\n"})
    assert b"num = 2" in _image(bench)


def test_a_source_by_a_path_that_goes_up(bench: Bench) -> None:
    """Its name does not begin as what the digest leaves out does."""
    files = {
        "Documentation/value.h": '#define VALUE "old"\n',
        "main.c": _SOURCE.replace("value.h", "init/../Documentation/value.h"),
    }
    made = _COMPILED.replace("-MF $(O)/.main.o.d", "-MF $(O)/.main.o.cmd").replace(
        "include $(O)/.main.o.d", "include $(O)/.main.o.cmd"
    )
    made = made.replace("-I$(src)/include ", "-I$(src) ")
    _commit(bench, {**files, "init/a.h": ""}, makefile=made)
    assert b"value old" in _image(bench)
    _commit(bench, {"Documentation/value.h": '#define VALUE "new"\n'})
    assert b"value new" in _image(bench)


def test_a_compiler_that_ccache_has_of_its_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compiler` and `prefix_command` of ccache.conf take the place of the one that is named."""
    other = bench.directory / "other-gcc"
    other.write_text('#!/bin/sh\nexec gcc -DVALUE=\'"other"\' "$@"\n')
    other.chmod(0o755)
    settings = bench.directory / "ccache.conf"
    settings.write_text(f"compiler = {other}\n")
    monkeypatch.setenv("CCACHE_CONFIGPATH", str(settings))
    source = '#ifndef VALUE\n#define VALUE "good"\n#endif\nconst char text[] = "value " VALUE;\n'
    _commit(bench, {"main.c": source}, makefile=_COMPILED)
    assert b"value good" in _image(bench)


def test_a_file_that_the_configuration_names(bench: Bench) -> None:
    """CONFIG_EXTRA_FIRMWARE, CONFIG_INITRAMFS_SOURCE and their like."""
    blob = bench.directory / "blob"
    blob.write_text("old\n")
    bench.fragment.write_text(f'CONFIG_FTRACE=y\nCONFIG_INITRAMFS_SOURCE="{blob}"\n')
    kconfig = fake.KCONFIG + '\nconfig INITRAMFS_SOURCE\n\tstring "files"\n'
    made = f"\t@cat $< {blob} >$@\n\n$(O)/main.o: {blob}\n"
    _commit(bench, {"Kconfig": kconfig}, makefile=made)
    assert b"old\n" in _image(bench)
    blob.write_text("new\n")
    assert b"new\n" in _image(bench)


def test_a_shared_kernel_of_another_series(bench: Bench) -> None:
    """It agrees with itself, but it is not the one that was asked for."""
    depot = bench.directory / "depot"
    with opened(str(depot), bench.cache, lambda text: None) as bench.cache.shared:
        first, _ = bench.build()
        bench.commit("main.c", "int num = 2;\n")
        second, _ = bench.build()
        shutil.copyfile(depot / "kernels" / first.digest, depot / "kernels" / second.digest)
        shutil.rmtree(second.directory)
        assert b"num = 2" in _image(bench)


def test_a_configuration_that_is_not_the_one_that_was_built(bench: Bench) -> None:
    """What a guest can do, and how long it may take, is read from it."""
    built, _ = bench.build()
    built.config.write_text(built.config.read_text() + "CONFIG_KASAN=y\n")
    again, cached = bench.build()
    assert not cached
    assert "KASAN" not in again.config.read_text()


@pytest.fixture
def guest_parts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bytes]:
    """Makes the initramfs of a guest with no programs, and returns its content."""
    busybox = bench.directory / "busybox"
    busybox.write_text("a program")
    monkeypatch.setattr(initramfs, "userland", lambda target, cache: Userland(busybox, busybox))
    monkeypatch.setattr(paths, "GUEST", bench.directory / "guest")
    (bench.directory / "guest").mkdir()

    def make() -> bytes:
        built, _ = bench.build()
        commit = tree.resolve(f"git:{bench.repository}#main", bench.cache).commit
        made, _ = initramfs.build_initramfs(built, commit, arch.load("x86_64"), ["gcc"], bench.cache)
        return made.path.read_bytes()

    return make


def test_an_initramfs_that_was_damaged(guest_parts: Callable[[], bytes], bench: Bench) -> None:
    """A test of zeros, as a power cut leaves them, ends with 0."""
    whole = guest_parts()
    (path,) = (bench.cache.root / "initramfs").iterdir()
    path.write_bytes(whole.replace(b"# description: first", bytes(20)))
    assert guest_parts() == whole


def test_a_shared_initramfs_of_other_tests(guest_parts: Callable[[], bytes], bench: Bench) -> None:
    """Its modules and its programs are right, its tests are those of another commit."""
    depot = bench.directory / "depot"
    with opened(str(depot), bench.cache, lambda text: None) as bench.cache.shared:
        guest_parts()
        (first,) = (depot / "initramfs").iterdir()
        bench.commit("tools/testing/selftests/ftrace/test.d/a.tc", "#!/bin/sh\n# description: changed\n")
        guest_parts()
        (second,) = set((depot / "initramfs").iterdir()) - {first}
        shutil.copyfile(first, second)
        (bench.cache.root / "initramfs" / second.name).unlink()
        assert b"changed" in guest_parts()
