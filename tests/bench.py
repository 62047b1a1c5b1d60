"""Benchmarks of the harness. Each figure has a limit, and one beyond its limit fails: exit status 1.

nox -s bench                 all of them, most of an hour on two cores
nox -s bench -- warm memory  some of them

Other work on the machine disturbs times. So each time is compared with something else that is measured in the same run, in turn,
and the median of the ratios counts; or it is CPU time; or its limit leaves room for a busy machine."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from harness import arch, kernel, paths, process, tree
from harness.cache import Cache
from harness.guest import Accelerator, Boot, build_initramfs
from harness.guest.console import Console
from harness.guest.guest import started
from harness.logs import kinds, ktap, splat
from harness.model import Kernel, Point
from harness.results import page, read_run
from harness.suites import QUIET
from tests import figures, sample
from tests.browser import Browser
from tests.daskd import Daskd
from tests.figures import Figure, Pair
from tests.sshd import Sshd, hosts_toml

ARCH = "x86_64"
LOG_BYTES = 100_000_000
PARSER = 18
"""Times one regular expression for each line: 200,000 results a second on the machine on which this limit was set."""
_RESULT = re.compile(r"(?:\[ *[0-9.]+\] )? *(not )?ok ([0-9]+) (.*)")
BOOTS = 15
WARM_RUNS = 5
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


def warm() -> list[Figure]:
    """From start to the guest's boot when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        harness("--suite", "kunit", out=out)
        seconds, logs = [], []
        for _ in range(WARM_RUNS):
            start = time.time()
            harness("--suite", "kunit", out=out)
            job = out / "latest" / ARCH / "base"
            seconds.append((job / "qemu.cmd").stat().st_mtime - start)
            logs.append((job / "build.log").read_text())
    if not all("nothing to build" in log for log in logs):
        raise AssertionError("make was called though nothing had changed")
    detail = f"median of {WARM_RUNS}, from {min(seconds):.2f} to {max(seconds):.2f}, without calling make"
    return [Figure("nothing changed, from start to the guest's boot", statistics.median(seconds), "s", at_most=2, detail=detail)]


def _flood() -> tuple[int, float, float, float]:
    """The size of a console log, the seconds that reading it took, and the peak memory before and after, in MB."""
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
    return size, seconds, before / 1024, peak / 1024


def memory() -> list[Figure]:
    """Peak memory of the console's reader while a guest prints, in a process of its own: the peak never goes down again."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        size, seconds, before, peak = alone.submit(_flood).result()
    # The log must be complete: otherwise it would prove nothing that little memory was used.
    if size < 0.99 * LOG_BYTES:
        raise AssertionError(f"only {size} of {LOG_BYTES} bytes are in the console log")
    detail = f"{peak - before:.0f} MB of it for the log, read at {size / seconds / 1e6:.0f} MB/s"
    return [Figure(f"memory with a console log of {size / 1e6:.0f} MB", peak, "MB", at_most=150, detail=detail)]


def overhead() -> list[Figure]:
    """A cold build and a boot by the harness, against the same commands by hand."""
    cache = Cache(paths.default_cache())
    os.environ["CCACHE_DISABLE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        fragment = out / "cold.config"
        fragment.write_text(f"# a digest of its own: {time.time()}\nCONFIG_FTRACE=y\n")
        target, base = arch.load(ARCH), tree.resolve(tree.default_spec(()), cache)
        source = tree.move(tree.Store(cache), "build", base.commit)
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
    return [
        figures.ratio("a cold build and a boot, harness over raw make and raw QEMU", [(ours, theirs)], at_most=1.05),
        Figure("objects compiled", built.objects, at_least=300, at_most=900),
    ]


def boot() -> list[Figure]:
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
    return [figures.ratio("boot to the agent, over that of a plain configuration", seconds, at_most=1)]


def _cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _grep_patterns() -> str:
    """The pattern in grep's syntax, which has no non-capturing groups, no look-ahead and no classes in brackets."""
    patterns = "|".join(pattern.pattern for _, pattern in kinds.FIRST_LINES)
    for ours, theirs in (("(?:", "("), ("(?!kasan: )", ""), ("[\\w /-]", "[A-Za-z0-9_ /-]"), (r"\d", "[0-9]")):
        patterns = patterns.replace(ours, theirs)
    return rf"^(\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? )?({patterns})"


