"""configs/known.toml: what an entry must say, and what is refused, with file and line."""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness import paths
from harness.errors import UserError
from harness.model import Outcome
from harness.suites import known
from harness.suites.known import Known, read_known

GOOD = """\
# A list.
[[known]]
case = "ftracetest:a.tc"
outcome = ["fail"]
diagnostic = ["*: Invalid argument"]
versions = ">=6.12,<6.14"
reason = "it is a test"

[[known]]
case = "boot:console"
arch = ["riscv64"]
outcome = ["crash"]
diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]
any-version = "nobody fixed it"
reason = "it warns"

[[known]]
case = "ftracetest:b.tc"
hangs = true
versions = "==6.12.*"
reason = "it hangs"
"""

CHANGES = [
    ('case = "boot:console"', "", 9, "case"),
    ('case = "boot:console"', 'case = "bot:console"', 10, "'bot:console' names no case of a suite"),
    ('case = "boot:console"', 'case = "boot"', 10, "names no case"),
    ('case = "boot:console"', 'case = "*"', 10, "names no case"),
    ('case = "boot:console"', 'case = "build:build"', 10, "names no case"),
    ('arch = ["riscv64"]', 'arch = ["riscv46"]', 11, "unknown architecture 'riscv46'"),
    ('arch = ["riscv64"]', 'arhc = ["riscv64"]', 11, "arhc"),
    ('arch = ["riscv64"]', 'arch = "riscv64"', 11, "array"),
    ('arch = ["riscv64"]', 'fixed-by = ["fprobe"]', 11, "no bundled series 'fprobe'"),
    ('outcome = ["crash"]', "", 9, "no outcome"),
    ('outcome = ["crash"]', "outcome = []", 9, "no outcome"),
    ('outcome = ["crash"]', 'outcome = ["crashed"]', 12, "crashed"),
    ('outcome = ["crash"]', 'outcome = ["crash", "pass"]', 9, "'pass' is no failure of a kernel"),
    ('outcome = ["crash"]', 'outcome = ["skip"]', 9, "'skip' is no failure"),
    ('outcome = ["crash"]', 'outcome = ["xfail"]', 9, "'xfail' is no failure"),
    ('outcome = ["crash"]', 'outcome = ["error"]', 9, "'error' is no failure"),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', "", 9, "no diagnostic"),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', 'diagnostic = ["*"]', 9, "matches any failure"),
    (
        'diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]',
        'diagnostic = ["WARNING: * trace_a+*", "?*"]',
        9,
        "any failure",
    ),
    *(
        ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', f'diagnostic = ["{glob}"]', 9, "any failure")
        for glob in ("*e*", "[!~]*", "[A-Z][a-zA-Z0-9]*", "*: *", "*[]abcde]*", "err*")
    ),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', 'diagnostic = ["WARNING: *"]', 9, "covers other crashes"),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', 'diagnostic = ["illegal operation: *"]', 9, "other_function"),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', 'diagnostic = ["Kernel panic - *"]', 9, "other crashes"),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', 'diagnostic = ["BUG: KASAN: *"]', 9, "other crashes"),
    ('diagnostic = ["WARNING: * at kernel/trace/a.c:* trace_a+*"]', 'diagnostic = ["kernel BUG at *"]', 9, "other crashes"),
    ('any-version = "nobody fixed it"', "", 9, "one of versions and any-version"),
    ('any-version = "nobody fixed it"', 'any-version = " "', 9, "one of versions and any-version"),
    ('any-version = "nobody fixed it"', 'any-version = "so"\nversions = ">=6.12"', 9, "one of versions and any-version"),
    ('any-version = "nobody fixed it"', 'versions = "6.12 or so"', 9, "versions are like"),
    ('any-version = "nobody fixed it"', 'versions = ">=6.14,<6.12"', 9, "no version is in"),
    ('any-version = "nobody fixed it"', 'versions = ">6.12,<6.12"', 9, "no version is in"),
    ('any-version = "nobody fixed it"', 'versions = "==6.12,!=6.12"', 9, "no version is in"),
    ('any-version = "nobody fixed it"', 'versions = "===6.x"', 9, "versions are like"),
    ('reason = "it warns"', "", 9, "reason"),
    ('reason = "it warns"', 'reason = " "', 9, "no reason"),
    ('reason = "it hangs"', 'reason = "it hangs"\noutcome = ["fail"]', 17, "a case that hangs is not run"),
    ('reason = "it hangs"', 'reason = "it hangs"\ndiagnostic = ["x"]', 17, "a case that hangs is not run"),
    ('reason = "it hangs"', 'reason = "it hangs', 21, "Illegal character"),
    ('reason = "it hangs"', 'reason = "it hangs"\ntoolchain = "lvm*"', 17, "the toolchain 'lvm*' does not exist"),
    ('reason = "it hangs"', 'reason = "it hangs"\ntoolchain = ""', 17, "the toolchain '' does not exist"),
    ("[[known]]", "[[nkown]]", 2, "nkown"),
    ("[[known]]", "[known]", 2, "array"),
]


