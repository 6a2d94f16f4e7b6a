"""Finds weighted means whose weights are exponentials of a matmul: these can be computed in one loop over the keys.

Two matmuls are looked for, values = weights·v and scores = q·k, where the weights are exp(x - shift), x elementwise
work on the scores, and times or over numbers of their row; among those may be the row's maximum of x and the sum of its
weights. Such weights can be had block by block: a loop keeps the highest x so far, and what was summed under a lower
one is multiplied by the exponential of the difference. This holds for any shift that is one number for a row:

    sum_k exp(x_k - shift) c_k  =  exp(top - shift) * sum_k exp(x_k - top) c_k

Where the weights are divided by their own sum the factor falls out. Nothing here knows the name of an operator: what
counts is which axis a value runs along, and how it changes when the weights are all multiplied by one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.graph import control
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Shape, Size
from tessera.transforms.core.index_digits import NOWHERE, PULL, PUSH, Index, Map, plain, pull, whole
from tessera.transforms.fusion.emit_tile_matmuls import COLUMN, DEPTH, ROW, Spaces, spaces_of
from tessera.transforms.fusion.epilogues import Extents, depends_on, is_whole, side_ops
from tessera.transforms.fusion.fusion_refusals import AS_KERNEL, Reason, named
from tessera.transforms.fusion.region_tiles import refusal
from tessera.transforms.fusion.regions import is_splat

KEY = DEPTH
"""The axis over which values are summed is that of the keys."""
INNER = COLUMN + 1
"""The axis over which scores are summed."""
EXPONENTIALS = ("exp", "exp2")
WIDEST = 512
"""Heads of at most so many columns fit a program instance: it holds whole rows of queries and results."""

Read = tuple[SSAValue, Map]
"""A value, and the index map by which a program instance reads it."""

_NOT_WHOLE = Reason(
    "an operand is read at places that are no whole blocks", "arrange its elements beforehand", is_limit=True
)
_MOVED = Reason("scores are used in another arrangement than that of the weights", AS_KERNEL, is_limit=True)


@dataclass
class Online:
    """Two matmuls and what is between them, as one loop over keys computes it."""

    scores: graph.MatmulOp
    values: graph.MatmulOp
    spaces: Spaces
    """The index maps of the matmul with values."""
    score_map: Map
    exponent: Read
    weights: Read
    base: str
    shift: SSAValue | None
    chain: list[tuple[Operation, Map]]
    """The ops on weights, first to last; they are done to the accumulator instead."""
    tops: set[Read] = field(default_factory=set[Read])
    totals: set[Read] = field(default_factory=set[Read])
    ops: dict[Operation, None] = field(default_factory=dict[Operation, None])
    copied: dict[Operation, None] = field(default_factory=dict[Operation, None])
    shift_cancels: bool = False

    @property
    def left(self) -> Map:
        return (*_leading(self.score_map, graph_type(self.scores.a).shape), self.score_map[-2], self._inner)

    @property
    def right(self) -> Map:
        return (*_leading(self.score_map, graph_type(self.scores.b).shape), self._inner, self.score_map[-1])

    @property
    def _inner(self) -> Index:
        return whole(INNER, graph_type(self.scores.a).shape[-1])

    @property
    def blocks(self) -> Extents:
        return _blocks(self.spaces) | {INNER: graph_type(self.scores.a).shape[-1]}


def _blocks(spaces: Spaces) -> Extents:
    return {ROW: spaces.rows, KEY: spaces.depth, COLUMN: spaces.columns}


def _at(read: Read) -> Read:
    return read[0], plain(read[1])


def _leading(where: Map, shape: Shape) -> Map:
    kept = where[len(where) - len(shape) : -2]
    return tuple(NOWHERE if extent == 1 else index for index, extent in zip(kept, shape[:-2], strict=True))


@dataclass(frozen=True)
class NotOnline:
    """A weighted mean that cannot be computed in one loop: its matmul for scores, its exponential, and why."""

    ops: tuple[Operation, Operation]
    reason: Reason


def find_online(values: graph.MatmulOp, block: Block) -> Online | NotOnline | None:
    """The weighted mean that a matmul with values is, if its weights are exponentials of a matmul; None if not."""
    if not graph_type(values.a).dtype.is_float:
        return None
    spaces = spaces_of(values)
    search = _Search(block, spaces)
    found = search.weights(values.a, spaces.left)
    if found is None:
        return None
    exponential, where, chain = found
    exponent, shift = _shifted(exponential.operands_[0], where)
    matmul = search.matmul(exponent, where)
    if matmul is None:
        return None
    scores, score_map = matmul
    for width in (graph_type(scores.a).shape[-1], spaces.columns):
        if not isinstance(width, int) or not 0 < width <= WIDEST:
            return NotOnline((scores, exponential), _too_wide(width))
    if not graph_type(scores.a).dtype.is_float:
        return NotOnline((scores, exponential), _NO_FLOATS)
    online = Online(
        scores,
        values,
        spaces,
        score_map,
        (exponent, where),
        (exponential.result, where),
        exponential.fn.data,
        shift,
        chain,
    )
    reason = search.collect(online)
    return online if reason is None else NotOnline((scores, exponential), reason)


_NO_FLOATS = Reason("the operands of the scores are no floats", "cast them to floats in front", is_limit=True)


def _too_wide(width: Size) -> Reason:
    known = f"heads have {width} columns" if isinstance(width, int) else "how many columns heads have is not known"
    hint = "take more heads that are narrower" if isinstance(width, int) else "give the last size as a number"
    return Reason(f"{known}, and a program instance holds at most {WIDEST}", hint, is_limit=True)


def width_of(online: Online) -> tuple[int, int]:
    """How wide keys and values are at most, in elements, and how many bits an element has."""
    shapes = graph_type(online.scores.a).shape[-1], online.spaces.columns
    return max(size for size in shapes if isinstance(size, int)), graph_type(online.values.b).dtype.bits


def reads_through(read: Read) -> list[Read]:
    """A value where it is read, and what it is an index map of, as far as that goes."""
    found = [read]
    while isinstance(op := found[-1][0].owner, Operation) and (inner := pull(op, found[-1][1])) is not None:
        found.append((op.operands[0], inner))
    return found


def _shifted(exponent: SSAValue, where: Map) -> tuple[SSAValue, SSAValue | None]:
    """The exponent, and the number of its row that is subtracted from it, if any."""
    op = exponent.owner
    if isinstance(op, graph.EwOp) and op.fn.data == "sub" and is_row(op.operands_[1], where):
        return op.operands_[0], op.operands_[1]
    return exponent, None


def is_row(value: SSAValue, where: Map) -> bool:
    """Whether a value is one number for a row, whatever the key."""
    if all(KEY not in index.axes for index in where) or is_splat(value):
        return True
    op = value.owner
    if isinstance(op, graph.EwOp):
        return all(is_row(operand, where) for operand in op.operands_)
    if isinstance(op, Operation) and type(op) in PULL:
        inner = pull(op, where)
        return inner is not None and is_row(op.operands[0], inner)
    return False


def is_zero(value: SSAValue) -> bool:
    """Whether every element is 0."""
    op = value.owner
    while isinstance(op, graph.BroadcastOp | graph.ReshapeOp):
        value = op.operand
        op = value.owner
    if not isinstance(op, graph.ConstantOp) or not is_splat(value):
        return False
    return bool(np.frombuffer(op.value.data, graph_type(value).dtype.storage)[0] == 0)


# What may be done to weights after they were made: the operand that is the weights, where all others are of their row.


def _after_cast(op: graph.EwOp, where: Map) -> SSAValue | None:
    plain = op.seed is None and graph_type(op.operands_[0]).dtype.is_float and graph_type(op.result).dtype.is_float
    return op.operands_[0] if plain else None


def _after_div(op: graph.EwOp, where: Map) -> SSAValue | None:
    return op.operands_[0] if is_row(op.operands_[1], where) else None


def _after_mul(op: graph.EwOp, where: Map) -> SSAValue | None:
    a, b = op.operands_
    return a if is_row(b, where) else b if is_row(a, where) else None


def _after_select(op: graph.EwOp, where: Map) -> SSAValue | None:
    condition, a, b = op.operands_
    if not is_row(condition, where):
        return None
    return a if is_zero(b) else b if is_zero(a) else None


_AFTER: Mapping[str, Callable[[graph.EwOp, Map], SSAValue | None]] = MappingProxyType(
    {"cast": _after_cast, "div": _after_div, "mul": _after_mul, "select": _after_select}
)


class _Search:
    """Looks through a block for what one loop can take."""

    def __init__(self, block: Block, spaces: Spaces) -> None:
        self.block = block
        self.spaces = spaces
        self.blocks = _blocks(spaces)

    def inside(self, value: SSAValue) -> Operation | None:
        op = value.owner
        return op if isinstance(op, Operation) and op.parent is self.block else None

    def weights(self, value: SSAValue, where: Map) -> tuple[graph.EwOp, Map, list[tuple[Operation, Map]]] | None:
        """The exponential that an operand is made of, and the ops on the way."""
        chain: list[tuple[Operation, Map]] = []
        while (op := self.inside(value)) is not None:
            if isinstance(op, graph.EwOp) and op.fn.data in EXPONENTIALS:
                return op, where, list(reversed(chain))
            if isinstance(op, graph.EwOp) and op.fn.data in _AFTER:
                before = _AFTER[op.fn.data](op, where)
                if before is None:
                    return None
                chain.append((op, where))
                value = before
            elif type(op) in PUSH and (inner := pull(op, where)) is not None:
                chain.append((op, where))
                value, where = op.operands[0], inner
            else:
                return None
        return None

    def matmul(self, value: SSAValue, where: Map) -> tuple[graph.MatmulOp, Map] | None:
        """The matmul that scores are made of: rows by keys."""
        op = self.inside(value)
        if isinstance(op, graph.MatmulOp):
            rows, keys = whole(ROW, self.spaces.rows), whole(KEY, self.spaces.depth)
            return (op, where) if plain(where[-2:]) == plain((rows, keys)) else None
        if isinstance(op, graph.EwOp):
            found = (self.matmul(operand, where) for operand in op.operands_ if not is_row(operand, where))
            return next((one for one in found if one is not None), None)
        if op is not None and type(op) in PULL and (inner := pull(op, where)) is not None:
            return self.matmul(op.operands[0], inner)
        return None

    # Everything that is between the matmuls.

    def collect(self, online: Online) -> Reason | None:
        """Notes all ops; why some of them cannot be had, if so."""
        online.ops[online.scores] = None
        seen: set[Read] = set()
        reads = [online.exponent]
        if online.shift is not None:
            reads.append((online.shift, online.exponent[1]))
        for op, where in online.chain:
            if isinstance(op, graph.EwOp):
                reads += [(operand, where) for operand in op.operands_ if is_row(operand, where)]
        for value, where in reads:
            if (reason := self._take(online, value, where, seen)) is not None:
                return reason
        for value, where in (online.exponent, online.weights):
            for use in list(value.uses):
                if isinstance(use.operation, graph.ReduceOp) and use.operation not in online.ops:
                    kept = use.operation.keepdims is not None
                    if self._fold(online, use.operation, (*where[:-1], NOWHERE) if kept else where[:-1]):
                        online.ops[use.operation] = None
        exponential = online.weights[0].owner
        assert isinstance(exponential, graph.EwOp)
        subtraction = exponential.operands_[0].owner
        if online.shift is not None:
            assert isinstance(subtraction, Operation)
            online.ops[subtraction] = None
        online.ops |= {exponential: None, **{op: None for op, _ in online.chain}, online.values: None}
        online.shift_cancels = _degree(online) == 0
        return self._open(online)

    def _take(self, online: Online, value: SSAValue, where: Map, seen: set[Read]) -> Reason | None:
        """Takes what a value is made of; or why it cannot be computed in the loop or from what it leaves."""
        if (value, where) in seen:
            return None
        seen.add((value, where))
        op = self.inside(value)
        if op is None or not depends_on(value, [online.scores], self.block, online.scores):
            if (sides := side_ops(value, where, self.blocks, self.block)) is None:
                return _NOT_WHOLE
            online.copied |= dict.fromkeys(sides)
            return None
        if op is online.scores:
            return None if plain(where) == plain(online.score_map) else _MOVED
        reason: Reason | None = Reason(
            f"{named(op)} is not computed for a block of keys at a time, or from sums and maxima of rows",
            AS_KERNEL,
            is_limit=True,
        )
        if isinstance(op, graph.EwOp) and refusal(op) is None:
            reasons = (self._take(online, operand, where, seen) for operand in op.operands_)
            reason = next((one for one in reasons if one is not None), None)
        elif isinstance(op, graph.ReduceOp):
            reason = None if self._fold(online, op, where) else reason
        elif type(op) in PULL and (inner := pull(op, where)) is not None:
            reason = self._take(online, op.operands[0], inner, seen)
        if reason is None:
            online.ops[op] = None
        return reason

    def _fold(self, online: Online, op: graph.ReduceOp, where: Map) -> bool:
        """A row's maximum of the exponents, or its sum of weights: what the loop keeps."""
        rank = len(graph_type(op.operand).shape)
        axes = list(op.axes.iter_values())
        if axes != [rank - 1]:
            return False
        kept = where[:-1] if op.keepdims is not None else where
        inner = (*kept, whole(KEY, self.spaces.depth))
        source = op.operand
        while (cast := self.inside(source)) is not None and isinstance(cast, graph.EwOp) and cast.fn.data == "cast":
            if _at((source, inner)) in (_at(online.exponent), _at(online.weights)):
                break
            online.ops[cast] = None
            source = cast.operands_[0]
        if op.kind.data == "max" and _at((source, inner)) == _at(online.exponent):
            online.tops.add((op.result, where))
            return True
        if op.kind.data == "sum" and _at((source, inner)) == _at(online.weights):
            online.totals.add((op.result, where))
            return True
        return False

    def _open(self, online: Online) -> Reason | None:
        """Why a value has to be in memory that the loop has block by block: all but numbers of rows, and the result."""
        rows = {value for value, _ in (*online.tops, *online.totals)} | {online.values.result}
        for op in online.ops:
            for result in op.results:
                if result in rows or not self._has_keys(online, result):
                    continue
                user = next((use.operation for use in result.uses if use.operation not in online.ops), None)
                if user is not None:
                    is_result = isinstance(user, graph.ReturnOp | control.YieldOp)
                    words = "it is a result, too" if is_result else f"{named(user)} needs it, too"
                    text = f"{named(op)} has to be in memory for all keys: {words}"
                    return Reason(text, "use only what the second matmul gives", is_limit=True)
        whole_reads = (online.left, online.right, online.spaces.right)
        return None if all(is_whole(where, self.blocks) for where in whole_reads) else _NOT_WHOLE

    def _has_keys(self, online: Online, value: SSAValue) -> bool:
        """Whether a value has an element for each key: then it is as large as the scores."""
        shape = graph_type(value).shape
        return bool(shape) and self.spaces.depth in shape[-1:] and self.spaces.depth != 1


