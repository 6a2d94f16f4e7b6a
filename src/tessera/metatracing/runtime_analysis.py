"""Recommendations for a running runtime: the kernels behind its traces, in the form that they run in now."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.metatracing.analysis.analyzer import AnalysisResult, PatternAnalyzer
from tessera.metatracing.analysis.recommendations import Recommender
from tessera.metatracing.analysis.specializations import SpecializationRecommendation
from tessera.metatracing.analysis.trials import Trial, drawn_like
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.models.kernel_times import KernelTimes
from tessera.metatracing.models.situation import Situation
from tessera.metatracing.runtime_events import with_events
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import AttentionTrace, ExecutionTier
from tessera.tiers.reports import ReportingRuntime
from tessera.tiers.sites.specialization_site import Region
from tessera.tiers.stand_ins import stand_in


class RunningRecommender:
    """Recommends for the inputs of a runtime's regions; only kernels have recommendations, functions have none."""

    def __init__(
        self, runtime: ReportingRuntime, times: KernelTimes, tolerance: float | None = None, trial: Trial | None = None
    ) -> None:
        self._runtime, self._tolerance = runtime, tolerance
        self._alone, self._trying = Recommender(times), Recommender(times, trial=trial)

    def __call__(self, traces: Sequence[AttentionTrace]) -> list[SpecializationRecommendation]:
        profile = traces[-1].input_profile
        for region in self._runtime.regions():
            client = region.client
            mine = any(record.arguments == profile.arguments for record in region.ring)
            if region.name == profile.region and isinstance(client, KernelClient) and mine:
                return self._recommended(region, client, profile.arguments)
        return []

    def _recommended(
        self, region: Region, client: KernelClient, arguments: Sequence[object]
    ) -> list[SpecializationRecommendation]:
        """Nobody keeps the arrays of calls: trials are made on others that lie as those did, where these can be had."""
        if self._trying.trial is not None:
            drawn = [drawn_like(one) if isinstance(one, Meta) else one for one in arguments]
            if all(one is not None for one in drawn):
                return self._trying.recommend(self._situation(region, client, drawn))
        stand_ins = [stand_in(one) if isinstance(one, Meta) else one for one in arguments]
        return self._alone.recommend(self._situation(region, client, stand_ins))

    def _situation(self, region: Region, client: KernelClient, args: Sequence[object]) -> Situation:
        """The kernel as the region runs it now: under the schedule in use, with what is assumed."""
        program = region.programs[0] if region.programs else None
        here, level = region.first.context.settings, None if program is None else program.level
        if level is not None and here is not None:
            level = client.resolved(region.first, level, here, make=False)
        schedule = None if level is None else level.schedule
        kernel = client.kernel if schedule is None else client.kernel.with_schedule(schedule)
        assumed = program is not None and program.tier is ExecutionTier.TIER3_SPECIALIZED
        static = region.first.context.static
        return Situation(kernel, tuple(args), static, self._alone.times.machine, assumed, self._tolerance)


def analyze(
    runtime: ReportingRuntime,
    times: KernelTimes | None = None,
    tolerance: float | None = None,
    trial: Trial | None = None,
    *,
    inside: bool = False,
) -> AnalysisResult:
    """What a runtime's traces show, and, with a model of its machine, what is recommended for its hotspots.

    `inside`: programs of hot inputs are looked into, too.
    """
    recommending = None if times is None else RunningRecommender(runtime, times, tolerance, trial)
    traces = runtime.get_traces()
    return PatternAnalyzer(recommending).analyze_traces(with_events(runtime, traces) if inside else traces)
