"""Where patches come from, and how they are applied."""

from harness.series import conditions, points, preimages
from harness.series.apply import apply
from harness.series.check import check
from harness.series.describe import wrong
from harness.series.export import export
from harness.series.load import NONE, bundled, load, referred, trespasses
from harness.series.origin import unfounded

__all__ = [
    "NONE",
    "apply",
    "bundled",
    "check",
    "conditions",
    "export",
    "load",
    "points",
    "preimages",
    "referred",
    "trespasses",
    "unfounded",
    "wrong",
]
