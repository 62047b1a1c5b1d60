"""One table of options, and what follows from it."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness import pipeline
from harness.cli import cli
from harness.model import CaseResult, Outcome
from harness.options import OPTIONS, CommandLine, Option, Resume, RunOptions, Use, compose, read
from harness.options.option import declared
from harness.request import Request
from harness.results import Journal, RunReport, journal
from harness.results.reproduce import reproduce
from tests import added_option

COMMANDS = ("run", "build", "bisect", "shell")
PACKAGE = Path(harness.__file__).parent


# The table.


def test_an_option_is_one_entry(tmp_path: Path) -> None:
    """See tests/added_option.py."""
    for name in ("harness", "tests", "patches", "configs", "qemu"):
        ignored = shutil.ignore_patterns("__pycache__", "data", "integration")
        shutil.copytree(PACKAGE.parent / name, tmp_path / name, ignore=ignored)
    shutil.copy(PACKAGE.parent / "pyproject.toml", tmp_path)
    table = tmp_path / "harness" / "options" / "table.py"
    before = "    # What is built and booted, and how.\n"
    text = table.read_text()
    assert text.count(before) == 1
    table.write_text(text.replace(before, added_option.ENTRY + before))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/added_option.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_changes_results_is_the_same_when_a_run_is_resumed() -> None:
    for option in OPTIONS.values():
        if Use.RESULTS in option.uses:
            assert option.resume is Resume.FIXED, option.flag


def test_flags_of_a_command_differ() -> None:
    for command in COMMANDS:
        taken = [option for option in OPTIONS.values() if command in option.commands]
        flags = [flag for option in taken for flag in (option.flag, option.short) if flag]
        assert len(flags) == len(set(flags)), command


@pytest.mark.parametrize("command", COMMANDS)
def test_command_takes_the_options_of_the_table_and_no_other(command: str) -> None:
    parameters = {parameter.name: parameter.opts for parameter in cli.commands[command].params}
    assert parameters == {
        name: [flag for flag in (option.short, option.flag) if flag]
        for name, option in OPTIONS.items()
        if command in option.commands
    }


def test_type_that_no_option_can_have_is_refused() -> None:
    class Odd(msgspec.Struct):
        ratio: Annotated[float | None, Option("--ratio", "A ratio.")] = None

    with pytest.raises(TypeError, match="ratio: an option cannot be a <class 'float'>"):
        declared(msgspec.structs.fields(Odd)[0])


def test_only_the_table_has_the_flags_of_options() -> None:
    """Whoever composes or reads a command line uses harness.options; a hint may name a flag. The
    options of one call have names that other programs have too."""
    recorded = [one for one in OPTIONS.values() if one.resume is not Resume.NOT_RECORDED]
    flags = {option.flag for option in recorded}
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "options")
        for node in _constants(ast.parse(path.read_text()))
        if isinstance(node.value, str) and node.value.partition("=")[0] in flags
    ]
    assert not wrong


def _constants(tree: ast.Module) -> list[ast.Constant]:
    """Those that are no hints."""
    keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    hints = {id(keyword.value) for keyword in keywords if keyword.arg == "hint"}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [node for node in found if id(node) not in hints]


# Command lines.


def values(option: Option) -> st.SearchStrategy[Any]:
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), max_size=9)
    one: st.SearchStrategy[Any] = text
    if option.choices:
        one = st.sampled_from(option.choices)
    elif option.kind is bool:
        one = st.booleans()
    elif option.kind is int:
        one = st.integers(min_value=option.least)
    elif option.kind is Path:
        one = text.map(lambda name: Path(f"-nowhere{name}"))
    if option.repeatable:
        return st.lists(one).map(tuple)
    return one if option.default is not None else st.none() | one


@st.composite
def chosen(draw: st.DrawFn, command: str) -> RunOptions:
    """Any values of the options that the command takes. `--mbox` needs a file that exists."""
    taken = [one for one in OPTIONS.values() if command in one.commands and not one.exists]
    return RunOptions(**{option.name: draw(values(option)) for option in taken})


@pytest.mark.parametrize("command", COMMANDS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_click_reads_what_is_composed(command: str, data: st.DataObject) -> None:
    options = data.draw(chosen(command))
    words = compose(command, options).options
    with pytest.MonkeyPatch.context() as patch:
        for option in OPTIONS.values():
            patch.delenv(option.envvar or "", raising=False)
        context = cli.commands[command].make_context(command, list(words))
    expected = {name: getattr(options, name) for name in context.params}
    if "suite_specs" in expected:
        expected["suite_specs"] = expected["suite_specs"] or ()
    assert context.params == expected


@pytest.mark.parametrize("command", COMMANDS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_what_is_composed_is_read_back(command: str, data: st.DataObject) -> None:
    line = compose(command, data.draw(chosen(command)))
    assert read(line.words) == line


def test_words_of_earlier_journals() -> None:
    """As they were typed: with or without an equals sign, and with options of other versions."""
    typed = ("--arch=arm64", "--config", "a=b", "--per-patch", "--new", "1", "--cmd=x=y")
    line = read(("run", *typed))
    assert line.command == "run"
    assert line.values("archs") == ["arm64"]
    assert line.values("fragments") == ["a=b"]
    assert line.values("commands") == ["x=y"]
    assert shlex.join(line.words) == ("run --arch arm64 --config a=b --per-patch --new 1 --cmd x=y")
    assert read(()) == CommandLine("")
    assert read(("run", "--selftests=", "--arch", "arm64")).values("selftests") == [""]
    # Click has refused it, but a journal may be damaged.
    assert read(("run", "--arch")).values("archs") == [""]


def test_options_of_one_call_are_not_recorded() -> None:
    words = ("run", "-q", "--cmd", "--wait", "--wait", "--install", "--cache", "c", "--quiet")
    assert read(words).recorded.words == ("run", "--cmd", "--wait", "--cache", "c")


def test_options_with_a_use() -> None:
    """Unknown words may be anything, so they have none."""
    line = read(("run", "--cache", "c", "--new", "--accel", "tcg", "--jobs", "2"))
    assert line.using(Use.RESULTS).words == ("run", "--accel", "tcg")
    assert line.using(Use.WORKER).words == ("run", "--accel", "tcg", "--jobs", "2")


# Resuming.


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> added_option.Harness:
    return added_option.command_line(tmp_path, monkeypatch)


def test_resumed_run_has_its_original_options(
    command: added_option.Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is resumed from, but for those that may differ. These name files as seen from
    there."""
    assert command(*added_option.RUN, "--jobs", "1", "-q") == 1
    resumed: list[Request] = []
    perform = pipeline.resume

    def resume(request: Request, *words: Any) -> RunReport:
        resumed.append(request)
        return perform(request, *words)

    monkeypatch.setattr(pipeline, "resume", resume)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert command("run", "--resume", "../runs/latest", "--history", "h.sqlite", "--wait") == 1
    (request,) = resumed
    options = request.options
    assert (options.jobs, options.series_spec, options.suite_specs) == (1, "s", ("none",))
    assert (options.quiet, options.wait, options.history) == (False, True, elsewhere / "h.sqlite")
    assert options.history.exists()
    assert request.arguments == (*added_option.RUN, "--jobs", "1")


