"""vmap of graphs: a block's ops once more, for values that have one axis more in front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing
from tessera.ir.graph.control import CondOp, ScanOp, WhileOp, YieldOp, slice_of
from tessera.ir.graph.effects import AllReduceOp, PrintOp, RandomOp, StateWriteOp
from tessera.ir.graph.functions import CallKernelOp, CallOp
from tessera.ir.graph.slices import LAST
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size, dim, size
from tessera.transforms.core.dead_code import is_removable
from tessera.transforms.derivatives.checkpoints import CheckpointOp, NamedOp
from tessera.transforms.derivatives.customs import CustomOp, CustomRule, StopOp
from tessera.transforms.derivatives.graph_writer import GraphWriter, Known, axes_of
from tessera.transforms.derivatives.rules import Tangent, captured_by, inputs_of, refused

OpT = TypeVar("OpT", bound=Operation)
Item: TypeAlias = "tuple[SSAValue, bool]"
"""A value, and whether it has the axis of the batch."""


class Batch:
    """One walk: what values have become, and where ops are written. The axis of the batch is the first."""

    def __init__(self, block: Block, count: Size, known: Known, values: Mapping[SSAValue, Item]) -> None:
        self.w = GraphWriter(block, known)
        self.count = count
        self.values = dict(values)

    def item(self, value: SSAValue) -> Item:
        return self.values.get(value, (value, False))

    def items(self, values: Sequence[SSAValue]) -> list[Item]:
        return [self.item(value) for value in values]

    def dense(self, item: Item) -> SSAValue:
        """A value with the axis of the batch, whether it had it or not."""
        value, batched = item
        return value if batched else self.w.broadcast(value, (self.count, *graph_type(value).shape))

    def inside(self, block: Block, values: Mapping[SSAValue, Item]) -> Batch:
        return Batch(block, self.count, self.w.known, {**self.values, **values})

    def run(self, block: Block) -> None:
        """Writes a block's ops, but for the one that ends it."""
        for op in list(block.ops):
            if op.has_trait(IsTerminator):
                continue
            self.w.location = op.location
            if not isinstance(op, RandomOp) and not any(self.item(value)[1] for value in inputs_of(op)):
                mapped = {value: self.item(value)[0] for value in inputs_of(op)}
                made = self.w.write(op.clone(mapped))
                self.values |= {old: (new, False) for old, new in zip(op.results, made.results, strict=True)}
                continue
            row = BATCHES.get(type(op))
            if row is None:
                raise refused(op, f"{op.name} has no rule for vmap", "leave it out of the mapped function")
            self.values |= dict(zip(op.results, row(self, op), strict=True))


AnyBatchRule: TypeAlias = Callable[[Batch, Operation], Sequence[Item]]
BATCHES: dict[type[Operation], AnyBatchRule] = {}


def _row(kind: type[OpT], write: Callable[[Batch, OpT], Sequence[Item]]) -> None:
    BATCHES[kind] = cast(AnyBatchRule, write)


def _ew(b: Batch, op: graph.EwOp) -> Sequence[Item]:
    values = [b.dense(item) for item in b.items(op.operands_)]
    to = graph_type(op.result).dtype if op.fn.data == "cast" else None
    seed = None if op.seed is None else op.seed.value.data
    return [(b.w.add(graph.EwOp(op.fn.data, values, to=to, seed=seed)), True)]


def _broadcast(b: Batch, op: graph.BroadcastOp) -> Sequence[Item]:
    value, shape = b.item(op.operand)[0], graph_type(op.result).shape
    own = graph_type(op.operand).shape
    apart = b.w.reshape(value, [b.count, *[1] * (len(shape) - len(own)), *own])
    return [(b.w.broadcast(apart, [b.count, *shape]), True)]


def _reshape(b: Batch, op: graph.ReshapeOp) -> Sequence[Item]:
    return [(b.w.reshape(b.item(op.operand)[0], [b.count, *graph_type(op.result).shape]), True)]


def _transpose(b: Batch, op: graph.TransposeOp) -> Sequence[Item]:
    order = [0, *[axis + 1 for axis in op.permutation.iter_values()]]
    return [(b.w.transpose(b.item(op.operand)[0], order), True)]


def _slice(b: Batch, op: graph.SliceOp) -> Sequence[Item]:
    starts, stops, steps = (list(one.iter_values()) for one in (op.starts, op.stops, op.steps))
    found = b.w.slice(b.item(op.operand)[0], [0, *starts], [LAST, *stops], [1, *steps])
    return [(found, True)]


