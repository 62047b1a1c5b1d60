"""Values as JSON, and back."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_json(value: object) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(value, enc_hook=str)


def from_json(data: bytes | str, type: type[T]) -> T:
    """Raises msgspec.DecodeError if `data` does not have the shape of `type`."""
    return msgspec.json.decode(data, type=type, dec_hook=_decode_path)


def _decode_path(type: type[Any], value: Any) -> Any:
    return type(value)