def write(directory: Path, text: str) -> Path:
    path = directory / "known.toml"
    path.write_text(text)
    return path


def test_good_file(tmp_path: Path) -> None:
    first, second, third = read_known(write(tmp_path, GOOD))
    assert (first.versions, second.any_version, third.hangs) == (">=6.12,<6.14", "nobody fixed it", True)
    assert [line for _, line in known.read_with_lines(tmp_path / "known.toml")] == [2, 9, 17]


@pytest.mark.parametrize(("old", "new", "line", "why"), CHANGES)
def test_bad_entry_is_refused_with_file_and_line(tmp_path: Path, old: str, new: str, line: int, why: str) -> None:
    text = GOOD if old != "[[known]]" else GOOD.partition("\n\n")[0]
    path = write(tmp_path, text.replace(old, new))
    with pytest.raises(UserError) as caught:
        read_known(path)
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert why in caught.value.message
    assert caught.value.hint


def test_same_entry_twice(tmp_path: Path) -> None:
    again = GOOD.partition("\n\n")[0].replace("# A list.\n", "").replace("it is a test", "so it is")
    with pytest.raises(UserError, match=r"known\.toml:23: the same entry as in line 2"):
        read_known(write(tmp_path, f"{GOOD}\n{again}"))


def test_whole_suite_needs_a_diagnostic(tmp_path: Path) -> None:
    path = write(tmp_path, '[[known]]\ncase = "kunit:*"\nreason = "who knows"\n')
    with pytest.raises(UserError, match=r"known\.toml:1: 'kunit:\*': no outcome"):
        read_known(path)


@pytest.mark.parametrize(
    "versions",
    [
        ">6.12,<6.13",
        "<6.0",
        "<=6.12",
        ">=6.12",
        "<6.14",
        ">=6.12,<6.14",
        "==6.12.*",
        "~=6.12.3",
        ">6.12,<6.12.5",
        "!=6.13",
        "==6.0",
    ],
)
def test_range_that_holds_a_version(tmp_path: Path, versions: str) -> None:
    (entry,) = read_known(write(tmp_path, GOOD.partition("\n\n")[0].replace(">=6.12,<6.14", versions)))
    assert entry.versions == versions


def test_key_changes_with_what_is_covered_and_with_nothing_else(tmp_path: Path) -> None:
    one = GOOD.partition("\n\n")[0]
    keys = {}
    for old, new in (
        ("", ""),
        ("it is a test", "so"),
        ("<6.14", "<6.15"),
        ('"fail"', '"unresolved"'),
        (": Inv", ": inv"),
        ("a.tc", "c.tc"),
    ):
        (entry,) = read_known(write(tmp_path, one.replace(old, new, 1) if old else one))
        keys[new] = entry.key
    assert keys[""] == keys["so"] == keys["<6.15"]
    assert len(set(keys.values())) == 4