# How values change when all weights are multiplied by one number: by what power of it.


def _degree(online: Online) -> int | None:
    """The power for what the chain makes of the weights; None where it is not just a power."""
    totals, tops = ({value for value, _ in reads} for reads in (online.totals, online.tops))

    def of(value: SSAValue) -> int | None:
        if value in totals or value in tops:
            return 1 if value in totals else 0
        op = value.owner
        if isinstance(op, graph.EwOp):
            rule = _DEGREES.get(op.fn.data)
            if rule is not None:
                return rule(op, of)
            # Anything else is the same only if nothing in it changes.
            return 0 if all(of(operand) == 0 for operand in op.operands_) else None
        if isinstance(op, graph.ReduceOp):
            return None
        if isinstance(op, Operation) and type(op) in PULL:
            return of(op.operands[0])
        return 0

    power = 1
    for op, where in online.chain:
        if not isinstance(op, graph.EwOp) or op.fn.data == "cast":
            continue
        if op.fn.data == "select":
            if not _asks_for_zero(op.operands_[0], of) and of(op.operands_[0]) != 0:
                return None
            continue
        rows = [operand for operand in op.operands_ if is_row(operand, where)]
        by = of(rows[-1])
        if by is None:
            return None
        power += by if op.fn.data == "mul" else -by
    return power


