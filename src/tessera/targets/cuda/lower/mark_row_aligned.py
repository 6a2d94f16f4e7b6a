"""`mark-row-aligned`: says in a function which arguments have rows of whole pieces of 16 bytes, for the emitter."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context

from tessera.ir.common.attributes import integers
from tessera.targets.cuda.emit.divisors import ALIGNED_ROWS
from tessera.targets.cuda.ir import dialect as nv
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.pipelining.exchange_axes import ROW_AXES


@dataclass(frozen=True)
class MarkRowAligned(FunctionPass):
    """Marks every nv function."""

    name = "mark-row-aligned"
    kind = nv.FuncOp
    arguments: tuple[int, ...] = ()
    exchanged: tuple[int, ...] = ()
    """Arguments whose rows lie along another axis than the last, in pairs with that axis."""

    def rewrite(self, function: nv.FuncOp, ctx: Context) -> None:
        if self.arguments:
            function.attributes[ALIGNED_ROWS] = integers(sorted(self.arguments))
        if self.exchanged:
            function.attributes[ROW_AXES] = integers(self.exchanged)
