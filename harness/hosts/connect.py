"""A connection to a machine behind SSH."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import paramiko

from harness.guest import PlaceLost
from harness.hosts.config import Login

CONNECT_SECONDS = 20.0
_ALIVE_SECONDS = 10
"""How often the other end is asked for a sign of life, and how long the network may take to deliver anything."""


@contextlib.contextmanager
def connected(spec: Login) -> Iterator[paramiko.SSHClient]:
    """Host keys are those that are known, and no others. Raises PlaceLost."""
    client = paramiko.SSHClient()
    try:
        known = Path(spec.known_hosts).expanduser()
        if known.exists():
            client.load_host_keys(str(known))
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        client.connect(
            spec.hostname,
            int(spec.port),
            spec.login,
            key_filename=str(Path(spec.key).expanduser()) if spec.key else None,
            look_for_keys=not spec.key,
            timeout=CONNECT_SECONDS,
            auth_timeout=CONNECT_SECONDS,
            banner_timeout=CONNECT_SECONDS,
        )
    except (paramiko.SSHException, paramiko.hostkeys.InvalidHostKey, OSError) as error:
        client.close()
        raise PlaceLost(f"{spec.name} ({spec.address}): {error}", hint=_hint(error, spec)) from error
    with client:
        transport = client.get_transport()
        assert transport
        transport.set_keepalive(_ALIVE_SECONDS)
        if isinstance(transport.sock, socket.socket):
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _ALIVE_SECONDS)
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield client


def put(sftp: paramiko.SFTPClient, source: Path, target: PurePosixPath) -> None:
    """Whole, or not at all. Raises what paramiko does."""
    draft = f"{target}.{secrets.token_hex(4)}"
    try:
        sftp.put(str(source), draft)
        sftp.posix_rename(draft, str(target))
    except OSError:
        with contextlib.suppress(OSError):
            sftp.remove(draft)
        raise


def _hint(error: Exception, spec: Login) -> str:
    """What helps against what paramiko says."""
    if isinstance(error, paramiko.BadHostKeyException):
        return f"its host key is not the one in {spec.known_hosts}: is it the machine that you think it is?"
    if "not found in known_hosts" in str(error):
        return f"check its key, then: ssh-keyscan -p {spec.port} {spec.hostname} >> {spec.known_hosts}"
    if isinstance(error, paramiko.AuthenticationException):
        return f"can {spec.login} log in there with {spec.key or 'ssh-agent'}?"
    return "is it up, and is the address right?"
