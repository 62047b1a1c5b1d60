"""Copy the project for the mutants, and record the tests there without a mutant."""

from __future__ import annotations

import ast
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.mutants.watch import Passed

LEFT_OUT = frozenset(
    {".git", ".nox", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "__pycache__", "runs"}
)

_COVERAGE = """\
[run]
source = {source}
data_file = {data}
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
disable_warnings = couldnt-parse,no-data-collected,dynamic-conflict
"""

_CHILDREN = """\
import os
# In a sandbox nothing can be written there.
if os.environ.get("MUTANTS_RECORDED") and os.access(os.environ["MUTANTS_RECORDED"], os.W_OK):
    import atexit, coverage
    _recording = coverage.Coverage(config_file=os.environ["MUTANTS_COVERAGE"], data_suffix=True)
    _recording.start()
    atexit.register(lambda: (_recording.stop(), _recording.save()))
"""
"""Start coverage.py in children. Its own COVERAGE_PROCESS_START prints errors where it cannot write, as in a sandbox."""


class BaselineFailed(Exception):
    """The unit tests are red without any mutant, so they cannot judge one."""


def files(root: Path) -> Iterator[Path]:
    """Every file of the project that tests may read, relative to it."""
    for folder, names, found in os.walk(root):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        for name in sorted(found):
            if (path := Path(folder, name)).is_file() and not name.endswith(".pyc"):
                yield path.relative_to(root)


def digests(root: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256((root / path).read_bytes()).hexdigest()[:16] for path in files(root)}


def imported(root: Path) -> dict[str, list[str]]:
    """For each Python file in tests/, the files in tests/ that it imports, directly or not."""
    direct = {str(path): _imports(root, root / path) for path in files(root) if path.parts[0] == "tests" and path.suffix == ".py"}
    found = {}
    for file, names in direct.items():
        seen: set[str] = set()
        left = [*names]
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left += direct[name]
        found[file] = sorted(seen - {file})
    return found


def _imports(root: Path, path: Path) -> list[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    places = [f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")]
    return [place for place in places if (root / place).is_file()]


def environment(tree: Path, **more: str) -> dict[str, str]:
    """Our environment, but Python imports the copy and writes no bytecode, which could be taken for that of a mutant of equal
    size."""
    kept: Mapping[str, str] = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COVERAGE"))}
    return {**kept, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", **more}


def copy(source: Path, target: Path) -> Path:
    """A copy with the same times, so that bytecode that came along is valid."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True, ignore=lambda _, names: [name for name in names if name in LEFT_OUT])
    return target


def with_bytecode(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def baseline(
    root: Path, work: Path, tests: str, digests: Mapping[str, str], kept: Path, only: Sequence[str] = ()
) -> tuple[Path, Passed]:
    """Run the tests in a copy of the project without a mutant: those files of tests that have changed since `kept` was
    written, or all of them if anything else has; of those, `only` what these globs match. Gives the copy, and what was found.
    Raises BaselineFailed."""
    tree = copy(root, work / "tree")
    unread = (f"{tests}/", "tests/mutants", "tests/integration/")
    others = {file: digest for file, digest in digests.items() if not file.startswith(unread) and file.endswith(_READ)}
    keys = {file: _key(others, file, digests[file]) for file in digests if fnmatch.fnmatch(file, f"{tests}/test_*.py")}
    wanted = [file for file in keys if not only or any(Path(file).match(glob) for glob in only)]
    if not wanted:
        raise BaselineFailed(f"no file of tests in {tests} is called {' or '.join(only) or 'test_*.py'}")
    known = {file: one for file, one in _read(kept).items() if keys.get(file) == one.key}
    if stale := [file for file in wanted if file not in known]:
        print(f"running {len(stale)} files of tests without a mutant", flush=True)
        known |= _recorded(tree, work / "recorded", stale, keys)
        kept.write_bytes(msgspec.json.encode(known))
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, list[str]]] = {}
    for one in (known[file] for file in wanted):
        seconds |= one.passed.seconds
        for file, numbers in one.passed.lines.items():
            for number, names in numbers.items():
                lines.setdefault(file, {}).setdefault(number, []).extend(names)
    return tree, Passed(seconds, lines)


_READ = (".py", ".toml", ".config", ".json")
"""Suffixes of the files that may change the outcome of a test, or the lines that it runs."""


class _Known(Struct, frozen=True):
    key: str
    passed: Passed


def _read(kept: Path) -> dict[str, _Known]:
    try:
        return msgspec.json.decode(kept.read_bytes(), type=dict[str, _Known])
    except (FileNotFoundError, msgspec.MsgspecError):
        return {}


def _key(others: Mapping[str, str], file: str, digest: str) -> str:
    """Digest of all inputs of a file of tests. `tests/mutants.toml` is none of them."""
    relevant = sorted((name, one) for name, one in others.items() if name != "tests/mutants.toml")
    return hashlib.sha256(repr((relevant, file, digest)).encode()).hexdigest()[:16]


def _recorded(tree: Path, recorded: Path, files: Sequence[str], keys: Mapping[str, str]) -> dict[str, _Known]:
    (recorded / "site").mkdir(parents=True)
    (recorded / "site" / "sitecustomize.py").write_text(_CHILDREN)
    (tree / "coverage.ini").write_text(_COVERAGE.format(source=tree / "harness", data=recorded / "data"))
    found = recorded / "passed.json"
    words = [sys.executable, "-m", "tests.mutants.watch", str(found), "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    variables = environment(tree)
    variables["PYTHONPATH"] += f"{os.pathsep}{recorded / 'site'}"
    variables["MUTANTS_COVERAGE"] = str(tree / "coverage.ini")
    del variables["PYTHONDONTWRITEBYTECODE"]
    done = subprocess.run(words, cwd=tree, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or not found.exists():
        raise BaselineFailed("\n".join(done.stdout.splitlines()[-30:]))
    passed = msgspec.json.decode(found.read_bytes(), type=Passed)
    return {file: _Known(keys[file], _part(passed, tree, file)) for file in files}


def _part(passed: Passed, tree: Path, file: str) -> Passed:
    """The part of the record that belongs to one file of tests, with paths relative to the copy."""
    seconds = {name: one for name, one in passed.seconds.items() if name.startswith(f"{file}::")}
    lines: dict[str, dict[int, list[str]]] = {}
    for path, numbers in passed.lines.items():
        own = {number: [name for name in names if name in seconds] for number, names in numbers.items()}
        if own := {number: names for number, names in own.items() if names}:
            lines[str(Path(path).relative_to(tree))] = own
    return Passed(seconds, lines)
