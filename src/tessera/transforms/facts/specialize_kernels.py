"""specialize-kernels: gives a tile function that is called with known sizes a signature that says so.

This is how facts about a graph function's arguments reach its kernels: sizes are constants in the types of the call,
become constants in the signature of a copy of the kernel, and fold there. Nothing is asked: the caller's own types,
guarded already, promise the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.ir.common.attributes import SizesAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import look_up
from tessera.ir.graph.kernel_calls import match_symbols, substitute
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.symbol_names import fresh_name


@dataclass(frozen=True)
class SpecializeKernels(ModulePass):
    """Copies each kernel per set of known sizes it is called with; the general one goes when it has no calls left."""

    name = "specialize-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        calls = [call for call in op.walk() if isinstance(call, graph.CallKernelOp | schedule.LaunchOp)]
        copies: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}
        for call in calls:
            general = look_up(call, call.callee, tile.FuncOp)
            values = match_symbols(general, [value.type for value in (*call.arguments, *call.results_)])
            known = {symbol: size for symbol, size in sorted(values.items()) if isinstance(size, int)}
            if not known:
                continue
            key = general.sym_name.data, tuple(known.items())
            if key not in copies:
                suffix = "".join(f"_{symbol}{size}" for symbol, size in known.items())
                copies[key] = fresh_name(op, general.sym_name.data + suffix)
                special = general.clone()
                special.properties["sym_name"] = StringAttr(copies[key])
                special.properties["grid"] = SizesAttr(substitute(general.grid.data, known))
                shapes = [SizesAttr(substitute(shape.data, known)) for shape in general.shapes]
                special.properties["shapes"] = ArrayAttr(shapes)
                Rewriter.insert_op(special, InsertPoint.before(general))
            call.properties["callee"] = SymbolRefAttr(copies[key])
        still_called = {call.callee.string_value() for call in calls}
        for kernel in [top for top in op.body.block.ops if isinstance(top, tile.FuncOp)]:
            if kernel.sym_name.data in {name for name, _ in copies} - still_called:
                kernel.detach()
                kernel.erase()
