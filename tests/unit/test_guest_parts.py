"""What a guest is made of, without one."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import arch, doctor, paths
from harness.cache import Cache
from harness.errors import UserError
from harness.guest import Accelerator, Boot, Host, cpio, qemu
from harness.logs import lines


def archive(source: Path) -> bytes:
    file = io.BytesIO()
    writer = cpio.Writer(file)
    writer.tree(source, "root")
    writer.close()
    return file.getvalue()


def test_cpio_is_the_same_whoever_makes_it_and_when(tmp_path: Path) -> None:
    """Two users make the same files, in another order and years apart."""
    names = ["sub/program", "sub/other", "sub/link", "sub"]
    for name, order in (("one", names[:2]), ("two", names[1::-1])):
        folder = tmp_path / name / "sub"
        folder.mkdir(parents=True)
        for file in order:
            (tmp_path / name / file).write_text("#!/bin/sh\n")
            (tmp_path / name / file).chmod(0o755)
        (folder / "link").symlink_to("program")
    for number, file in enumerate(names):
        os.utime(tmp_path / "two" / file, (1000 + number, 1000 + number), follow_symlinks=False)
    times = [[(tmp_path / name / file).lstat().st_mtime for file in names] for name in ("one", "two")]
    assert times[0] != times[1]
    mine = archive(tmp_path / "one")
    assert mine == archive(tmp_path / "two")
    # An entry of a "newc" archive begins with these fields of eight digits: inode, mode, uid, gid, links, time.
    entries = re.findall(rb"070701([0-9A-Fa-f]{48})", mine)
    assert len(entries) == len(names) + 2  # the root, and the trailer
    for entry in entries:
        assert [int(entry[place : place + 8], 16) for place in (16, 24, 40)] == [0, 0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_cpio_does_not_say_whose_the_files_are(tmp_path: Path) -> None:
    for name, owner in (("one", 0), ("two", 1234)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "program").write_text("#!/bin/sh\n")
        for path in (tmp_path / name, tmp_path / name / "program"):
            os.chown(path, owner, owner)
    assert archive(tmp_path / "one") == archive(tmp_path / "two")


@pytest.mark.parametrize("name", arch.names())
def test_every_architecture_is_described(name: str) -> None:
    target = arch.load(name)
    boot = Boot(Path("/image"), Path("/initramfs"), ("quiet=yes",))
    for accelerator in Accelerator:
        line = qemu.by_hand(target, accelerator, boot)
        assert "/image" in line
        assert f"console={target.guest.console}" in line
        assert "quiet=yes" in line
        # A second report of KASAN's is as red as the first, and no log level hides one.
        assert {"kasan_multi_shot", "ignore_loglevel"} <= {word.strip("'") for word in line.split()}
    assert any(need.name == target.guest.program for need in doctor.needs([target]))


def test_description_with_a_key_that_means_nothing(tmp_path: Path) -> None:
    text = (paths.QEMU / "arm64.toml").read_text()
    (tmp_path / "odd.toml").write_text(text.replace("memory", "memroy"))
    with pytest.raises(UserError, match="memroy"):
        arch.load("odd", tmp_path)


def test_what_one_boot_measured_the_next_is_told(tmp_path: Path) -> None:
    x86, cache = arch.load("x86_64"), Cache(tmp_path)
    host = Host(x86, cache, "a host")
    host.learn(["Fast TSC calibration failed"])
    assert host.parameters == ()
    host.learn(["[    0.000000][    T0] tsc: Detected 1000.000 MHz processor", "tsc: Detected 2000.012 MHz TSC"])
    host.learn(["tsc: Detected 3000.000 MHz processor"])
    assert Host(x86, cache, "a host").parameters == ("tsc_early_khz=2000012",)
    assert Host(arch.load("arm64"), cache, "another host").parameters == ()


@pytest.mark.parametrize("change", [("(?:processor|TSC)", "(processor"), ("{}{}", "{}"), ("tell = ", "# ")])
def test_description_that_learns_nothing_to_tell(tmp_path: Path, change: tuple[str, str]) -> None:
    text = (paths.QEMU / "x86_64.toml").read_text()
    (tmp_path / "odd.toml").write_text(text.replace(*change))
    with pytest.raises(UserError, match="learn"):
        arch.load("odd", tmp_path)


SELFTEST = "WARNING: *kernel/trace/trace.c:* run_tracer_selftest+0x*"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("run_tracer_selftest+0x*", ""), ""),
        *(
            ((f'title = "{SELFTEST}"', f'title = "{glob}"'), "would also excuse")
            for glob in ("*", "WARNING: *", "*: *", "WARNING: *kernel/trace/*", "WARNING: *trace*+0x*")
        ),
        (("a latency tracer finds", ""), ""),
        (('reason = "', 'because = "'), "because"),
        (("\nmisboot = ", "\n# "), "a boot that `misboot` does not describe"),
    ],
)
def test_description_that_excuses_too_much(tmp_path: Path, change: tuple[str, str], why: str) -> None:
    text = (paths.QEMU / "x86_64.toml").read_text()
    assert change[0] in text
    (tmp_path / "odd.toml").write_text(text.replace(*change))
    if why:
        with pytest.raises(UserError, match=why):
            arch.load("odd", tmp_path)
    else:
        arch.load("odd", tmp_path)


def test_description_that_excuses_without_a_reason(tmp_path: Path) -> None:
    text = re.sub(r'reason = "[^"]*"', 'reason = " "', (paths.QEMU / "x86_64.toml").read_text())
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(UserError, match="without a reason"):
        arch.load("odd", tmp_path)


def test_kernel_is_configured_for_what_the_guest_relies_on() -> None:
    """clear_warn_once is a file of debugfs, and what the log does not hold until it is printed is lost."""
    base = (paths.CONFIGS / "base.config").read_text().splitlines()
    assert {"CONFIG_DEBUG_FS=y", "CONFIG_PRINTK_TIME=y", "CONFIG_PRINTK_CALLER=y"} <= {*base}
    (size,) = [int(line.partition("=")[2]) for line in base if line.startswith("CONFIG_LOG_BUF_SHIFT=")]
    assert size >= 20


def test_clean_lines() -> None:
    assert lines.clean(b"\x1b[31mred\x1b[0m\x00 caf\xc3\xa9 \xff\r\n") == "red caf\u00e9 \ufffd"
    assert lines.without_printk_prefix("[    1.234567][    T1] hello") == "hello"
    assert lines.without_printk_prefix("[12345678.234567][T1234567]  indented") == " indented"
    assert lines.without_printk_prefix("[    1.234567] hello") == "hello"
    assert lines.without_printk_prefix("[PASS] hello") == "[PASS] hello"


@given(st.binary())
def test_clean_lines_never_carry_control_characters(raw: bytes) -> None:
    assert all(character >= " " or character == "\t" for character in lines.clean(raw))
