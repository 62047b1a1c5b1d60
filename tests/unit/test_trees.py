from __future__ import annotations

import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from harness import tree
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.tree.download import download
from harness.tree.resolve import KERNEL_ORG_VARIABLE
from tests import fake


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server with a folder of its own."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}", folder
        httpd.shutdown()


def test_tarball_becomes_a_commit(tmp_path: Path, cache: Cache) -> None:
    path = fake.write_tarball(tmp_path / "linux.tar.gz")
    found = tree.resolve(f"tarball:{path}", cache)
    assert found.version == "6.12.99"
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    store = tree.Store(cache)
    assert store.read_file(found.commit, "main.c") == fake.FILES["main.c"]
    source = tree.move(store, "build", found.commit)
    assert (source / "scripts/kconfig/merge_config.sh").stat().st_mode & 0o111


def test_tarball_is_imported_once_and_alike_everywhere(tmp_path: Path, cache: Cache) -> None:
    path = fake.write_tarball(tmp_path / "linux.tar.gz")
    first = tree.resolve(f"tarball:{path}", cache)
    assert tree.resolve(f"tarball:{path}", cache) == first
    assert tree.resolve(f"tarball:{path}", Cache(tmp_path / "other")).commit == first.commit


@pytest.mark.parametrize("name", ["/etc/evil", "linux-6.12.99/../../evil", "../evil"])
def test_tarball_that_leaves_its_folder_is_refused(tmp_path: Path, cache: Cache, name: str) -> None:
    path = fake.write_tarball(tmp_path / "evil.tar.gz", {name: "evil"})
    with pytest.raises(UserError, match="holds the path"):
        tree.resolve(f"tarball:{path}", cache)
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("keep", [0, 10, 400])
def test_damaged_tarball_is_refused(tmp_path: Path, cache: Cache, keep: int) -> None:
    path = fake.write_tarball(tmp_path / "linux.tar.gz")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match="damaged"):
        tree.resolve(f"tarball:{path}", cache)


