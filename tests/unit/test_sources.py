"""Series from wherever they are kept, and back."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import mailbox
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import series, tree
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.model import PatchState
from harness.series import fetch
from tests import fake

CHANGES = ({"main.c": "int first;"}, {"other.c": "four\nFrom here on\n"}, {"main.c": "int second;\n"})
ID = "20231105-topic-v2-0@example.org"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def quilt(tmp_path: Path) -> Path:
    return fake.series(tmp_path / "s", *CHANGES)


def thread(quilt: Path, *options: str) -> str:
    """The commits that `quilt` was made from, as git format-patch sends them."""
    work = quilt.parent / "s-work"
    listed = fake.git(work, "format-patch", "--stdout", "--cover-letter", "--thread=shallow", *options, "HEAD~3..HEAD")
    return listed.replace("*** SUBJECT HERE ***", "The topic").replace("*** BLURB HERE ***", "What it is about.") + "\n"


def test_all_ways_lead_to_the_same(tmp_path: Path, quilt: Path, cache: Cache) -> None:
    wanted = series.load(str(quilt), cache)
    box = tmp_path / "thread.mbox"
    box.write_text(thread(quilt))
    folder = mailbox.Maildir(tmp_path / "maildir")
    for message in mailbox.mbox(box):
        folder.add(message)
    work = tmp_path / "s-work"
    for spec in (box, tmp_path / "maildir", f"git:{work}#main~3..main", f"git:{work}#main~3.."):
        found = series.load(str(spec), cache)
        assert found.digest == wanted.digest
        assert [patch.name for patch in found.patches] == [patch.name for patch in wanted.patches]
        assert [patch.files for patch in found.patches] == [("main.c",), ("other.c",), ("main.c",)]
    assert series.load(str(box), cache).name == "the-topic"
    assert "What it is about." in series.load(str(box), cache).description


def test_exports_are_read_again(tmp_path: Path, quilt: Path, cache: Cache) -> None:
    (quilt / "series.toml").write_text('description = "It is described."\n')
    wanted = series.load(str(quilt), cache)
    for target, mbox in ((tmp_path / "out", False), (tmp_path / "out.mbox", True)):
        series.export(wanted, target, mbox)
        assert series.load(str(target), cache).digest == wanted.digest
        with pytest.raises(UserError, match="there already"):
            series.export(wanted, target, mbox)
    assert series.load(str(tmp_path / "out"), cache).description == "It is described."
    with pytest.raises(UserError, match="no patches"):
        series.export(series.NONE, tmp_path / "none", False)


def test_bundled_series_goes_round(tmp_path: Path, cache: Cache) -> None:
    wanted = series.load("fprobe-on-fgraph", cache)
    series.export(wanted, tmp_path / "out.mbox", True)
    found = series.load(str(tmp_path / "out.mbox"), cache)
    assert found.digest == wanted.digest
    assert [patch.name for patch in found.patches] == [patch.name for patch in wanted.patches]


def test_the_digest_is_that_of_what_is_applied(quilt: Path, cache: Cache) -> None:
    before = series.load(str(quilt), cache).digest
    first, *rest = sorted(path.name for path in quilt.glob("*.patch"))
    (quilt / first).rename(quilt / "another-name.patch")
    (quilt / "series").write_text("".join(f"{name}\n" for name in ["another-name.patch", *rest]))
    assert series.load(str(quilt), cache).digest == before
    (quilt / "series").write_text("".join(f"{name}\n" for name in [*rest, "another-name.patch"]))
    assert series.load(str(quilt), cache).digest != before


def test_base_commit_is_where_it_is_applied(tmp_path: Path, quilt: Path, cache: Cache) -> None:
    """On another tree, what the patches were made from is fetched for a 3-way merge; without a ref, the tree is that."""
    work = tmp_path / "s-work"
    base = fake.git(work, "rev-parse", "HEAD~3")
    box = tmp_path / "thread.mbox"
    box.write_text(thread(quilt, "--base=HEAD~3"))
    found = series.load(str(box), cache)
    assert found.base_commit == base
    assert tree.spec_for(f"git:{work}", found) == f"git:{work}#{base}"
    fake.git(work, "checkout", "--quiet", "-b", "drifted", "HEAD~3")
    # Beside the changed line, so that only a merge finds its place.
    (work / "main.c").write_text("int main;\n\n\n\n\nint last;\nint more;\n")
    (work / "other.c").write_text("0\none\ntwo\nthree\n")
    fake.git(work, "commit", "--quiet", "--all", "--message=drift")
    drifted = tree.resolve(f"git:{work}#drifted", cache)
    one = series.load(f"git:{work}#main~3..main~2", cache)
    states = [result.state for result in series.apply(one, drifted, cache).results]
    assert states == [PatchState.CONFLICT]
    (work / "main.c").write_text("int main;\n\n\n\n\nint last;\n")
    fake.git(work, "commit", "--quiet", "--all", "--message=as it was")


def test_fuzzy(tmp_path: Path, cache: Cache) -> None:
    work = fake.repository(tmp_path / "linux")
    text = "".join(f"{number}\n" for number in range(20))
    (work / "main.c").write_text(text)
    fake.git(work, "commit", "--quiet", "--all", "--message=lines")
    fake.git(work, "checkout", "--quiet", "-b", "topic")
    (work / "main.c").write_text(text.replace("10\n", "ten\n"))
    fake.git(work, "commit", "--quiet", "--all", "--message=ten")
    fake.git(work, "checkout", "--quiet", "main")
    (work / "main.c").write_text(text.replace("8\n", "eight\n").replace("18\n", "1eight\n").replace("13\n", "thirteen\n"))
    fake.git(work, "commit", "--quiet", "--all", "--message=drift")
    found = series.load(f"git:{work}#main~1..topic", cache)
    source = tree.resolve(f"git:{work}#main", cache)
    (result,) = series.apply(found, source, cache).results
    assert result.state is PatchState.FUZZY
    assert "eight\n9\nten" in tree.Store(cache).read_file(result.commit, "main.c")


def test_git_ranges_that_are_none(tmp_path: Path, quilt: Path, cache: Cache) -> None:
    work = tmp_path / "s-work"
    for span, why in (("main", "no range"), ("main..nowhere", "has no"), ("main..main", "empty"), ("..main", "no range")):
        with pytest.raises(UserError, match=why):
            series.load(f"git:{work}#{span}", cache)
    with pytest.raises(UserError, match="no git repository"):
        series.load(f"git:{tmp_path}/nowhere#a..b", cache)
    fake.git(work, "checkout", "--quiet", "-b", "side", "main~1")
    fake.git(work, "commit", "--quiet", "--allow-empty", "--message=side")
    fake.git(work, "merge", "--quiet", "--no-ff", "--message=merge", "main")
    with pytest.raises(UserError, match="merge"):
        series.load(f"git:{work}#main~2..side", cache)


def test_the_users_git_configuration_has_no_say(
    tmp_path: Path, quilt: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = series.load(str(quilt), cache).digest
    work = tmp_path / "s-work"
    for name, value in {
        "format.subjectPrefix": "ODD",
        "format.attach": "true",
        "format.signature": "me",
        "diff.noprefix": "true",
        "diff.external": "false",
        "mailinfo.scissors": "true",
        "format.signOff": "true",
        "diff.context": "1",
        "diff.renames": "false",
        "diff.orderFile": "nowhere",
        "format.useAutoBase": "true",
        "diff.mnemonicPrefix": "true",
    }.items():
        fake.git(work, "config", name, value)
    assert series.load(f"git:{work}#main~3..main", cache).digest == wanted


def _edit(work: Path, *steps: str) -> None:
    subprocess.run(["sh", "-ec", "\n".join(steps)], cwd=work, check=True)


CHANGES_OF_ALL_KINDS = {
    "renamed and changed": ["git mv main.c moved.c", "echo more >>moved.c"],
    "copied": ["cp main.c copied.c"],
    "removed": ["git rm -q other.c"],
    "mode": ["chmod +x main.c"],
    "mode and text": ["chmod +x main.c", "echo more >>other.c"],
    "link": ["ln -s main.c link.c"],
    "spaces": ["mkdir 'a b'", "echo x >'a b/y.c'", "git add -A", "git commit -qm spaces", "echo z >'a b/y.c'"],
    "not ASCII": ["echo x >grüße.c", "git add -A", "git commit -qm umlaut", "git mv grüße.c groß.c"],
    "quotes": ["printf x >'say \"hi\".c'"],
    "CRLF": ["printf 'a\\r\\nb\\r\\n' >crlf.c", "git add -A", "git commit -qm crlf", "printf 'a\\r\\nc\\r\\n' >crlf.c"],
    "LF to CRLF": ["printf 'one\\r\\ntwo\\r\\nthree\\r\\n' >other.c"],
    "no line end": ["printf 'one\\ntwo' >other.c", "git commit -qam cut", "echo >>other.c"],
    "file to folder": ["git rm -q other.c", "mkdir other.c", "echo x >other.c/in"],
    "message that looks like more": [
        "echo x >>main.c",
        "git commit -qam 'x' -m text -m 'From: C <c@x>' -m '-- >8 --' -m 'Subject: no'",
    ],
    "somebody else": ["echo x >>main.c", "git commit -qam x --author='Jürgen Ö. <j@x>'"],
}


@pytest.mark.parametrize("name", CHANGES_OF_ALL_KINDS)
def test_what_comes_of_it_is_what_was_committed(name: str, tmp_path: Path, cache: Cache) -> None:
    """Also once it was sent as a mail."""
    work = fake.repository(tmp_path / "linux")
    fake.git(work, "config", "user.name", "Test")
    fake.git(work, "config", "user.email", "test@localhost")
    _edit(work, *CHANGES_OF_ALL_KINDS[name], "git add -A", "git diff --cached --quiet || git commit -qm 'the last'")
    count = int(fake.git(work, "rev-list", "--count", "main")) - 1
    base = tree.resolve(f"git:{work}#main~{count}", cache)
    direct = series.load(f"git:{work}#main~{count}..main", cache)
    series.export(direct, tmp_path / "sent.mbox", True)
    for found in (direct, series.load(str(tmp_path / "sent.mbox"), cache)):
        applied = series.apply(found, base, Cache(tmp_path / "cache"))
        assert [result.state for result in applied.results] == [PatchState.APPLIED] * count
        store = tree.Store(cache)
        assert store.rev_parse(f"{applied.tip}^{{tree}}") == fake.git(work, "rev-parse", "main^{tree}")
    show = ("show", "--no-patch", "--format=%an %ae %ad %s")
    assert store.git(*show, applied.tip).stdout.strip() == fake.git(work, *show, "main")


def test_new_file_where_there_is_something(tmp_path: Path, cache: Cache) -> None:
    base = tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'linux.tar.gz')}", cache)
    for number, name in enumerate(("b/tools", "b/main.c", '"b/\\155ain.c"', "linux/main.c")):
        box = tmp_path / f"{number}.mbox"
        diff = f"--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+mine\n"
        box.write_text(f"From x Mon Sep 17 00:00:00 2001\nFrom: A <a@x>\nSubject: [PATCH] x{number}\n\nWhy.\n---\n{diff}")
        (result,) = series.apply(series.load(str(box), cache), base, cache).results
        assert result.state is PatchState.CONFLICT, name


def test_another_repository_is_left_alone(tmp_path: Path, quilt: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the harness finds it when a git hook calls it."""
    other = fake.repository(tmp_path / "other")
    before = {path: path.read_bytes() for path in (other / ".git").rglob("*") if path.is_file()}
    base = tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'linux.tar.gz')}", cache)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert series.apply(series.load(str(quilt), cache), base, cache).complete
    assert {path: path.read_bytes() for path in (other / ".git").rglob("*") if path.is_file()} == before


