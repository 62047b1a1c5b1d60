"""Find the patch that turns a case red: base must be green and last red, and then as few points between as it takes."""

from __future__ import annotations

import glob
from collections.abc import Iterator

from msgspec import Struct

from harness import series
from harness.errors import InfrastructureError, UserError
from harness.model import BASE, BUILT, WARNINGS, CaseResult, Outcome, Point
from harness.pipeline import Prepared
from harness.request import Request
from harness.results import JobReport, journal, read_run
from harness.results.journal import Verdict
from harness.results.reproduce import STAGES
from harness.tree import Store


class Seen(Struct, frozen=True):
    """What a point shows. Without a result it could not be tested, and `why` says so."""

    point: Point
    result: CaseResult | None
    why: str = ""

    @property
    def red(self) -> bool:
        return self.result is not None and not self.result.outcome.green

    @property
    def green(self) -> bool:
        return self.result is not None and self.result.outcome.green


def suite_specs(case: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """What `--suite` (None for no guest at all) and `--cmd` would be for the case `suite:name`. Raises UserError."""
    suite, _, name = case.partition(":")
    if not name:
        raise UserError(f"'{case}' is no case", hint="SUITE:NAME, as the summary of a run has it")
    if suite == "apply" or case == WARNINGS:
        raise UserError(f"'{case}' cannot be bisected", hint="`harness series check` and --per-patch say it of every patch")
    if suite in BUILT:
        return None, ()
    if suite in STAGES:
        raise UserError(f"'{case}' is no case of the kernel", hint="what goes wrong on this machine is no patch's fault")
    if suite == "command":
        return (), (name,)
    return (f"{suite}:{glob.escape(name)}",), ()


class Bisection:
    """A plan for the pipeline. It goes where a killed one was going, since the journal has what was tested before."""

    def __init__(self, request: Request, case: str, repeat: int, good: str = BASE) -> None:
        """Green is what is green `repeat` times; `good` is the point at which it is said to be. Raises UserError for what cannot
        be bisected."""
        if len(request.archs) != 1:
            raise UserError("a bisection needs one architecture", hint="--arch A")
        if not request.series.patches:
            raise UserError(f"the series '{request.series.name}' has no patches", hint="--series")
        self._request = request
        self._arch = request.archs[0].name
        self._case = case
        self._repeat = repeat
        self._good = series.points.number_of(good, request.series)
        if self._good == len(request.series.patches):
            raise UserError("the last point is where it is red", hint="--good names one before it")
        self._seen: dict[int, Seen] = {}

    def __call__(self, prepared: Prepared) -> None:
        ends = [self._good, len(self._request.series.patches)]
        good, bad = (self._probe(number, prepared) for number in ends)
        if good.green and bad.red:
            low, high = ends
            while (middle := self._next(low, high)) is not None:
                seen = self._probe(middle, prepared)
                low, high = (middle, high) if seen.green else (low, middle) if seen.red else (low, high)
            good, bad = self._seen[low], self._seen[high]
        self._tell(good, bad, prepared)

    def _next(self, low: int, high: int) -> int | None:
        """The untested point nearest to the middle."""
        left = [number for number in range(low + 1, high) if number not in self._seen]
        return min(left, key=lambda number: abs(2 * number - low - high), default=None)

    def _probe(self, number: int, prepared: Prepared) -> Seen:
        context = prepared.context
        for attempt in range(1, self._repeat + 1):
            # What the series promises as a whole, no single patch can break.
            point = series.points.make(number, self._request.series, context.applied, attempt, promising=False)
            prepared.test([point])
            seen = self._look(point, read_run(context.before.directory).job(self._arch, point.name))
            self._seen[number] = seen
            if not seen.green:
                break
        result = seen.result
        context.progress.say(f"{self._arch}/{seen.point.name}: {result.outcome.value if result else seen.why}: {self._case}")
        return seen

    def _look(self, point: Point, job: JobReport) -> Seen:
        """Raises InfrastructureError if it was our fault."""
        results = {result.id: result for result in job.results}
        if broken := next((one for one in results.values() if one.outcome is Outcome.ERROR), None):
            raise InfrastructureError(f"{job.arch}/{job.point}: {broken.id}: {broken.diagnostic}", hint="harness bisect --resume")
        found = results.get(self._case)
        if found and found.ran and found.outcome is not Outcome.SKIP:
            return Seen(point, found)
        # Neither a case that is skipped nor one that nobody came to run is green, or red.
        whys = [one for one in results.values() if not one.outcome.green and one.id not in (self._case, WARNINGS)]
        whys += [found] if found else []
        return Seen(point, None, f"{whys[0].id}: {whys[0].outcome}: {whys[0].diagnostic}" if whys else "no such case")

    def _tell(self, good: Seen, bad: Seen, prepared: Prepared) -> None:
        patches = self._request.series.patches[good.point.number : bad.point.number] if good.green and bad.red else ()
        store = Store(prepared.context.cache)
        stat = store.git("diff", "--stat", good.point.commit, bad.point.commit).stdout.rstrip() if patches else ""
        event = journal.Bisected(
            journal.now(),
            self._arch,
            self._case,
            Verdict.FOUND if patches else Verdict.GREEN if bad.green else Verdict.UNKNOWN,
            good=good.point.name if good.green else "",
            bad=bad.point.name if bad.red else "",
            suspects=tuple(patch.name for patch in patches),
            diffstat=stat,
            skipped={seen.point.name: seen.why for seen in self._seen.values() if seen.result is None},
            kernels=len(self._seen),
            answer=" ".join(self._answer(good, bad)),
        )
        prepared.context.events.write(event)

    def _answer(self, good: Seen, bad: Seen) -> Iterator[str]:
        if good.green and bad.red:
            number = bad.point.number - good.point.number
            yield bad.point.patch if number == 1 else f"one of {number} patches that cannot be told apart"
            yield f"turns {self._case} red"
            return
        for seen, wanted, right in ((good, "green", good.green), (bad, "red", bad.red)):
            if seen.result is None:
                yield f"{seen.point.name} cannot be tested ({seen.why})."
            elif not right:
                yield f"{seen.point.name} is not {wanted}, but {seen.result.outcome.value}."
        if not good.green:
            yield "--good P names another point at which it is green."
        if bad.green:
            yield "If it is red in a run, that is for what the series promises as a whole: must-run cases, claims, limits."
            yield "There is nothing to bisect."