def _reduce(b: Batch, op: graph.ReduceOp) -> Sequence[Item]:
    axes = [axis + 1 for axis in axes_of(op)]
    found = b.w.reduce(op.kind.data, b.item(op.operand)[0], axes, keepdims=op.keepdims is not None)
    return [(found, True)]


def _concatenate(b: Batch, op: graph.ConcatenateOp) -> Sequence[Item]:
    return [(b.w.concatenate([b.dense(item) for item in b.items(op.operands_)], op.axis.value.data + 1), True)]


def _matmul(b: Batch, op: graph.MatmulOp) -> Sequence[Item]:
    rank = max(len(graph_type(op.a).shape), len(graph_type(op.b).shape))

    def aligned(value: SSAValue) -> SSAValue:
        own = graph_type(value).shape
        now, batched = b.item(value)
        return b.w.reshape(now, [b.count, *[1] * (rank - len(own)), *own]) if batched else now

    found = graph.MatmulOp(aligned(op.a), aligned(op.b), to=graph_type(op.result).dtype)
    return [(b.w.add(found), True)]


def _gather(b: Batch, op: graph.GatherOp) -> Sequence[Item]:
    return [(gathered(b, b.item(op.operand), b.items(op.indices), list(op.axes.iter_values())), True)]


def gathered(b: Batch, operand: Item, indices: Sequence[Item], axes: Sequence[int]) -> SSAValue:
    """A gather of whose values at least one has the axis of the batch."""
    w, (x, batched), first = b.w, operand, axes[0]
    if not any(flag for _, flag in indices):
        return w.gather(x, [value for value, _ in indices], [axis + 1 for axis in axes])
    places = [b.dense(item) for item in indices]
    if not batched:
        return w.moved(w.gather(x, places, axes), first, 0)
    rank = len(graph_type(places[0]).shape) - 1
    found = w.gather(x, [_numbers(b, places[0]), *places], [0, *[axis + 1 for axis in axes]])
    before = [*range(1 + rank, 1 + rank + first)]
    behind = [*range(1 + rank + first, len(graph_type(found).shape))]
    return w.transpose(found, [0, *before, *range(1, 1 + rank), *behind])


def _numbers(b: Batch, like: SSAValue) -> SSAValue:
    """Which of the batch each index is of."""
    return b.w.cast(b.w.iota(graph_type(like).shape, 0), graph_type(like).dtype)


def _scatter(b: Batch, op: indexing.ScatterOp) -> Sequence[Item]:
    w, kind, axes, items = b.w, op.kind.data, list(op.axes.iter_values()), b.items(op.indices)
    old, new = b.dense(b.item(op.operand)), b.dense(b.item(op.updates))
    inner = [axis + 1 for axis in axes]
    if not any(flag for _, flag in items):
        return [(w.scatter(kind, old, new, [value for value, _ in items], inner), True)]
    places, first = [b.dense(item) for item in items], axes[0]
    rank, whole = len(graph_type(places[0]).shape) - 1, len(graph_type(new).shape)
    order = [0, *range(1 + first, 1 + first + rank), *range(1, 1 + first), *range(1 + first + rank, whole)]
    return [(w.scatter(kind, old, w.transpose(new, order), [_numbers(b, places[0]), *places], [0, *inner]), True)]


def _starts(b: Batch, starts: Sequence[SSAValue], whole: Sequence[Size], part: Sequence[Size]) -> list[SSAValue]:
    """Where each of the batch begins along each axis, moved so that all of a part is inside."""
    w, found = b.w, list[SSAValue]()
    for start, extent, length in zip(starts, whole, part, strict=True):
        first = w.cast(b.dense(b.item(start)), graph_type(w.integer(0)).dtype)
        room = w.broadcast(w.size(size(dim(extent) - dim(length))), [b.count])
        zero = w.broadcast(w.integer(0), [b.count])
        found.append(w("max", w("min", first, room), zero))
    return found


def _dynamic_slice(b: Batch, op: indexing.DynamicSliceOp) -> Sequence[Item]:
    w, shape = b.w, graph_type(op.result).shape
    item = b.item(op.operand)
    if not any(flag for _, flag in b.items(op.starts)):
        starts = [w.integer(0), *[w.cast(value, graph_type(w.integer(0)).dtype) for value, _ in b.items(op.starts)]]
        return [(w.add(indexing.DynamicSliceOp(item[0], starts, [b.count, *shape])), True)]
    for axis, start in enumerate(_starts(b, op.starts, graph_type(op.operand).shape, shape)):
        lines = [b.count, shape[axis]]
        places = w("add", w.broadcast(w.reshape(start, [b.count, 1]), lines), w.iota(lines, 1))
        item = (gathered(b, item, [(places, True)], [axis]), True)
    return [item]


