"""The options of an interrupted run, for `--resume`."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from harness.cli.options import again, given
from harness.errors import UserError
from harness.options import OPTIONS, Resume, RunOptions
from harness.results import read_run
from harness.results.journal import RunStarted


def interrupted(directory: Path, now: RunOptions) -> tuple[RunOptions, tuple[str, ...]]:
    """The options of the run in `directory`, with those of `now` that may differ, and the words
    that repeat it. They name files as seen from where the run was started, so this becomes the
    working directory. Raises UserError if the current command cannot resume the run."""
    started = read_run(directory).started
    _check_given()
    if started is None:
        hint = "start it again, without --resume"
        raise UserError(f"the run in {directory} was killed before it began", hint=hint)
    _check_command(directory, started)
    differing = [one.name for one in given() if one.resume is Resume.MAY_DIFFER]
    of_this_call = [name for name, one in OPTIONS.items() if one.resume is Resume.NOT_RECORDED]
    values = {name: _absolute(getattr(now, name)) for name in (*differing, *of_this_call)}
    try:
        os.chdir(started.directory)
    except OSError as error:
        hint = "the run's command line names files as seen from this directory"
        raise UserError(f"{started.directory}: {error.strerror}", hint=hint) from None
    before = again(started.arguments[1:])
    return msgspec.structs.replace(before, **values), started.arguments


def _check_given() -> None:
    """Raises UserError for an option that a resumed run has from its start."""
    fixed = sorted(option.flag for option in given() if option.resume is Resume.FIXED)
    if fixed:
        command = click.get_current_context().info_name
        free = [
            option.flag  # of those that this command takes
            for option in OPTIONS.values()
            if option.resume is Resume.MAY_DIFFER and command in option.commands
        ]
        raise UserError(
            f"--resume together with {', '.join(fixed)}",
            hint=f"a run is resumed with its original options: only {', '.join(free)} may differ",
        )


def _check_command(directory: Path, started: RunStarted) -> None:
    """Raises UserError if another command made the run."""
    command = click.get_current_context().info_name
    if started.arguments[:1] == (command,):
        return
    maker = started.arguments[0]
    if maker in OPTIONS["unfinished"].commands:
        hint = f"harness {maker} --resume DIR"
    else:
        hint = f"a new `harness {maker}` continues with what is in the cache"
    raise UserError(f"{directory} was made by `harness {maker}`", hint=hint)


def _absolute(value: object) -> object:
    return value.resolve() if isinstance(value, Path) else value
