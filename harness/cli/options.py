"""The table of options as click's options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from harness.cli.root import cli
from harness.options import OPTIONS, Option, RunOptions, read

F = TypeVar("F", bound=Callable[..., Any])

_WORDS = "harness.words"
"""The key of a command's words in click's context."""


def option(name: str, **changes: Any) -> Callable[[F], F]:
    """The table's option with this name, for a command that is not one of the table's. `changes`
    replace settings of click's."""
    one = OPTIONS[name]
    settings: dict[str, Any] = {
        "help": one.help,
        "type": _type(one),
        "metavar": one.metavar,
        "envvar": one.envvar,
        "show_default": one.show_default,
        "multiple": one.repeatable,
    }
    if not one.repeatable:
        settings["default"] = one.default
    if one.kind is bool:
        # With is_flag=False, click would accept the option without its value.
        settings["is_flag"] = True
    flags = filter(None, (one.short, one.flag))
    return click.option(*flags, one.name, **{**settings, **changes})


def command(name: str) -> Callable[[Callable[[RunOptions], int]], click.Command]:
    """A command with all options that the table has for it. The function gets their values."""

    def decorate(function: Callable[[RunOptions], int]) -> click.Command:
        @functools.wraps(function)
        def work(**values: Any) -> int:
            return function(RunOptions(**values))

        for one in reversed([one.name for one in OPTIONS.values() if name in one.commands]):
            work = option(one)(work)
        return cli.command(name, cls=_Command)(work)

    return decorate


def recorded() -> tuple[str, ...]:
    """The words of the command line that repeat the current command, as a journal keeps them."""
    context = click.get_current_context()
    words = (word.encode(errors="replace").decode() for word in context.meta[_WORDS])
    return read((str(context.info_name), *words)).recorded.words


def given() -> list[Option]:
    """The options that the current command was given by words, not by variables or defaults."""
    context = click.get_current_context()
    sources = {name: context.get_parameter_source(name) for name in OPTIONS}
    by_words = ParameterSource.COMMANDLINE
    return [option for name, option in OPTIONS.items() if sources[name] is by_words]


def again(words: Sequence[str]) -> RunOptions:
    """The values that the current command's options have with these words. Raises click's
    errors."""
    context = click.get_current_context()
    other = context.command.make_context(str(context.info_name), list(words))
    return RunOptions(**other.params)


class _Command(click.Command):
    """Keeps its words for the journal: click keeps only what they mean."""

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        context.meta[_WORDS] = tuple(words)
        return super().parse_args(context, words)


def _type(one: Option) -> click.ParamType[Any] | None:
    if one.choices:
        return click.Choice(one.choices)
    if one.kind is int:
        return click.IntRange(min=one.least)
    if issubclass(one.kind, str | bool):
        return None
    return click.Path(
        exists=one.exists,
        file_okay=one.file_okay,
        dir_okay=one.dir_okay,
        path_type=one.kind,
    )