def _dynamic_update(b: Batch, op: indexing.DynamicUpdateSliceOp) -> Sequence[Item]:
    w = b.w
    old, new = b.dense(b.item(op.operand)), b.dense(b.item(op.update))
    if not any(flag for _, flag in b.items(op.starts)):
        starts = [w.integer(0), *[w.cast(value, graph_type(w.integer(0)).dtype) for value, _ in b.items(op.starts)]]
        return [(w.add(indexing.DynamicUpdateSliceOp(old, new, starts)), True)]
    whole, part = graph_type(op.operand).shape, graph_type(op.update).shape
    if 0 in part:
        return [(old, True)]
    inside: SSAValue | None = None
    for axis, start in enumerate(_starts(b, op.starts, whole, part)):
        lines = [b.count, whole[axis]]
        place = w("sub", w.iota(lines, 1), w.broadcast(w.reshape(start, [b.count, 1]), lines))
        zero, last = w.broadcast(w.integer(0), lines), w.broadcast(w.size(size(dim(part[axis]) - 1)), lines)
        here = w("and", w("ge", place, zero), w("le", place, last))
        new = gathered(b, (new, True), [(w("max", w("min", place, last), zero), True)], [axis])
        shape = [b.count, *[whole[one] if one == axis else 1 for one in range(len(whole))]]
        flag = w.broadcast(w.reshape(here, shape), [b.count, *whole])
        inside = flag if inside is None else w("and", inside, flag)
    return [(new if inside is None else w("select", inside, new, old), True)]


def _cumulate(b: Batch, op: indexing.CumulateOp) -> Sequence[Item]:
    axis = op.axis.value.data + 1
    found = b.w.cumulate(op.kind.data, b.item(op.operand)[0], axis, exclusive=op.exclusive is not None)
    return [(found, True)]


# Bodies


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    assert isinstance(last, YieldOp)
    return last.values


def _body(b: Batch, block: Block, flags: Sequence[bool]) -> tuple[Block, Batch]:
    """A new body whose arguments have the axis of the batch where flags say so, and its ops."""
    types = [
        graph_type(argument).with_shape((b.count, *graph_type(argument).shape)) if flag else argument.type
        for argument, flag in zip(block.args, flags, strict=True)
    ]
    made = Block(arg_types=types)
    inner = b.inside(made, {old: (new, flag) for old, new, flag in zip(block.args, made.args, flags, strict=True)})
    inner.run(block)
    return made, inner


def _ends(inner: Batch, block: Block, flags: Sequence[bool]) -> list[SSAValue]:
    """What a body gives, with the axis of the batch where flags say so."""
    items = inner.items(_yielded(block))
    return [inner.dense(item) if flag else item[0] for item, flag in zip(items, flags, strict=True)]


def _cond(b: Batch, op: CondOp) -> Sequence[Item]:
    condition, several = b.item(op.condition)
    blocks = (op.chosen.block, op.otherwise.block)
    if several:
        for inner in op.walk():
            if inner is not op and not isinstance(inner, YieldOp) and not inner.regions and not is_removable(inner):
                raise refused(
                    inner,
                    "a branch with an effect is mapped over conditions that differ, so that both branches run",
                    "move the effect out of the branch, or map over values alone",
                )
        found: list[list[Item]] = []
        for block in blocks:
            inner = b.inside(b.w.block, {})
            inner.run(block)
            found.append(inner.items(_yielded(block)))
        results: list[Item] = []
        for first, second in zip(*found, strict=True):
            x, y = b.dense(first), b.dense(second)
            shape = graph_type(x).shape
            flag = b.w.reshape(condition, [b.count, *[1] * (len(shape) - 1)])
            results.append((b.w("select", b.w.broadcast(flag, shape), x, y), True))
        return results
    made = [_body(b, block, []) for block in blocks]
    given = [inner.items(_yielded(block)) for (_, inner), block in zip(made, blocks, strict=True)]
    flags = [first[1] or second[1] for first, second in zip(*given, strict=True)]
    for (new, inner), block in zip(made, blocks, strict=True):
        new.add_op(YieldOp(_ends(inner, block, flags)))
    types = [value.type for value in _yielded(made[0][0])]
    written = b.w.write(CondOp(condition, Region(made[0][0]), Region(made[1][0]), types))
    return list(zip(written.results, flags, strict=True))


def _settled(b: Batch, block: Block, count: int, flags: list[bool], others: Sequence[bool]) -> list[bool]:
    """Which carried values come to have the axis of the batch."""
    while True:
        _, inner = _body(b, block, [*flags, *others])
        after = [flag or item[1] for flag, item in zip(flags, inner.items(_yielded(block))[:count], strict=True)]
        if after == flags:
            return flags
        flags = after