def scan() -> list[Figure]:
    """A console log of 100 MB with a report here and there, against grep with the same patterns; in CPU time."""
    line = b"[%5d.%06d][ T%d] kernel text of about the usual length, with a number %08x and list_head in it\r\n"
    report = b"[    1.000000][   T1] WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:%d some_function+0x1/0x2\r\n"
    with tempfile.NamedTemporaryFile() as log, tempfile.NamedTemporaryFile("w") as patterns:
        patterns.write(_grep_patterns())
        patterns.flush()
        for number in range(LOG_BYTES // len(line % (1, 1, 1, 1))):
            log.write(report % number if number % 100_000 == 0 else line % (number // 1000, number % 1000, number % 100, number))
        log.flush()
        size = Path(log.name).stat().st_size / 1e6
        command = ["grep", "-caEf", patterns.name, log.name]
        seconds: list[Pair] = []
        for _ in range(5):
            before = _cpu_seconds(), _cpu_seconds(resource.RUSAGE_CHILDREN)
            with Path(log.name).open("rb") as file:
                found = len(splat.scan_file(file))
            counted = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            seconds.append((_cpu_seconds() - before[0], _cpu_seconds(resource.RUSAGE_CHILDREN) - before[1]))
    if not found == counted > 1:
        raise AssertionError(f"{found} reports found, grep counts {counted}")
    rate = size / statistics.median(ours for ours, _ in seconds)
    return [
        figures.ratio(f"scan of {size:.0f} MB, over grep -E with the same patterns, CPU time", seconds, at_most=4),
        Figure("scan", rate, "MB a second of CPU time", at_least=20),
    ]


def results() -> list[Figure]:
    """KTAP of 200,000 results, flat and nested; in CPU time."""
    flat = [b"KTAP version 1\n", b"1..200000\n", *(b"ok %d some_test_case_%d\n" % (one, one) for one in range(1, 200_001))]
    nested = [b"[    1.0] KTAP version 1\n", b"[    1.0] 1..20000\n"]
    for suite in range(1, 20_001):
        nested += [b"[    1.0]     KTAP version 1\n", b"[    1.0]     1..9\n"]
        nested += [b"[    1.0]     ok %d case%d\n" % (case, case) for case in range(1, 10)]
        nested.append(b"[    1.0] ok %d suite%d\n" % (suite, suite))
    found = []
    for what, log, expected in (("flat", flat, 200_000), ("in subtests with printk's prefix", nested, 180_000)):
        seconds: list[Pair] = []
        for _ in range(5):
            start = time.process_time()
            cases = ktap.parse(log)
            middle = time.process_time()
            matched = sum(1 for line in log if _RESULT.match(line.decode()))
            seconds.append((middle - start, time.process_time() - middle))
            if len(cases) < expected or matched != 200_000 or not all(case.outcome.green for case in cases):
                raise AssertionError(f"{len(cases)} cases of {expected}, {matched} lines, or not all of them green")
        one = figures.ratio(f"KTAP {what}, over one regular expression for each line, CPU time", seconds, at_most=PARSER)
        rate = 200_000 / statistics.median(ours for ours, _ in seconds)
        found.append(msgspec.structs.replace(one, detail=f"{one.detail}; {rate:,.0f} results a second of CPU time"))
    return found


def ssh() -> list[Figure]:
    """A kernel that is there, booted and tested here and through SSH on this very machine, in turn."""
    arguments = ("--suite", "boot", "--suite", "kunit", "--suite", "samples")
    seconds: list[Pair] = []
    with tempfile.TemporaryDirectory() as folder:
        server = Sshd(Path(folder))
        hosts = hosts_toml(Path(folder) / "hosts.toml", server.spec())
        try:
            for number in range(SSH_RUNS + 1):
                here = harness(*arguments, out=Path(folder) / "here")
                there = harness(*arguments, "--hosts", str(hosts), out=Path(folder) / "there")
                seconds += [(there, here)] if number else []  # the first one sends the files
        finally:
            server.stop()
    return [figures.ratio("a kernel tested through SSH on this very machine, over here", seconds, at_most=1.10)]


def cluster() -> list[Figure]:
    """Six jobs, whose kernels are there, by a worker for each core of this machine, and without any, in turn."""
    words = ["--suite", "boot", "--suite", "kunit", "--suite", "samples", *(f"--arch={name}" for name in SIX)]
    seconds: list[Pair] = []
    with tempfile.TemporaryDirectory() as folder:
        dask = Daskd(Path(folder))
        try:
            for _ in range(os.cpu_count() or 1):
                dask.worker(*SIX)
            for number in range(CLUSTER_RUNS + 1):
                here = timed(*words, out=Path(folder) / "here")
                there = timed(*words, "--executor", f"dask:{dask.address}", "--jobs", "1", out=Path(folder) / "there")
                seconds += [(there, here)] if number else []  # the first one makes what is not there
        finally:
            dask.stop()
    return [figures.ratio("six jobs on a cluster of this machine, over without", seconds, at_most=1.05)]


def report() -> list[Figure]:
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
        return [
            Figure("the page of a night of 6,000 cases", path.stat().st_size / 1e6, "MB", at_most=2),
            Figure("its first paint", paint, "ms", at_most=1000),
            Figure("a filter, with the way to the browser and back", 1000 * statistics.median(seconds), "ms", at_most=100),
        ]


BENCHMARKS: dict[str, figures.Benchmark] = {
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


def main(names: Sequence[str]) -> int:
    return figures.run(BENCHMARKS, names, lambda line: print(line, flush=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
