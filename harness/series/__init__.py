"""Where patches come from, and how they are applied."""

from harness.series.apply import apply
from harness.series.load import NONE, bundled, load

__all__ = ["NONE", "apply", "bundled", "load"]
