"""Recommendations for a running runtime: the kernels behind its traces, in the form that they run in now."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.metatracing.analysis.analyzer import AnalysisResult, PatternAnalyzer
from tessera.metatracing.analysis.recommendations import Recommender
from tessera.metatracing.analysis.specializations import SpecializationRecommendation
from tessera.metatracing.analysis.trials import Trial, random_like
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.models.kernel_times import KernelTimes
from tessera.metatracing.models.situation import Situation
from tessera.metatracing.runtime_events import with_events
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import AttentionTrace, ExecutionTier
from tessera.tiers.reports import ReportingRuntime
from tessera.tiers.sites.specialization_site import SpecializationSite
from tessera.tiers.stand_ins import stand_in


class RunningRecommender:
    """Recommends for the inputs of a runtime's sites; only kernels have recommendations, functions have none."""

    def __init__(
        self, runtime: ReportingRuntime, times: KernelTimes, tolerance: float | None = None, trial: Trial | None = None
    ) -> None:
        self._runtime, self._tolerance = runtime, tolerance
        self._alone, self._trying = Recommender(times), Recommender(times, trial=trial)

    def __call__(self, traces: Sequence[AttentionTrace]) -> list[SpecializationRecommendation]:
        profile = traces[-1].input_profile
        for site in self._runtime.sites():
            client = site.client
            mine = any(record.arguments == profile.arguments for record in site.ring)
            if site.name == profile.site and isinstance(client, KernelClient) and mine:
                return self._recommended(site, client, profile.arguments)
        return []

    def _recommended(
        self, site: SpecializationSite, client: KernelClient, arguments: Sequence[object]
    ) -> list[SpecializationRecommendation]:
        """Recommends for arguments; trials run on new arrays with the same layout, as those of calls are not kept."""
        if self._trying.trial is not None:
            drawn = [random_like(one) if isinstance(one, Meta) else one for one in arguments]
            if all(one is not None for one in drawn):
                return self._trying.recommend(self._situation(site, client, drawn))
        stand_ins = [stand_in(one) if isinstance(one, Meta) else one for one in arguments]
        return self._alone.recommend(self._situation(site, client, stand_ins))

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
