"""Artefacts behind SFTP: a real sshd on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cache import Cache
from harness.shared import Artefacts, opened
from tests.sshd import Sshd

DIGEST = "0" * 64


class Shared:
    def __init__(self, folder: Path, artefacts: Artefacts, said: list[str]) -> None:
        self.folder = folder
        self.artefacts = artefacts
        self.said = said


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "module.ko").write_bytes(bytes(range(256)) * 5000)
    return folder


@pytest.fixture
def shared(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    """A user whose usual key is let in, and who knows the host."""
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True)
    (home / "id_ed25519").write_text((sshd.folder / "key").read_text())
    (home / "known_hosts").write_text(sshd.known.read_text())
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    said: list[str] = []
    folder = tmp_path / "shared"
    with opened(f"sftp://127.0.0.1:{sshd.port}{folder}", Cache(tmp_path / "cache"), said.append) as artefacts:
        assert artefacts
        yield Shared(folder, artefacts, said)


def test_there_and_back(shared: Shared, made: Path, tmp_path: Path) -> None:
    assert not shared.artefacts.fetch("kernels", DIGEST, tmp_path / "back")
    shared.artefacts.store("kernels", DIGEST, made)
    assert shared.artefacts.fetch("kernels", DIGEST, tmp_path / "back")
    assert (tmp_path / "back" / "lib" / "module.ko").read_bytes() == (made / "lib" / "module.ko").read_bytes()
    assert shared.said == []
    # Nothing but what has a name.
    assert len(list((shared.folder / "files").iterdir())) == len(list((shared.folder / "kernels").iterdir())) == 1


def test_what_is_damaged_is_not_taken_and_is_mended(shared: Shared, made: Path, tmp_path: Path) -> None:
    shared.artefacts.store("kernels", DIGEST, made)
    (file,) = (shared.folder / "files").iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert not shared.artefacts.fetch("kernels", DIGEST, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    assert "damaged" in shared.said[0]
    shared.artefacts.store("kernels", DIGEST, made)
    assert shared.artefacts.fetch("kernels", DIGEST, tmp_path / "back")


def test_server_that_goes_away_is_done_without(shared: Shared, made: Path, sshd: Sshd, tmp_path: Path) -> None:
    shared.artefacts.store("kernels", DIGEST, made)
    sshd.stop()
    assert not shared.artefacts.fetch("kernels", DIGEST, tmp_path / "back")
    assert not shared.artefacts.fetch("kernels", DIGEST, tmp_path / "back")
    (said,) = shared.said
    assert "going on without it" in said


def test_host_that_nobody_knows_gets_nothing(shared: Shared, made: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / ".ssh" / "known_hosts").write_text("")
    shared.artefacts.store("kernels", DIGEST, made)
    assert "not found in known_hosts" in shared.said[0]
    assert not shared.folder.exists()
