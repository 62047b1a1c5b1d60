"""The build path through real make, on the fake tree."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness import arch, kernel, paths, tree
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.kernel import kconfig
from harness.model import Kernel, Point
from tests import fake


class Bench:
    """A cache, a fake tree in git, and one call that builds it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache = Cache(directory / "cache")
        self.repository = fake.repository(directory / "linux")
        self.fragment = directory / "some.config"
        self.fragment.write_text("CONFIG_FTRACE=y\n")
        self.objects: list[str] = []
        self.log = directory / "out" / "build.log"
        self.log.parent.mkdir()

    def commit(self, name: str, content: str) -> None:
        (self.repository / name).write_text(content)
        fake.git(self.repository, "commit", "--quiet", "--all", "--message=change")

    def build(self, required: tuple[Path, ...] = (), unproved: tuple[Path, ...] = ()) -> tuple[Kernel, bool]:
        found = tree.resolve(f"git:{self.repository}#main", self.cache)
        point = Point("base", found.commit)
        target = arch.load("x86_64")
        return kernel.build(
            *(point, target, [self.fragment, *required, *unproved], kernel.detect(target), self.cache, self.log.parent),
            jobserver=kernel.Jobserver(2),
            required=required,
            unproved=unproved,
            progress=lambda objects, file: self.objects.append(f"{objects} objects, {file}"),
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_build(bench: Bench) -> None:
    built, cached = bench.build()
    assert not cached
    assert built.release == "6.12.99"
    assert fake.FILES["main.c"].encode() in built.image.read_bytes()
    assert (built.modules / "lib/modules/6.12.99").is_dir()
    assert built.objects == 2
    # make may compile them in either order.
    assert [said.split()[0] for said in bench.objects] == ["1", "2"]
    assert {said.split()[-1] for said in bench.objects} == {"main.o", "module.o"}
    assert bench.log.read_text().startswith("$ ")
    assert not built.warnings


def test_nothing_changed_nothing_runs(bench: Bench) -> None:
    first, _ = bench.build()
    bench.objects.clear()
    assert bench.build() == (first, True)
    assert not bench.objects


def test_fragment_is_part_of_the_digest(bench: Bench) -> None:
    first, _ = bench.build()
    bench.fragment.write_text("# another\nCONFIG_FTRACE=y\n")
    second, cached = bench.build()
    assert not cached
    assert second.digest != first.digest


def test_selftests_are_not_part_of_the_digest(bench: Bench) -> None:
    first, _ = bench.build()
    bench.commit("tools/testing/selftests/ftrace/test.d/a.tc", "#!/bin/sh\n# description: changed\n")
    assert bench.build() == (first, True)


def test_history_is_not_part_of_the_digest(bench: Bench) -> None:
    first, _ = bench.build()
    bench.commit("main.c", "int other;\n")
    bench.commit("main.c", fake.FILES["main.c"])
    assert bench.build() == (first, True)


def test_warnings_are_kept(bench: Bench) -> None:
    bench.commit("main.c", "int main;\nint WARN;\n")
    built, _ = bench.build()
    assert len(built.warnings) == 1
    assert built.warnings[0].endswith("main.c:2:1: warning: as asked [-Wfake]")


def test_our_modules_are_built_with_it_and_are_part_of_the_digest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = bench.build()
    assert not first.modules_error
    assert (first.modules / "lib/modules/6.12.99/harness").is_dir()
    modules = shutil.copytree(paths.MODULES, bench.directory / "modules")
    monkeypatch.setattr(paths, "MODULES", modules)
    assert bench.build() == (first, True)
    (modules / "Kbuild").write_text("# another\n")
    second, cached = bench.build()
    assert not cached
    assert second.digest != first.digest


def test_modules_of_ours_that_do_not_fit_are_no_fault_of_the_kernel(bench: Bench) -> None:
    bench.commit("main.c", "int OTHER_API;\n")
    built, _ = bench.build()
    assert built.modules_error == "main.c:7:1: error: as asked"
    assert built.image.exists()
    assert bench.build() == (built, True)


def test_first_error_is_named(bench: Bench) -> None:
    bench.commit("main.c", "int main;\n\nint ERROR;\nint ERROR_TOO;\n")
    with pytest.raises(kernel.BuildFailed, match=r"main\.c:3:1: error: as asked"):
        bench.build()
    assert "ERROR" not in str(list((bench.cache.root / "kernels").glob("*")))


def test_build_goes_on_after_a_failure_was_mended(bench: Bench) -> None:
    bench.commit("main.c", "int ERROR;\n")
    with pytest.raises(kernel.BuildFailed):
        bench.build()
    bench.commit("main.c", "int main;\n")
    assert b"int main;\n" in bench.build()[0].image.read_bytes()


def test_full_disk_is_no_result_of_the_series(bench: Bench) -> None:
    bench.commit("main.c", "int FULL;\n")
    with pytest.raises(InfrastructureError, match="disk is full"):
        bench.build()


def test_symbol_that_vanishes(bench: Bench) -> None:
    bench.fragment.write_text("CONFIG_FTRACE=y\n\nCONFIG_NOWHERE=y\nCONFIG_TINY=n\n")
    with pytest.raises(kernel.ConfigNotProved) as caught:
        bench.build()
    assert "CONFIG_NOWHERE=y did not stick (some.config:3): it is not set; this tree has no such symbol" in caught.value.message
    assert "CONFIG_FTRACE" not in caught.value.message


def test_what_a_series_asks_for_is_proved_where_it_is_in_only(bench: Bench) -> None:
    own = bench.directory / "series.config"
    own.write_text("CONFIG_NOWHERE=y\n# CONFIG_FTRACE is not set\n")
    base, _ = bench.build(unproved=(own,))
    assert "CONFIG_FTRACE" not in base.config.read_text()  # merged all the same
    with pytest.raises(kernel.ConfigNotProved, match="CONFIG_NOWHERE"):
        bench.build(required=(own,))
    # And it takes nothing from what others ask for.
    bench.fragment.write_text("CONFIG_NOWHERE=y\n")
    with pytest.raises(kernel.ConfigNotProved, match="CONFIG_NOWHERE"):
        bench.build(unproved=(own,))


def test_unmet_dependency_is_named(bench: Bench) -> None:
    bench.fragment.write_text("CONFIG_FTRACE=y\nCONFIG_NEEDS_MORE=m\n")
    with pytest.raises(kernel.ConfigNotProved) as caught:
        bench.build()
    assert "unmet dependency: ABSENT" in caught.value.message


def test_optional_symbol_may_vanish_on_its_architecture_only(tmp_path: Path) -> None:
    fragment = tmp_path / "x.config"
    fragment.write_text("# optional arm64 riscv64: no such thing there\nCONFIG_A=y\n# CONFIG_B is not set\n\nCONFIG_C=y\n")
    there = {request.symbol: request.optional for request in kconfig.read_fragment(fragment, "arm64")}
    assert there == {"A": "no such thing there", "B": "no such thing there", "C": ""}
    assert not any(request.optional for request in kconfig.read_fragment(fragment, "x86_64"))


@pytest.mark.parametrize("line", ["CONFIG_A y", "FTRACE=y", "# CONFIG_A is unset"])
def test_line_that_kconfig_would_ignore(tmp_path: Path, line: str) -> None:
    fragment = tmp_path / "x.config"
    fragment.write_text(f"\n{line}\n")
    with pytest.raises(UserError, match=r"x\.config:2"):
        kconfig.read_fragment(fragment, "x86_64")


def test_bundled_fragments_can_be_read() -> None:
    for name in arch.names():
        for path in kernel.fragments_for(arch.load(name), [paths.CONFIGS / "debug.config", paths.CONFIGS / "size.config"]):
            assert kconfig.read_fragment(path, name)


def test_a_kernel_that_watches_itself_is_given_more_time() -> None:
    assert kconfig.slowness({}) == kconfig.slowness({"KASAN": "n"}) == 1
    assert kconfig.slowness({"PROVE_LOCKING": "y"}) > 1
    assert kconfig.slowness({"PROVE_LOCKING": "y", "KASAN": "y"}) >= kconfig.slowness({"KASAN": "y"})
