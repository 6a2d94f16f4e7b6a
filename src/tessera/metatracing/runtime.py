"""The runtime: it runs clients in tiers, and reports on them."""

from __future__ import annotations

import atexit
import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from tessera.forking import fork_waits_for, tell_in_child
from tessera.metatracing.attention import AttentionParams, attention_operations
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.clients.worker import BUILD, READY
from tessera.metatracing.models.tier_up import TierUpModel
from tessera.metatracing.ranks import DistributedExecutionTracer
from tessera.metatracing.upper_tiers import EnhancedTesseraCompiler, SpecializedKernelGenerator
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.stdlib import flash_attention
from tessera.tiers.client import CAUSAL, SCALE, Call, Client, TierLevel, argument_named
from tessera.tiers.compiling.background import BackgroundCompiler
from tessera.tiers.config import RuntimeConfig
from tessera.tiers.logs import log
from tessera.tiers.manager import KernelManager
from tessera.tiers.records import (
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    InputProfile,
    PerformanceSample,
    Record,
    bytes_of,
)
from tessera.tiers.reports import RuntimeStats
from tessera.tiers.risks import RiskWatch
from tessera.tiers.sites.ab_test import Contender
from tessera.tiers.sites.counts import Counts
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.hotness import Clock, system_clock
from tessera.tiers.sites.request import Request, RequestCompiler
from tessera.tiers.sites.schedule_history import ScheduleHistory
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.sites.specialization_site import SpecializationSite
from tessera.tiers.sites.stats_recorder import BackgroundRecorder, StatsRecorder
from tessera.tiers.stand_ins import values_of
from tessera.tiers.tiered import Tiered
from tessera.tile.calls.function import Kernel

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from tessera.metatracing.analysis.analyzer import AnalysisResult
    from tessera.metatracing.analysis.trials import Trial
    from tessera.metatracing.models.kernel_times import KernelTimes


class RuntimeResult(NamedTuple):
    """The result of a call: the output that it filled, and the tier that it ran at."""

    output: Tensor
    tier_used: ExecutionTier
    success: bool = True


