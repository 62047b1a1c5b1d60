"""What is missing, and the command that installs it, on distributions that are made up of scripts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import arch, doctor, kernel, packages
from harness.errors import UserError
from harness.packages import Wish

MADISON = {
    "bookworm": """\
 gcc-x | 4:12.2.0-3 | http://mirror/debian bookworm/main amd64 Packages
 qemu-system-misc | 1:7.2+dfsg-7 | http://mirror/debian bookworm/main amd64 Packages
""",
    "backports": """\
 qemu-system-misc | 1:10.0.2+ds-2~bpo12+1 | http://mirror/debian bookworm-backports/main amd64 Packages
 qemu-system-s390x | 1:10.0.2+ds-2~bpo12+1 | http://mirror/debian bookworm-backports/main amd64 Packages
""",
    "trixie": """\
 qemu-system-misc | 1:10.0.2+ds-2 | http://mirror/debian trixie/main amd64 Packages
 qemu-system-s390x | 1:10.0.2+ds-2 | http://mirror/debian trixie/main amd64 Packages
""",
}


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs, which is all there is: apt-get and apt-cache that know what the file `madison` says."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}")
    monkeypatch.setattr(packages, "_codename", lambda: (tmp_path / "codename").read_text())
    script(
        programs / "apt-get",
        f'read -r name <{tmp_path}/codename; echo "Debian|http://mirror/debian|$name|main"; cat {tmp_path}/more',
    )
    script(programs / "apt-cache", f"cat {tmp_path}/madison")
    (tmp_path / "more").write_text("")
    return tmp_path


def script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{body}\n")
    path.chmod(0o755)


def release(root: Path, codename: str, backports: bool = False) -> None:
    (root / "codename").write_text(codename)
    (root / "madison").write_text(MADISON[codename] + (MADISON["backports"] if backports else ""))
    if backports:
        (root / "more").write_text("Debian Backports|http://mirror/debian|bookworm-backports|main\n")


MISC = Wish("qemu-system-misc", "qemu-system-misc", minimum="9.1", family="qemu")
S390 = Wish("qemu-system-s390x | qemu-system-misc", "qemu-system-s390x-core", family="qemu")
GCC = Wish("gcc-x", "gcc-x")


def commands(*wishes: Wish) -> list[str]:
    return [
        " ".join(command).removeprefix("apt-get install --yes --no-install-recommends ")
        for command in packages.plan(wishes).commands
    ]


def test_first_alternative_that_there_is(distribution: Path) -> None:
    release(distribution, "bookworm")
    assert commands(S390, GCC) == ["gcc-x qemu-system-misc"]
    release(distribution, "trixie")
    assert commands(S390) == ["qemu-system-s390x"]


def test_version_that_only_backports_have(distribution: Path) -> None:
    """The suite is added, and the whole family comes from there: nothing else does."""
    release(distribution, "bookworm")
    planned = packages.plan([MISC, S390, GCC])
    assert planned.source == "deb http://mirror/debian bookworm-backports main"
    assert "tee /etc/apt/sources.list.d/bookworm-backports.list" in planned.text
    assert commands(MISC, S390, GCC) == ["gcc-x", "--target-release bookworm-backports qemu-system-misc"]


def test_backports_that_are_there_already(distribution: Path) -> None:
    release(distribution, "bookworm", backports=True)
    assert not packages.plan([MISC]).suite
    assert commands(MISC, S390) == ["--target-release bookworm-backports qemu-system-misc qemu-system-s390x"]
    assert commands(S390) == ["qemu-system-misc"]


def test_version_that_the_release_has(distribution: Path) -> None:
    release(distribution, "trixie")
    assert not packages.plan([MISC]).suite
    assert commands(MISC) == ["qemu-system-misc"]


def test_nothing_to_install() -> None:
    assert packages.plan([]).text == ""


def test_versions_are_numbers() -> None:
    assert packages.number("1:10.0.2+ds-2~bpo12+1") == (10, 0, 2)
    assert packages.number("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)") == (7, 2, 22)
    assert packages.number("v1.24") == (1, 24)
    assert packages.number("1.9") < packages.number("1.24")
    assert packages.number("") == ()


def test_too_old_is_not_found(distribution: Path) -> None:
    release(distribution, "bookworm")
    target = arch.load("loongarch64")
    script(distribution / "bin" / target.guest.program, "echo QEMU emulator version 7.2.22")
    (finding,) = [one for one in doctor.examine([target], "llvm-18") if one.need.name == target.guest.program]
    assert finding.problem == "too old: 7.2.22, at least 9.1 is needed"
    assert "bookworm-backports" in doctor.plan([finding]).text


def test_pahole_that_cannot_encode_an_architecture(distribution: Path) -> None:
    release(distribution, "bookworm")
    script(distribution / "bin" / "pahole", "echo v1.24")
    target = arch.load("x86_64")
    picky = msgspec.structs.replace(target, kernel=msgspec.structs.replace(target.kernel, pahole="1.25"))
    assert "too old: 1.24, at least 1.25 is needed" in [finding.problem for finding in doctor.examine([target, picky], "gcc")]
    assert not [finding for finding in doctor.examine([target], "gcc") if "too old" in finding.problem]


def test_toolchain_is_gcc_where_there_is_one(distribution: Path) -> None:
    target = arch.load("loongarch64")
    packages.known.cache_clear()
    release(distribution, "bookworm")
    script(distribution / "bin" / "apt-cache", "echo clang-16 clang-19 gcc-x clang-22 | tr ' ' '\\n'")
    assert kernel.choose(target) == "llvm-22"
    script(distribution / "bin" / "clang-19", "")
    assert kernel.choose(target, "llvm") == "llvm-19"
    assert set(kernel.programs(target, "llvm-19")) == {"clang-19", "ld.lld-19", "llvm-ar-19"}
    script(distribution / "bin" / "loongarch64-linux-gnu-gcc", "")
    assert kernel.choose(target) == "gcc"
    packages.known.cache_clear()


def test_toolchain_that_is_too_old_for_an_architecture() -> None:
    with pytest.raises(UserError, match="llvm-14 builds no kernels for loongarch64"):
        kernel.choose(arch.load("loongarch64"), "llvm-14")
    with pytest.raises(UserError, match="mprofile-kernel"):
        kernel.choose(arch.load("ppc64le"), "llvm-22")
    assert kernel.choose(arch.load("x86_64"), "llvm-14") == "llvm-14"
