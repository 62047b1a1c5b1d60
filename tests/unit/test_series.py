from __future__ import annotations

from pathlib import Path

import pytest

from harness import series, tree
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.model import Argued, PatchState, Tree
from harness.series import checkpatch
from tests import fake


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def base(tmp_path: Path, cache: Cache) -> Tree:
    return tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'linux.tar.gz')}", cache)


def test_bundled_series_are_whole() -> None:
    for name in series.bundled():
        found = series.load(name)
        assert found.patches
        assert found.tested_on
        assert all(entry.reason for entry in found.must_run)


def test_applies_one_commit_a_patch(tmp_path: Path, cache: Cache, base: Tree) -> None:
    found = series.load(str(fake.series(tmp_path / "s", {"main.c": "int first;\n"}, {"other.c": "four\n"})))
    applied = series.apply(found, base, cache)
    assert applied.complete
    assert [result.state for result in applied.results] == [PatchState.APPLIED] * 2
    store = tree.Store(cache)
    assert store.read_file(applied.results[0].commit, "other.c") == fake.FILES["other.c"]
    assert store.read_file(applied.tip, "other.c") == "four\n"
    assert series.apply(found, base, cache) == applied


def test_same_commits_on_every_machine(tmp_path: Path, cache: Cache, base: Tree) -> None:
    found = series.load(str(fake.series(tmp_path / "s", {"main.c": "int first;\n"})))
    other = Cache(tmp_path / "other")
    there = tree.resolve(f"tarball:{tmp_path / 'linux.tar.gz'}", other)
    assert series.apply(found, base, cache).tip == series.apply(found, there, other).tip


def test_patch_that_is_in_the_tree_already(tmp_path: Path, cache: Cache, base: Tree) -> None:
    once = fake.series(tmp_path / "s", {"main.c": "int first;\n"})
    name = next(once.glob("*.patch")).name
    (once / f"again-{name}").write_text((once / name).read_text())
    (once / "series").write_text(f"{name}\nagain-{name}\n")
    applied = series.apply(series.load(str(once)), base, cache)
    assert applied.complete
    assert [result.state for result in applied.results] == [PatchState.APPLIED, PatchState.UPSTREAM]


def test_conflict_names_file_and_hunk_and_ends_the_series(tmp_path: Path, cache: Cache, base: Tree) -> None:
    bad = fake.series(tmp_path / "s", {"main.c": "int first;\n"}, {"other.c": "four\n"})
    first, second = (bad / "series").read_text().split()[-2:]
    text = (bad / first).read_text().replace("-int main;", "-int elsewhere;").replace("index ", "index 1")
    (bad / first).write_text(text)
    applied = series.apply(series.load(str(bad)), base, cache)
    assert not applied.complete
    assert [result.state for result in applied.results] == [PatchState.CONFLICT, PatchState.NOT_TRIED]
    assert "main.c" in applied.results[0].detail
    assert "line 1" in applied.results[0].detail
    assert applied.tip == base.commit
    # The store's work tree is as good as new: another series applies.
    good = series.load(str(fake.series(tmp_path / "good", {"main.c": "int first;\n"})))
    assert series.apply(good, base, cache).complete
    assert second


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "no series file"),
        ({"series": ""}, "lists no patch"),
        ({"series": "# nothing\n"}, "lists no patch"),
        ({"series": "0001-gone.patch\n"}, "not there"),
        ({"series": "a.patch -p0\n", "a.patch": ""}, "-p0"),
        ({"series": "a.patch\n", "a.patch": "Subject: hello\n\nno diff here\n"}, "no patch"),
        ({"series": "a.patch\n", "a.patch": ""}, "no patch"),
        ({"series": "a.patch\na.patch\n", "a.patch": ""}, "twice"),
        ({"series": "a.patch\n", "a.patch": "From: A <a@x>\nSubject: x\n\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n+cut\n"}, "damaged"),
    ],
)
def test_series_that_is_not_whole(tmp_path: Path, files: dict[str, str], why: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=why):
        series.load(str(tmp_path))


