"""Make a kernel in its build directory, and put what came of it into the cache."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from harness import ccache, paths, process
from harness.arch import Arch
from harness.cache import Cache, digest_of
from harness.errors import CommandFailed, HarnessError, InfrastructureError
from harness.kernel import identity, inputs, opaque
from harness.kernel.compilation import FULL, Compilation, Progress, first_error
from harness.kernel.jobserver import Jobserver
from harness.kernel.toolchain import Toolchain
from harness.kernel.warnings import Standing
from harness.model import Kernel, KernelConfig


class BuildFailed(HarnessError):
    """The kernel does not build: a red case of the job. The message is the first error, with its
    file."""


class Job(Struct, frozen=True):
    """The inputs of one build and the folders that it uses."""

    arch: Arch
    toolchain: Toolchain
    cache: Cache
    source: Path
    output: Path
    log: Path
    jobserver: Jobserver
    progress: Progress

    @property
    def modules(self) -> Path:
        """The folder in which our own modules are built. It is always the same, so that equal
        kernels have identical modules."""
        return self.source.parent / f"{self.output.name}-modules"

    def make(self, cached: bool) -> list[str | Path]:
        """The start of make's command line; with compilers behind ccache if `cached`."""
        variables = self.toolchain.compile_variables if cached else self.toolchain.variables
        make: list[str | Path] = ["nice", "-n", "19", "make", "-C", self.source]
        return [*make, f"O={self.output}", *variables, "LOCALVERSION="]


def _names(output: Path, unseen: opaque.Opaque) -> Path:
    """A file for ccache, which looks at what was included, and never at what would be included
    now."""
    path = output.with_name(f"{output.name}.headers")
    path.write_text(unseen.names)
    return path


def compiled(
    job: Job,
    config: KernelConfig,
    digest: str,
    tree: str,
    unseen: opaque.Opaque,
) -> Kernel:
    """Build the kernel and put it into the cache. If the image does not match its vmlinux, build it
    once more, from nothing and without ccache. `tree` is the digest of the whole tree."""
    cached = job.toolchain.ccache and not unseen.unknown
    try:
        return _attempt(job, config, digest, tree, unseen, cached)
    except identity.NotProved:
        keep = (job.output / ".config").read_bytes()
        shutil.rmtree(job.output)
        job.output.mkdir()
        (job.output / ".config").write_bytes(keep)
    try:
        return _attempt(job, config, digest, tree, unseen, cached=False)
    except identity.NotProved as error:
        raise InfrastructureError(error.message, hint=error.hint) from error


class _Built(Struct, frozen=True):
    """What came of make."""

    objects: int
    warnings: tuple[str, ...]
    modules_error: str


def _attempt(
    job: Job,
    config: KernelConfig,
    digest: str,
    tree: str,
    unseen: opaque.Opaque,
    cached: bool,
) -> Kernel:
    """Compile the kernel, prove its identity and put it into the cache. Raises identity.NotProved
    and the errors of `build`."""
    standing = Standing(job.source, job.output)
    make = Compilation(job.log, job.progress, job.jobserver, job.output, standing)
    try:
        hits = _compile(job, make, unseen, cached)
        if foreign := inputs.outside_of_digest(job.source, job.output, job.arch.kernel.folders):
            read = ", ".join(foreign)
            make.note(f"its digest covers the whole tree: it was built from {read} as well")
            digest = digest_of(digest, tree)
        home = job.cache.root / "kernels" / digest
        job.cache.session.use(f"kernels/{digest}")  # prune must not find it before it is noted
        with job.cache.publish(home) as draft:
            built = _install(job, make, standing, cached, draft / "modules")
            for link in draft.glob("modules/lib/modules/*/build"):
                link.unlink()
            _keep_files(job, draft)
            kernel_release = (job.output / "include/config/kernel.release").read_text().strip()
            image = Path(job.arch.kernel.image).name
            build_id = identity.prove(draft / image, draft / "vmlinux", job.cache)
            module_ids = identity.module_ids(draft / "modules")
    except FileNotFoundError as error:
        hint = f"qemu/{job.arch.name}.toml: kernel.image"
        raise BuildFailed(f"the build left no {error.filename}", hint=hint) from error
    except CommandFailed as error:
        blame_disk(error, job.output)
        text = error.output.replace(f"{job.source}/", "")  # the same on every machine
        raise BuildFailed(first_error(text) or error.message, hint=text[-2000:]) from error
    return Kernel(
        arch=job.arch.name,
        digest=digest,
        directory=home,
        release=kernel_release,
        image=home / image,
        vmlinux=home / "vmlinux",
        modules=home / "modules",
        headers=home / "include",
        config=home / ".config",
        config_digest=config.digest,
        compiler=job.toolchain.version,
        objects=built.objects,
        seconds=0.0,
        warnings=built.warnings,
        ccache=hits,
        modules_error=built.modules_error,
        build_ids=(build_id,),
        module_ids=module_ids,
    )