Of = Callable[[SSAValue], "int | None"]


def _product_degree(op: graph.EwOp, of: Of) -> int | None:
    a, b = (of(operand) for operand in op.operands_)
    return None if a is None or b is None else a + b


def _quotient_degree(op: graph.EwOp, of: Of) -> int | None:
    a, b = (of(operand) for operand in op.operands_)
    return None if a is None or b is None else a - b


def _same_degree(op: graph.EwOp, of: Of) -> int | None:
    return of(op.operands_[0])


def _cast_degree(op: graph.EwOp, of: Of) -> int | None:
    """A float keeps its degree; an integer or a bool made of it is the same only where the float is."""
    found = of(op.operands_[0])
    return found if found == 0 or graph_type(op.result).dtype.is_float else None


def _inverse_degree(op: graph.EwOp, of: Of) -> int | None:
    found = of(op.operands_[0])
    return None if found is None else -found


def _chosen_degree(op: graph.EwOp, of: Of) -> int | None:
    """The degree of both branches, where the condition does not change; else that of the branch for sums other than 0.

    Where the sum is 0 all weights are 0 and stay 0 whatever they are divided by, so the other branch may be any number.
    """
    condition, *branches = op.operands_
    degrees = [of(branch) for branch in branches]
    if degrees[0] == degrees[1] and of(condition) == 0:
        return degrees[0]
    zero_branch = _branch_for_zero(condition, of)
    return None if zero_branch is None or degrees[zero_branch] != 0 else degrees[1 - zero_branch]