def _scan(b: Batch, op: ScanOp) -> Sequence[Item]:
    count, block = len(op.inits), op.body.block
    inits, xs = b.items(op.inits), b.items(op.xs)
    others = [flag for _, flag in xs]
    flags = _settled(b, block, count, [flag for _, flag in inits], others)
    made, inner = _body(b, block, [*flags, *others])
    rows = [flag for _, flag in inner.items(_yielded(block))[count:]]
    made.add_op(YieldOp(_ends(inner, block, [*flags, *rows])))
    starts = [b.dense(item) if flag else item[0] for item, flag in zip(inits, flags, strict=True)]
    over = [b.w.moved(value, 0, 1) if flag else value for value, flag in xs]
    written = b.w.write(ScanOp(op.count, starts, over, Region(made), reverse=op.reverse is not None))
    results = list(written.results)
    return [
        *zip(results[:count], flags, strict=True),
        *[
            (b.w.moved(value, 1, 0), True) if flag else (value, False)
            for value, flag in zip(results[count:], rows, strict=True)
        ],
    ]


def _while(b: Batch, op: WhileOp) -> Sequence[Item]:
    """Until all are done; those that are done keep what they have."""
    count, block, asked = len(op.inits), op.body.block, op.condition.block
    inits = b.items(op.inits)
    flags = _settled(b, block, count, [flag for _, flag in inits], [])
    _, trial = _body(b, asked, flags)
    several = trial.item(_yielded(asked)[0])[1]
    if several:
        flags = [True] * count
    starts = [b.dense(item) if flag else item[0] for item, flag in zip(inits, flags, strict=True)]
    condition, inner = _body(b, asked, flags)
    flag = inner.item(_yielded(asked)[0])[0]
    condition.add_op(YieldOp([inner.w.reduce("or", flag, [0]) if several else flag]))
    body, inner = _body(b, block, flags)
    ends = _ends(inner, block, flags)
    if several:
        again = b.inside(body, {old: (new, True) for old, new in zip(asked.args, body.args, strict=True)})
        again.run(asked)
        goes_on = again.item(_yielded(asked)[0])[0]
        for index, (new, old) in enumerate(zip(ends, list(body.args), strict=True)):
            shape = graph_type(new).shape
            wide = inner.w.broadcast(inner.w.reshape(goes_on, [b.count, *[1] * (len(shape) - 1)]), shape)
            ends[index] = inner.w("select", wide, new, old)
    body.add_op(YieldOp(ends))
    written = b.w.write(WhileOp(starts, Region(condition), Region(body)))
    return list(zip(written.results, flags, strict=True))


def _one_by_one(b: Batch, op: Operation) -> Sequence[Item]:
    """A call for each of the batch, one after the other."""
    items = b.items(op.operands)
    over = [value for value, flag in items if flag]
    body = Block(arg_types=[slice_of(graph_type(value)) for value in over])
    arguments = iter(body.args)
    made = op.clone()
    for index, (value, flag) in enumerate(items):
        made.operands[index] = next(arguments) if flag else value
    body.add_op(made)
    body.add_op(YieldOp(made.results))
    written = b.w.write(ScanOp(b.count, [], over, Region(body)))
    return [(value, True) for value in written.results]


def _checkpoint(b: Batch, op: CheckpointOp) -> Sequence[Item]:
    block = op.body.block
    made, inner = _body(b, block, [])
    flags = [flag for _, flag in inner.items(_yielded(block))]
    made.add_op(YieldOp(_ends(inner, block, flags)))
    written = b.w.write(CheckpointOp(op.keeps.data, [value.type for value in _yielded(made)], Region(made)))
    return list(zip(written.results, flags, strict=True))


# Effects


def _random(b: Batch, op: RandomOp) -> Sequence[Item]:
    type_ = graph_type(op.result)
    return [(b.w.add(RandomOp(op.distribution.data, type_.with_shape((b.count, *type_.shape)))), True)]


def _write(b: Batch, op: StateWriteOp) -> Sequence[Item]:
    raise refused(
        op,
        "a state is written in a mapped function, with a value for each of the batch",
        "write it outside of vmap, from what the mapped function returns",
    )


def _print(b: Batch, op: PrintOp) -> Sequence[Item]:
    b.w.write(PrintOp(op.label.data, b.item(op.value)[0]))
    return []


def _all_reduce(b: Batch, op: AllReduceOp) -> Sequence[Item]:
    return [(b.w.add(AllReduceOp(op.kind.data, b.item(op.operand)[0], op.axis.data)), True)]


