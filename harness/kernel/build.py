"""Build a kernel and keep it under the digest of everything that went into it."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness import ccache, paths, process
from harness.arch import Arch
from harness.cache import Cache, digest_of
from harness.errors import CommandFailed, HarnessError, InfrastructureError
from harness.kernel import artefact, kconfig
from harness.kernel.jobserver import Jobserver
from harness.kernel.toolchain import Toolchain
from harness.kernel.warnings import Standing
from harness.model import Kernel, Point
from harness.tree import Store

_RECIPE = "5"
"""Part of every digest: raise it when a change here makes kernels that are cached unlike those it would build."""

_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "Sat Jan  1 00:00:00 UTC 2000",
    "KBUILD_BUILD_USER": "fgraph-harness",
    "KBUILD_BUILD_HOST": "localhost",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}

_OBJECT = re.compile(r"^  (?:CC|AS)(?: \[M\])?  +(?!.*/tools/)(?P<file>\S+)")
"""kbuild's short form of a command. Host tools (objtool, resolve_btfids) are compiled too, but are no kernel objects."""
_ERROR = re.compile(
    r"^(?P<where>\S+?:\d+(?::\d+)?): (?:fatal )?error: |^(?:\S*ld|\S*ld\.bfd|ld\.lld): .*undefined"
    r"|^ERROR: modpost: |\*\*\* .*Error \d+"
)

_FULL = "No space left on device"

Progress = Callable[[int, str], None]
"""Called with the number of objects, and the newest."""


class BuildFailed(HarnessError):
    """The kernel does not build: a red case of the job. The message is the first error, with its file."""


def build(
    point: Point,
    arch: Arch,
    fragments: Sequence[Path],
    toolchain: Toolchain,
    cache: Cache,
    directory: Path,
    *,
    jobserver: Jobserver,
    required: Sequence[Path] = (),
    unproved: Sequence[Path] = (),
    progress: Progress = lambda objects, file: None,
) -> tuple[Kernel, bool]:
    """The kernel of `arch` at `point`, and whether it was there already, in which case nothing runs at all.

    `directory` gets `.config`, and `build.log` with make's output behind the line that repeats it. `required` and `unproved` are
    those of `kconfig.configure`; `progress` hears of objects as they are compiled. Raises ConfigNotProved, BuildFailed, and
    InfrastructureError for a full disk."""
    log = directory / "build.log"
    store = Store(cache)
    digest = digest_of(
        *(_RECIPE, store.content(point.commit, arch.kernel.folders), repr(arch.kernel)),
        *(toolchain.version, repr(toolchain.variables)),
        *(part for path in fragments for part in (path.name, path.read_bytes())),
        *(part for path in sorted(paths.MODULES.iterdir()) for part in (path.name, path.read_bytes())),
    )
    home = cache.root / "kernels" / digest
    if known := artefact.find(home, cache):
        shutil.copy2(known.config, directory / ".config")
        # Its content is the same, but this point may ask more of it.
        kconfig.prove(known.config, arch, fragments, required, unproved, lambda: store.sources(point.commit), toolchain)
        log.write_text(f"# nothing to build: kernel {digest} is in the cache\n")
        return known, True

    start = time.monotonic()
    source = store.sources(point.commit)
    output = source.parent / f"{arch.name}-{toolchain.kind}"
    standing = Standing(source, output)
    if not standing.known:
        shutil.rmtree(output, ignore_errors=True)
    try:
        made_from = store.configuration(point.commit)
        config = kconfig.configure(source, output, arch, fragments, toolchain, required, unproved, made_from)
    except CommandFailed as error:
        _blame_disk(error, output)
        raise kconfig.ConfigNotProved(f"the tree cannot be configured: {error.message}", hint=error.output) from error
    finally:
        if (output / ".config").exists():
            shutil.copy2(output / ".config", directory / ".config")
    try:
        compiled = _Compilation(log, progress, jobserver, output, standing)
        make: list[str | Path] = ["nice", "-n", "19", "make", "-C", source, f"O={output}", *toolchain.variables, "LOCALVERSION="]
        with cache.scratch() as scratch:
            # What was not compiled before is not preprocessed twice: the compiler's own list of headers tells what it depends on.
            # That saves a cold build a third of its time.
            settings = {"CCACHE_DEPEND": "1", "CCACHE_STATSLOG": str(scratch / "ccache"), **ccache.environment(cache)}
            compiled.run([*make, arch.kernel.target, "modules", "headers"], settings, scratch)
            hits = _hit_rate(scratch / "ccache") if toolchain.ccache else ""
        with cache.publish(home) as draft:
            modules = draft / "modules"
            modules.mkdir()
            install = [f"INSTALL_MOD_PATH={modules}", "INSTALL_MOD_STRIP=1", "modules_install"]
            depmod = {"DEPMOD": process.which("depmod") or "depmod"}
            compiled.run([*make, *install], depmod, modules)
            objects, warnings = compiled.objects, standing.list()
            ours = source.parent / f"{output.name}-modules"
            modules_error = _add_our_modules(compiled, make, install, depmod, modules, ours)
            for link in draft.glob("modules/lib/modules/*/build"):
                link.unlink()
            shutil.copytree(output / "usr" / "include", draft / "include", ignore=shutil.ignore_patterns(".*"))
            shutil.copytree(source / "tools" / "include" / "nolibc", draft / "include" / "nolibc")
            for file in (output / arch.kernel.image, output / "vmlinux", output / ".config", output / "System.map"):
                shutil.copy2(file, draft / file.name)
            release = (output / "include/config/kernel.release").read_text().strip()
    except FileNotFoundError as error:
        raise BuildFailed(f"the build left no {error.filename}", hint=f"qemu/{arch.name}.toml: kernel.image") from error
    except CommandFailed as error:
        _blame_disk(error, output)
        said = error.output.replace(f"{source}/", "")  # the same on every machine
        raise BuildFailed(_first_error(said) or error.message, hint=said[-2000:]) from error
    kernel = Kernel(
        arch=arch.name,
        digest=digest,
        directory=home,
        release=release,
        image=home / Path(arch.kernel.image).name,
        vmlinux=home / "vmlinux",
        modules=home / "modules",
        headers=home / "include",
        config=home / ".config",
        config_digest=config.digest,
        compiler=toolchain.version,
        objects=objects,
        seconds=time.monotonic() - start,
        warnings=warnings,
        ccache=hits,
        modules_error=modules_error,
    )
    artefact.keep(kernel, cache)
    return kernel, False


