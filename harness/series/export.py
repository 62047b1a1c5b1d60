"""Write a series for others: as a directory, or as an mbox file. Reading that again gives the same digest."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from harness.errors import UserError
from harness.model import Series
from harness.series import quilt

_BESIDE = ("series.toml", "claims.toml", "bench.toml")
_FROM = re.compile(rb"^(>*From )", re.MULTILINE)


def export(series: Series, target: Path, mbox: bool) -> None:
    """A new directory `target`, or a new file. Raises UserError if it is there already, or if there is nothing to write."""
    if not series.patches:
        raise UserError(f"the series '{series.name}' has no patches", hint="there is nothing to export")
    if target.exists():
        raise UserError(f"{target} is there already", hint="export to a new file or directory")
    commits = quilt.commits(series.patches)
    draft = target.with_name(f".{target.name}.draft")  # on the same file system
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if mbox:
            mails = [one.mail(number, len(commits), series.base_commit) for number, one in enumerate(commits, 1)]
            draft.write_bytes(b"".join(_escaped(mail) for mail in mails))
        else:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            quilt.write(commits, draft)
            beside = [series.home / name for name in _BESIDE] if series.home else []
            for path in [*beside, *filter(None, [series.fragment])]:
                if path.is_file():
                    shutil.copy2(path, draft / path.name)
        draft.rename(target)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}", hint="export to another place") from error


def _escaped(mail: bytes) -> bytes:
    """As mboxrd has it."""
    first, _, rest = mail.partition(b"\n")
    return first + b"\n" + _FROM.sub(rb">\1", rest) + b"\n"
