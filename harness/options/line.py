"""Command lines: composed from options, and read back from the journal of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from harness.options.option import Option, Resume, Use
from harness.options.table import OPTIONS, RunOptions


class Argument(Struct, frozen=True):
    """One option of a command line with its value, or a word that is no option of the command."""

    option: Option | None
    text: str = ""
    """The option's value, empty for a flag; or the word."""

    @property
    def words(self) -> tuple[str, ...]:
        if self.option is None:
            return (self.text,)
        return (self.option.flag,) if self.option.kind is bool else (self.option.flag, self.text)


class CommandLine(Struct, frozen=True):
    """A command of the harness and its options, in the order in which they were given."""

    command: str
    arguments: tuple[Argument, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The command and its options, without the program's name."""
        return (self.command, *self.options)

    @property
    def options(self) -> tuple[str, ...]:
        """The words behind the command."""
        return tuple(word for argument in self.arguments for word in argument.words)

    def values(self, name: str) -> list[str]:
        """The values of the option with this name, in the order in which they were given."""
        return [one.text for one in self.arguments if one.option and one.option.name == name]

    def using(self, use: Use) -> CommandLine:
        """Only the options that have this use."""
        return self._with(lambda option: use in option.uses, unknown=False)

    @property
    def recorded(self) -> CommandLine:
        """What repeats the command: without the options that apply to one call only."""
        return self._with(lambda option: option.resume is not Resume.NOT_RECORDED)

    def repeated(self, command: str, narrowed: RunOptions) -> CommandLine:
        """A reproduce command: `command` with this command's options, as far as it takes them and
        reproduce commands have them, and with those of `narrowed`."""
        kept = self._with(lambda one: Use.REPRODUCE in one.uses and command in one.commands)
        return CommandLine(command, kept.arguments + compose(command, narrowed).arguments)

    def _with(self, wanted: Callable[[Option], bool], unknown: bool = True) -> CommandLine:
        """Unknown words may be options of a newer version."""
        kept = []
        for one in self.arguments:
            if wanted(one.option) if one.option else unknown:
                kept.append(one)
        return CommandLine(self.command, tuple(kept))


def compose(command: str, options: RunOptions) -> CommandLine:
    """The command with all options that it takes and that do not have their default."""
    arguments = [
        Argument(option, text)
        for name, option in OPTIONS.items()
        if command in option.commands
        for text in option.values(getattr(options, name))
    ]
    return CommandLine(command, tuple(arguments))


def read(words: Sequence[str]) -> CommandLine:
    """The command line with these words, the command first. Values are not checked, and words that
    are no options of the command are kept: another version may have written them."""
    command, *rest = words or ("",)
    flags = {
        flag: option
        for option in OPTIONS.values()
        if command in option.commands
        for flag in filter(None, (option.flag, option.short))
    }
    arguments = []
    left = iter(rest)
    for word in left:
        flag, has_value, value = word.partition("=")
        option = flags.get(flag)
        if option is None:
            arguments.append(Argument(None, word))
        elif option.kind is bool:
            arguments.append(Argument(option))
        else:
            arguments.append(Argument(option, value if has_value else next(left, "")))
    return CommandLine(command, tuple(arguments))