def _stop(b: Batch, op: StopOp) -> Sequence[Item]:
    return [(b.w.add(StopOp(b.item(op.operand)[0])), True)]


def _named(b: Batch, op: NamedOp) -> Sequence[Item]:
    return [(b.w.add(NamedOp(op.label.data, b.item(op.operand)[0])), True)]


def _custom(b: Batch, op: CustomOp) -> Sequence[Item]:
    """The body for a batch, and the rule for a batch: what that writes is for a batch, too."""
    outside = [value for value in captured_by(op) if value not in op.arguments]
    if any(b.item(value)[1] for value in outside):
        raise refused(
            op,
            f"{op.rule.data.name} has derivatives of its own, and uses a value from outside that is mapped over",
            "pass it as an argument",
        )
    block = op.body.block
    made, inner = _body(b, block, [])
    flags = [True] * len(op.results_)
    made.add_op(YieldOp(_ends(inner, block, flags)))
    arguments = [b.dense(item) for item in b.items(op.arguments)]
    written = CustomOp(arguments, _batched_rule(op, b), [value.type for value in _yielded(made)], Region(made))
    b.w.write(written)
    return [(value, True) for value in written.results_]


def _batched_rule(op: CustomOp, b: Batch) -> CustomRule:
    written = op.rule.data
    count, known = b.count, b.w.known

    def mapped(
        block: Block, given: Sequence[SSAValue], write: Callable[[Block, list[SSAValue]], list[Tangent]]
    ) -> list[Tangent]:
        """What `write` writes for one, written for a batch of values."""
        part = Block(arg_types=[slice_of(graph_type(value)) for value in given])
        found = write(part, list(part.args))
        inner = Batch(block, count, known, {old: (new, True) for old, new in zip(part.args, given, strict=True)})
        inner.run(part)
        return [None if value is None else inner.dense(inner.item(value)) for value in found]

    def sure(values: Sequence[Tangent]) -> list[SSAValue]:
        return [value for value in values if value is not None]

    jvp, forward, backward = written.jvp, written.forward, written.backward
    if jvp is not None:
        rule = jvp

        def batched_jvp(
            block: Block, primals: Sequence[SSAValue], tangents: Sequence[SSAValue]
        ) -> tuple[list[SSAValue], list[SSAValue]]:
            cut = len(primals)

            def write(part: Block, given: list[SSAValue]) -> list[Tangent]:
                results, along = rule(part, given[:cut], given[cut:])
                return [*results, *along]

            found = sure(mapped(block, [*primals, *tangents], write))
            return found[: len(found) // 2], found[len(found) // 2 :]

        return CustomRule(written.name, jvp=batched_jvp)
    assert forward is not None
    assert backward is not None
    go, back = forward, backward

    def batched_forward(block: Block, primals: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
        cut = 0

        def write(part: Block, given: list[SSAValue]) -> list[Tangent]:
            nonlocal cut
            results, residuals = go(part, given)
            cut = len(results)
            return [*results, *residuals]

        found = sure(mapped(block, primals, write))
        return found[:cut], found[cut:]

    def batched_backward(block: Block, residuals: Sequence[SSAValue], given: Sequence[SSAValue]) -> list[Tangent]:
        cut = len(residuals)
        return mapped(block, [*residuals, *given], lambda part, all_: back(part, all_[:cut], all_[cut:]))

    return CustomRule(written.name, forward=batched_forward, backward=batched_backward)


_row(graph.EwOp, _ew)
_row(graph.BroadcastOp, _broadcast)
_row(graph.ReshapeOp, _reshape)
_row(graph.TransposeOp, _transpose)
_row(graph.SliceOp, _slice)
_row(graph.ReduceOp, _reduce)
_row(graph.ConcatenateOp, _concatenate)
_row(graph.MatmulOp, _matmul)
_row(graph.GatherOp, _gather)
_row(indexing.ScatterOp, _scatter)
_row(indexing.DynamicSliceOp, _dynamic_slice)
_row(indexing.DynamicUpdateSliceOp, _dynamic_update)
_row(indexing.CumulateOp, _cumulate)
_row(CondOp, _cond)
_row(ScanOp, _scan)
_row(WhileOp, _while)
_row(CallKernelOp, _one_by_one)
_row(CallOp, _one_by_one)
_row(RandomOp, _random)
_row(StateWriteOp, _write)
_row(PrintOp, _print)
_row(AllReduceOp, _all_reduce)
_row(StopOp, _stop)
_row(CheckpointOp, _checkpoint)
_row(NamedOp, _named)
_row(CustomOp, _custom)
