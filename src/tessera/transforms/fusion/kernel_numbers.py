"""Whole numbers of a kernel that is being written: those that are known are computed here, others by its ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import Size

Scalar = SSAValue | int
"""A number of the kernel: known, or computed by it."""


class KernelNumbers(ABC):
    """Arithmetic on numbers. What derives from this says how constants and results of ops are made and kept."""

    @abstractmethod
    def number(self, value: Scalar) -> SSAValue:
        """A number as a value of the kernel."""

    @abstractmethod
    def computed(self, kind: Callable[[SSAValue, SSAValue], Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        """The result of an op on two numbers."""

    def plus(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.computed(arith.AddiOp, self.number(a), self.number(b))

    def minus(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.computed(arith.SubiOp, self.number(a), self.number(b))

    def times(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        return 0 if a == 0 or b == 0 else self.computed(arith.MuliOp, self.number(a), self.number(b))

    def over(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if b == 1 else self.computed(arith.FloorDivSIOp, self.number(a), self.number(b))


@dataclass(frozen=True)
class Signature:
    """What a tile function of a region is called with: tensors `given` besides, values of the region, and results."""

    given: Sequence[GraphTensorType]
    values: Sequence[SSAValue]
    """The arguments of the region's block that the function takes."""
    results: Sequence[GraphTensorType]
    names: Sequence[str | None] = ()
    """Names of the tensors given, and of results."""

    @staticmethod
    def of(region: schedule.RegionOp) -> Signature:
        """That of the function which is all of the region."""
        results = [graph_type(value) for value in region.results_]
        return Signature((), region.body.block.args, results, [value.name_hint for value in region.results_])

    @property
    def tensors(self) -> list[GraphTensorType]:
        return [*self.given, *(graph_type(value) for value in self.values), *self.results]


def kernel_of(
    name: str,
    region: schedule.RegionOp,
    spell: Callable[[Size], Size],
    grid: Sequence[Size],
    signature: Signature | None = None,
) -> tile.FuncOp:
    """A tile function of a region, empty: its arguments, whose sizes are spelled in symbols that they tell."""
    signature = Signature.of(region) if signature is None else signature
    tensors = signature.tensors
    kernel = tile.FuncOp(
        name,
        [ViewType(len(tensor.shape), tensor.element) for tensor in tensors],
        len(signature.results),
        [[spell(extent) for extent in tensor.shape] for tensor in tensors],
        grid,
    )
    kernel.location = region.location
    outer: dict[SSAValue, SSAValue] = dict(zip(region.body.block.args, region.arguments, strict=True))
    given, results = signature.names[: len(signature.given)], signature.names[len(signature.given) :]
    names = [*given, *(outer[value].name_hint for value in signature.values), *results]
    for view, hint in zip(kernel.arguments, names, strict=True):
        view.name_hint = hint
    return kernel
