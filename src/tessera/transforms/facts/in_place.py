"""Which arguments of a tile function its result may overwrite: each element is read only where it is written, before.

An analysis of functions that load, compute and store. Program instances own places of the result; where an argument is
read at those places alone, and by no other instance, its memory may be the result's.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_type

_ALLOWED = (tile.ProgramIdOp, tile.DimOp, tile.LoadOp, tile.StoreOp, tile.EwOp, tile.FullOp, tile.IotaOp, tile.ReturnOp)
_GEOMETRY = (tile.DimOp, tile.StrideOp)


def overwritable(function: tile.FuncOp) -> tuple[int, ...]:
    """The numbers of the arguments whose memory the function's one result may have, if both lie alike."""
    if function.outputs.value.data != 1:
        return ()
    ops = list(function.body.block.ops)
    stores = [op for op in ops if isinstance(op, tile.StoreOp)]
    if len(stores) != 1 or not all(isinstance(op, _ALLOWED) or _is_number(op) for op in ops):
        return ()
    (store,) = stores
    *inputs, result = function.arguments
    if store.view is not result:
        return ()
    shapes = function.shapes.data
    found: list[int] = []
    for number, argument in enumerate(inputs):
        loads = [use.operation for use in argument.uses if not isinstance(use.operation, _GEOMETRY)]
        if not isinstance(argument.type, ViewType) or shapes[number] != shapes[-1] or len(loads) != 1:
            continue
        (load,) = loads
        if isinstance(load, tile.LoadOp) and _is_same_place(load, store) and _rests_on(store.value, load.result):
            found.append(number)
    return tuple(found)


def _is_number(op: Operation) -> bool:
    return op.name.startswith(f"{arith.Arith.name}.") and not op.regions


def _is_same_place(load: tile.LoadOp, store: tile.StoreOp) -> bool:
    same = len(load.offsets) == len(store.offsets) and all(map(_is, load.offsets, store.offsets))
    return same and tile_type(load.result).get_shape() == tile_type(store.value).get_shape()


def _is(one: SSAValue, other: SSAValue) -> bool:
    return one is other


def _rests_on(value: SSAValue, wanted: SSAValue) -> bool:
    """Whether a value is made from another one: then that was loaded before."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        current = waiting.pop()
        if current is wanted:
            return True
        if current not in seen and isinstance(current.owner, Operation):
            seen.add(current)
            waiting += current.owner.operands
    return False
