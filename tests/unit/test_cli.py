"""The command line as a user has it: real processes, exit codes, what is said on which stream."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import fake


def harness(*arguments: str | Path, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HARNESS_CACHE": str(cwd / "cache"), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "harness", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "--arch", "vax"], "unknown architecture 'vax'"),
        (["run", "--cache", "a,b"], "make gives ',' in a path another meaning"),
        (["build", "--cache", "a b"], "make gives ' ' in a path another meaning"),
        (["shell", "--cache", "a:b"], "make gives ':' in a path another meaning"),
        (["run", "--suite", "nonsense"], "unknown suite 'nonsense'"),
        (["run", "--series", "nowhere"], "unknown series 'nowhere'"),
        (["run", "--tree", "svn:x"], "unknown tree 'svn:x'"),
        (["run", "--points", "middle"], "unknown point 'middle'"),
        (["run", "--toolchain", "icc"], "unknown toolchain 'icc'"),
        (["run", "--config", "nowhere.config"], "no configuration fragment"),
        (["run", "--jobs", "0"], "0 is not in the range"),
        (["run", "--nonsense"], "No such option"),
        (["run", "--sandbox", "maybe"], "'auto', 'on', 'off'"),
        (["run", "--resume", "nowhere"], "no run in"),
        (["run", "--per-patch", "--points", "base"], "together"),
        (["run", "--mbox", "nowhere"], "nowhere"),
        (["run", "--selftests", "svn:x"], "unknown tree 'svn:x'"),
        (["run", "--series", "git:nowhere#a..b"], "no git repository"),
        (["bisect"], "--case SUITE:NAME"),
        (["bisect", "--case", "kunit"], "'kunit' is no case"),
        (["bisect", "--case", "kunit:a.b"], "one architecture"),
        (["bisect", "--case", "kunit:a.b", "--arch", "arm64", "--series", "none"], "has no patches"),
        (["bisect", "--resume", "nowhere"], "no run in"),
        (["series", "show", "lore:nonsense"], "no message id"),
        (["series", "export", "none", "out"], "has no patches"),
        (["nonsense"], "No such command"),
        (["report", "nowhere"], "no run in nowhere"),
        (["doctor", "--arch", "vax"], "unknown architecture"),
        (["series", "show", "nowhere"], "unknown series"),
        (["ktap", "nowhere.log"], "nowhere.log"),
    ],
)
def test_bad_input_ends_with_2_and_says_why(tmp_path: Path, arguments: list[str], why: str) -> None:
    done = harness(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("mode", ["auto", "on", "off"])
def test_sandbox_is_said_as_the_readme_has_it(mode: str, tmp_path: Path) -> None:
    done = harness("run", "--sandbox", mode, "--arch", "vax", cwd=tmp_path)
    assert "unknown architecture 'vax'" in done.stderr, done.stderr


def test_ktap(tmp_path: Path) -> None:
    log = "TAP version 13\n1..2\nok 1 a\nnot ok 2 b\n"
    done = harness("ktap", "--format", "json", cwd=tmp_path, stdin=log)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "cases": [
            {"name": "a", "outcome": "pass", "diagnostic": ""},
            {"name": "b", "outcome": "fail", "diagnostic": ""},
        ],
        "summary": {"pass": 1, "fail": 1},
    }
    assert harness("ktap", cwd=tmp_path, stdin=log.replace("not ok", "ok")).returncode == 0
    assert "<failure" in harness("ktap", "--format", "junit", cwd=tmp_path, stdin=log).stdout


def test_ktap_without_any_case_is_no_success(tmp_path: Path) -> None:
    assert harness("ktap", cwd=tmp_path, stdin="Linux version 6.12\n").returncode == 1


def test_scan(tmp_path: Path) -> None:
    log = "[    1.0] Booting\n[    2.0] WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:12 foo+0x1/0x2\n"
    log += "[    2.0] Kernel panic - not syncing: panic_on_warn set\n"
    done = harness("scan", "--format", "json", "-", cwd=tmp_path, stdin=log)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "splats": [
            {
                "kind": "warning",
                "title": "WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:12 foo+0x1/0x2",
                "function": "foo",
                "line": 2,
                "fatal": True,
                "sequels": ["Kernel panic - not syncing: panic_on_warn set"],
            }
        ],
        "gaps": 0,
    }
    assert "then Kernel panic" in harness("scan", cwd=tmp_path, stdin=log).stdout


def test_scan_of_a_log_with_holes(tmp_path: Path) -> None:
    log = "[    1.0] Booting\n** 77 printk messages dropped **\n[    2.0] Linux\n"
    done = harness("scan", "--format", "json", cwd=tmp_path, stdin=log)
    assert (done.returncode, json.loads(done.stdout)) == (1, {"splats": [], "gaps": 1})
    assert "the kernel dropped messages 1 times" in harness("scan", cwd=tmp_path, stdin=log).stdout
    assert harness("scan", cwd=tmp_path, stdin=log.replace("**", "*")).returncode == 0


@pytest.mark.parametrize(
    ("packed", "command"),
    [
        (gzip.compress, "zcat"),
        (lzma.compress, "xzcat"),
        (bz2.compress, "bzcat"),
        (lambda text: text.decode().encode("utf-16"), "iconv --from-code UTF-16 "),
        (lambda text: text.decode().encode("utf-16-le"), "iconv --from-code UTF-16 "),
        (lambda text: b"\x28\xb5\x2f\xfd" + text, "zstdcat"),
        (lambda text: b"LPKSHHRH" + text, "journalctl"),
    ],
)
def test_scan_of_a_log_that_is_no_text(tmp_path: Path, packed: Callable[[bytes], bytes], command: str) -> None:
    """No report can be seen in it, so `harness scan` must not end with 0."""
    (tmp_path / "log").write_bytes(packed(b"[    1.0] BUG: KASAN: slab-out-of-bounds in foo+0x1/0x2\n"))
    done = harness("scan", "log", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing was scanned" in done.stderr
    assert command in done.stderr


def test_scan_of_a_serial_line_that_begins_with_noise(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\0\x80\0\0\n[    1.0] Linux version 6.12\n")
    assert harness("scan", "log", cwd=tmp_path).returncode == 0


def test_scan_of_nothing_is_no_success(tmp_path: Path) -> None:
    """`ssh host dmesg | harness scan`, where ssh failed."""
    done = harness("scan", cwd=tmp_path, stdin="")
    assert done.returncode == 2
    assert "the log is empty" in done.stderr
    assert harness("scan", cwd=tmp_path, stdin="[    1.0] Booting\n").returncode == 0
    # What `dmesg --decode` writes.
    assert harness("scan", cwd=tmp_path, stdin="kern  :err   : [    1.0] [      T0] BUG: odd\n").returncode == 1


def test_series_check(tmp_path: Path) -> None:
    tree = fake.repository(tmp_path / "linux")
    good = fake.series(tmp_path / "good", {"main.c": "int first;\n"})
    done = harness("series", "check", good, "--tree", f"git:{tree}#main", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert [(patch["state"], patch["checkpatch"]) for patch in json.loads(done.stdout)] == [("applied", None)]
    (tree / "scripts" / "checkpatch.pl").write_text('print "$ARGV[-1]:1: CHECK:ODD: it is odd\\n"; exit 1;\n')
    fake.git(tree, "add", "--all")
    fake.git(tree, "commit", "--quiet", "--message=checkpatch")
    done = harness("series", "check", good, "--tree", f"git:{tree}#main", "--json", cwd=tmp_path)
    assert (done.returncode, "ODD: it is odd" in done.stderr) == (0, True)
    assert [[one["type"] for one in patch["checkpatch"]] for patch in json.loads(done.stdout)] == [["ODD"]]
    for kind, status in (("ODD", 0), ("EVEN", 1)):
        (good / "series.toml").write_text(f'[[checkpatch]]\ntype = "{kind}"\nreason = "so"\n')
        assert harness("series", "check", good, "--tree", f"git:{tree}#main", cwd=tmp_path).returncode == status
    (good / "series.toml").write_text('[[checkpatch]]\ntype = "ODD"\nreason = " "\n')
    assert harness("series", "check", good, "--tree", f"git:{tree}#main", cwd=tmp_path).returncode == 2
    (good / "series.toml").unlink()
    fake.git(tree, "rm", "--quiet", "main.c")
    fake.git(tree, "commit", "--quiet", "--message=gone")
    done = harness("series", "check", good, "--tree", f"git:{tree}#main", cwd=tmp_path)
    assert done.returncode == 1
    assert "conflict" in done.stdout
    assert "main.c" in done.stdout


def test_series_goes_from_form_to_form(tmp_path: Path) -> None:
    quilt = fake.series(tmp_path / "quilt", {"main.c": "int first;\n"}, {"other.c": "four\n"})
    said = [
        harness("series", "export", *words, cwd=tmp_path).stdout.split()[-1]
        for words in ((quilt, "all.mbox"), ("all.mbox", "again"), ("again", "last", "--format", "mbox"))
    ]
    assert len(set(said)) == 1
    assert harness("series", "export", "again", "all.mbox", cwd=tmp_path).returncode == 2
    done = harness("series", "show", "last", cwd=tmp_path)
    assert done.returncode == 0
    assert "0002-change-2.patch  change 2  (1 files)" in done.stdout


def test_doctor_says_what_installs_what_is_missing(tmp_path: Path) -> None:
    done = harness("doctor", "--json", cwd=tmp_path)
    report = json.loads(done.stdout)
    lacking = [need for need in report["needs"] if not need["found"] and not need["optional"]]
    assert done.returncode == (3 if lacking else 0)
    assert not lacking or "install" in report["install"]


def test_version_and_help(tmp_path: Path) -> None:
    assert harness("--version", cwd=tmp_path).stdout.startswith("harness, version")
    assert "harness run" in harness("run", "--help", cwd=tmp_path).stdout
