"""Recommendations: which specialisations of a kernel are expected or seen to gain.

A model alone recommends specialisations that it expects to gain with enough confidence, which comes from its errors on
problems that it had not seen. With a trial, the model only selects what to try; recommended are those that gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tessera.dtypes.types import DType, bf16, f16, f32
from tessera.errors import TesseraError
from tessera.metatracing.analysis.specializations import (
    DtypeParams,
    InstructionParams,
    LayoutParams,
    Params,
    RecommendationType,
    ShapeParams,
    SpecializationRecommendation,
    TileParams,
    is_float,
    written_arguments,
)
from tessera.metatracing.analysis.trials import Trial
from tessera.metatracing.models.kernel_times import HELPS, Gain, KernelTimes
from tessera.metatracing.models.situation import Situation
from tessera.metatracing.models.work_features import Machine, ModelledProgram
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.stand_ins import contiguous, stand_in
from tessera.tile.language.schedule import Schedule

SURE = 0.9
"""How likely it must be that something helps, without a trial."""
WORTH = 1.05
"""The least ratio that is worth a specialisation."""
ACCURACY: Mapping[DType, float] = {f32: 2e-6, f16: 5e-4, bf16: 4e-3}
"""Relative errors, in norm, that results in an element type come with."""


CUDA_BLOCKS = ((64, 64), (128, 64), (128, 128), (64, 128), (192, 96), (192, 128), (128, 256))
CUDA_ROWS = (((64, 64), 1), ((8, 64), 4), ((16, 64), 16))
CPU_BLOCKS = ((16, 16), (32, 32), (64, 64), (32, 128), (64, 256), (128, 128), (64, 128), (32, 256))
CPU_ROWS = ((1, 64), (8, 64), (64, 64), (256, 64))
DEPTH = 64
MOST_TRIED = 2
"""Candidates of each kind that a trial runs."""

_KINDS: Mapping[type[Params], tuple[RecommendationType, int]] = {
    TileParams: (RecommendationType.TILE_SIZE_SPECIALIZATION, 1),
    ShapeParams: (RecommendationType.SHAPE_SPECIALIZATION, 2),
    InstructionParams: (RecommendationType.INSTRUCTION_SPECIALIZATION, 2),
    LayoutParams: (RecommendationType.MEMORY_LAYOUT_SPECIALIZATION, 3),
    DtypeParams: (RecommendationType.DTYPE_SPECIALIZATION, 4),
}
"""The kinds of specialisations by their parameters, and how much they take."""
Candidate = tuple[SpecializationRecommendation, Gain]


class Recommender:
    """Goes through specialisations, and recommends those that the model is sure of, or that a trial confirms.

    With a trial, the arguments of a situation have to be arrays with numbers; the kernel's outputs are left alone.
    """

    def __init__(self, times: KernelTimes, *, trial: Trial | None = None) -> None:
        self.times, self.trial = times, trial

    def recommend(self, here: Situation) -> list[SpecializationRecommendation]:
        """One of each kind at most; those that gain most first."""
        candidates = list(self.candidates(here, here.program()))
        if self.trial is None:
            return self.pick(candidates)
        chosen = self.shortlist(candidates)
        return self.confirmed(zip(chosen, self.trial(here, chosen), strict=True))

    def pick(self, candidates: Iterable[Candidate]) -> list[SpecializationRecommendation]:
        """Of each kind the one that gains most, where the model is sure enough of it."""
        return _best(made for made, gain in candidates if gain.ratio >= WORTH and gain.confidence >= SURE)

    def shortlist(self, candidates: Iterable[Candidate]) -> list[SpecializationRecommendation]:
        """Specialisations worth a trial: of each kind those that are expected to gain most, where that is possible.

        The cost of copies and casts is known less well than that of kernels: those are always tried.
        """
        kinds: dict[RecommendationType, list[SpecializationRecommendation]] = {}
        for made, gain in sorted(candidates, key=lambda one: -one[1].ratio):
            mine = kinds.setdefault(made.recommendation_type, [])
            is_possible = gain.high >= WORTH or isinstance(made.params, LayoutParams | DtypeParams)
            if is_possible and len(mine) < MOST_TRIED:
                mine.append(made)
        return [made for mine in kinds.values() for made in mine]

    @staticmethod
    def confirmed(
        tried: Iterable[tuple[SpecializationRecommendation, Gain | None]],
    ) -> list[SpecializationRecommendation]:
        """Of each kind the one that gained most, where the lower end of the measured interval is a gain."""
        return _best(
            replace(
                made,
                expected_improvement=gain.ratio - 1,
                confidence=gain.confidence,
                interval=(gain.low - 1, gain.high - 1),
                tried=True,
            )
            for made, gain in tried
            if gain is not None and gain.low >= HELPS
        )

    def candidates(self, here: Situation, now: ModelledProgram, *, schedules_only: bool = False) -> Iterator[Candidate]:
        """All alternatives with their expected gains; where the model knows nothing, these are open."""
        machine = self.times.machine
        for words, params, then in self._alternatives(here, now):
            kind, effort = _KINDS[type(params)]
            if schedules_only and not isinstance(params, TileParams | InstructionParams):
                continue
            try:
                program = then() if callable(then) else then
            except TesseraError:  # no such program
                continue
            is_block = kind is RecommendationType.TILE_SIZE_SPECIALIZATION
            if is_block and program.family(machine) != now.family(machine):
                continue  # other instructions are another kind
            if not (self.times.knows(now) and self.times.knows(program)):
                gain = Gain(1.0, 0.0, float("inf"), 0.5)
            else:
                gain = self.times.gain(now, program, self._beforehand(here, params))
                if is_block and not self.knows_blocks(now):
                    gain = Gain(gain.ratio, 0.0, float("inf"), 0.5)
            interval = gain.low - 1, gain.high - 1
            yield (
                SpecializationRecommendation(kind, words, gain.ratio - 1, effort, params, gain.confidence, interval),
                gain,
            )

    def knows_blocks(self, now: ModelledProgram) -> bool:
        """Whether blocks of such programs were measured: on GPUs, those without warp specialization hardly were."""
        machine = self.times.machine
        return not machine.is_gpu or not now.work.columns or now.is_warp_specialized(machine)

    def _beforehand(self, here: Situation, params: Params) -> float:
        """Seconds of the copies or casts that a specialisation makes at each call."""
        if isinstance(params, LayoutParams):
            copied = [here.args[index] for index in params.arguments]
            return self.times.beforehand(len(copied), sum(one.nbytes for one in copied), far=True)
        if isinstance(params, DtypeParams):
            cast = [one for one in here.args if is_float(one)]
            return self.times.beforehand(len(cast) + 1, sum(one.nbytes for one in cast))
        return 0.0

    def _alternatives(
        self, here: Situation, now: ModelledProgram
    ) -> Iterator[tuple[str, Params, ModelledProgram | Callable[[], ModelledProgram]]]:
        kernel, schedule, machine = here.kernel, here.kernel.schedule, here.machine
        products = now.work.total("products") > 0
        if not here.assumed:
            yield (
                "compile for the sizes and strides that calls have",
                ShapeParams(("sizes", "strides"), *_sizes(here.args)),
                replace(now, assumed=True),
            )
        blocks = list(_blocks(schedule, machine, products)) if here.changes_schedule else []
        for block, warps in blocks:
            chosen = Schedule(block=block, warps=schedule.warps if warps is None else warps)
            if (chosen.block, chosen.warps) != (schedule.block, schedule.warps) or kernel.free:
                yield (f"a block of {'×'.join(map(str, block))}", TileParams(chosen, *block), _then(here, chosen))
        if machine.is_gpu and products and not now.is_warp_specialized(machine) and now.work.bits <= 16:
            for block, _ in blocks:
                if block[0] in (64, 128, 256):
                    chosen = Schedule(block=block, warps=block[0] // 16)
                    yield (
                        f"dots of warp groups, in blocks of {'×'.join(map(str, block))}",
                        InstructionParams(chosen, "wgmma"),
                        _then(here, chosen),
                    )
        written = set(written_arguments(kernel, here.args, here.static)) if now.work.far_arguments else set[int]()
        far = tuple(
            sorted(index for index in now.work.far_arguments if index < len(here.args) and index not in written)
        )
        if far:
            args = tuple([_in_rows(one, one.dtype) if index in far else one for index, one in enumerate(here.args)])
            yield (
                f"copy argument {', '.join(map(str, far))} row by row first",
                LayoutParams(far),
                _then(here, args=args),
            )
        # CPUs without arithmetic in 16 bits gain nothing by them, and of the others nothing has been measured.
        for dtype in (bf16, f16) if machine.is_gpu and not now.work.far_arguments else ():
            if here.tolerance is not None and here.tolerance >= ACCURACY[dtype] and now.work.bits > dtype.bits:
                args = tuple([_in_rows(one, dtype) if is_float(one) else one for one in here.args])
                yield (f"compute in {dtype}", DtypeParams(dtype), _then(here, args=args))


def _in_rows(value: Tensor, dtype: DType) -> Tensor:
    """A stand-in for a tensor, row by row, in an element type, where the tensor is."""
    return stand_in(contiguous(dtype, value.shape, value.device))


def _then(here: Situation, schedule: Schedule | None = None, **changes: Any) -> Callable[[], ModelledProgram]:
    """The program of a changed situation, made on demand."""

    def made() -> ModelledProgram:
        kernel = here.kernel if schedule is None else here.with_schedule(schedule)
        return replace(here, kernel=kernel, **changes).program()

    return made


def _sizes(args: Sequence[Any]) -> tuple[int | None, int | None]:
    first = next((one for one in args if isinstance(one, Tensor) and one.ndim > 1), None)
    return (None, None) if first is None else (first.shape[-2], first.shape[-1])


def _best(several: Iterable[SpecializationRecommendation]) -> list[SpecializationRecommendation]:
    """Of each kind the one that gains most; those that gain most first."""
    best: dict[RecommendationType, SpecializationRecommendation] = {}
    for made in several:
        kind = made.recommendation_type
        if kind not in best or made.expected_improvement > best[kind].expected_improvement:
            best[kind] = made
    return sorted(best.values(), key=lambda one: -one.expected_improvement)


def _blocks(schedule: Schedule, machine: Machine, products: bool) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Blocks that are worth a look, with their warps where those are not the schedule's."""
    if machine.is_gpu and not products:
        yield from CUDA_ROWS
        return
    deep = schedule.block is not None and len(schedule.block) == 3
    known = CUDA_BLOCKS if machine.is_gpu else CPU_BLOCKS if products else CPU_ROWS
    for block in known:
        yield ((*block, DEPTH) if deep else block), None