def test_quilt_file_that_was_saved_elsewhere(tmp_path: Path, quilt: Path, cache: Cache) -> None:
    wanted = series.load(str(quilt), cache)
    for path in quilt.glob("*.patch"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    found = series.load(str(quilt), cache)
    assert found.digest == wanted.digest
    base = tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'linux.tar.gz')}", cache)
    assert series.apply(found, base, cache).complete


def test_quilt_file_with_two_patches(tmp_path: Path, quilt: Path, cache: Cache) -> None:
    first, second, _ = sorted(path.name for path in quilt.glob("*.patch"))
    (quilt / first).write_text((quilt / first).read_text() + (quilt / second).read_text())
    with pytest.raises(UserError, match="more than one patch"):
        series.load(str(quilt), cache)


@pytest.mark.parametrize("spec", ["x" * 5000, "a\0b", "lore:-o@x", "git:", "lore:", "x#y"])
def test_specs_that_name_nothing(spec: str, cache: Cache) -> None:
    with pytest.raises(UserError):
        series.load(spec, cache)


def test_path_out_of_the_tree(tmp_path: Path, cache: Cache) -> None:
    diff = "--- a/../../etc/x\n+++ b/../../etc/x\n@@ -0,0 +1 @@\n+evil\n"
    box = tmp_path / "evil.mbox"
    box.write_text(f"From x Mon Sep 17 00:00:00 2001\nFrom: A <a@x>\nSubject: [PATCH] evil\n\nWhy.\n---\n{diff}")
    found = series.load(str(box), cache)
    assert series.trespasses(found) == ["0001-evil.patch touches '../../etc/x', outside the tree"]
    base = tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'linux.tar.gz')}", cache)
    (result,) = series.apply(found, base, cache).results
    assert (result.state, result.detail) == (PatchState.FORBIDDEN, "'../../etc/x' is outside of the tree")
    assert not (tmp_path / "etc").exists()