def _compile(job: Job, make: Compilation, unseen: opaque.Opaque, cached: bool) -> str:
    """Compile everything, and return how much of it came from ccache."""
    for header in unseen.unknown if job.toolchain.ccache else ():
        reason = f"it is not known which files the assembler reads because of {header}"
        make.note(f"built without ccache: {reason}")
    with job.cache.scratch() as scratch:
        settings = ccache.NONE
        if cached:
            files = [*unseen.files, _names(job.output, unseen)]
            settings = ccache.settings(job.cache, scratch / "ccache", files)
        targets = [job.arch.kernel.target, "modules", "headers"]
        make.run([*job.make(cached), *targets], settings, scratch)
        return _hit_rate(scratch / "ccache")


def _install(
    job: Job,
    make: Compilation,
    standing: Standing,
    cached: bool,
    modules: Path,
) -> _Built:
    """Install the kernel's modules in the folder `modules`, and our own beside them."""
    modules.mkdir()
    install = [f"INSTALL_MOD_PATH={modules}", "INSTALL_MOD_STRIP=1", "modules_install"]
    depmod = {"DEPMOD": process.which("depmod") or "depmod"}
    make.run([*job.make(cached), *install], depmod, modules)
    objects, warnings = make.objects, standing.list()
    # Few sources, and the user's settings of ccache would hold for them.
    plain, alone = job.make(cached=False), {**depmod, **ccache.NONE}
    error = _add_our_modules(make, plain, install, alone, modules, job.modules)
    return _Built(objects, tuple(warnings), error)


def _keep_files(job: Job, draft: Path) -> None:
    output, source = job.output, job.source
    headers, hidden = output / "usr" / "include", shutil.ignore_patterns(".*")
    shutil.copytree(headers, draft / "include", ignore=hidden)
    shutil.copytree(source / "tools" / "include" / "nolibc", draft / "include" / "nolibc")
    for name in (job.arch.kernel.image, "vmlinux", ".config", "System.map"):
        shutil.copy2(output / name, draft / Path(name).name)


def _add_our_modules(
    compiled: Compilation,
    make: Sequence[str | Path],
    install: Sequence[str],
    env: Mapping[str, str],
    installed: Path,
    folder: Path,
) -> str:
    """Build qemu/guest/modules/ in `folder` and install it beside the kernel's modules. What the
    kernel lacks for one of them is not built (see its Kbuild). Returns the first error: a module of
    ours that does not fit is no fault of the kernel."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(paths.MODULES, folder)
    try:
        compiled.run([*make, f"M={folder}", "modules"], env, folder, ours=True)
        words = [*make, f"M={folder}", "INSTALL_MOD_DIR=harness", *install]
        compiled.run(words, env, folder, installed, ours=True)
    except CommandFailed as error:
        blame_disk(error, folder)
        return (first_error(error.output) or error.message).replace(f"{folder}/", "")
    return ""


def blame_disk(error: CommandFailed, output: Path) -> None:
    """Raises InfrastructureError if the command failed because the disk is full."""
    if FULL in error.output:
        hint = f"the build directory is {output}"
        raise InfrastructureError("the disk is full", hint=hint) from error


def _hit_rate(statistics: Path) -> str:
    """`823 of 901 (91 %)`, from the log of this build alone."""
    if not statistics.exists():
        return ""
    lines = statistics.read_text().splitlines()
    words = [line.strip() for line in lines if not line.startswith("#")]
    hits = sum(word in ("direct_cache_hit", "preprocessed_cache_hit") for word in words)
    total = hits + words.count("cache_miss")
    return f"{hits} of {total} ({100 * hits // total} %)" if total else ""
