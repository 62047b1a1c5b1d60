"""The only door to subprocesses.

Every child gets a process group of its own, no standard input, and dies with the harness whatever ends it: a guard process
holds the other end of a pipe, and when that closes it kills the groups that are still on its list, and whatever carries our mark
in its environment. So not even `kill -9` leaves a QEMU or a make behind."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from harness.errors import CommandFailed, InfrastructureError

log = logging.getLogger(__name__)

Argv = Sequence[str | os.PathLike[str]]

TERMINATE_SECONDS = 2.0
"""How long a process group may take to heed SIGTERM before it gets SIGKILL."""

_TAIL_CHARACTERS = 4000

_OF_A_REPOSITORY = {
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX"),
    *("GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS"),
    *("GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX"),
}
"""git rev-parse --local-env-vars"""

_FOR_BUILDS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|PKG_CONFIG_PATH|XDG_(?:CACHE|CONFIG)_HOME"
    r"|CCACHE_(?:DIR|CONFIGPATH|MAXSIZE|TEMPDIR|UMASK|REMOTE_\w+)|HARNESS_GUARD_\w+"
)
"""The environment variables that a `confined` command gets. Others, such as KCFLAGS, KBUILD_* and CC, change the result of make
without being part of any digest."""


class Stopped(BaseException):
    """Raised in threads that want to start something, or to report something, after `stop`. No error: nobody handles it."""


def stop() -> None:
    """End every child that this process has, gently, then surely, and let none start until `resume`."""
    global _deadline
    _stopped.set()
    for end in list(_ends):
        end()
    _guard.signal_all(signal.SIGTERM)
    if _deadline is None:
        _deadline = threading.Timer(TERMINATE_SECONDS, kill)
        _deadline.start()


@contextlib.contextmanager
def ended_by(end: Callable[[], object]) -> Iterator[None]:
    """What is not a child, but has to end with them: `stop` calls `end` while the block lasts."""
    check_stopped()
    _ends.append(end)
    try:
        check_stopped()
        yield
    finally:
        _ends.remove(end)


def kill() -> None:
    """Kill all children now. What starts one needs `stop` as well."""
    _guard.signal_all(signal.SIGKILL)


def resume() -> None:
    """After `stop`, once all threads that it concerned are gone."""
    global _deadline
    if _deadline:
        _deadline.cancel()
        _deadline = None
    _stopped.clear()


def check_stopped() -> None:
    """Raises Stopped after `stop`: what children did since then says nothing about them."""
    if _stopped.is_set():
        raise Stopped


def confine(prefix: Callable[[Sequence[Path]], Sequence[str]] | None) -> None:
    """Put this before every command that is `confined`, because it runs what others wrote. `prefix` gets the folders that the
    command may write beside the usual ones."""
    global _confinement
    _confinement = prefix


_confinement: Callable[[Sequence[Path]], Sequence[str]] | None = None
_ends: list[Callable[[], object]] = []
_stopped = threading.Event()
_deadline: threading.Timer | None = None


def command_line(argv: Argv, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """One line that a shell runs as the harness did."""
    words = [f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()]
    words += [shlex.quote(os.fspath(word)) for word in argv]
    line = " ".join(words)
    return f"cd {shlex.quote(str(cwd))} && {line}" if cwd else line


def which(name: str) -> str | None:
    """Path of an executable, also in the sbin folders that a user's PATH often lacks (depmod lives there)."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"
    return shutil.which(name, path=path)


@contextlib.contextmanager
def start(
    argv: Argv,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[Any] = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.DEVNULL,
    stderr: int | IO[Any] = subprocess.STDOUT,
    pass_fds: Sequence[int] = (),
    text: bool = False,
    confined: Sequence[Path] | None = None,
) -> Iterator[subprocess.Popen[Any]]:
    """Run `argv` for as long as the block lasts; afterwards its whole group is gone and reaped.

    `env` is added to the harness's own environment; `confined` as `confine` has it. Raises InfrastructureError if the program is
    not there."""
    check_stopped()
    if confined is not None and _confinement is not None:
        argv = [*_confinement(confined), *argv]
    program = which(os.fspath(argv[0]))
    if program is None:
        raise InfrastructureError(f"{argv[0]}: no such program", hint="`harness doctor` tells what installs it")
    log.info("$ %s", command_line(argv, cwd, env))
    _guard.start()
    child = subprocess.Popen(
        [program, *argv[1:]],
        cwd=cwd,
        env={**_environment(confined is not None), **(env or {}), _guard.mark: "1"},
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        # What is confined must not reach our terminal either, which only its own session can type at.
        process_group=0 if confined is None else None,
        start_new_session=confined is not None,
        text=text,
        errors="replace" if text else None,
    )
    _guard.watch(child.pid)
    try:
        check_stopped()  # once more: `stop` may have missed a child that was just being started
        yield child
    finally:
        _end(child)
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        _guard.forget(child.pid)


def _environment(confined: bool) -> dict[str, str]:
    """Ours, but for what tells git of another repository than the one that it is called for: a git hook's children have that."""
    if confined:
        return {"LC_ALL": "C"} | {name: value for name, value in os.environ.items() if _FOR_BUILDS.fullmatch(name)}
    return {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}


def run(
    argv: Argv,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout: float | None = None,
    pass_fds: Sequence[int] = (),
    confined: Sequence[Path] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `argv` to its end and return its status and what it printed (stderr folded into stdout).

    Raises CommandFailed on a status other than 0 if `check`, or after `timeout` seconds."""
    with start(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, pass_fds=pass_fds, confined=confined) as child:
        try:
            output, _ = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(f"{argv[0]}: no end after {timeout:.0f} s", -1, str(error.stdout or "")) from error
    if check and child.returncode != 0:
        line = command_line(argv, cwd, env)
        raise CommandFailed(f"`{line}` ended with {child.returncode}", child.returncode, output[-_TAIL_CHARACTERS:])
    return subprocess.CompletedProcess([os.fspath(word) for word in argv], child.returncode, output)


def _end(child: subprocess.Popen[Any]) -> None:
    """End the whole group, gently then surely. The group outlives its leader if that leader left children behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=TERMINATE_SECONDS)
        if child.returncode is not None and not _group_alive(child.pid):
            return


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


# A child that was being started when we were killed is on no list yet, and may not have its environment yet either: hence the
# several looks.
_GUARD_PROGRAM = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
for _ in range(10):
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if sys.argv[1].encode() in file.read().split(b"\\0"):
                    os.kill(int(name), signal.SIGKILL)
        except (OSError, ValueError):
            pass
    time.sleep(0.1)
"""


class _Guard:
    """Started before the first child, in a session of its own so that no terminal signal reaches it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._groups: set[int] = set()
        # A harness that another one runs adds its own: both guards find what it starts.
        self.mark = f"HARNESS_GUARD_{os.getpid()}_{secrets.token_hex(8)}"

    def start(self) -> None:
        """Before the first child: whatever ends us then, it is watched within microseconds."""
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _GUARD_PROGRAM, f"{self.mark}=1"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # whoever reads ours to its end need not wait for the guard
                    start_new_session=True,
                    text=True,
                )

    def watch(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def signal_all(self, number: signal.Signals) -> None:
        with self._lock:
            for group in self._groups:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, number)

    def _tell(self, message: str) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write(message)
        self._process.stdin.flush()


_guard = _Guard()
