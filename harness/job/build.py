"""From a point of the series to the kernel that a job tests, and the cases that tell of it."""

from __future__ import annotations

import functools

from harness import kernel, series, tree
from harness.arch import Arch
from harness.errors import UserError
from harness.job.context import Built, Context
from harness.job.reporter import Failed, Reporter
from harness.kernel import kconfig
from harness.model import WARNINGS, CaseResult, Kernel, Outcome, PatchState, Point, Position
from harness.results import JobFacts, kcidb

_PATCH_OUTCOMES = {
    PatchState.APPLIED: (Outcome.PASS, ""),
    PatchState.FUZZY: (Outcome.PASS, "fuzzy: it took a 3-way merge"),
    PatchState.UPSTREAM: (Outcome.SKIP, "its change is in the tree already"),
    PatchState.CONFLICT: (Outcome.FAIL, ""),
    PatchState.FORBIDDEN: (Outcome.FAIL, ""),
    PatchState.NOT_TRIED: (Outcome.LOST, "not tried"),
}


def facts(context: Context, point: Point) -> JobFacts:
    """What is known of a job before it begins."""
    return JobFacts(
        base=context.tree.commit,
        commit=point.commit,
        number=point.number,
        patch=point.patch or "none",
        tree=context.tree.source,
        selftests=context.tests(point),
        patchset=_patchset(context, point),
    )


def _patchset(context: Context, point: Point) -> str | None:
    """KCIDB's name for the patches that are on top of the tree. None for a kernel that was built
    elsewhere: its patches are not known."""
    if context.request.given:
        return None
    patches = list(zip(context.request.series.patches, context.applied.results, strict=True))[: point.number]
    ours = [patch.path for patch, result in patches if result.state is not PatchState.UPSTREAM]
    return kcidb.patchset_hash(ours)


def report_patches(context: Context, point: Point, reporter: Reporter) -> None:
    """Those that are new at this point. Raises Failed if one that it needs did not apply."""
    request, applied = context.request, context.applied
    for patch in applied.results[context.news[point.number]]:
        outcome, why = _PATCH_OUTCOMES[patch.state]
        reporter.emit(CaseResult("apply", patch.patch, outcome, diagnostic=patch.detail or why))
    whole = point.position is Position.WHOLE and not request.given
    if whole and (origin := request.series.written_after):
        wrong = series.unfounded(origin, context.store, context.tree.commit)
        outcome = Outcome.FAIL if wrong else Outcome.PASS
        reporter.emit(CaseResult("apply", "upstream", outcome, diagnostic="\n".join(wrong)))
    if not all(patch.state.good for patch in applied.results[: point.number]):
        raise Failed


def make(context: Context, arch: Arch, point: Point, toolchain: kernel.Toolchain, reporter: Reporter) -> tuple[Kernel, bool]:
    """The kernel, and whether it was there already. Raises Failed, UserError, and what a stage reports as an error."""
    if context.request.given:
        return _adopt(context, context.request.given, arch, point, toolchain, reporter)
    return _build(context, arch, point, toolchain, reporter)


def _adopt(
    context: Context, wanted: kernel.Given, arch: Arch, point: Point, toolchain: kernel.Toolchain, reporter: Reporter
) -> tuple[Kernel, bool]:
    given, cached = kernel.adopt(wanted, arch, toolchain, point.commit, context.cache)
    check_same(reporter, JobFacts(kernel=given.digest))
    if own := context.request.series.fragment:
        sources = functools.partial(tree.sources, context.store, point.commit)
        try:
            kconfig.prove(given.config, arch, [own], [own], (), sources, toolchain)
        except kernel.ConfigNotProved as failure:
            reporter.emit(CaseResult("config", "config", Outcome.FAIL, diagnostic=failure.message))
            raise Failed from None
        reporter.emit(CaseResult("config", "config", Outcome.PASS))
    reporter.add_facts(
        JobFacts(
            release=given.release,
            config=given.config_digest,
            compiler=given.compiler,
            kernel=given.digest,
        )
    )
    if not given.build_ids:
        reporter.say("the image holds no readable build id: boot:identity cannot prove that the guest runs this kernel")
    reporter.policy.version = kernel.version_of(wanted, given)
    reporter.say(f"kernel {given.release}: {wanted.image}")
    return given, cached