def test_behind_a_symbolic_link(tmp_path: Path, cache: Cache) -> None:
    work = fake.repository(tmp_path / "linux")
    (work / "link").symlink_to("/etc")
    fake.git(work, "add", "--all")
    fake.git(work, "commit", "--quiet", "--message=link")
    diff = "diff --git a/link/x b/link/x\nnew file mode 100644\n--- /dev/null\n+++ b/link/x\n@@ -0,0 +1 @@\n+evil\n"
    box = tmp_path / "evil.mbox"
    box.write_text(f"From x Mon Sep 17 00:00:00 2001\nFrom: A <a@x>\nSubject: [PATCH] evil\n\nWhy.\n---\n{diff}")
    (result,) = series.apply(series.load(str(box), cache), tree.resolve(f"git:{work}#main", cache), cache).results
    assert result.state is PatchState.FORBIDDEN


def test_binary_hunks(tmp_path: Path, cache: Cache) -> None:
    work = fake.repository(tmp_path / "linux")
    (work / "blob").write_bytes(bytes(range(256)))
    fake.git(work, "add", "--all")
    fake.git(work, "commit", "--quiet", "--message=blob")
    (work / "blob").write_bytes(bytes(range(255, -1, -1)))
    fake.git(work, "mv", "other.c", "moved.c")
    fake.git(work, "commit", "--quiet", "--all", "--message=turn it round")
    found = series.load(f"git:{work}#main~1..main", cache)
    assert set(found.patches[0].files) == {"blob", "moved.c"}
    applied = series.apply(found, tree.resolve(f"git:{work}#main~1", cache), cache)
    assert applied.complete
    store = tree.Store(cache)
    assert store.rev_parse(f"{applied.tip}^{{tree}}") == fake.git(work, "rev-parse", "main^{tree}")


