"""List the files that a build has read, from the dependency files that make leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from harness import process
from harness.tree.store import NOT_BUILT, is_built

_RECORDS = ("--include=.*.cmd", "--include=auto.conf.cmd")
"""Files that kbuild and Kconfig leave in the build directory: the dependencies of each target, and the Kconfig files."""


def outside_of_digest(source: Path, output: Path, folders: Sequence[str]) -> list[str]:
    """Files of the tree `source` that the build in `output` has read although the kernel's digest does not cover them
    (Store.content). `folders` are the architecture's folders of arch/."""
    left_out = "|".join(map(re.escape, (*NOT_BUILT, "arch")))
    # A path may lead there from another folder, as #include "../Documentation/x.h" does.
    pattern = rf"{re.escape(str(source))}/([^[:space:]()]*/\.\./)?({left_out})[^[:space:]()]*"
    words: list[str | Path] = ["grep", "-rhoE", *_RECORDS, pattern, output]
    # In another locale the search takes several times as long.
    lines = process.run(words, env={"LC_ALL": "C"}, check=False).stdout.splitlines()
    read = {os.path.normpath(line).removeprefix(f"{source}/") for line in lines}
    return sorted(path for path in read if not is_built(path, folders) and (source / path).is_file())