@pytest.mark.parametrize(
    ("words", "given", "why"),
    [
        (("run",), ("bisect",), "was made by `harness run`\nhint: harness run --resume DIR"),
        (("build",), ("run",), "was made by `harness build`"),
        (("run",), ("run", "--jobs", "1"), "--resume together with --jobs"),
        (("run",), ("run", "--arch", "vax"), "only --executor, --cache, --history may differ"),
        ((), ("run",), "was killed before it began"),
    ],
)
def test_run_that_cannot_be_resumed_so(
    words: tuple[str, ...],
    given: tuple[str, ...],
    why: str,
    command: added_option.Harness,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Journal(tmp_path) as events:
        if words:
            events.write(journal.RunStarted(1.0, "s", "t", words, directory=str(tmp_path)))
    assert command(*given, "--resume", ".") == 2
    assert why in capsys.readouterr().err


# Workers.


def test_worker_gets_what_its_jobs_need(
    command: added_option.Harness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files have their names in the batch, and what is a matter of this machine is not sent."""
    cluster = added_option.Cluster()
    monkeypatch.setattr(pipeline, "_cluster", lambda request: cluster)
    (tmp_path / "own.config").write_text("CONFIG_FTRACE=y\n")
    (tmp_path / "shared").mkdir()
    words = (
        *("run", "--series", "s", "--tree", "git:linux#main", "--arch", "x86_64", "--per-patch"),
        *("--suite", "kunit:a*", "--suite", "kunit:b*", "--suite", "samples", "--cmd", "true -x"),
        *("--retry-flaky", "2", "--config", "own.config", "--accel", "tcg", "--toolchain", "gcc"),
        *("--sandbox", "off", "--jobs", "3", "--shared-cache", "shared", "--out", "elsewhere"),
        *("--history", "h.sqlite", "--executor", "dask:tcp://nowhere:1", "--quiet", "--wait"),
    )
    assert command(*words) == 3
    tree = f"git:{tmp_path}/linux#main"
    points = []
    for batch in cluster.batches:
        points += read(batch.arguments).values("points")
        assert batch.arguments == (
            *("run", "--series", "series/s", "--tree", tree, "--arch", "x86_64"),
            *("--points", points[-1], "--suite", "kunit:a*", "--suite", "kunit:b*"),
            *("--suite", "samples", "--cmd", "true -x", "--retry-flaky", "2"),
            *("--config", "config/0/own.config", "--toolchain", "gcc", "--accel", "tcg"),
            *("--sandbox", "off", "--jobs", "3", "--shared-cache", str(tmp_path / "shared")),
        )
    assert sorted(points) == ["base", "last"]


def test_worker_gets_no_defaults(
    command: added_option.Harness,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own settings apply: HARNESS_SHARED_CACHE, for example."""
    cluster = added_option.Cluster()
    monkeypatch.setattr(pipeline, "_cluster", lambda request: cluster)
    assert command(*added_option.RUN, "--executor", "dask:tcp://nowhere:1") == 3
    (batch,) = cluster.batches
    sent = {argument.option.flag for argument in read(batch.arguments).arguments if argument.option}
    assert sent == {"--series", "--tree", "--arch", "--points", "--suite"}


# Reproduce commands.


@pytest.mark.parametrize(
    ("words", "command"),
    [
        # `harness build` starts no debugger, and takes no hosts.
        (("shell", "--gdb", "--accel", "tcg"), "harness build --accel tcg"),
        (("run", "--hosts", "h.toml", "--selftests", "git:x"), "harness build"),
        (("run", "--out=o", "--history", "h", "--executor", "dask:tcp://a:1"), "harness build"),
        (("bisect", "--case", "a:b", "--good=1", "--repeat", "2"), "harness build"),
        (("run", "--cache", "c", "--points=1,2", "--per-patch"), "harness build --cache c"),
        (("run", "--option-of-a-newer-version"), "harness build --option-of-a-newer-version"),
    ],
)
def test_reproduce_command_has_what_its_command_takes(
    words: tuple[str, ...],
    command: str,
    tmp_path: Path,
) -> None:
    report = RunReport(tmp_path)
    report.add(journal.RunStarted(1, "s", "t", words))
    result = CaseResult("build", "build", Outcome.FAIL)
    report.add(journal.CaseFinished(1, "arm64", "last", result))
    shown = reproduce(report, report.job("arm64", "last"), result)
    assert shown == f"{command} --arch arm64 --points last"
    if "newer" not in command:
        _, name, *rest = shlex.split(shown)
        cli.commands[name].make_context(name, rest)
