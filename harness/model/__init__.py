"""The values that travel: frozen, typed, built by one stage and read by the next.

    Series -> Tree -> AppliedSeries -> Point -> KernelConfig -> Kernel -> Initramfs -> (a booted guest) -> CaseResult

Paths are absolute, durations are seconds, digests are hexadecimal sha256."""

from harness.model.codec import from_json, to_json
from harness.model.kernel import (
    BASE,
    LAST,
    AppliedSeries,
    Initramfs,
    Kernel,
    KernelConfig,
    PatchResult,
    Point,
    Position,
    SymbolRequest,
    Tree,
)
from harness.model.result import BUILT, JOB, POINTED_OUT, WARNINGS, CaseResult, Difference, Kind, Outcome, Usage, label_of
from harness.model.series import (
    ABSENT,
    Argued,
    CasePattern,
    Claim,
    Condition,
    Evidence,
    Measure,
    Origin,
    OriginalPatch,
    Patch,
    PatchState,
    Series,
    Setting,
)

__all__ = [
    "ABSENT",
    "BASE",
    "BUILT",
    "JOB",
    "LAST",
    "POINTED_OUT",
    "WARNINGS",
    "AppliedSeries",
    "Argued",
    "CasePattern",
    "CaseResult",
    "Claim",
    "Condition",
    "Difference",
    "Evidence",
    "Initramfs",
    "Kernel",
    "KernelConfig",
    "Kind",
    "Measure",
    "Origin",
    "OriginalPatch",
    "Outcome",
    "Patch",
    "PatchResult",
    "PatchState",
    "Point",
    "Position",
    "Series",
    "Setting",
    "SymbolRequest",
    "Tree",
    "Usage",
    "from_json",
    "label_of",
    "to_json",
]
