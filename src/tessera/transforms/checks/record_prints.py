"""record-prints: prints of a tile function become records, which its stores fill and the host prints behind a launch.

Stores are known to every target and every pass; besides them, all that machine code needs is room for a record.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType, UnitAttr
from xdsl.ir import SSAValue

from tessera.dtypes.types import i64
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_type
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.core.tile_ops import TileOps


def record_prints(function: tile.FuncOp) -> None:
    """Writes a record for each print; what stops in a debugger stays."""
    prints, first = tile.prints_of(function), function.body.block.first_op
    if not prints or first is None:
        return
    program = [tile.ProgramIdOp(axis) for axis in range(len(function.grid.data))]
    insert_before(first, program)
    for site, op in enumerate(prints):
        _record(site, op, [one.result for one in program])


RecordPrints = function_pass("record-prints", record_prints)


def _record(site: int, op: tile.DebugPrintOp, program: list[SSAValue]) -> None:
    build = TileOps()
    shown = [_as_tile(build, value) for value in op.values]
    types = [
        tile_type(value) if isinstance(value.type, TensorType) else TensorType(tile_type(one).element_type, ())
        for value, one in zip(op.values, shown, strict=True)
    ]
    views = [ViewType(tile_type(one).get_num_dims(), tile_type(one).element_type) for one in shown]
    record = tile.PrintRecordOp(site, op.label.data, types, program, views)
    build.ops.append(record)
    for one, view in zip(shown, record.views, strict=True):
        store = tile.StoreOp(one, view, [build.index(0) for _ in tile_type(one).get_shape()])
        # A view without elements is no fault of the kernel.
        store.attributes[tile.OPEN] = UnitAttr()
        build.ops.append(store)
    replace(op, build.ops, [])


def _as_tile(build: TileOps, value: SSAValue) -> SSAValue:
    """A value as a tile with axes. Positions and flags are whole numbers, as they are to the interpreter."""
    if isinstance(value.type, TensorType):
        return value if tile_type(value).get_shape() else build.add(tile.ExpandOp(value, 0))
    if value.type == IntegerType(1):
        value = build.add(arith.SelectOp(value, build.index(1), build.index(0)))
    if isinstance(value.type, IndexType):
        value = build.add(arith.IndexCastOp(value, element_of(i64)))
    return build.add(tile.FullOp(value, (1,)))