def _add_our_modules(
    compiled: _Compilation,
    make: Sequence[str | Path],
    install: Sequence[str],
    depmod: Mapping[str, str],
    installed: Path,
    folder: Path,
) -> str:
    """Build qemu/guest/modules/ in `folder` and install it beside the kernel's modules. What the kernel lacks for one of them is
    not built (see its Kbuild). Returns the first error: a module of ours that does not fit is no fault of the kernel."""
    # Always in the same place: equal kernels then have equal modules, to the byte.
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(paths.MODULES, folder)
    try:
        compiled.run([*make, f"M={folder}", "modules"], {}, folder, ours=True)
        compiled.run([*make, f"M={folder}", "INSTALL_MOD_DIR=harness", *install], depmod, folder, installed, ours=True)
    except CommandFailed as error:
        _blame_disk(error, folder)
        return (_first_error(error.output) or error.message).replace(f"{folder}/", "")
    return ""


def _blame_disk(error: CommandFailed, output: Path) -> None:
    if _FULL in error.output:
        raise InfrastructureError("the disk is full", hint=f"the build directory is {output}") from error


class _Compilation:
    """Runs make, keeps its output in a file, counts objects and notes warnings."""

    def __init__(self, log: Path, progress: Progress, jobserver: Jobserver, output: Path, standing: Standing) -> None:
        self.objects = 0
        self._standing = standing
        self._jobserver = jobserver
        self._output = output
        self._log = log
        self._progress = progress
        log.unlink(missing_ok=True)

    def run(self, argv: Sequence[str | Path], env: Mapping[str, str], *writable: Path, ours: bool = False) -> None:
        """Beside the build directory it may write what is `writable`. What is said of `ours` is not said of the kernel.

        Raises CommandFailed with all of the output from the first error on."""
        env = {**_REPRODUCIBLE, **env}
        failing: list[str] = []
        with self._log.open("a") as file, self._standing, self._jobserver.slot() as slot:
            by_hand = [*argv, f"-j{self._jobserver.jobs}"]
            file.write(f"$ {process.command_line(by_hand, env=env)}\n")
            with process.start(
                argv,
                env={**env, **slot.env},
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=slot.fds,
                confined=(self._output, *writable),
            ) as make:
                assert make.stdout is not None
                for line in make.stdout:
                    file.write(line)
                    self._read(line, failing, ours)
                status = make.wait()
        if status != 0:
            raise CommandFailed(f"make ended with {status}", status, "".join(failing))

    def _read(self, line: str, failing: list[str], ours: bool) -> None:
        if match := _OBJECT.match(line):
            self.objects += 1
            self._progress(self.objects, match["file"])
        if not ours:
            self._standing.read(line)
        if failing or _ERROR.search(line) or _FULL in line:
            failing.append(line)


def _first_error(output: str) -> str:
    lines = output.splitlines()
    return next((line.strip() for line in lines if _ERROR.search(line) and "***" not in line), lines[0] if lines else "")


def _hit_rate(statistics: Path) -> str:
    """`823 of 901 (91 %)`, from the log of this build alone."""
    if not statistics.exists():
        return ""
    words = [line.strip() for line in statistics.read_text().splitlines() if not line.startswith("#")]
    hits = sum(word in ("direct_cache_hit", "preprocessed_cache_hit") for word in words)
    total = hits + words.count("cache_miss")
    return f"{hits} of {total} ({100 * hits // total} %)" if total else ""
