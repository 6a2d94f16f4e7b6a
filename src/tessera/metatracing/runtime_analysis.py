"""Analyses of a running runtime: recommendations for the kernels behind its traces, and events inside of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tessera.errors import TesseraError
from tessera.metatracing.analysis.analyzer import AnalysisResult, PatternAnalyzer
from tessera.metatracing.analysis.recommendations import Recommender
from tessera.metatracing.analysis.specializations import SpecializationRecommendation
from tessera.metatracing.analysis.trials import Trial, random_like
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.models.kernel_times import KernelTimes
from tessera.metatracing.models.situation import Situation
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import AttentionTrace, ExecutionTier, InputProfile
from tessera.tiers.reports import ReportingRuntime
from tessera.tiers.sites.specialization_site import SpecializationSite
from tessera.tiers.stand_ins import stand_ins

MOST = 4
"""Inputs that are looked into: each may take a second."""


def _site_of(runtime: ReportingRuntime, profile: InputProfile) -> tuple[SpecializationSite, KernelClient] | None:
    """The site that calls with an input had, and its kernel; None for functions."""
    for site in runtime.sites():
        mine = any(record.arguments == profile.arguments for record in site.ring)
        if site.name == profile.site and isinstance(site.client, KernelClient) and mine:
            return site, site.client
    return None


# Recommendations


class RunningRecommender:
    """Recommends for the inputs of a runtime's sites; only kernels have recommendations, functions have none."""

    def __init__(
        self, runtime: ReportingRuntime, times: KernelTimes, tolerance: float | None = None, trial: Trial | None = None
    ) -> None:
        self._runtime, self._tolerance = runtime, tolerance
        self._alone, self._trying = Recommender(times), Recommender(times, trial=trial)

    def __call__(self, traces: Sequence[AttentionTrace]) -> list[SpecializationRecommendation]:
        """Recommends for the input of traces; trials run on new arrays with the same layout, as none are kept."""
        profile = traces[-1].input_profile
        found = _site_of(self._runtime, profile)
        if found is None:
            return []
        if self._trying.trial is not None:
            drawn = [random_like(one) if isinstance(one, Meta) else one for one in profile.arguments]
            if all(one is not None for one in drawn):
                return self._trying.recommend(self._situation(*found, drawn))
        return self._alone.recommend(self._situation(*found, stand_ins(profile.arguments)))

    def _situation(self, site: SpecializationSite, client: KernelClient, args: Sequence[object]) -> Situation:
        """The kernel as the site runs it now: under the schedule in use, with what is assumed."""
        program = site.programs[0] if site.programs else None
        here, level = site.first.context.settings, None if program is None else program.level
        if level is not None and here is not None:
            level = client.resolved(site.first, level, here, make=False)
        schedule = None if level is None else level.schedule
        kernel = client.kernel if schedule is None else client.kernel.with_schedule(schedule)
        assumed = program is not None and program.tier is ExecutionTier.TIER3_SPECIALIZED
        static = site.first.context.static
        return Situation(kernel, tuple(args), static, self._alone.times.machine, assumed, self._tolerance)


# Events


def with_events(runtime: ReportingRuntime, traces: Sequence[AttentionTrace]) -> list[AttentionTrace]:
    """Traces; the last one of each hot input with the events of the program that its site runs for it now."""
    spent: Counter[InputProfile] = Counter()
    for one in traces:
        spent[one.input_profile] += round(1e6 * one.total_ms)
    hot = {profile for profile, _ in spent.most_common(MOST)}
    made: list[AttentionTrace] = []
    for one in reversed(traces):
        if one.input_profile in hot:
            hot.remove(one.input_profile)
            made.append(_looked_into(runtime, one))
        else:
            made.append(one)
    return made[::-1]


def _looked_into(runtime: ReportingRuntime, trace: AttentionTrace) -> AttentionTrace:
    """A trace with events of memory, and on a GPU of units that compute; as it is where there is no program."""
    from tessera.metatracing.events.host import HostExecution, HostMemoryPatternTracer
    from tessera.metatracing.events.tracers import GPUComputePatternTracer, GPUMemoryPatternTracer

    found = _site_of(runtime, trace.input_profile)
    if found is None:
        return trace
    site, client = found
    call = site.first._replace(values=tuple(stand_ins(trace.input_profile.arguments)))
    program = next((one for one in site.programs if one.serves(call.values)), None)
    if program is None:
        return trace
    seconds = trace.execution_pattern.execution_time_ms / 1e3
    try:
        launch = client.execution(program.compiled, program.level, call, seconds or None)
        if launch is None:
            return trace
        if isinstance(launch, HostExecution):
            memory, compute = HostMemoryPatternTracer().trace_memory_patterns(launch), ()
        else:
            memory = GPUMemoryPatternTracer().trace_memory_patterns(launch)
            compute = GPUComputePatternTracer().trace_compute_patterns(launch).events
    except TesseraError:  # there is no such program here
        return trace
    pattern = replace(trace.execution_pattern, memory_accesses=memory.events, compute_events=compute)
    return replace(trace, execution_pattern=pattern)


def analyze(
    runtime: ReportingRuntime,
    times: KernelTimes | None = None,
    tolerance: float | None = None,
    trial: Trial | None = None,
    *,
    inside: bool = False,
) -> AnalysisResult:
    """Analyzes a runtime's traces; with a model of its machine, also recommends for its hotspots.

    `inside`: programs of hot inputs are looked into, too.
    """
    recommending = None if times is None else RunningRecommender(runtime, times, tolerance, trial)
    traces = runtime.get_traces()
    return PatternAnalyzer(recommending).analyze_traces(with_events(runtime, traces) if inside else traces)
