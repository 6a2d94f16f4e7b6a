"""Predicted gains of tiers and optimisations of attention, and the ranking of schedules, by the fitted model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from tessera.dtypes.types import DType, bf16
from tessera.errors import TesseraError
from tessera.metatracing.models.attention import FlashAttentionPerformanceModel, ModelParameters, parameters_of
from tessera.metatracing.models.kernel_times import Gain
from tessera.metatracing.models.work_features import Machine, ModelledProgram
from tessera.tiers.records import AttentionTrace, ExecutionTier

GPU_BLOCKS = ((64, 64), (64, 128), (128, 64), (128, 128), (192, 96), (256, 64))
CPU_BLOCKS = ((16, 16), (32, 32), (64, 64), (32, 128), (64, 256), (128, 128))
_COMPUTE = ("products", "functions", "elements", "lanes", "dots", "shared", "crowded", "iterations")
_MEMORY = ("near", "far", "footprint", "moved")
_OVERHEAD = ("always", "programs")


@dataclass(frozen=True)
class TileConfiguration:
    """How attention is cut up; the defaults are the specification's."""

    block_m: int = 128
    block_n: int = 128
    block_k: int = 64
    num_stages: int = 2
    num_warps: int = 8


# Schedules


class TileConfigurationOptimizer:
    """Ranks schedules by how long the model says that traces would take under them."""

    def __init__(self, model: FlashAttentionPerformanceModel | None = None) -> None:
        self.model = FlashAttentionPerformanceModel() if model is None else model

    @property
    def _blocks(self) -> Sequence[tuple[int, int]]:
        return GPU_BLOCKS if self.model.times.machine.is_gpu else CPU_BLOCKS

    def ranked(self, params: ModelParameters) -> list[tuple[tuple[int, int], float]]:
        """Blocks for one problem, and their seconds; the quickest first."""
        found: list[tuple[tuple[int, int], float]] = []
        for block in self._blocks:
            try:
                program = self.model.program(replace(params, block=block, warps=None))
                found.append((block, self.model.times.predict(program).seconds))
            except TesseraError:  # there is no such program, or no model of it
                continue
        return sorted(found, key=lambda one: one[1])

    def optimize_tile_size(
        self, traces: Sequence[AttentionTrace], target_arch: Machine | None = None
    ) -> TileConfiguration:
        """The block under which all traces together take least; the model has to be one of the target."""
        if target_arch is not None and target_arch != self.model.times.machine:
            raise TesseraError(
                f"the model is one of {self.model.times.machine.name}, not of {target_arch.name or target_arch.kind}",
                hint="calibrate one for that machine",
            )
        if not traces:
            return TileConfiguration()
        calls: Counter[ModelParameters] = Counter()
        for trace in traces:
            calls[replace(parameters_of(trace), specialized=False)] += trace.execution_count
        totals: dict[tuple[int, int], float] = defaultdict(float)
        for params, count in calls.items():
            ranked = dict(self.ranked(params))
            worst = max(ranked.values(), default=0.0)
            for block in self._blocks:
                # A block that cannot be built for one of the problems is no choice for all of them.
                totals[block] += count * ranked.get(block, 100 * worst)
        (rows, columns), _ = min(totals.items(), key=lambda one: one[1])
        warps = max(1, rows // 16)
        return TileConfiguration(rows, columns, next(iter(calls)).head_dim, 2, warps)


# Tiers


@dataclass(frozen=True)
class TierPrediction:
    """Milliseconds of a problem at each tier, speed-ups over the first, and how likely it is that they help."""

    tier1_time_ms: float
    tier2_time_ms: float
    tier3_time_ms: float
    tier2_speedup: float
    tier3_speedup: float
    tier2_confidence: float
    tier3_confidence: float


class TierPerformancePrediction:
    """Predicts the times of tiers: Tier 2 has the best schedule, Tier 3 also knows all sizes."""

    def __init__(self, model: FlashAttentionPerformanceModel | None = None) -> None:
        self.model = FlashAttentionPerformanceModel() if model is None else model
        self.optimizer = TileConfigurationOptimizer(self.model)

    def predict_tier_performance(
        self, base_params: ModelParameters, historical_traces: Sequence[AttentionTrace] = ()
    ) -> TierPrediction:
        """`base_params` are those of Tier 1. Times that traces measured there replace those of the model."""
        times = self.model.times
        first = self.model.program(base_params)
        before = times.predict(first).seconds
        best = next(iter(self.optimizer.ranked(base_params)), None)
        second = first
        if best is not None and best[1] < before:
            second = self.model.program(replace(base_params, block=best[0], warps=None))
        third = replace(second, assumed=True)
        gains = times.gain(first, second), times.gain(first, third)
        scale = self._measured(base_params, historical_traces, before)
        seconds = [scale * times.predict(one).seconds for one in (first, second, third)]
        sure = 1.0 if second is first else gains[0].confidence
        return TierPrediction(
            1e3 * seconds[0],
            1e3 * seconds[1],
            1e3 * seconds[2],
            seconds[0] / seconds[1],
            seconds[0] / seconds[2],
            sure,
            times.gain(second, third).confidence if second is first else gains[1].confidence,
        )

    def _measured(self, params: ModelParameters, traces: Sequence[AttentionTrace], predicted: float) -> float:
        """How much longer Tier 1 really took than the model says; 1 where there are no measurements."""
        mine = [
            one.execution_pattern.execution_time_ms / 1e3
            for one in traces
            if one.tier is ExecutionTier.TIER1_INTERPRETER
            and replace(parameters_of(one), block=params.block, warps=params.warps)
            == replace(params, specialized=False)
        ]
        return median(mine) / predicted if mine else 1.0


# Optimisations


@dataclass(frozen=True)
class DetailedBreakdown:
    """The relative improvement of each part of the time, and of occupancy."""

    compute_improvement: float
    memory_improvement: float
    occupancy_improvement: float
    overhead_reduction: float


@dataclass(frozen=True)
class OptimizationImpact:
    """The impact of an optimisation: the expected speed-up, how likely it helps, what it takes, and what it risks."""

    expected_speedup: float
    confidence_score: float
    implementation_effort: int
    risk_factor: float
    description: str
    breakdown: DetailedBreakdown


class OptimizationImpactPredictor:
    """Predicts the gains of optimisations of attention, for the problems of traces, weighted by their time."""

    def __init__(self, model: FlashAttentionPerformanceModel | None = None) -> None:
        self.model = FlashAttentionPerformanceModel() if model is None else model

    def predict_tile_size_optimization(
        self, current_config: TileConfiguration, proposed_config: TileConfiguration, traces: Sequence[AttentionTrace]
    ) -> OptimizationImpact:
        def under(params: ModelParameters, config: TileConfiguration) -> ModelParameters:
            return replace(params, block=(config.block_m, config.block_n), warps=config.num_warps)

        pairs = [(under(one, current_config), under(one, proposed_config)) for one in map(parameters_of, traces)]
        words = f"blocks of {proposed_config.block_m}×{proposed_config.block_n}"
        return self._impact(pairs, traces, 1, words)

    def predict_shape_specialization(self, traces: Sequence[AttentionTrace]) -> OptimizationImpact:
        """Only inputs that come more than once can be specialised for."""
        profiles = Counter(one.input_profile for one in traces)
        pairs = [
            (
                replace(params := parameters_of(one), specialized=False),
                replace(params, specialized=profiles[one.input_profile] > 1),
            )
            for one in traces
        ]
        return self._impact(pairs, traces, 2, "programs for the sizes that calls have")

    def predict_data_type_specialization(
        self, traces: Sequence[AttentionTrace], dtype: DType = bf16
    ) -> OptimizationImpact:
        pairs = [(params := parameters_of(one), replace(params, dtype=dtype)) for one in traces]
        return self._impact(pairs, traces, 4, f"computing in {dtype}")

    def _impact(
        self,
        pairs: Sequence[tuple[ModelParameters, ModelParameters]],
        traces: Sequence[AttentionTrace],
        effort: int,
        words: str,
    ) -> OptimizationImpact:
        if not pairs:
            raise TesseraError("the impact of an optimisation is that on traces, got none", hint="record some calls")
        times, machine = self.model.times, self.model.times.machine
        weights = [one.total_ms for one in traces]
        gains: list[Gain] = []
        now_parts: Counter[str] = Counter()
        then_parts: Counter[str] = Counter()
        full: list[tuple[float, float]] = []
        for (now, then), weight in zip(pairs, weights, strict=True):
            a, b = self.model.program(now), self.model.program(then)
            if now.block == then.block and now.dtype is then.dtype:
                b = replace(a, assumed=b.assumed)
            gains.append(times.gain(a, b))
            before, after = times.predict(a), times.predict(b)
            for parts, found in ((now_parts, before), (then_parts, after)):
                share = found.seconds / sum(found.parts.values())
                for name, seconds in found.parts.items():
                    parts[name] += weight * share * seconds / before.seconds  # pyright: ignore[reportArgumentType]
            full.append((_filled(a, machine), _filled(b, machine)))
        whole = sum(weights) or 1.0
        after = sum(weight / gain.ratio for weight, gain in zip(weights, gains, strict=True)) / whole
        sure = sum(weight * gain.confidence for weight, gain in zip(weights, gains, strict=True)) / whole

        def shrinks(names: Sequence[str]) -> float:
            before, later = (sum(parts[name] for name in names) for parts in (now_parts, then_parts))
            return 1 - later / before if before else 0.0

        fuller = fmean(b for _, b in full) / fmean(a for a, _ in full) - 1
        breakdown = DetailedBreakdown(shrinks(_COMPUTE), shrinks(_MEMORY), fuller, shrinks(_OVERHEAD))
        return OptimizationImpact(1 / after if after else 1.0, sure, effort, 1 - sure, words, breakdown)


def _filled(program: ModelledProgram, machine: Machine) -> float:
    """The part of the machine that is busy while its busiest unit is."""
    most = program.work.busiest("products", machine.units) * machine.units
    return program.work.total("products") / most if most else 1.0