def test_boxes_that_are_none(tmp_path: Path, cache: Cache) -> None:
    for content, why in (("", "empty mbox"), ("hello\n", "no patch"), ("From here on it is text\n", "no patch")):
        (tmp_path / "box").write_text(content)
        with pytest.raises(UserError, match=why):
            series.load(str(tmp_path / "box"), cache)
    (tmp_path / "empty" / "cur").mkdir(parents=True)
    with pytest.raises(UserError, match="no mail"):
        series.load(str(tmp_path / "empty"), cache)
    with pytest.raises(UserError, match="--mbox with"):
        series.load("fprobe-on-fgraph", cache, tmp_path / "box")


# lore.kernel.org, as far as b4 needs it.


@contextlib.contextmanager
def archive(text: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that holds one thread."""

    class Archive(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = urllib.parse.unquote(self.path) == f"/all/{ID}/t.mbox.gz"
            self.send_response(200 if known else 404)
            self.end_headers()
            if known:
                self.wfile.write(gzip.compress(text.encode()))

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(fetch.LORE_VARIABLE, f"http://127.0.0.1:{server.server_port}/all")
        yield
        server.shutdown()


@pytest.fixture
def lore(quilt: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    text = thread(quilt, "-v2", "--subject-prefix=PATCH RFC").replace("The topic", "tracing: topic")
    cover = text.split("Message-Id: <")[1].split(">")[0]
    with archive(text.replace(cover, ID), monkeypatch):
        yield ID


def test_signature(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by patatt, with a key that nobody here knows."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n[patatt]\nsigningkey = ed25519:s\nselector = s\n")
    env = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    patatt = [sys.executable, "-c", "import patatt; patatt.command()"]
    subprocess.run([*patatt, "genkey", "-n", "s"], cwd=tmp_path, env=env, check=True, capture_output=True)
    diff = "--- a/main.c\n+++ b/main.c\n@@ -1 +1 @@\n-int main;\n+int first;\n"
    date = "Date: Mon, 6 Nov 2023 01:08:54 +0900\n"
    (tmp_path / "mail").write_text(f"From: A <a@example.org>\nSubject: [PATCH] x\n{date}Message-Id: <{ID}>\n\nWhy.\n---\n{diff}")
    subprocess.run([*patatt, "sign", "mail"], cwd=tmp_path, env=env, check=True, capture_output=True)
    with archive(f"From mboxrd@z Thu Jan  1 00:00:00 1970\n{(tmp_path / 'mail').read_text()}\n", monkeypatch):
        found = series.load(f"lore:{ID}", cache)
    assert found.notes == ("attestation: No key: ed25519/a@example.org",)


def test_lore(lore: str, quilt: Path, cache: Cache) -> None:
    found = series.load(f"lore:{lore}", cache)
    assert found.digest == series.load(str(quilt), cache).digest
    assert found.name == "tracing-topic"
    assert found.notes == ("attestation: no signature that b4 could check",)


def test_lore_that_cannot_be_had(lore: str, cache: Cache) -> None:
    with pytest.raises(InfrastructureError, match="b4 cannot get") as failure:
        series.load("lore:20000101-unknown@example.org", cache)
    assert "--mbox FILE" in failure.value.hint
    with pytest.raises(UserError, match="no message id"):
        series.load("lore:--help", cache)


def test_series_that_only_names_its_origin(lore: str, tmp_path: Path, quilt: Path, cache: Cache) -> None:
    directory = tmp_path / "named"
    directory.mkdir()
    origin = f'[origin]\ntitle = "[PATCH RFC 0/3] tracing: topic"\nmessage-id = "{lore}"\nbase = "v6.6-rc7"\n'
    (directory / "series.toml").write_text(f'description = "As it was sent."\n{origin}')
    box = tmp_path / "saved.mbox"
    box.write_text(thread(quilt).replace("The topic", "tracing: topic"))
    for found in (series.load(str(directory), cache), series.load(str(directory), cache, box)):
        assert (found.name, found.base, len(found.patches)) == ("named", "v6.6-rc7", 3)
        assert found.description == "As it was sent."
    box.write_text(thread(quilt))
    with pytest.raises(UserError, match=r"is not .*tracing: topic.*but 'The topic'"):
        series.load(str(directory), cache, box)
    (directory / "series.toml").write_text('description = "Nothing."\n')
    with pytest.raises(UserError, match="names none"):
        series.load(str(directory), cache)


def test_the_original_series_is_named() -> None:
    assert series.referred() == ["fprobe-on-fgraph-rfc"]