def test_flipped_byte_is_refused(tmp_path: Path, cache: Cache) -> None:
    path = fake.write_tarball(tmp_path / "linux.tar.gz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        tree.resolve(f"tarball:{path}", cache)


def test_tree_that_is_no_kernel_is_refused(tmp_path: Path, cache: Cache) -> None:
    repository = fake.repository(tmp_path / "linux")
    fake.git(repository, "rm", "--quiet", "Kconfig")
    fake.git(repository, "commit", "--quiet", "--message=no kernel")
    with pytest.raises(UserError, match="no kernel tree"):
        tree.resolve(f"git:{repository}#main", cache)


def test_git_tree_is_only_read(tmp_path: Path, cache: Cache) -> None:
    repository = fake.repository(tmp_path / "linux")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*") if path.is_file()}
    for reference in ("main", "HEAD", fake.git(repository, "rev-parse", "HEAD")):
        found = tree.resolve(f"git:{repository}#{reference}", cache)
        assert found.commit == fake.git(repository, "rev-parse", "HEAD")
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("nonsense", "unknown tree"),
        ("svn:somewhere", "unknown tree"),
        ("tarball:", "names nothing"),
        ("tarball:/nowhere.tar.xz", "no tarball"),
        ("kernel.org:six", "no kernel version"),
        ("git:/nowhere", "names no ref"),
        ("git:/nowhere#main", "no repository"),
    ],
)
def test_bad_spec(cache: Cache, spec: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        tree.resolve(spec, cache)


def test_git_reference_that_does_not_exist(tmp_path: Path, cache: Cache) -> None:
    repository = fake.repository(tmp_path / "linux")
    with pytest.raises(UserError, match="has no 'nowhere'"):
        tree.resolve(f"git:{repository}#nowhere", cache)


class Ranges(http.server.BaseHTTPRequestHandler):
    """Sends CONTENT, from where it is asked to, and breaks off after the first half the first time."""

    CONTENT = bytes(range(256)) * 1000
    ranges: bool
    asked: list[str | None]

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        data = self.CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(self.CONTENT) // 2] if len(self.asked) == 1 else data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("ranges", [True, False])
def test_download_goes_on_where_it_broke_off(tmp_path: Path, ranges: bool) -> None:
    asked: list[str | None] = []
    handler = type("Handler", (Ranges,), {"ranges": ranges, "asked": asked})
    target, sha256 = tmp_path / "target", hashlib.sha256(Ranges.CONTENT).hexdigest()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{httpd.server_address[1]}/file"
        with pytest.raises(InfrastructureError, match="broke off"):
            download(url, target, sha256)
        assert not target.exists()
        download(url, target, sha256)
        httpd.shutdown()
    assert target.read_bytes() == Ranges.CONTENT
    assert asked == [None, f"bytes={len(Ranges.CONTENT) // 2}-"]


def test_download_with_a_wrong_sum_leaves_nothing(tmp_path: Path, server: tuple[str, Path]) -> None:
    url, folder = server
    (folder / "file").write_bytes(b"tampered")
    with pytest.raises(InfrastructureError, match="sha256"):
        download(f"{url}/file", tmp_path / "target", "0" * 64)
    assert not list(tmp_path.glob("target*"))


def test_kernel_org(tmp_path: Path, cache: Cache, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    url, folder = server
    monkeypatch.setenv(KERNEL_ORG_VARIABLE, url)
    mirror = folder / "v6.x"
    mirror.mkdir()
    path = fake.write_tarball(mirror / "linux-6.12.99.tar.xz")
    sums = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  linux-6.12.99.tar.xz\n"
    (mirror / "sha256sums.asc").write_text(sums)
    found = tree.resolve("kernel.org:6.12.99", cache)
    assert found.version == "6.12.99"
    assert "not checked" in found.source
    with pytest.raises(UserError, match=r"no linux-6\.12\.98"):
        tree.resolve("kernel.org:6.12.98", cache)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("BADSIG 38DBBDC86092693E kernel.org", ""),
        ("VALIDSIG B8868C80BA62A1FFFAF5FDA9632D3A06589DA6B1", "sums signed by kernel.org"),
        ("VALIDSIG 0000000000000000000000000000000000000000", "not checked"),
        ("ERRSIG 632D3A06589DA6B1 1 8 01 1700000000 9", "not checked"),
        ("NODATA 1", "not checked"),
    ],
)
def test_signature_of_the_sums(
    status: str, told: str, tmp_path: Path, cache: Cache, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gpg that gives this answer, whatever is in the keyring of whoever runs the tests."""
    url, folder = server
    monkeypatch.setenv(KERNEL_ORG_VARIABLE, url)
    gpg = tmp_path / "bin" / "gpg"
    gpg.parent.mkdir()
    gpg.write_text(f"#!/bin/sh\ntest -s \"$5\" || exit 3\necho '[GNUPG:] NEWSIG'\necho '[GNUPG:] {status}'\nexit 1\n")
    gpg.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gpg.parent}:{os.environ['PATH']}")
    mirror = folder / "v6.x"
    mirror.mkdir()
    path = fake.write_tarball(mirror / "linux-6.12.99.tar.xz")
    (mirror / "sha256sums.asc").write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  linux-6.12.99.tar.xz\n")
    if told:
        assert told in tree.resolve("kernel.org:6.12.99", cache).source
        return
    with pytest.raises(InfrastructureError, match=r"the signature of kernel\.org's sums is bad") as caught:
        tree.resolve("kernel.org:6.12.99", cache)
    assert "do not trust this mirror" in caught.value.hint
    assert not list((cache.root / "downloads").glob("linux*"))


def test_unreachable_server(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KERNEL_ORG_VARIABLE, "http://127.0.0.1:1")
    with pytest.raises(InfrastructureError) as caught:
        tree.resolve("kernel.org:6.12.99", cache)
    assert "tarball:PATH" in caught.value.hint


@pytest.mark.parametrize("cut", [512, 1024, 5000])
def test_uncompressed_tarball_that_was_cut(tmp_path: Path, cache: Cache, cut: int) -> None:
    path = fake.write_tarball(tmp_path / "linux.tar", compression="")
    data = path.read_bytes()
    end = len(data.rstrip(b"\0"))
    path.write_bytes(data[: (end - cut) // 512 * 512])
    with pytest.raises(UserError, match="damaged"):
        tree.resolve(f"tarball:{path}", cache)


def test_annotated_tag(tmp_path: Path, cache: Cache) -> None:
    repository = fake.repository(tmp_path / "linux")
    fake.git(repository, "tag", "--annotate", "--message=release", "v1")
    assert tree.resolve(f"git:{repository}#v1", cache).commit == fake.git(repository, "rev-parse", "HEAD")
