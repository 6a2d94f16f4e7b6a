"""`defer-epilogue-store`: stores an instance's result after the first dot of the next one is issued.

Consumers of a persistent CTA walk through program instances. The tile that an instance ends with is carried, with its
offsets, to the next one, which stores it behind its first dot; the last tile is stored behind the loop over instances.
Dots no longer wait for stores, and memory is written while they run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.ir.pipe.warp_groups import DotStartOp, PendingType, ProducerCopies, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.core.folding import materialize
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location, insert_before
from tessera.transforms.core.slices import end_of

_index = IndexType()


def defer_epilogue_stores(function: tile.FuncOp, may_wait: Callable[[tile.StoreOp], bool] = lambda store: True) -> bool:
    """Passes the tiles of stores that `may_wait` on to the next program instance; whether there were any."""
    for partitions in [op for op in function.body.block.ops if isinstance(op, WarpSpecializeOp)]:
        for loop in [op for op in partitions.consumer.block.ops if isinstance(op, scf.ForOp)]:
            found = _find(loop)
            if found is not None and may_wait(found.store) and not _is_read(function, found.store):
                _Writer(loop, found).run()
                return True
    return False


DeferEpilogueStore = function_pass("defer-epilogue-store", defer_epilogue_stores)


@dataclass(frozen=True)
class _Found:
    """The last store of an instance, and the first dot, both in one block: that of the loop, or of a branch in it."""

    store: tile.StoreOp
    start: DotStartOp
    branch: scf.IfOp | None


def _find(loop: scf.ForOp) -> _Found | None:
    body = loop.body.block
    if (found := _in_block(body)) is not None:
        return _Found(*found, None)
    branches = [op for op in body.ops if isinstance(op, scf.IfOp)]
    if len(branches) != 1 or not branches[0].false_region.blocks or not _is_end(branches[0]):
        return None
    found = _in_block(branches[0].true_region.block)
    return None if found is None else _Found(*found, branches[0])


def _in_block(block: Block) -> tuple[tile.StoreOp, DotStartOp] | None:
    """The last store and the first dot of a block, if its accumulator stays in flight from there to a loop."""
    stores = [op for op in block.ops if isinstance(op, tile.StoreOp)]
    starts = [op for op in block.ops if isinstance(op, DotStartOp)]
    if len(stores) != 1 or len(starts) != 1 or not _is_end(stores[0]):
        return None
    carries = [use.operation for use in starts[0].result.uses]
    if not isinstance(starts[0].result.type, PendingType) or not all(isinstance(op, scf.ForOp) for op in carries):
        return None
    written = [op for op in block.walk() if isinstance(op, tile.Writer)]
    return (stores[0], starts[0]) if written == stores and starts[0].is_before_in_block(stores[0]) else None


def _is_end(op: Operation) -> bool:
    """Whether nothing but numbers follows an op in its block."""
    behind = op.next_op
    while behind is not None and behind.next_op is not None:
        if not is_side_effect_free(behind) or behind.regions:
            return False
        behind = behind.next_op
    return True


def _is_read(function: tile.FuncOp, store: tile.StoreOp) -> bool:
    """Whether stored memory is read by any instance, or the view of the store is not the same for all of them."""
    base = tile.memory_of(store.view)
    return store.view is not base or any(
        tile.memory_of(op.view) is base for op in function.body.walk() if isinstance(op, tile.LoadOp | ProducerCopies)
    )


class _Writer:
    """Rewrites a loop over instances to carry a tile, its offsets, and whether there is one."""

    def __init__(self, loop: scf.ForOp, found: _Found) -> None:
        self.loop, self.found = loop, found

    def run(self) -> None:
        loop, store, branch = self.loop, self.found.store, self.found.branch
        made = [store.value, *store.offsets]
        yes = arith.ConstantOp(BoolAttr.from_bool(True))
        insert_before(store, [yes])
        body = loop.body.block
        types = (*(value.type for value in made), i1)
        before: list[SSAValue] = [body.insert_arg(type_, len(body.args)) for type_ in types]
        before[0].name_hint = store.value.name_hint
        after: list[SSAValue] = [*made, yes.result]
        insert_behind(self.found.start, [_stored(store, before)])
        view = store.view
        if branch is not None:
            after = _carry(branch, after, before)
        store.detach()
        self._close(after, store, view)
        store.erase()

    def _close(self, after: list[SSAValue], store: tile.StoreOp, view: SSAValue) -> None:
        """The loop with all that it carries, and the last store behind it."""
        loop = self.loop
        nothing = materialize(0, tile_type(store.value).element_type)
        none = tile.FullOp(nothing.results[0], tile_type(store.value).get_shape())
        zero, no = arith.ConstantOp(IntegerAttr(0, _index)), arith.ConstantOp(BoolAttr.from_bool(False))
        starts = [none.result, *[zero.result] * len(store.offsets), no.result]
        end = end_of(loop.body.block)
        ends = scf.YieldOp(*end.operands, *after)
        insert_before(end, [ends])
        end.detach()
        end.erase()
        made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *starts], loop.detach_region(loop.body))
        made.attributes.update(loop.attributes)
        last = _stored(store, list(made.results[len(loop.results) :]))
        insert_before(loop, [nothing, none, zero, no, made, last])
        for old, new in zip(loop.results, made.results, strict=False):
            old.replace_all_uses_with(new)
        loop.detach()
        loop.erase()


def _stored(store: tile.StoreOp, carried: list[SSAValue]) -> scf.IfOp:
    """A store of the carried tile, if there is one."""
    value, *offsets, there = carried
    made = tile.StoreOp(value, store.view, offsets)
    made.attributes.update(store.attributes)
    found = scf.IfOp(there, [], Region(Block([made, scf.YieldOp()])), Region())
    adopt_location([found], store)
    return found


def _carry(branch: scf.IfOp, after: list[SSAValue], before: list[SSAValue]) -> list[SSAValue]:
    """A branch that yields its new tile too; its other side, which stores by itself, yields the tile it was given."""
    for region, values in ((branch.true_region, after), (branch.false_region, before)):
        end = end_of(region.block)
        ends = scf.YieldOp(*end.operands, *values)
        insert_before(end, [ends])
        end.detach()
        end.erase()
    types = [*(result.type for result in branch.results), *(value.type for value in after)]
    regions = [branch.detach_region(region) for region in tuple(branch.regions)]
    made = scf.IfOp(branch.cond, types, regions[0], regions[1])
    made.attributes.update(branch.attributes)
    insert_before(branch, [made])
    for old, new in zip(branch.results, made.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    branch.detach()
    branch.erase()
    return list(made.results[-len(after) :])


def insert_behind(op: Operation, new_ops: list[Operation]) -> None:
    following = op.next_op
    assert following is not None
    insert_before(following, new_ops)