def _build(context: Context, arch: Arch, point: Point, toolchain: kernel.Toolchain, reporter: Reporter) -> tuple[Kernel, bool]:
    own = tuple(filter(None, [context.request.series.fragment]))
    whole = point.position is Position.WHOLE
    try:
        built, cached = kernel.build(
            point,
            arch,
            kernel.fragments_for(arch, [*context.request.fragments, *own]),
            toolchain,
            context.cache,
            context.before.directory / reporter.name,
            jobserver=context.jobserver,
            required=own if whole else (),
            unproved=() if whole else own,
            progress=lambda objects, file: reporter.step("build", file, f"{objects} objects"),
        )
    except kernel.ConfigNotProved as failure:
        reporter.emit(CaseResult("config", "config", Outcome.FAIL, diagnostic=failure.message))
        raise Failed from None
    except kernel.BuildFailed as failure:
        reporter.emit(CaseResult("config", "config", Outcome.PASS))
        reporter.emit(CaseResult("build", "build", Outcome.FAIL, diagnostic=failure.message, log=failure.hint))
        raise Failed from None
    # A digest holds more than one build if something has a say that it leaves out.
    check_same(reporter, JobFacts(kernel=built.digest, build_id=built.build_ids[0]))
    now = Built(point, built.warnings)
    reporter.emit(CaseResult("config", "config", Outcome.PASS))
    reporter.emit(CaseResult("build", "build", Outcome.PASS, seconds=built.seconds, log="\n".join(built.warnings)))
    reporter.add_facts(_facts_of(built))
    if before := context.built.get(arch.name):
        report_warnings(before, now, reporter)
    context.built[arch.name] = now
    if not cached:
        reporter.durations.note("build", built.seconds)
        reporter.durations.save()
    made = "in the cache" if cached else f"{built.objects} objects in {built.seconds:.0f} s"
    if built.modules_error:
        reporter.say(f"the harness's own modules do not build: {built.modules_error}")
    ccache = f", ccache hit {built.ccache}" if built.ccache and not cached else ""
    warnings = f", {len(built.warnings)} warnings" if built.warnings else ""
    reporter.say(f"kernel {built.release}: {made}{ccache}{warnings}")
    return built, cached


def _facts_of(built: Kernel) -> JobFacts:
    return JobFacts(
        release=built.release,
        config=built.config_digest,
        compiler=built.compiler,
        kernel=built.digest,
        warnings=len(built.warnings),
        objects=built.objects,
        build_id=built.build_ids[0],
    )


def check_same(reporter: Reporter, now: JobFacts) -> None:
    """Raises UserError if the cases that were finished before ran on another kernel or in another
    guest, by these facts."""
    before = reporter.before.properties
    for name, value in now.properties.items():
        if before.get(name, value) != value:
            what = "guest's initramfs" if name == "initramfs" else "kernel"
            raise UserError(
                f"{reporter.name}: the {what} is not the one that the finished cases ran on",
                hint="the compiler, the harness or the kernel has changed since: start a new run",
            )


def report_warnings(before: Built, now: Built, reporter: Reporter) -> None:
    """New ones are charged to the patches since the point before."""
    if before.point.number >= now.point.number:
        return
    found = kernel.new_warnings(now.warnings, before.warnings)
    why = f"{len(found)} new since {before.point.name}: {found[0]}" if found else ""
    suite, _, name = WARNINGS.partition(":")
    outcome = Outcome.FAIL if found else Outcome.PASS
    reporter.emit(CaseResult(suite, name, outcome, diagnostic=why, log="\n".join(found)))
