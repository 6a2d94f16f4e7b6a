"""fold-groups: matrices of a weighted mean that share keys and values become rows of one, where rows are few.

Query heads that share keys are the case at hand: a matrix of few rows takes as long as one that fills a tile, and each
of them reads the same keys again. What counts are index maps. Where neither keys nor values depend on the low digits of
the last leading axis, both matmuls are done with that axis among the rows, and reshapes around them say so:

    [B, G·H, S, D]·[B, G·H, D, T]  =  reshape([B, H, G·S, D]·[B, H, D, T])
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.slices import LAST
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size, dim, element_count, size
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.core.context import report_of
from tessera.transforms.core.index_digits import plain
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.fusion.emit_tile_matmuls import BATCH
from tessera.transforms.fusion.gemv_fusion import is_held
from tessera.transforms.fusion.online_algebra import Online, find_online, reads_through, width_of


@dataclass(frozen=True)
class FoldGroups(ModulePass):
    """Folds groups of matrices of fewer than `rows` rows, in every block of every graph function."""

    name = "fold-groups"
    rows: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, graph.FuncOp):
                for block in list(function.walk_blocks()):
                    _fold_block(block, self.rows, report_of(ctx))


def _fold_block(block: Block, rows: int, report: CompileReport) -> None:
    for op in list(block.ops):
        if isinstance(op, graph.MatmulOp) and op.parent is block and _is_few(graph_type(op.a).shape[-2], rows):
            found = find_online(op, block)
            if isinstance(found, Online) and (group := _group(found)) > 1:
                if found.spaces.rows != 1 and _leaves_rows(found):
                    report.refuse(_refusal(op.location, group, _STORED))
                    continue
                location = op.location
                folded = [_folded(one, group) for one in (found.scores, found.values)]
                # What is between the matmuls has to find its elements in the new rows.
                if not isinstance(find_online(folded[1].product, block), Online):
                    for one in folded:
                        one.undo()
                    report.refuse(_refusal(location, group, _READ))


MUCH = 1 << 29
"""Bits of keys, counted once for each row that reads them, beyond which it pays to read them once."""


def _is_much(online: Online) -> bool:
    keys = graph_type(online.scores.b)
    count = element_count(keys.shape)
    return isinstance(count, int) and count * keys.dtype.bits > MUCH


_STORED = "numbers of its rows are used besides, which would lie at parts of the rows of a block"
_READ = "something between its matmuls is read at parts of the rows of a block"


def _refusal(location: LocationAttr, group: int, reason: str) -> Refusal:
    hint = "give masks by positions, or ask for one query at a time"
    return Refusal(f"one tile of {group} matrices that share keys", reason, span_of(location), hint)


def _is_few(count: Size, rows: int) -> bool:
    return isinstance(count, int) and 0 < count < rows


def _group(online: Online) -> int:
    """How many matrices, one after the other, have the same keys and values; 1 where they are better left apart."""
    spaces, scores = online.spaces, online.scores
    outer = graph_type(online.values.result).shape[:-2]
    lefts = scores.a, scores.result, online.values.a
    if not outer or not isinstance(outer[-1], int) or any(graph_type(one).shape[:-2] != outer for one in lefts):
        return 1
    if plain(online.score_map) != plain(spaces.left):
        return 1
    if spaces.rows == 1 and is_held(spaces.depth, *width_of(online)) and not _is_much(online):
        return 1  # a program instance holds all keys of its row
    group = outer[-1]
    for read in ((scores.b, online.right), (online.values.b, spaces.right)):
        _, where = reads_through(read)[-1]
        for index in where:
            for digit, _ in index.terms:
                if digit.axis == BATCH:
                    if not isinstance(digit.divisor, int):
                        return 1
                    group = gcd(group, digit.divisor)
    return group


def _leaves_rows(online: Online) -> bool:
    """Whether others use numbers of rows, which would be stored as parts of the rows of a block."""
    ops = [op for op in online.ops if op is not online.values]
    return any(use.operation not in online.ops for op in ops for result in op.results for use in result.uses)


@dataclass(frozen=True)
class _Folded:
    """The ops that stand in place of a matmul, with fewer matrices."""

    left: SSAValue
    right: SSAValue
    ops: list[Operation]
    product: graph.MatmulOp

    def undo(self) -> None:
        """Puts the matmul back."""
        result = self.ops[-1].results[0]
        before = graph.MatmulOp(self.left, self.right, to=graph_type(result).dtype)
        insert_before(self.ops[0], [before])
        before.location, before.result.name_hint = self.product.location, result.name_hint
        result.replace_all_uses_with(before.result)
        for one in reversed(self.ops):
            one.detach()
            one.erase()


def _folded(op: graph.MatmulOp, group: int) -> _Folded:
    """The same matmul with so many neighbouring matrices of its left operand as rows of one, in place of it."""
    *outer, heads, rows, depth = graph_type(op.a).shape
    assert isinstance(heads, int)
    made: list[Operation] = []

    def add(one: graph.ReshapeOp | graph.SliceOp) -> SSAValue:
        made.append(one)
        return one.results[0]

    left = add(graph.ReshapeOp(op.a, (*outer, heads // group, size(dim(rows) * group), depth)))
    right, shape = op.b, graph_type(op.b).shape
    if len(shape) > 2 and shape[-3] != 1:
        *before, _, inner, columns = shape
        apart = add(graph.ReshapeOp(right, (*before, heads // group, group, inner, columns)))
        stops = [LAST] * (len(before) + 1) + [1, LAST, LAST]
        first = add(graph.SliceOp(apart, [0] * len(stops), stops, [1] * len(stops)))
        right = add(graph.ReshapeOp(first, (*before, heads // group, inner, columns)))
    product = graph.MatmulOp(left, right, to=graph_type(op.result).dtype)
    back = graph.ReshapeOp(product.result, graph_type(op.result).shape)
    made += [product, back]
    folded = _Folded(op.a, op.b, made, product)
    replace(op, made)
    return folded
