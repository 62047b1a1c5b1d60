"""Benchmarks: each compares two things in one run, or measures something that does not depend on how fast the machine is.

nox -s bench                 all of them, most of an hour on two cores
nox -s bench -- warm memory  some of them"""

from __future__ import annotations

import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness import arch, kernel, paths, process, tree
from harness.cache import Cache
from harness.guest import Accelerator, Boot, build_initramfs
from harness.guest.console import Console
from harness.guest.guest import started
from harness.logs import kinds, ktap, splat
from harness.model import Kernel, Point
from harness.results import page, read_run
from harness.suites import QUIET
from tests import sample
from tests.browser import Browser
from tests.daskd import Daskd
from tests.sshd import Sshd, hosts_toml

ARCH = "x86_64"
LOG_BYTES = 100_000_000
BOOTS = 15
SSH_RUNS = 3
CLUSTER_RUNS = 2
SIX = ("x86_64", "arm64", "riscv64", "s390x", "ppc64le", "loongarch64")

# What a user would write who wants the same tests and takes the rest as it comes: QEMU's default machine, found over ACPI.
PLAIN = """\
CONFIG_PCI=y
CONFIG_ACPI=y
CONFIG_INPUT=y
CONFIG_SERIO=y
CONFIG_VT=y
CONFIG_RD_GZIP=y
CONFIG_RD_XZ=y
CONFIG_CPU_SUP_INTEL=y
CONFIG_CPU_SUP_AMD=y
CONFIG_IPV6=y
CONFIG_UNIX=y
"""


def harness(*arguments: str, out: Path) -> float:
    """Seconds that a whole run takes, of the tree as it is, on one architecture."""
    return timed("--series", "none", "--arch", ARCH, *arguments, out=out)


def timed(*arguments: str, out: Path) -> float:
    start = time.monotonic()
    command = [sys.executable, "-m", "harness", "run", "--out", str(out), *arguments]
    # No night of the user's.
    environment = {**os.environ, "HARNESS_HISTORY": str(out / "history.sqlite")}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.monotonic() - start


def latest_kernel(out: Path, cache: Cache) -> tuple[Kernel, str]:
    (job,) = read_run(out / "latest").jobs.values()
    found = cache.read_record("kernels", job.properties["kernel"], Kernel)
    assert found is not None
    return found, job.properties["commit"]


def boot_seconds(built: Kernel, commit: str, cache: Cache, cmdline: tuple[str, ...] = QUIET) -> float:
    target = arch.load(ARCH)
    initramfs, _ = build_initramfs(built, commit, target, kernel.detect(target).compiler, cache)
    with (
        tempfile.TemporaryDirectory() as folder,
        started(target, Accelerator.TCG, Path(folder), Boot(built.image, initramfs.path, cmdline)) as guest,
    ):
        guest.wait_for_agent()
        return guest.boot_seconds


