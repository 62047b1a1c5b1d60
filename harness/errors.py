"""The two families of errors that end a command. Results of the series under test (a patch that does not
apply, a kernel that does not build or boot) are not errors: they are red cases in the run's report."""

from __future__ import annotations


class HarnessError(Exception):
    """What went wrong, in one line, and `hint`: what the reader can do about it."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(HarnessError):
    """Bad input or usage. Nothing was started or lost. Exit code 2."""

    exit_code = 2


class InfrastructureError(HarnessError):
    """The machine let us down: a missing tool, a full disk, a download that broke. Exit code 3."""

    exit_code = 3


class CommandFailed(HarnessError):
    """A subprocess ended with a status other than 0; `output` holds the end of what it printed.

    Whoever runs the command knows what its failure means and turns this into a case or into one of the above;
    unhandled it counts as infrastructure."""

    def __init__(self, message: str, status: int, output: str) -> None:
        super().__init__(message, hint=output.strip())
        self.status = status
        self.output = output