def test_bundled_file() -> None:
    entries = read_known()
    assert all(entry.reason for entry in entries)
    assert {name for entry in entries for name in entry.fixed_by} <= {path.name for path in paths.PATCHES.iterdir()}
    assert len({entry.key for entry in entries}) == len(entries)
    # What runs on no kernel at all, whoever's fault it is, would be a suite that is switched off.
    assert not [entry.case for entry in entries if entry.case.partition(":")[2].strip("*?") == ""]


@pytest.mark.parametrize("arguments", [["run"], ["bisect", "--arch", "x86_64", "--case", "kunit:a.b"], ["build"], ["known"]])
def test_damaged_list_ends_every_command_that_needs_it(tmp_path: Path, arguments: list[str]) -> None:
    """Before anything is started: exit code 2, with file, line and what to do."""
    path = write(tmp_path, GOOD.replace('outcome = ["crash"]', 'outcome = ["*"]'))
    script = (
        "import sys; from pathlib import Path; from harness import cli, doctor, paths; "
        f"paths.CONFIGS = Path({str(tmp_path)!r}); doctor.check = lambda *words: None; cli.main()"
    )
    environment = {**os.environ, "HARNESS_CACHE": str(tmp_path / "cache"), "HARNESS_HISTORY": str(tmp_path / "h.sqlite")}
    for folder in ("arch", "base.config", "tracing.config", "selftests.config"):
        (tmp_path / folder).symlink_to(paths.CONFIGS / folder)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert f"{path}:12: " in done.stderr
    assert "hint: docs/adding.md" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "glob",
    [
        "kernel BUG at *!",
        "kernel BUG at * in *",
        "BUG: kernel NULL pointer dereference, address: *[0-9]",
        "BUG: kernel NULL pointer dereference, address: * in *",
        "BUG: unable to handle page fault for address: *",
        "BUG: Unable to handle kernel data access *",
        "BUG: KASAN: slab-use-after-free in *",
        "BUG: KFENCE: use-after-free *",
        "BUG: sleeping function *",
        "BUG: scheduling while atomic: *",
        "UBSAN: array-index-out-of-bounds in *",
        "Unable to handle kernel paging request at *",
        "Unable to handle kernel NULL pointer *",
        "CPU * Unable to handle kernel paging request *",
        "Unable to handle kernel pointer dereference in *",
        "Internal error: Oops: *",
        "Oops: 0002 [[]#1] *",
        "Oops: general protection fault*",
        "Oops: Kernel access of bad area*",
        "Oops: Exception in kernel mode*",
        "Oops - BUG*",
        "Oops[[]#1]:*",
        "Kernel BUG [[]#*",
        "illegal operation: *",
        "stack-protector: *",
        "Kernel panic - not syncing: stack-protector: *",
        "Kernel panic - not syncing: corrupted *",
        "WARNING: CPU: *",
        "WARNING: * at *CPU#*",
        "WARNING: possible circular *",
        "WARNING: suspicious *",
        "watchdog: BUG: soft lockup *",
        "rcu: INFO: rcu_preempt *",
        "INFO: task *",
        "refcount_t: *",
        "list_del corruption*",
    ],
)
def test_glob_that_names_no_report(glob: str) -> None:
    """Each of these would cover whatever else the kernel reports of that kind. Of a test's own words any may be meant."""
    with pytest.raises(ValueError, match="covers other crashes, too, such as") as caught:
        Known("boot:console", "so", outcome=(Outcome.CRASH,), diagnostic=(glob,), any_version="so")
    assert fnmatch.fnmatchcase(str(caught.value).split("such as '")[1].split("': name")[0], glob)
    assert Known("boot:console", "so", outcome=(Outcome.FAIL,), diagnostic=(glob,), any_version="so")
    assert str(caught.value).startswith(f"'boot:console': the diagnostic '{glob}'")


def test_link_is_told_with_the_reason() -> None:
    entry = Known(
        "a:b", "so", outcome=(Outcome.FAIL,), diagnostic=("it fails",), any_version="so", link="https://lore.kernel.org/r/1"
    )
    assert entry.why == "so (https://lore.kernel.org/r/1)"
    assert msgspec.structs.replace(entry, link="").why == "so"