class MetaTracingRuntime:
    """Runs kernels in tiers: `runtime.tiered(kernel)` is called like the kernel. Any thread may call.

    `clock` gives nanoseconds; `compiling` is the compiler of requests: background processes, unless the config says no.
    """

    def __init__(
        self,
        config: RuntimeConfig | None = None,
        *,
        clock: Clock = system_clock,
        compiling: RequestCompiler | None = None,
    ) -> None:
        self.config = RuntimeConfig() if config is None else config
        self.clock = clock
        self.counts = Counts(clock)
        self.manager = KernelManager(self.config, self.counts, clock, self.sites)
        if compiling is None:
            background = self.config.background_compilation
            compiling = (
                BackgroundCompiler(self.config.compile_timeout_s, BUILD, READY) if background else RequestCompiler()
            )
        self.compiling = compiling
        # With a clock of the caller's own, calls are recorded at known times.
        beside = isinstance(compiling, BackgroundCompiler) and clock is system_clock
        self.stats_recorder = BackgroundRecorder() if beside else StatsRecorder()
        self.distributed: DistributedExecutionTracer | None = None
        if self.config.enable_distributed_tracing:
            rank_and_size = self.config.distributed_rank, self.config.distributed_world_size
            self.distributed = DistributedExecutionTracer(*rank_and_size).start()
        self.schedule_history = ScheduleHistory()
        self.standard_compiler = EnhancedTesseraCompiler(self.schedule_history)
        self.specialized_compiler = SpecializedKernelGenerator(self.schedule_history)
        self.tier_up_model = TierUpModel()
        self._tiered: dict[int, Tiered] = {}
        self._kernels: dict[Kernel, Tiered] = {}
        self._attention: Tiered | None = None
        self._lent: weakref.WeakSet[Tiered] = weakref.WeakSet()
        self._lock = threading.Lock()
        self.watch = RiskWatch(self) if self.config.mitigate_risks else None
        atexit.register(_close, weakref.ref(self))
        tell_in_child(self)

    # Clients

    def tiered(self, client: Kernel | Client) -> Tiered:
        """A kernel, or another client, that runs in tiers; the same one for the same client."""
        with self._lock:
            if isinstance(client, Kernel):
                if client not in self._kernels:
                    self._kernels[client] = Tiered(self, KernelClient(client))
                return self._kernels[client]
            # The runtime keeps the client, so that its number stays its own.
            if id(client) not in self._tiered:
                self._tiered[id(client)] = Tiered(self, client)
            return self._tiered[id(client)]

    def lent(self, client: Client) -> Tiered:
        """A client in tiers that belongs to the caller: when that drops it, its tiers are gone."""
        tiered = Tiered(self, client)
        with self._lock:
            self._lent.add(tiered)
        return tiered

    def _everything(self) -> list[Tiered]:
        with self._lock:
            return [*self._tiered.values(), *self._kernels.values(), *self._lent]

    def sites(self) -> list[SpecializationSite]:
        """All sites, once the calls so far are in their records; of a GPU, those that it has finished."""
        self.stats_recorder.settle()
        found = [site for tiered in self._everything() for site in list(tiered.sites.values())]
        for site in found:
            site.collect()
        return found

    # For sites

    def can_compile(self, call: Call, client: Client) -> bool:
        """Whether a faster program for a call can follow: then the first one need not be fast."""
        packed = (
            client.request(call, [TierLevel(ExecutionTier.TIER2_STANDARD)])
            if isinstance(self.compiling, BackgroundCompiler)
            else b""
        )
        return self.compiling.can_compile(packed)

    def tier_up_pays(self, site: TieredSite, entry: SiteEntry, tier: ExecutionTier, levels: int) -> bool:
        """Whether programs of a tier are worth trying, by the gains of earlier ones."""
        call = median(entry.recent) if entry.recent else 0.0
        runs = levels * (self.config.contest_rounds + 1)
        if self.tier_up_model.pays(site.device_kind, tier, site.hotness.at(self.clock()), call, runs):
            return True
        log("tiers", f"{site.name}: tier {int(tier)} is not tried, it gained too little so far")
        return False

    def learn(
        self,
        site: TieredSite,
        entry: SiteEntry,
        tier: ExecutionTier,
        times: Mapping[Contender, float | None],
        before: float | None,
        won: float | None,
    ) -> None:
        """Takes in the result of an A/B test: the time of each schedule, and the gain."""
        if before is not None and won is not None:
            self.tier_up_model.note(site.device_kind, tier, before, min(before, won))
        took = {one.program.level.schedule: seconds for one, seconds in times.items() if seconds is not None}
        self.schedule_history.note((site.client.name, site.first.fixed), entry.described, took)

    def compile(self, *requests: Request) -> None:
        """Has requests compiled."""
        began = self.clock()
        for request in requests:
            about = request.tier, request.site.name
            request.done = lambda about=about: self._compiled(about[0], self.clock() - began, about[1])
        self.compiling.submit(*requests)

    def _compiled(self, tier: ExecutionTier, nanoseconds: int, site: str) -> None:
        compiler = self.standard_compiler if tier is ExecutionTier.TIER2_STANDARD else self.specialized_compiler
        compiler.compiled(site, nanoseconds)
        self.counts.event_log.add("compile", site, f"tier {int(tier)}", duration=nanoseconds)

    def wait_for_compilation(self, timeout: float = 60.0) -> bool:
        """Waits until nothing is being compiled; False where that takes longer."""
        self.stats_recorder.settle()
        return self.compiling.wait(timeout)

    def forked(self) -> None:
        """In the child of a fork: the threads that held locks are not there."""
        self._lock = threading.Lock()
        self.stats_recorder.forked()
        self.manager.forked()
        self.counts.forked()
        for tiered in self._everything():
            tiered.forked()

    def close(self) -> None:
        """Ends the process that compiles. Calls go on with what there is."""
        self.stats_recorder.settle()
        self.compiling.close()
        if self.distributed is not None:
            self.distributed.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Attention

    def execute_flash_attention(
        self, q: Any, k: Any, v: Any, o: Any = None, params: AttentionParams | None = None
    ) -> RuntimeResult:
        """softmax(scale·q·kᵀ)·v into `o`, which is made if it is not given."""
        wanted = _DEFAULT_PARAMS if params is None else params
        if o is None:
            from tessera.runtime.tensor.creation import empty_like

            o = empty_like(asarray(q))
        # A call finds the caches full of arrays: every object that is looked at here is fetched from memory.
        scale = wanted.softmax_scale
        tiered = self._attention
        if tiered is None:
            tiered = self._attention = self.tiered(flash_attention)
        _, tier = tiered.call_with_tier(
            q, k, v, o, q.shape[-1] ** -0.5 if scale is None else float(scale), causal=wanted.is_causal
        )
        return _result((o, tier, True))

    # Reports

    def get_runtime_stats(self) -> RuntimeStats:
        sites, counts = self.sites(), self.counts
        calls = {tier: counts.calls[tier] + sum(one.unrecorded(tier) for one in sites) for tier in ExecutionTier}
        mean = {
            tier: counts.spent[tier] / counts.timed[tier] / 1e6 if counts.spent[tier] else None
            for tier in ExecutionTier
        }
        tier1, tier2, tier3 = ExecutionTier
        return RuntimeStats(
            sum(calls.values()),
            calls[tier1],
            calls[tier2],
            calls[tier3],
            mean[tier1],
            mean[tier2],
            mean[tier3],
            len(self.manager),
            self.manager.nbytes,
            self.standard_compiler.total_ms,
            self.specialized_compiler.total_ms,
            {name: self.counts[name] for name in Counts.NAMES},
            dict(self.counts.guard_failures),
        )

    def get_traces(self) -> list[AttentionTrace]:
        """The recorded calls of all sites, oldest first."""
        found = [_trace(site, record) for site in self.sites() for record in site.ring]
        return sorted(found, key=lambda trace: trace.timestamp)

    get_internal_traces = get_traces

    def get_performance_history(self) -> list[PerformanceSample]:
        """How fast the recorded calls were, oldest first."""
        found = [_sample(site, record) for site in self.sites() for record in site.ring]
        return sorted(found, key=lambda sample: sample.timestamp)

    def reconfigure(self, config: RuntimeConfig) -> None:
        """Goes on with other settings; what was compiled stays. Half-lives and lengths of histories stay, too."""
        self.config = self.manager.config = config
        for site in self.sites():
            site.config = config

    def analyze(
        self,
        times: KernelTimes | None = None,
        tolerance: float | None = None,
        trial: Trial | None = None,
        *,
        inside: bool = False,
    ) -> AnalysisResult:
        """Analyzes traces: patterns, trends, hotspots; and with a model of the machine, recommendations.

        With a trial, specialisations that the model holds possible are run, and those that gain are recommended.
        `inside`: also events inside of the programs of hot inputs, which may take seconds to find.
        """
        from tessera.metatracing.runtime_analysis import analyze

        return analyze(self, times, tolerance, trial, inside=inside)

    def explain(self) -> str:
        """The sites, their programs and the guards of these, in words."""
        return "\n".join(line for site in self.sites() for line in site.explain())

    def live(self, console: Console | None = None) -> Live:
        """A view of the runtime in the terminal, kept up to date inside of a `with`."""
        from tessera.metatracing.live import live

        return live(self, console)

    def write_timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline as one HTML file that needs nothing else."""
        from tessera.metatracing.timeline.figures import timeline_of
        from tessera.metatracing.timeline.page import page

        Path(path).write_text(page(timeline_of(self)), encoding="utf-8")

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline as trace events, for Perfetto (ui.perfetto.dev) and chrome://tracing."""
        from tessera.metatracing.timeline.figures import timeline_of
        from tessera.metatracing.timeline.perfetto import trace_events

        Path(path).write_text(json.dumps(trace_events(timeline_of(self))), encoding="utf-8")


