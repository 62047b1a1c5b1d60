"""The declaration of one option."""

from __future__ import annotations

import types
from enum import Enum, Flag, auto
from pathlib import Path
from typing import Union, get_args, get_origin

import msgspec
from msgspec import Struct

RUN, BUILD, BISECT, SHELL = "run", "build", "bisect", "shell"
_ALL = (RUN, BUILD, BISECT, SHELL)


class Use(Flag):
    """What an option's value is used for, beside the work itself."""

    NOTHING = 0
    RESULTS = auto()
    """It changes results: runs with different values are not compared, and KCIDB gets the value."""
    WORKER = auto()
    """A worker of a cluster gets it with its batch."""
    REPRODUCE = auto()
    """A reproduce command has it as the run had it."""
    ALL = RESULTS | WORKER | REPRODUCE


class Resume(Enum):
    """What `--resume` does with an option."""

    FIXED = "fixed"
    """It has the value of the interrupted run, and cannot be given again."""
    MAY_DIFFER = "may differ"
    """It has the value of the interrupted run if it is not given again."""
    NOT_RECORDED = "not recorded"
    """It applies to one call of the command only, so a run's command line does not have it."""


class Option(Struct, frozen=True):
    """An option: what the command line needs to know of it, and what follows from it.

    The defaults of `uses` and `resume` are the safe ones, for an option that changes results."""

    flag: str
    help: str
    short: str = ""
    metavar: str | None = None
    envvar: str | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    """The smallest number that is accepted."""
    exists: bool = False
    """Whether the file must exist when the command line is read."""
    file_okay: bool = True
    dir_okay: bool = True
    show_default: bool = False
    commands: tuple[str, ...] = _ALL
    """The commands that take it."""
    uses: Use = Use.ALL
    resume: Resume = Resume.FIXED

    name: str = ""
    """The name of its field in RunOptions. `declared` sets it and the following from the field."""
    kind: type = str
    """str, int, Path, or bool for a flag without a value."""
    repeatable: bool = False
    default: object = None

    def values(self, value: object) -> list[str]:
        """What follows the flag, each time that a command line with this value has it: nothing for
        the default, and an empty text for a flag without a value."""
        if value is None or value == self.default:
            return []
        if self.kind is bool:
            return [""]
        return [str(one) for one in (value if isinstance(value, tuple) else (value,))]


def declared(field: msgspec.structs.FieldInfo) -> Option:
    """The option of a field that is annotated with `Annotated[type, Option(...)]`."""
    annotation, option = get_args(field.type)
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(one for one in get_args(annotation) if one is not types.NoneType)
    repeatable = get_origin(annotation) is tuple
    kind = get_args(annotation)[0] if repeatable else annotation
    if kind not in (str, int, bool, Path):
        raise TypeError(f"{field.name}: an option cannot be a {kind}")
    found: Option = msgspec.structs.replace(
        option,
        name=field.name,
        kind=kind,
        repeatable=repeatable,
        default=field.default,
    )
    return found
