"""What the kernels of a run are configured differently in."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from harness.kernel.kconfig import read_config

_TRACING = re.compile(r"FTRACE|FPROBE|[KU]PROBE|RETHOOK|TRAC(E|ING)|FUNCTION_|FREGS|KUNIT")
"""Architectures differ in thousands of symbols; these are what a tracing series is about."""


class Differences(Struct, frozen=True):
    """Symbols, and their values in each of `kernels`; `-` for one that is not set."""

    kernels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def between_points(directory: Path, arch: str, points: list[str]) -> Differences:
    """All symbols in which kernels of one architecture differ."""
    return _differences({f"{arch}/{point}": directory / arch / point / ".config" for point in points}, re.compile(""))


def between_archs(directory: Path, archs: list[str], point: str) -> Differences:
    """The symbols of tracing."""
    return _differences({arch: directory / arch / point / ".config" for arch in archs}, _TRACING)


def _differences(paths: dict[str, Path], wanted: re.Pattern[str]) -> Differences:
    configs = {name: read_config(path) for name, path in paths.items() if path.is_file() and os.access(path, os.R_OK)}
    symbols = sorted({symbol for config in configs.values() for symbol in config if wanted.search(symbol)})
    rows = ((symbol, tuple(config.get(symbol, "-") for config in configs.values())) for symbol in symbols)
    return Differences(tuple(configs), tuple((symbol, values) for symbol, values in rows if len(set(values)) > 1))
