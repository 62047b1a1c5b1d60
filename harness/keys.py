"""Keys of what is cached, compared or shared: digests of the values that it depends on.

A key is made from canonical JSON, which does not name classes or modules: code can be renamed, and
caches, comparisons and histories stay valid. The names of a struct's fields do count;
tests/unit/test_keys.py has an example of each key."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec


def key(kind: str, version: int, **values: object) -> str:
    """The sha256, in hexadecimal, of `values`: structs, paths and whatever JSON can represent.

    With another `version` the same values have another key. It changes when something else is
    made from the same values."""
    document = {"kind": kind, "version": version, "values": values}
    return hashlib.sha256(msgspec.json.encode(document, enc_hook=_path, order="sorted")).hexdigest()


def _path(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"a key cannot depend on a {type(value).__name__}")
