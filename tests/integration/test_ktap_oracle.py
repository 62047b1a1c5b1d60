"""The kernel's own parser has the same counts for every log that it is tested with, or there is a reason."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from harness import process, series, tree
from harness.cache import Cache
from harness.logs import ktap
from tests import surroundings

ARGUED = Path(__file__).parent.parent / "data" / "kunit-oracle.toml"
WORDS = {"passed": "pass", "failed": "fail", "skipped": "skip", "crashed": "lost"}


def test_counts_are_those_of_kunit_py(tmp_path: Path) -> None:
    cache = Cache(surroundings.cache_folder())
    source = tree.resolve(tree.default_spec(series.load("fprobe-on-fgraph").tested_on), cache)
    # Where it stands tells it where the kernel is.
    folder = tmp_path / "tools" / "testing" / "kunit"
    folder.mkdir(parents=True)
    tree.Store(cache).archive(source.commit, "tools/testing/kunit", folder)
    logs = sorted((folder / "test_data").glob("*.log"))
    argued = tomllib.loads(ARGUED.read_text())
    assert len(logs) > 20
    assert set(argued) <= {log.name for log in logs}
    for log in logs:
        theirs = process.run([sys.executable, folder / "kunit.py", "parse", log], cwd=tmp_path, check=False)
        said = re.search(r"Ran \d+ tests?: (.*)", theirs.stdout)
        assert said, theirs.stdout
        counts = {WORDS[word]: int(count) for word, count in re.findall(r"(\w+): (\d+)", said[1]) if word in WORDS}
        with log.open("rb") as file:
            cases = ktap.parse(file)
        ours = ktap.summary(cases)
        if log.name in argued:
            assert ours == argued[log.name]["counts"] != counts, log.name
            assert argued[log.name]["reason"]
        elif counts or "errors" not in said[1]:
            assert ours == counts, log.name
        else:
            # It ran nothing, and that is an error.
            assert not any(one.outcome.green for one in cases), log.name