def _branch_for_zero(condition: SSAValue, of: Of) -> int | None:
    """Which branch, 0 or 1, is taken where a sum of weights is 0; None where a condition asks for anything else."""
    op = _unmapped(condition).owner
    if isinstance(op, graph.EwOp) and op.fn.data == "not":
        found = _branch_for_zero(op.operands_[0], of)
        return None if found is None else 1 - found
    if not isinstance(op, graph.EwOp) or op.fn.data not in _BRANCHES_FOR_ZERO:
        return None
    a, b = op.operands_
    compared = (is_zero(b) and _is_sum(a, of)) or (op.fn.data in ("eq", "ne") and is_zero(a) and _is_sum(b, of))
    return _BRANCHES_FOR_ZERO[op.fn.data] if compared else None


_BRANCHES_FOR_ZERO: Mapping[str, int] = MappingProxyType({"eq": 0, "le": 0, "ne": 1, "gt": 1})
"""By comparison with 0. Sums of weights are not negative."""


def _is_sum(value: SSAValue, of: Of) -> bool:
    """Whether a value is a sum of weights itself, which is 0 only where all weights are."""
    value = _unmapped(value)
    op = value.owner
    if isinstance(op, graph.EwOp) and op.fn.data in ("abs", "cast"):
        return graph_type(value).dtype.is_float and _is_sum(op.operands_[0], of)
    return isinstance(op, graph.ReduceOp) and of(value) == 1


def _unmapped(value: SSAValue) -> SSAValue:
    """The value whose elements these are, in another arrangement."""
    while isinstance(op := value.owner, graph.BroadcastOp | graph.ReshapeOp | graph.TransposeOp):
        value = op.operand
    return value


def _asks_for_zero(condition: SSAValue, of: Of) -> bool:
    """Whether a condition compares what is a power with 0: the answer is the same for all multiples."""
    op = _unmapped(condition).owner
    if isinstance(op, graph.EwOp) and op.fn.data == "not":
        return _asks_for_zero(op.operands_[0], of)
    if not isinstance(op, graph.EwOp) or op.fn.data not in ("eq", "ne", "gt", "le"):
        return False
    a, b = op.operands_
    return (is_zero(b) and of(a) is not None) or (op.fn.data in ("eq", "ne") and is_zero(a) and of(b) is not None)


_DEGREES: Mapping[str, Callable[[graph.EwOp, Of], int | None]] = MappingProxyType(
    {
        "mul": _product_degree,
        "div": _quotient_degree,
        "cast": _cast_degree,
        "abs": _same_degree,
        "reciprocal": _inverse_degree,
        "select": _chosen_degree,
    }
)