_DEFAULT_PARAMS = AttentionParams()
# As RuntimeResult does, without a function of Python's in between.
_result: Callable[[tuple[Tensor, ExecutionTier, bool]], RuntimeResult] = partial(
    cast("Any", tuple).__new__, RuntimeResult
)


def _trace(site: SpecializationSite, record: Record) -> AttentionTrace:
    metas = [one for one in record.arguments if isinstance(one, Meta)]
    call = site.first._replace(values=values_of(site.first, record.arguments))
    causal, scale = (argument_named(site.client, call, names) for names in (CAUSAL, SCALE))
    scale = scale if isinstance(scale, float) else None
    profile = InputProfile.of(site.name, record.arguments, is_causal=causal is True, scale=scale)
    seconds = record.nanoseconds / 1e9
    rate = bytes_of(metas) / seconds / 1e9 if seconds else None
    pattern = ExecutionPattern(record.nanoseconds / 1e6, rate, *record.facts)
    return AttentionTrace(profile, pattern, record.tier, record.timestamp, record.stands_for)


def _sample(site: SpecializationSite, record: Record) -> PerformanceSample:
    trace = _trace(site, record)
    profile, pattern = trace.input_profile, trace.execution_pattern
    metas = [one for one in profile.arguments if isinstance(one, Meta)]
    rate = None
    client = site.client
    is_attention = isinstance(client, KernelClient) and client.kernel.function is flash_attention.function
    if is_attention and pattern.execution_time_ms:
        operations = attention_operations(profile, metas[1].shape[-2])
        rate = operations / pattern.execution_time_ms / 1e9
    return PerformanceSample(
        trace.tier,
        profile,
        pattern.execution_time_ms,
        rate,
        pattern.memory_bandwidth_gbps,
        trace.timestamp,
        record.stands_for,
        record.recording / 1e6,
        record.deciding / 1e6,
    )


def _close(runtime: Callable[[], MetaTracingRuntime | None]) -> None:
    found = runtime()
    if found is not None:
        found.close()


_shared: list[MetaTracingRuntime] = []
_shared_lock = threading.Lock()
fork_waits_for(_shared_lock, rank=0)


def shared_runtime() -> MetaTracingRuntime:
    """The runtime of this process, made when it is first asked for."""
    with _shared_lock:
        if not _shared:
            _shared.append(MetaTracingRuntime())
        return _shared[0]


def execute_flash_attention(
    q: Any, k: Any, v: Any, o: Any = None, params: AttentionParams | None = None
) -> RuntimeResult:
    """Attention under the runtime of this process."""
    return shared_runtime().execute_flash_attention(q, k, v, o, params)
