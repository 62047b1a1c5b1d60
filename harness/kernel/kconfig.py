"""Configure a kernel from fragments, then prove that every symbol they ask for is in the result.

`merge_config.sh` and `olddefconfig` drop what does not fit without a word; a symbol that vanished takes the tests that
need it along, which then skip quietly. So every request is compared with `.config` afterwards."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from harness import paths, process
from harness.arch import Arch
from harness.cache import digest_of, file_digest
from harness.errors import HarnessError, UserError
from harness.kernel.toolchain import Toolchain
from harness.kernel.unmet import explain
from harness.model import KernelConfig, SymbolRequest

_SET = re.compile(r"CONFIG_(\w+)=(.+)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")
_SLOW = {"PROVE_LOCKING": 3, "KASAN": 4}
_FIRMWARE = "/lib/firmware"
"""The default of CONFIG_EXTRA_FIRMWARE_DIR."""
_OPTIONAL = re.compile(r"# optional ([\w ]+): (.+)")


class ConfigNotProved(HarnessError):
    """A requested symbol is not in `.config`: a red case of the job. The message names symbol, place and reason."""


def fragments_for(arch: Arch, extra: Sequence[Path]) -> tuple[Path, ...]:
    """The fragments that make up the configuration of `arch`, in the order of merging. Raises UserError for one that is not
    there."""
    named = [paths.CONFIGS / f"{name}.config" for name in ("base", "tracing", "selftests")]
    found = (*named, paths.CONFIGS / "arch" / f"{arch.name}.config", *extra)
    for path in found:
        if not path.is_file():
            raise UserError(f"no configuration fragment at {path}", hint="--config takes a file of CONFIG_ lines")
    return found


def read_fragment(path: Path, arch: str) -> list[SymbolRequest]:
    """The requests of one fragment. `# optional <arch>...: <reason>` holds up to the next blank line. Raises UserError for
    a line that Kconfig would silently ignore."""
    requests: list[SymbolRequest] = []
    optional = ""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        line = line.strip()
        if not line:
            optional = ""
        elif mark := _OPTIONAL.fullmatch(line):
            optional = mark[2] if arch in mark[1].split() else ""
        elif asked := _SET.fullmatch(line):
            requests.append(SymbolRequest(asked[1], asked[2], path.name, number, optional))
        elif absent := _UNSET.fullmatch(line):
            requests.append(SymbolRequest(absent[1], "n", path.name, number, optional))
        elif not line.startswith("#") or "CONFIG_" in line:
            raise UserError(f"{path}:{number}: '{line}' asks for nothing", hint="CONFIG_X=y or # CONFIG_X is not set")
    return requests


def named_files(fragments: Sequence[Path]) -> list[Path]:
    """The files outside of the tree that the fragments name for the kernel to hold: CONFIG_INITRAMFS_SOURCE,
    CONFIG_EXTRA_FIRMWARE, CONFIG_SYSTEM_TRUSTED_KEYS and their like; of a folder, all that is below it."""
    strings = [value for path in fragments for value in read_config(path).values() if value.startswith('"')]
    words = [word for value in strings for word in value.strip('"').split()]
    folders = [Path(word) for word in words if Path(word).is_absolute()]
    tops = {Path(_FIRMWARE, word) for word in words} | {folder / word for folder in folders for word in words}
    found = {file for top in tops for file in (sorted(top.rglob("*")) if top.is_dir() else [top])}
    return sorted(file for file in found if file.is_file())


def read_config(path: Path) -> dict[str, str]:
    """The symbols that a `.config` sets."""
    return {match[1]: match[2] for line in path.read_text(errors="replace").splitlines() if (match := _SET.fullmatch(line))}


def slowness(config: Mapping[str, str]) -> int:
    """How many times longer a kernel with this configuration is taken to need than one that does not watch itself."""
    return max([times for symbol, times in _SLOW.items() if config.get(symbol) == "y"], default=1)


def configure(
    source: Path,
    output: Path,
    arch: Arch,
    fragments: Sequence[Path],
    toolchain: Toolchain,
    required: Sequence[Path] = (),
    unproved: Sequence[Path] = (),
    made_from: str = "",
) -> KernelConfig:
    """Write `output`/.config. What `required` ones of the fragments (a series' own) ask for is optional nowhere, what `unproved`
    ones ask for (a series' own, on a kernel without the series) is left to Kconfig. `made_from` is a digest of what the tree has
    to say to it, if it is known: with the same, and the same fragments, what is there is left as it is.

    Raises ConfigNotProved if a request did not stick, CommandFailed if the tree cannot be configured at all."""
    output.mkdir(parents=True, exist_ok=True)
    config, stamp = output / ".config", output / ".configured"
    texts = [path.read_text(errors="replace") for path in fragments]
    words = [made_from, toolchain.version, *toolchain.tools, *toolchain.variables, *texts]
    if not (made_from and config.exists() and stamp.exists() and stamp.read_text() == digest_of(*words, file_digest(config))):
        stamp.unlink(missing_ok=True)
        make: list[str | Path] = ["make", "-C", source, f"O={output}", *toolchain.variables]
        process.run([*make, "tinyconfig"], confined=(output,))
        merge = source / "scripts" / "kconfig" / "merge_config.sh"
        process.run([merge, "-m", "-O", output, config, *fragments], cwd=output, confined=(output,))
        process.run([*make, "olddefconfig"], confined=(output,))
        stamp.write_text(digest_of(*words, file_digest(config)))

    def sources() -> AbstractContextManager[Path]:
        return contextlib.nullcontext(source)

    prove(config, arch, fragments, required, unproved, sources, toolchain)
    return KernelConfig(path=config, digest=file_digest(config))


def prove(
    config: Path,
    arch: Arch,
    fragments: Sequence[Path],
    required: Sequence[Path],
    unproved: Sequence[Path],
    sources: Callable[[], AbstractContextManager[Path]],
    toolchain: Toolchain,
) -> None:
    """Raises ConfigNotProved if a request of the fragments is not in `config`; only then `sources`
    is called, for the reason is in the tree."""
    # A later fragment overrides an earlier one, as merge_config.sh has it.
    must = {request.symbol for path in required for request in read_fragment(path, arch.name)}
    other = {request.symbol: request.value for path in unproved for request in read_fragment(path, arch.name)}
    proved = [path for path in fragments if path not in unproved]
    last = {request.symbol: request for path in proved for request in read_fragment(path, arch.name)}
    found = read_config(config)
    lost = [
        request
        for request in last.values()
        if found.get(request.symbol, "n") != request.value
        and other.get(request.symbol, request.value) == request.value
        and not (request.optional and request.symbol not in must)
    ]
    if lost:
        with sources() as source:
            raise ConfigNotProved(_complaint(lost, source, config, toolchain))


def _complaint(lost: list[SymbolRequest], source: Path, config: Path, toolchain: Toolchain) -> str:
    found = read_config(config)
    reasons = explain([request.symbol for request in lost], source, config, toolchain)
    return "\n".join(
        f"CONFIG_{request.symbol}={request.value} did not stick ({request.fragment}:{request.line}): "
        f"it is {found.get(request.symbol, 'not set')}; {reasons[request.symbol]}"
        for request in lost
    )