def warm() -> str:
    """From start to the guest's boot when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        harness("--suite", "kunit", out=out)
        seconds = []
        for _ in range(3):
            start = time.time()
            harness("--suite", "kunit", out=out)
            seconds.append((out / "latest" / ARCH / "base" / "qemu.cmd").stat().st_mtime - start)
        log = (out / "latest" / ARCH / "base" / "build.log").read_text()
        assert "nothing to build" in log
    return f"nothing changed, from start to the guest's boot: {min(seconds):.2f} s (at most 2), without calling make"


def memory() -> str:
    """Peak memory of the console's reader while a guest prints."""
    line = b"[ 1234.567890][ T1234] something that a kernel might well say, at about the usual length of a line\n"
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as folder, ours:
        console = Console(ours, Path(folder) / "console.log")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def flood() -> None:
            with theirs:
                for _ in range(LOG_BYTES // (len(line) * 1000)):
                    theirs.sendall(line * 1000)

        start = time.monotonic()
        writer = threading.Thread(target=flood)
        writer.start()
        writer.join()
        console.closed.wait()
        seconds = time.monotonic() - start
        size = console.path.stat().st_size
        console.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rate = size / seconds / 1e6
    return (
        f"memory with a console log of {size / 1e6:.0f} MB: {peak / 1024:.0f} MB "
        f"(at most 150; {(peak - before) / 1024:.0f} MB of it for the log), read at {rate:.0f} MB/s"
    )


def overhead() -> str:
    """A cold build and a boot by the harness, against the same commands by hand."""
    cache = Cache(paths.default_cache())
    os.environ["CCACHE_DISABLE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        fragment = out / "cold.config"
        fragment.write_text(f"# a digest of its own: {time.time()}\nCONFIG_FTRACE=y\n")
        target, base = arch.load(ARCH), tree.resolve(tree.default_spec(()), cache)
        source = tree.Store(cache).work_tree("build", base.commit)
        build = source.parent / f"{ARCH}-gcc"
        process.run(["rm", "-rf", build])
        ours = harness("--suite", "kunit", "--config", str(fragment), out=out)
        built, commit = latest_kernel(out, cache)

        process.run(["rm", "-rf", build])
        start = time.monotonic()
        toolchain = kernel.detect(target)
        make = ["make", "-C", str(source), f"O={build}", *toolchain.variables]
        process.run([*make, "tinyconfig"])
        merge = [str(source / "scripts/kconfig/merge_config.sh"), "-m", "-O", str(build), str(build / ".config")]
        process.run([*merge, *map(str, kernel.fragments_for(target, [fragment]))], cwd=build)
        process.run([*make, "olddefconfig"])
        process.run([*make, f"-j{os.cpu_count()}", "LOCALVERSION=", target.kernel.target, "modules"])
        install = [f"INSTALL_MOD_PATH={out / 'modules'}", "INSTALL_MOD_STRIP=1", "modules_install"]
        process.run([*make, "LOCALVERSION=", *install])
        theirs = time.monotonic() - start + boot_seconds(built, commit, cache, ("ftrace=nop",))
    return (
        f"harness over raw make and raw QEMU: {ours:.0f} s / {theirs:.0f} s = {ours / theirs:.3f} (at most 1.05); "
        f"{built.objects} objects compiled (at most 900)"
    )


def boot() -> str:
    """The machine without PCI, ACPI and input against the default machine of a plain configuration."""
    cache = Cache(paths.default_cache())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        harness("--suite", "kunit", out=out)
        small, commit = latest_kernel(out, cache)
        fragment = out / "plain.config"
        fragment.write_text(PLAIN)
        target = arch.load(ARCH)
        point = Point("base", commit)
        fragments = kernel.fragments_for(target, [fragment])
        plain, _ = kernel.build(
            point, target, fragments, kernel.detect(target), cache, out, jobserver=kernel.Jobserver(os.cpu_count() or 1)
        )
        seconds = [(boot_seconds(small, commit, cache), boot_seconds(plain, commit, cache)) for _ in range(BOOTS)]
    ours, theirs = (statistics.median(each) for each in zip(*seconds, strict=True))
    return f"boot to the agent, median of {BOOTS}: {ours:.2f} s against {theirs:.2f} s of a plain configuration"


def scan() -> str:
    """A console log of 100 MB with a report here and there, against grep with the same patterns."""
    line = b"[%5d.%06d][ T%d] kernel text of about the usual length, with a number %08x and list_head in it\r\n"
    report = b"[    1.000000][   T1] WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:%d some_function+0x1/0x2\r\n"
    # What grep takes of our patterns: no groups that do not capture, no look ahead, no classes in brackets.
    said = "|".join(pattern.pattern for _, pattern in kinds.FIRST_LINES)
    for ours, theirs in (("(?:", "("), ("(?!kasan: )", ""), ("[\\w /-]", "[A-Za-z0-9_ /-]"), (r"\d", "[0-9]")):
        said = said.replace(ours, theirs)
    with tempfile.NamedTemporaryFile() as log, tempfile.NamedTemporaryFile("w") as patterns:
        patterns.write(rf"^(\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? )?({said})")
        patterns.flush()
        for number in range(LOG_BYTES // len(line % (1, 1, 1, 1))):
            log.write(report % number if number % 100_000 == 0 else line % (number // 1000, number % 1000, number % 100, number))
        log.flush()
        size = Path(log.name).stat().st_size / 1e6
        command = ["grep", "-caEf", patterns.name, log.name]
        seconds = []
        for _ in range(5):
            start = time.monotonic()
            with Path(log.name).open("rb") as file:
                found = len(splat.scan_file(file))
            middle = time.monotonic()
            counted = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            seconds.append((middle - start, time.monotonic() - middle))
    assert found == counted > 1, (found, counted)
    ours, theirs = (statistics.median(each) for each in zip(*seconds, strict=True))
    return (
        f"{size:.0f} MB: {size / ours:.0f} MB/s (at least 20), grep -E {size / theirs:.0f} MB/s: "
        f"{ours / theirs:.2f} times as long (at most 4)"
    )


def results() -> str:
    """KTAP of 200,000 results, flat and nested."""
    flat = [b"KTAP version 1\n", b"1..200000\n", *(b"ok %d some_test_case_%d\n" % (one, one) for one in range(1, 200_001))]
    nested = [b"[    1.0] KTAP version 1\n", b"[    1.0] 1..20000\n"]
    for suite in range(1, 20_001):
        nested += [b"[    1.0]     KTAP version 1\n", b"[    1.0]     1..9\n"]
        nested += [b"[    1.0]     ok %d case%d\n" % (case, case) for case in range(1, 10)]
        nested.append(b"[    1.0] ok %d suite%d\n" % (suite, suite))
    told = []
    for log in (flat, nested):
        seconds = []
        for _ in range(5):
            start = time.monotonic()
            cases = ktap.parse(log)
            seconds.append(time.monotonic() - start)
            assert all(case.outcome.green for case in cases)
        told.append(f"{200_000 / statistics.median(seconds):,.0f}")
    return f"result lines a second: {told[0]} flat, {told[1]} in subtests with printk's prefix (at least 200,000)"


def ssh() -> str:
    """A kernel that is there, booted and tested here and through SSH on this very machine, in turn."""
    arguments = ("--suite", "boot", "--suite", "kunit", "--suite", "samples")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        server = Sshd(Path(folder))
        hosts = hosts_toml(Path(folder) / "hosts.toml", server.spec())
        try:
            for number in range(SSH_RUNS + 1):
                here = harness(*arguments, out=Path(folder) / "here")
                there = harness(*arguments, "--hosts", str(hosts), out=Path(folder) / "there")
                seconds += [(here, there)] if number else []  # the first one sends the files
        finally:
            server.stop()
    here, there = (statistics.median(each) for each in zip(*seconds, strict=True))
    return f"{there:.2f} s through SSH, {here:.2f} s here: {there / here:.3f} (at most 1.10)"


def cluster() -> str:
    """Six jobs, whose kernels are there, by a worker for each core of this machine, and without any, in turn."""
    words = ["--suite", "boot", "--suite", "kunit", "--suite", "samples", *(f"--arch={name}" for name in SIX)]
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        dask = Daskd(Path(folder))
        try:
            for _ in range(os.cpu_count() or 1):
                dask.worker(*SIX)
            for number in range(CLUSTER_RUNS + 1):
                here = timed(*words, out=Path(folder) / "here")
                there = timed(*words, "--executor", f"dask:{dask.address}", "--jobs", "1", out=Path(folder) / "there")
                seconds += [(here, there)] if number else []  # the first one makes what is not there
        finally:
            dask.stop()
    here, there = (statistics.median(each) for each in zip(*seconds, strict=True))
    return f"{there:.1f} s on a cluster, {here:.1f} s without: {there / here:.3f} (at most 1.05)"


def report() -> str:
    """The page of a night of six architectures with 6,000 cases: its size, and how soon a browser shows and filters it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run" / "report.html"
        page.write(sample.run(path.parent, 500), path)
        browser = Browser(javascript=True)
        browser.show(path)
        seconds = []
        for word in ("case_4", "case_49", "nowhere", ""):
            start = time.monotonic()
            browser.filter(word)
            seconds.append(time.monotonic() - start)
        (paint,) = browser.ask("performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)")
        browser.driver.quit()
        return (
            f"{path.stat().st_size / 1e6:.2f} MB (at most 2), first paint after {paint:.0f} ms (at most 1000), "
            f"a filter {1000 * max(seconds):.0f} ms (at most 100, here with the way to the browser and back)"
        )


BENCHMARKS: dict[str, Callable[[], str]] = {
    "scan": scan,
    "results": results,
    "report": report,
    "ssh": ssh,
    "cluster": cluster,
    "memory": memory,
    "warm": warm,
    "boot": boot,
    "overhead": overhead,
}


def main(names: Sequence[str]) -> None:
    for name in names or BENCHMARKS:
        print(f"{name}: {BENCHMARKS[name]()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
