"""Specialisations of five kinds that can be recommended: `specialized(kernel)` makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tessera.dtypes.types import DType
from tessera.metatracing.models.situation import Under
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.function import Kernel
from tessera.tile.language.schedule import Schedule


class RecommendationType(Enum):
    """The kinds of specialisation."""

    TILE_SIZE_SPECIALIZATION = "tile"
    SHAPE_SPECIALIZATION = "shape"
    DTYPE_SPECIALIZATION = "dtype"
    MEMORY_LAYOUT_SPECIALIZATION = "layout"
    INSTRUCTION_SPECIALIZATION = "instruction"


@dataclass(frozen=True)
class TileParams:
    """The block of the specification, and all of the schedule."""

    schedule: Schedule
    block_m: int | None = None
    block_n: int | None = None
    block_k: int | None = None


@dataclass(frozen=True)
class ShapeParams:
    """The assumptions: words as `assume` takes them."""

    words: tuple[str, ...]
    fixed_seq_len: int | None = None
    fixed_head_dim: int | None = None


@dataclass(frozen=True)
class DtypeParams:
    specialized_dtype: DType


@dataclass(frozen=True)
class LayoutParams:
    """The arguments that are copied row by row first."""

    arguments: tuple[int, ...]


@dataclass(frozen=True)
class InstructionParams:
    """The schedule under which other instructions are used, and which."""

    schedule: Schedule
    instructions: str


Params = TileParams | ShapeParams | DtypeParams | LayoutParams | InstructionParams


@dataclass(frozen=True)
class SpecializationRecommendation:
    """A specialisation, its expected gain, and the confidence in that.

    `expected_improvement` is how much more is done in the same time: 0.3 is 30 %. `confidence` is how likely it helps
    at all. `implementation_complexity` counts from 1, for a schedule, to 10. `tried`: all this was measured on calls,
    and is not predicted by a model.
    """

    recommendation_type: RecommendationType
    description: str
    expected_improvement: float
    implementation_complexity: int
    params: Params
    confidence: float = 0.5
    interval: tuple[float, float] = (0.0, float("inf"))
    tried: bool = False

    def specialized(self, kernel: Kernel, under: Under | None = None) -> Callable[..., Any]:
        """The kernel, specialised; it is called like the kernel. `under` gives it a schedule, and a grid to it."""
        params = self.params
        if isinstance(params, TileParams | InstructionParams):
            return (under or kernel.with_schedule)(params.schedule)
        if isinstance(params, ShapeParams):
            return kernel.assume(*params.words)
        if isinstance(params, LayoutParams):
            return InRows(kernel, params.arguments)
        return InType(kernel, params.specialized_dtype)


# Specialisations that are more than another form of the kernel


@dataclass(frozen=True)
class InRows:
    """A kernel for which some arguments are copied first, so that neighbours of a row are contiguous."""

    kernel: Kernel
    indices: tuple[int, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*[one.copy() if index in self.indices else one for index, one in enumerate(args)], **kwargs)


@dataclass(frozen=True)
class InType:
    """A kernel that computes in another element type; results are in those of its arguments again."""

    kernel: Kernel
    dtype: DType
    _written: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._written:
            self._written.append(written_arguments(self.kernel, args, kwargs))
        cast = [one.to(self.dtype) if is_float(one) else one for one in args]
        result = self.kernel(*cast, **kwargs)
        # Outputs of the kernel are copied back to the caller's arrays.
        for index in self._written[0]:
            args[index][...] = cast[index].to(args[index].dtype)
        first = next(one for one in args if is_float(one))
        return result.to(first.dtype) if isinstance(result, Tensor) else result


def is_float(value: Any) -> bool:
    """Whether a value is a tensor of floats."""
    return isinstance(value, Tensor) and value.dtype.is_float


def written_arguments(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The arguments that a kernel stores to."""
    from tessera.interpreters.core.engine import symbol_in
    from tessera.ir.tile import dialect as tile

    instance = kernel.lower(*args, **kwargs)
    function = symbol_in(instance.module, instance.name, tile.FuncOp)
    stores = [op for op in function.body.walk() if isinstance(op, tile.Writer)]
    indices = {function.arguments.index(tile.base_of(op.view)) for op in stores}  # pyright: ignore[reportArgumentType]
    return tuple(sorted(index for index in indices if index < len(instance.paths)))
