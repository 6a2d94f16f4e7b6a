"""Regions around one matmul: the index maps of its operands, and what is computed of its result.

How an operand is read is decided here, by sizes alone. An index map on the way to an operand is followed as long as
blocks of the operand stay boxes of an array (`epilogues.is_box`), which targets copy fast; an operand that is
computed is computed beforehand, by a region of its own, for every program instance would have to do it anew and could
not have it copied. Only where few rows are multiplied, so that reading the operand is all the work there is, a cast
from a narrower type is done on the way, and where the pass is told how many rows are few, all that rows are made of.

A matmul with one matrix on its right has all its rows in one axis, whatever their leading axes were: its region is
written over that axis, and reshapes around it, which cost nothing, bring arrays into that form and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import Kind
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.shapes.expr import Shape, Size, element_count
from tessera.transforms.core.block_order import number_in_block
from tessera.transforms.core.index_digits import PULL, Map, pull
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.fusion.emit_tile_matmuls import COLUMN, DEPTH, ROW, spaces_of
from tessera.transforms.fusion.epilogues import EpilogueWork, Extents, at_once, is_box, is_whole, longest, results_of
from tessera.transforms.fusion.fusion_refusals import FusionRefusals, Reason, computed
from tessera.transforms.fusion.gemv_fusion import is_short
from tessera.transforms.fusion.prologues import prologue_ops
from tessera.transforms.fusion.regions import enclose, erase_unused, is_splat, make_room

CAST_FUSION_ROWS = 16
"""The rows up to which a cast of the other operand is fused into a matmul: reading that operand takes all the time."""
TILE_ROWS = 64
"""Rows of a tile that is copied as a whole."""

_COMPUTED = Reason(
    "an operand of a matmul is computed beforehand: every program instance would compute it anew",
    "multiply in a @kernel that computes it on the way, if that is faster here",
)
_CAST = Reason(
    f"an operand of a matmul of more than {CAST_FUSION_ROWS} rows is cast beforehand: reading is not all of the work",
    _COMPUTED.hint,
)
_LONG = Reason("what the rows are multiplied with takes longer to read than a kernel takes to start")
_NOT_LEVEL = Reason(
    "it is not the same for all rows of the matmul, whose leading axes are one axis there",
    "reshape the left operand to two axes in front",
    is_limit=True,
)


def fuse_matmuls(block: Block, few: int, refusals: FusionRefusals) -> None:
    """Puts every matmul of a block that is in no region yet into one, with what goes along with it.

    With at most `few` rows, that is also what its left operand is made of (`prologues.py`).
    """
    for op in list(block.ops):
        if isinstance(op, graph.MatmulOp) and graph_type(op.a).dtype.kind is not Kind.BOOL:
            _form(op, block, few, refusals)
    for op in reversed(list(block.ops)):
        if isinstance(op, graph.ReshapeOp):
            erase_unused(op)


def _form(op: graph.MatmulOp, block: Block, few: int, refusals: FusionRefusals) -> None:
    # Parts of a depth are matrices of the result alone.
    level = op.parts is None and _has_one_matrix(op) and not _is_mapped(op, block)
    work = _epilogue(op, block, refusals, level=level)
    if level and _is_level(work, op):
        op, work = _level(op, work, block)
    blocks = _blocks(op)
    spaces = spaces_of(op)
    left, right = (
        operand_ops(op.a, spaces.left, blocks, block, spaces.rows),
        operand_ops(op.b, spaces.right, blocks, block, spaces.rows),
    )
    through_ops, reason = [*left, *right], None
    if isinstance(spaces.rows, int) and spaces.rows <= few:
        rows = DEPTH, spaces.depth
        made = prologue_ops(op.a, spaces.left, blocks, block, rows) if is_short(op.b) else _LONG
        if isinstance(made, Reason):
            reason = made
        else:
            through_ops += made
    for value, chain, why in ((op.a, left, reason), (op.b, right, None)):
        source = computed(chain[0].operands[0] if chain else value)
        if source is not None and source not in through_ops and source.parent is block:
            refusals.refuse([source, op], why or (_CAST if _is_narrow_cast(source) else _COMPUTED), source)
    copied = dict.fromkeys([*through_ops, *work.copied])
    enclose(work.ops, "matmul", Config(), copied=[one for one in copied if one not in work.ops])


def _blocks(op: graph.MatmulOp) -> Extents:
    spaces = spaces_of(op)
    return {ROW: spaces.rows, DEPTH: spaces.depth, COLUMN: spaces.columns}


def _epilogue(op: graph.MatmulOp, block: Block, refusals: FusionRefusals, *, level: bool) -> EpilogueWork:
    spaces = spaces_of(op)
    start = EpilogueWork({ROW: spaces.rows, COLUMN: spaces.columns}, [op], {}, {op.result: spaces.result})

    def obstacle(work: EpilogueWork) -> Reason | None:
        return at_once(work) or (_NOT_LEVEL if level and not _is_level(work, op) else None)

    return longest(start, block, refusals, maps=not level, obstacle=obstacle)


def operand_ops(
    value: SSAValue, where: Map, blocks: Extents, block: Block, rows: Size, *, tiled: bool = False
) -> list[Operation]:
    """The ops through which an operand is read, in order: as many as leave it a box, or at least whole blocks.

    With `tiled`, rows are copied as tiles of `TILE_ROWS`, and few of them have to be all of an axis.
    """
    best: list[Operation] = []
    chain: list[Operation] = []
    boxed = is_box(where, graph_type(value).shape, blocks)
    while isinstance(op := value.owner, Operation) and op.parent is block:
        if type(op) in PULL:
            inner = pull(op, where)
        elif _is_narrow_cast(op) and isinstance(rows, int) and rows <= CAST_FUSION_ROWS:
            inner = where
        else:
            break
        if inner is None or (tiled and boxed and isinstance(op, graph.ReshapeOp) and _is_cut_short(inner, op)):
            break
        chain.insert(0, op)
        value, where = op.operands[0], inner
        is_now = is_box(where, graph_type(value).shape, blocks)
        if is_now or (not boxed and is_whole(where, blocks)):
            best, boxed = list(chain), is_now
    return best


def _is_cut_short(where: Map, op: graph.ReshapeOp) -> bool:
    """Whether rows that are fewer than those of a tile would be a part of a longer axis behind a reshape.

    A tile would reach into what follows them there, and copies are whole tiles. The host has the reshape for nothing.
    """
    sizes = zip(where, graph_type(op.operand).shape, strict=True)
    digits = [(digit.size, extent) for index, extent in sizes for digit, _ in index.terms if digit.axis == ROW]
    return any(isinstance(size, int) and 1 < size < TILE_ROWS and size != extent for size, extent in digits)


def _is_narrow_cast(op: Operation) -> bool:
    if not isinstance(op, graph.EwOp) or op.fn.data != "cast" or op.seed is not None:
        return False
    return graph_type(op.operands_[0]).dtype.bits < graph_type(op.result).dtype.bits


# One axis of rows.


def _has_one_matrix(op: graph.MatmulOp) -> bool:
    return all(extent == 1 for extent in graph_type(op.b).shape[:-2]) and len(graph_type(op.result).shape) > 2


def _is_mapped(op: graph.MatmulOp, block: Block) -> bool:
    """Whether rows are read through an index map that would have to be done beforehand if they were one axis."""
    spaces = spaces_of(op)
    through = operand_ops(op.a, spaces.left, _blocks(op), block, spaces.rows)
    return any(not isinstance(one, graph.ReshapeOp) for one in through)


def _is_level(work: EpilogueWork, op: graph.MatmulOp) -> bool:
    """Whether everything in a work has all rows, or is the same for each of them."""
    full = graph_type(op.result).shape
    return all(_flattener(one, full) is not None for one in (*work.ops, *work.copied))


Flattener = Callable[[Operation, "_Flat"], Operation]


def _flattener(op: Operation, full: Shape) -> Flattener | None:
    """How an op is written over one axis of rows; None where it is not the same for all of them."""
    shape = graph_type(op.results[0]).shape
    if isinstance(op, graph.MatmulOp):
        return _flat_matmul
    if shape != full:
        return _as_it_is if all(extent == 1 for extent in shape[:-1]) else None
    if isinstance(op, graph.EwOp):
        return _flat_elementwise
    if isinstance(op, graph.BroadcastOp):
        inner = graph_type(op.operand).shape
        return _flat_broadcast if all(extent == 1 for extent in inner[:-1]) else None
    if isinstance(op, graph.ConstantOp) and is_splat(op.result):
        return _flat_splat
    if isinstance(op, graph.IotaOp) and op.axis.value.data == len(full) - 1:
        return _flat_iota
    return None


class _Flat:
    """Ops over one axis of rows, as they are made of others."""

    def __init__(self, full: Shape) -> None:
        self.full = full
        self.shape: Shape = (element_count(full[:-1]), full[-1])
        self.made: dict[SSAValue, SSAValue] = {}
        self.before: list[Operation] = []

    def reshaped(self, value: SSAValue, shape: Sequence[Size]) -> SSAValue:
        while graph_type(value).shape != tuple(shape) and isinstance(value.owner, graph.ReshapeOp):
            value = value.owner.operand
        if graph_type(value).shape == tuple(shape):
            return value
        op = graph.ReshapeOp(value, shape)
        self.before.append(op)
        return op.result

    def value(self, value: SSAValue) -> SSAValue:
        """A value over one axis of rows."""
        if value not in self.made:
            whole = graph_type(value).shape == self.full
            self.made[value] = self.reshaped(value, self.shape) if whole else value
        return self.made[value]

    def type(self, value: SSAValue) -> GraphTensorType:
        return graph_type(value).with_shape(self.shape)


def _flat_matmul(op: Operation, flat: _Flat) -> Operation:
    assert isinstance(op, graph.MatmulOp)
    depth = graph_type(op.a).shape[-1]
    a = flat.reshaped(op.a, (flat.shape[0], depth))
    b = flat.reshaped(op.b, (depth, flat.shape[1]))
    return graph.MatmulOp(a, b, to=graph_type(op.result).dtype)


def _as_it_is(op: Operation, flat: _Flat) -> Operation:
    mapped = {operand: flat.made.get(operand, operand) for operand in op.operands}
    return op.clone(value_mapper=mapped)


def _flat_elementwise(op: Operation, flat: _Flat) -> Operation:
    assert isinstance(op, graph.EwOp)
    to = graph_type(op.result).dtype if op.fn.data == "cast" else None
    return graph.EwOp(op.fn.data, [flat.value(operand) for operand in op.operands_], to=to)


def _flat_broadcast(op: Operation, flat: _Flat) -> Operation:
    assert isinstance(op, graph.BroadcastOp)
    inner = flat.made.get(op.operand, op.operand)
    return graph.BroadcastOp(flat.reshaped(inner, graph_type(inner).shape[-1:]), flat.shape)


def _flat_splat(op: Operation, flat: _Flat) -> Operation:
    assert isinstance(op, graph.ConstantOp)
    return graph.ConstantOp(op.value, flat.type(op.result))


def _flat_iota(op: Operation, flat: _Flat) -> Operation:
    assert isinstance(op, graph.IotaOp)
    return graph.IotaOp(1, flat.type(op.result))


def _level(op: graph.MatmulOp, work: EpilogueWork, block: Block) -> tuple[graph.MatmulOp, EpilogueWork]:
    """The same work over one axis of rows, in front of the ops that it replaces."""
    flat = _Flat(graph_type(op.result).shape)
    results = results_of(work.ops, block)
    following = make_room(work.ops)
    members = [*work.copied, *work.ops]
    members.sort(key=number_in_block)
    made: dict[Operation, Operation] = {}
    for one in members:
        rule = _flattener(one, flat.full)
        assert rule is not None
        before = len(flat.before)
        new = rule(one, flat)
        new.location = one.location
        adopt_location(flat.before[before:], one)
        new.results[0].name_hint = one.results[0].name_hint
        flat.made[one.results[0]] = new.results[0]
        made[one] = new
        flat.before.append(new)
    for new in flat.before:
        block.insert_op_before(new, following)
    for value in results:
        back = graph.ReshapeOp(flat.made[value], flat.full)
        owner = value.owner
        assert isinstance(owner, Operation)
        back.location, back.result.name_hint = owner.location, value.name_hint
        value.replace_uses_with_if(back.result, lambda use: use.operation not in made)
        block.insert_op_before(back, following)
    for one in reversed(work.ops):
        one.detach()
        one.erase()
    for one in reversed(work.copied):
        erase_unused(one)
    matmul = made[op]
    assert isinstance(matmul, graph.MatmulOp)
    spaces = spaces_of(matmul)
    copied = {made[one]: None for one in work.copied}
    ops = [made[one] for one in work.ops]
    return matmul, EpilogueWork({ROW: spaces.rows, COLUMN: spaces.columns}, ops, copied, {})
