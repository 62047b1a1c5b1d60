"""Why a symbol is not what was asked for, read from the tree's Kconfig files."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import kconfiglib

from harness import process
from harness.kernel.toolchain import Toolchain
from harness.model import from_json, to_json

_BINUTILS = ("AR", "NM", "OBJCOPY", "OBJDUMP", "READELF", "STRIP")


class _Kconfig(kconfiglib.Kconfig):  # type: ignore[misc]
    """Kconfig since 5.20 marks the MODULES symbol by a bare `modules`, where kconfiglib wants `option modules`."""

    def _open(self, filename: str, mode: str) -> IO[str]:
        if mode == "r" and "Kconfig" in Path(filename).name:
            text = Path(filename).read_text(errors="replace")
            return io.StringIO(re.sub(r"^([ \t]+)modules$", r"\1option modules", text, flags=re.MULTILINE))
        file: IO[str] = super()._open(filename, mode)
        return file


def explain(symbols: Sequence[str], source: Path, config: Path, toolchain: Toolchain) -> dict[str, str]:
    """For each symbol, the dependency that `config` leaves unmet, in one line.

    kconfiglib takes its variables from the process's environment only, so it gets a process of its own."""
    words: list[str | Path] = [sys.executable, "-m", __name__, source, config, *symbols]
    answer = process.run(words, env=_kconfig_variables(source, toolchain), check=False, confined=())
    said = answer.stdout.strip().splitlines() or [""]  # the shell scripts that Kconfig runs may say something before
    if answer.returncode == 0:
        return from_json(said[-1], dict[str, str])
    return {symbol: f"{_declared(symbol, source)} (kconfiglib cannot parse this tree: {said[-1]})" for symbol in symbols}


def _main(source: str, config: str, *symbols: str) -> None:
    kconfig = _Kconfig("Kconfig", warn=False)
    kconfig.load_config(config)
    print(to_json({symbol: _reason(kconfig, symbol) for symbol in symbols}).decode())


def _reason(kconfig: kconfiglib.Kconfig, name: str) -> str:
    symbol = kconfig.syms.get(name)
    if symbol is None or not symbol.nodes:
        return "this tree has no such symbol"
    unmet = list(_unmet(symbol.direct_dep))
    if unmet:
        return "unmet dependency: " + " && ".join(f"{kconfiglib.expr_str(term)} [{_values(term)}]" for term in unmet)
    if not any(node.prompt for node in symbol.nodes):
        chosen = f", only {kconfiglib.expr_str(symbol.rev_dep)} selects it" if symbol.rev_dep is not kconfig.n else ""
        return f"it has no prompt: nobody can set it{chosen}"
    if symbol.choice is not None:
        winner = symbol.choice.selection
        return f"its choice went to {winner.name if winner else 'none'}"
    limit = f"; {kconfiglib.expr_str(symbol.rev_dep)} selects it" if kconfiglib.expr_value(symbol.rev_dep) else ""
    return f"its dependencies hold, {kconfiglib.expr_str(symbol.direct_dep)}{limit}"


def _unmet(expression: object) -> Iterator[object]:
    """The smallest parts of a conjunction that are not true."""
    if isinstance(expression, tuple) and expression[0] == kconfiglib.AND:
        for part in expression[1:]:
            yield from _unmet(part)
    elif kconfiglib.expr_value(expression) == 0 and not isinstance(expression, kconfiglib.Choice):
        yield expression


def _values(expression: object) -> str:
    items = {item.name: item.str_value for item in kconfiglib.expr_items(expression) if item.name}
    return ", ".join(f"{name}={value or 'n'}" for name, value in sorted(items.items()))


def _kconfig_variables(source: Path, toolchain: Toolchain) -> dict[str, str]:
    """What the top Makefile exports to Kconfig."""
    variables = dict(word.split("=", 1) for word in toolchain.variables)
    makefile = (source / "Makefile").read_text(errors="replace")
    # SRCARCH is ARCH but for a few: x86_64 is built from arch/x86.
    other = re.search(rf"ifeq \(\$\(ARCH\),{re.escape(variables['ARCH'])}\)\s+SRCARCH := (\w+)", makefile)
    if suffix := variables.get("LLVM"):
        tools = {"LD": f"ld.lld{suffix}"} | {tool: f"llvm-{tool.lower()}{suffix}" for tool in _BINUTILS}
        flags = " ".join([*toolchain.compiler[1:], "-fintegrated-as"])
    else:
        tools = {tool: variables["CROSS_COMPILE"] + tool.lower() for tool in ("LD", *_BINUTILS)}
        flags = ""
    return {
        **variables,
        "srctree": str(source),
        "SRCARCH": other[1] if other else variables["ARCH"],
        "CC_VERSION_TEXT": toolchain.version,
        "KERNELVERSION": "",
        "CLANG_FLAGS": flags,
        "CONFIG_SHELL": "sh",
        "HOSTCC": "gcc",
        "HOSTCXX": "g++",
        "PAHOLE": "pahole",
        "RUSTC": "rustc",
        "BINDGEN": "bindgen",
        **tools,
    }


def _declared(symbol: str, source: Path) -> str:
    """The `depends on` lines of a symbol as the files have them: no evaluation, but better than silence."""
    entry = re.compile(rf"^(?:menu)?config {symbol}\n(?P<body>(?:[ \t]+.*\n|\n)*)", re.MULTILINE)
    for path in sorted(source.rglob("Kconfig*")):
        if path.is_file() and (match := entry.search(path.read_text(errors="replace"))):
            depends = re.findall(r"depends on (.+)", match["body"])
            return f"{path.relative_to(source)} says it depends on {' && '.join(depends) or 'nothing'}"
    return "this tree has no such symbol"


if __name__ == "__main__":
    _main(*sys.argv[1:])
