"""Where patches come from, and how they are applied."""

from harness.series import points
from harness.series.apply import apply
from harness.series.checkpatch import remarks, unargued
from harness.series.load import NONE, bundled, load
from harness.series.origin import unfounded

__all__ = ["NONE", "apply", "bundled", "load", "points", "remarks", "unargued", "unfounded"]