def test_description_with_a_key_that_means_nothing(tmp_path: Path) -> None:
    directory = fake.series(tmp_path / "s", {"main.c": "int first;\n"})
    (directory / "series.toml").write_text('descriptoin = "typo"\n')
    with pytest.raises(UserError, match="descriptoin"):
        series.load(str(directory))


def test_unknown_series() -> None:
    with pytest.raises(UserError, match="unknown series"):
        series.load("nowhere")


def _written_after(directory: Path, *patches: str) -> Path:
    blocks = "".join(f"[[origin.patch]]\n{patch}\n" for patch in patches)
    (directory / "series.toml").write_text(f'[origin]\ntitle = "the original"\n{blocks}')
    return directory


def test_what_is_said_to_be_upstream_is_looked_for(tmp_path: Path, cache: Cache, base: Tree) -> None:
    directory = _written_after(
        fake.series(tmp_path / "s", {"main.c": "int first;\n"}),
        'title = "there"\nupstream = { file = "other.c", has = "two" }',
        'title = "gone"\nupstream = { file = "other.c", lacks = "two" }',
        'title = "never was"\nupstream = { file = "other.c", has = "nothing like it" }',
        'title = "elsewhere"\nupstream = { file = "no.c", has = "two" }',
        'title = "ours"\npatches = ["0001"]',
        'title = "for 2023"\nreason = "not needed: its user is gone"',
    )
    origin = series.load(str(directory)).written_after
    assert origin
    found = series.unfounded(origin, tree.Store(cache), base.commit)
    assert [line.split(":")[0] for line in found] == ["gone", "never was", "elsewhere"]
    assert "no.c" in found[-1]


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ('title = "a"\npatches = ["0007"]', "0007"),
        ('title = "a"', "reason"),
        ('title = "a"\nupstream = { file = "f" }', "needs one of"),
        ('title = "a"\npatches = ["0001"]\nupstream = { file = "f", has = "x" }', "either"),
    ],
)
def test_origin_that_says_nothing(tmp_path: Path, patch: str, why: str) -> None:
    directory = _written_after(fake.series(tmp_path / "s", {"main.c": "int first;\n"}), patch)
    with pytest.raises(UserError, match=why):
        series.load(str(directory))


CHECKPATCH = r"""
# Like the real one where the harness listens: a status of 1, and one line for each remark.
my $file = $ARGV[-1];
open(my $patch, "<", $file) or die;
while (<$patch>) {
    die "no idea" if /^\+.*even/;
    $found = print "$file:$.: CHECK:ODD_2: odd: word?\n" if /^\+.*odd/;
}
exit($found);
"""


def test_checkpatch(tmp_path: Path, cache: Cache) -> None:
    directory = fake.series(tmp_path / "s", {"main.c": "int odd;\n"}, {"other.c": "four\n"})
    found = series.load(str(directory))
    without = tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'without.tar.gz')}", cache)
    assert checkpatch.remarks(found, tree.Store(cache), without.commit, cache) is None
    scripts = {"linux-6.12.99/scripts/checkpatch.pl": CHECKPATCH}
    base = tree.resolve(f"tarball:{fake.write_tarball(tmp_path / 'linux.tar.gz', scripts)}", cache)
    said = checkpatch.remarks(found, tree.Store(cache), base.commit, cache)
    assert said is not None
    (remark,) = said
    assert (remark.patch, remark.type, remark.text) == ("0001-change-1.patch", "ODD_2", "odd: word?")
    assert remark.line == (directory / remark.patch).read_text().splitlines().index("+int odd;") + 1

    assert list(checkpatch.unargued(said, [])) == [str(remark)]
    assert not list(checkpatch.unargued(said, [Argued("ODD_2", "it is not", "0001-*")]))
    unanswered, unsaid = checkpatch.unargued(said, [Argued("ODD_2", "it is not", "0002-*")])
    assert unanswered == str(remark)
    assert "0002-*" in unsaid

    broken = series.load(str(fake.series(tmp_path / "broken", {"main.c": "int even;\n"})))
    with pytest.raises(InfrastructureError, match="failed on 0001"):
        checkpatch.remarks(broken, tree.Store(cache), base.commit, cache)
