"""`mark-row-aligned`: says in a function which arguments have rows of whole pieces of 16 bytes, for the emitter."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context

from tessera.ir.common.attributes import integers
from tessera.targets.cuda.emit.divisors import ALIGNED_ROWS
from tessera.targets.cuda.ir import dialect as nv
from tessera.transforms.core.function_pass import FunctionPass


@dataclass(frozen=True)
class MarkRowAligned(FunctionPass):
    """Marks every nv function."""

    name = "mark-row-aligned"
    kind = nv.FuncOp
    arguments: tuple[int, ...] = ()

    def rewrite(self, function: nv.FuncOp, ctx: Context) -> None:
        function.attributes[ALIGNED_ROWS] = integers(sorted(self.arguments))
