"""A folder on a machine behind SSH."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import paramiko

from harness import process
from harness.errors import InfrastructureError
from harness.hosts import Login
from harness.hosts.connect import connected, put
from harness.shared.spec import split_url


class Sftp:
    """One connection, made when it is first needed. Used by one thread at a time."""

    folder: Path | None = None

    def __init__(self, spec: str) -> None:
        """`sftp://[USER@]HOST[:PORT]/FOLDER`, absolute, or below the home folder with `/~/`. Raises UserError."""
        url = split_url(spec)
        user = urllib.parse.unquote(url.username or "")
        self._login = Login(f"{url.scheme}://{url.hostname}", f"{url.hostname}:{url.port or 22}", user)
        self._root = PurePosixPath(urllib.parse.unquote(url.path).removeprefix("/~/"))
        self._stack = contextlib.ExitStack()
        self._client: paramiko.SFTPClient | None = None

    def read(self, name: str) -> bytes | None:
        with self._reached() as sftp:
            try:
                with sftp.open(str(self._root / name)) as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def get(self, name: str, into: Path) -> bool:
        with self._reached() as sftp:
            try:
                sftp.get(str(self._root / name), str(into))
            except FileNotFoundError:
                return False
            return True

    def put(self, source: Path, name: str) -> None:
        path = self._root / name
        with self._reached() as sftp:
            for folder in (self._root, path.parent):
                with contextlib.suppress(OSError):
                    sftp.mkdir(str(folder))
            put(sftp, source, path)

    def close(self) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _reached(self) -> Iterator[paramiko.SFTPClient]:
        try:
            if self._client is None:
                connection = self._stack.enter_context(connected(self._login))
                self._stack.enter_context(process.ended_by(connection.close))
                self._client = connection.open_sftp()
            yield self._client
        except (EOFError, paramiko.SSHException) as error:
            raise InfrastructureError(f"{self._login.name}: {error or type(error).__name__}") from error
