"""round-multiples: marks products that are rounded before they are added; the emitters of targets heed it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import UnitAttr

from tessera.ir.tile import dialect as tile
from tessera.targets.llvm.emitter_attributes import ROUNDED
from tessera.transforms.algebra.multiples import MULTIPLE
from tessera.transforms.core.function_pass import FunctionPass


@dataclass(frozen=True)
class RoundMultiples(FunctionPass):
    """Marks products that are rounded before they are added: with `contract`, all but those that need not be."""

    name = "round-multiples"
    contract: bool = True

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        for op in function.body.walk():
            is_multiple = op.attributes.pop(MULTIPLE, None) is not None
            if isinstance(op, tile.EwOp) and op.fn.data == "mul" and not (is_multiple and self.contract):
                op.attributes[ROUNDED] = UnitAttr()
