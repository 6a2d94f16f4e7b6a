"""Derivatives of ops with bodies: forwards a body computes tangents, too; else it has a known and a linear part.

What the linear part uses of the known one is handed on as further results: residuals, one for each iteration of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph.control import CondOp, ScanOp, WhileOp, YieldOp, slice_of
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.transforms.core.dead_code import is_removable
from tessera.transforms.derivatives.graph_writer import GraphWriter
from tessera.transforms.derivatives.linearize import linearize, transpose
from tessera.transforms.derivatives.rules import (
    IsLinear,
    Tangent,
    Tangents,
    block_of,
    captured_by,
    inputs_of,
    is_differentiable,
    refused,
    rule,
)


def yields(block: Block) -> YieldOp:
    last = block.last_op
    assert isinstance(last, YieldOp)
    return last


def end(block: Block, values: Sequence[SSAValue]) -> None:
    """Lets a block end with these values."""
    last = block.last_op
    made = YieldOp(values)
    if isinstance(last, YieldOp):
        made.location = last.location
        last.detach()
        last.erase()
    block.add_op(made)


def taken(region: Region) -> Region:
    """A region's block in a region of its own."""
    block = region.block
    region.detach_block(block)
    return Region(block)


def instead(at: Tangents, old: Operation, new: Operation) -> list[SSAValue]:
    """Puts an op in another's place, whose results are its first; gives the results that it has more."""
    block = old.parent_block()
    assert block is not None
    new.location = old.location
    block.insert_op_before(new, old)
    count = len(old.results)
    for before, after in zip(list(old.results), new.results[:count], strict=True):
        at.replace(before, after)
    old.detach()
    old.erase()
    return list(new.results[count:])


def _substitute(block: Block, values: Mapping[SSAValue, SSAValue]) -> None:
    """Uses other values in a block's ops."""
    for op in block.walk():
        for index, value in enumerate(op.operands):
            if value in values:
                op.operands[index] = values[value]


def _residuals(linear: Block, known: Block) -> list[SSAValue]:
    """The values of a known block that a linear one uses; constants among them are written there once more."""
    inside = {known} | {inner for op in known.walk() for region in op.regions for inner in region.blocks}
    found: dict[SSAValue, None] = {}
    again: dict[SSAValue, SSAValue] = {}
    for op in list(linear.walk()):
        for value in op.operands:
            if block_of(value) not in inside or value in again:
                continue
            if isinstance(value.owner, graph.ConstantOp):
                copy = value.owner.clone()
                first = linear.first_op
                assert first is not None
                linear.insert_op_before(copy, first)
                again[value] = copy.result
            else:
                found[value] = None
    _substitute(linear, again)
    return list(found)


def _hoist(block: Block, loop: Operation) -> None:
    """Moves pure ops that are the same in each iteration in front of a loop."""
    outer = loop.parent_block()
    assert outer is not None
    for op in list(block.ops):
        if op.regions or not is_removable(op) or any(block_of(value) is block for value in op.operands):
            continue
        op.detach()
        outer.insert_op_before(op, loop)


def _active(block: Block, active: set[SSAValue]) -> set[SSAValue]:
    """All values of a block that depend on active ones and have tangents."""
    found = set(active)
    for op in block.ops:
        if any(value in found for value in inputs_of(op)):
            found |= {value for value in op.results if is_differentiable(value)}
    return found


def _active_carries(block: Block, count: int, given: Sequence[bool], others: set[SSAValue]) -> list[bool]:
    """Which carried values of a loop's body come to have tangents."""
    flags = list(given)
    while True:
        start = {argument for argument, flag in zip(block.args[:count], flags, strict=True) if flag}
        found = _active(block, start | others)
        after = [
            (flag or value in found) and is_differentiable(value)
            for flag, value in zip(flags, yields(block).values[:count], strict=True)
        ]
        if after == flags:
            return flags
        flags = after


def _or_zeros(w: GraphWriter, tangent: Tangent, like: SSAValue) -> SSAValue:
    return w.zeros(graph_type(like)) if tangent is None else tangent


# Branches


def _cond_jvp(at: Tangents, op: CondOp, _: Sequence[Tangent]) -> Sequence[Tangent]:
    regions = [taken(op.chosen), taken(op.otherwise)]
    count = len(op.results_)
    if at.is_forward:
        return _cond_forwards(at, op, regions)
    parts: list[Block] = []
    tangents: list[list[Tangent]] = []
    for region in regions:
        part = Block()
        found = linearize(region.block, at.tangents, at.known.known, at.replace, part)
        parts.append(part)
        tangents.append([found.get(value) for value in yields(region.block).values])
    residuals = [_residuals(part, region.block) for part, region in zip(parts, regions, strict=True)]
    # Residuals of one type share a result.
    kinds: list[GraphTensorType] = []
    places: list[list[int]] = []
    for values in residuals:
        free = list(range(len(kinds)))
        mine: list[int] = []
        for value in values:
            type_ = graph_type(value)
            place = next((one for one in free if kinds[one] == type_), None)
            if place is None:
                place = len(kinds)
                kinds.append(type_)
            else:
                free.remove(place)
            mine.append(place)
        places.append(mine)
    for region, values, mine in zip(regions, residuals, places, strict=True):
        before = list(yields(region.block).values)
        known = dict(zip(mine, values, strict=True))
        writer = _before_end(region.block, at)
        more = [known[one] if one in known else writer.zeros(type_) for one, type_ in enumerate(kinds)]
        end(region.block, [*before, *more])
    types = [value.type for value in yields(regions[0].block).values]
    made = CondOp(op.condition, regions[0], regions[1], types)
    kept = instead(at, op, made)
    active = [any(one[index] is not None for one in tangents) for index in range(count)]
    for part, values, mine, given in zip(parts, residuals, places, tangents, strict=True):
        _substitute(part, {value: kept[one] for value, one in zip(values, mine, strict=True)})
        writer = GraphWriter(part, at.known.known)
        end(part, [_or_zeros(writer, given[index], made.results[index]) for index in range(count) if active[index]])
    kinds_ = [made.results[index].type for index in range(count) if active[index]]
    linear = at.linear.write(CondOp(made.condition, Region(parts[0]), Region(parts[1]), kinds_))
    results = iter(linear.results)
    return [next(results) if flag else None for flag in active]


def _before_end(block: Block, at: Tangents) -> GraphWriter:
    """A writer behind all of a block's ops but the one that ends it, which goes."""
    last = yields(block)
    last.detach()
    last.erase()
    return GraphWriter(block, at.known.known)


def _cond_forwards(at: Tangents, op: CondOp, regions: Sequence[Region]) -> Sequence[Tangent]:
    tangents: list[list[Tangent]] = []
    for region in regions:
        found = linearize(region.block, at.tangents, at.known.known, at.replace)
        tangents.append([found.get(value) for value in yields(region.block).values])
    count = len(op.results_)
    active = [any(one[index] is not None for one in tangents) for index in range(count)]
    for region, given in zip(regions, tangents, strict=True):
        before = list(yields(region.block).values)
        writer = _before_end(region.block, at)
        more = [_or_zeros(writer, given[index], before[index]) for index in range(count) if active[index]]
        end(region.block, [*before, *more])
    types = [value.type for value in yields(regions[0].block).values]
    results = iter(instead(at, op, CondOp(op.condition, regions[0], regions[1], types)))
    return [next(results) if flag else None for flag in active]


def _cond(w: GraphWriter, op: CondOp, given: Sequence[Tangent], is_linear: IsLinear) -> Sequence[Tangent]:
    captured = captured_by(op)
    wanted = [value for value in captured if is_linear(value)]
    regions: list[Region] = []
    for region in (op.chosen, op.otherwise):
        block = Block()
        inside = GraphWriter(block, w.known)
        pairs = [(value, one) for value, one in zip(yields(region.block).values, given, strict=True) if one is not None]
        found = transpose(region.block, wanted, pairs, inside)
        end(block, [_or_zeros(inside, found.get(value), value) for value in wanted])
        regions.append(Region(block))
    made = w.write(CondOp(op.condition, regions[0], regions[1], [value.type for value in wanted]))
    cotangents = dict(zip(wanted, made.results, strict=True))
    return [None, *[cotangents.get(value) for value in captured]]


# Scans


def _scan_jvp(at: Tangents, op: ScanOp, given: Sequence[Tangent]) -> Sequence[Tangent]:
    count, over = len(op.inits), len(op.xs)
    block = op.body.block
    x_active = [tangent is not None for tangent in given[count : count + over]]
    others = {argument for argument, flag in zip(block.args[count:], x_active, strict=True) if flag}
    others |= {value for value in captured_by(op) if value in at.tangents}
    carried = _active_carries(block, count, [tangent is not None for tangent in given[:count]], others)
    make = _scan_forwards if at.is_forward else _scan_in_parts
    return make(at, op, given, carried, x_active)


def _starts(at: Tangents, op: ScanOp | WhileOp, given: Sequence[Tangent], carried: Sequence[bool]) -> list[SSAValue]:
    """The tangents that a loop begins with."""
    count = len(op.inits)
    return [
        _or_zeros(at.linear, tangent, value)
        for value, tangent, flag in zip(op.inits, given[:count], carried, strict=True)
        if flag
    ]


def _scan_in_parts(
    at: Tangents, op: ScanOp, given: Sequence[Tangent], carried: Sequence[bool], x_active: Sequence[bool]
) -> Sequence[Tangent]:
    count, over = len(op.inits), len(op.xs)
    region = taken(op.body)
    block = region.block
    arguments = list(block.args)
    active = [argument for argument, flag in zip(arguments, [*carried, *x_active], strict=True) if flag]
    part = Block(arg_types=[argument.type for argument in active])
    inner = {**at.tangents, **dict(zip(active, part.args, strict=True))}
    found = linearize(block, inner, at.known.known, at.replace, part)
    values = list(yields(block).values)
    _hoist(block, op)
    residuals = _residuals(part, block)
    stacked = [value for value in residuals if value not in arguments[count:]]
    end(block, [*values, *stacked])
    made = ScanOp(op.count, op.inits, op.xs, region, reverse=op.reverse is not None)
    starts = _starts(at, op, given, carried)
    xs = [tangent for tangent in given[count : count + over] if tangent is not None]
    sources: dict[SSAValue, SSAValue] = dict(zip(arguments[count:], op.xs, strict=True))
    kept: dict[SSAValue, SSAValue] = dict(zip(stacked, instead(at, op, made), strict=True))
    for value in residuals:
        argument = part.insert_arg(value.type, len(part.args))
        _substitute(part, {value: argument})
        xs.append(kept[value] if value in kept else sources[value])
    writer = GraphWriter(part, at.known.known)
    nexts = [_or_zeros(writer, found.get(value), value) for value, flag in zip(values, carried, strict=False) if flag]
    rows = [found.get(value) for value in values[count:]]
    end(part, [*nexts, *[row for row in rows if row is not None]])
    linear = at.linear.write(ScanOp(made.count, starts, xs, Region(part), reverse=made.reverse is not None))
    results = iter(linear.results)
    flags = [*carried, *[row is not None for row in rows]]
    return [next(results) if flag else None for flag in flags]


def _scan_forwards(
    at: Tangents, op: ScanOp, given: Sequence[Tangent], carried: Sequence[bool], x_active: Sequence[bool]
) -> Sequence[Tangent]:
    count, over = len(op.inits), len(op.xs)
    region = taken(op.body)
    block = region.block
    arguments = list(block.args)
    inner = dict(at.tangents)
    place = count
    for argument, flag in zip(arguments[:count], carried, strict=True):
        if flag:
            inner[argument] = block.insert_arg(argument.type, place)
            place += 1
    for argument, flag in zip(arguments[count:], x_active, strict=True):
        if flag:
            inner[argument] = block.insert_arg(argument.type, len(block.args))
    found = linearize(block, inner, at.known.known, at.replace)
    values = list(yields(block).values)
    writer = _before_end(block, at)
    nexts = [_or_zeros(writer, found.get(value), value) for value, flag in zip(values, carried, strict=False) if flag]
    rows = [found.get(value) for value in values[count:]]
    more = [row for row in rows if row is not None]
    end(block, [*values[:count], *nexts, *values[count:], *more])
    starts = _starts(at, op, given, carried)
    xs = [*op.xs, *[tangent for tangent in given[count : count + over] if tangent is not None]]
    made = ScanOp(op.count, [*op.inits, *starts], xs, region, reverse=op.reverse is not None)
    results = _reordered(at, op, made, count, len(nexts))
    tangents = iter([*results[count : count + len(nexts)], *results[len(results) - len(more) :]])
    flags = [*carried, *[row is not None for row in rows]]
    return [next(tangents) if flag else None for flag in flags]


def _reordered(at: Tangents, old: Operation, new: Operation, count: int, more: int) -> list[SSAValue]:
    """Puts a loop in another's place that carries `more` values behind the first `count`; gives its results."""
    block = old.parent_block()
    assert block is not None
    new.location = old.location
    block.insert_op_before(new, old)
    results: list[SSAValue] = list(new.results)
    same = [*results[:count], *results[count + more :]]
    for before, after in zip(list(old.results), same, strict=False):
        at.replace(before, after)
    old.detach()
    old.erase()
    return results


def _scan(w: GraphWriter, op: ScanOp, given: Sequence[Tangent], is_linear: IsLinear) -> Sequence[Tangent]:
    count = len(op.inits)
    block = op.body.block
    captured = captured_by(op)
    wanted = [value for value in captured if is_linear(value)]
    arguments = block.args[count:]
    flags = [is_linear(x) for x in op.xs]
    ends = [_or_zeros(w, one, value) for one, value in zip(given, op.inits, strict=False)]
    sums = [w.zeros(graph_type(value)) for value in wanted]
    rows = [(index, one) for index, one in enumerate(given[count:]) if one is not None]
    known = [x for x, flag in zip(op.xs, flags, strict=True) if not flag]
    xs = [*known, *[one for _, one in rows]]
    body = Block(arg_types=[one.type for one in (*ends, *sums)] + [slice_of(graph_type(one)) for one in xs])
    inputs = list(body.args)
    carried, totals = inputs[:count], inputs[count : count + len(sums)]
    slices = inputs[count + len(sums) :]
    inside = GraphWriter(body, w.known)
    hidden = [argument for argument, flag in zip(arguments, flags, strict=True) if not flag]
    _substitute(block, dict(zip(hidden, slices, strict=False)))
    values = yields(block).values
    pairs = list(zip(values[:count], carried, strict=True))
    pairs += [(values[count + index], one) for (index, _), one in zip(rows, slices[len(known) :], strict=True)]
    linear = [*block.args[:count], *[one for one, flag in zip(arguments, flags, strict=True) if flag]]
    found = transpose(block, chain(linear, wanted), pairs, inside)
    nexts = [_or_zeros(inside, found.get(argument), argument) for argument in block.args[:count]]
    added = [
        total if value not in found else inside("add", total, found[value])
        for total, value in zip(totals, wanted, strict=True)
    ]
    outs = [_or_zeros(inside, found.get(argument), argument) for argument in linear[count:]]
    end(body, [*nexts, *added, *outs])
    made = w.write(ScanOp(op.count, [*ends, *sums], xs, Region(body), reverse=op.reverse is None))
    results = list(made.results)
    of_inits = [one if is_linear(value) else None for one, value in zip(results, op.inits, strict=False)]
    of_xs = iter(results[count + len(sums) :])
    of_captured = dict(zip(wanted, results[count : count + len(sums)], strict=True))
    return [
        *of_inits,
        *[next(of_xs) if flag else None for flag in flags],
        *[of_captured.get(value) for value in captured],
    ]


# Loops


def _while_jvp(at: Tangents, op: WhileOp, given: Sequence[Tangent]) -> Sequence[Tangent]:
    if not at.is_forward:
        raise refused(
            op,
            "a while_loop has no reverse derivative: how often it runs is not known, and so is what it would keep",
            "use ts.scan, or ts.fori_loop with bounds that are numbers or sizes; jvp and jacfwd go through while_loop",
        )
    count = len(op.inits)
    block = op.body.block
    others = {value for value in captured_by(op) if value in at.tangents}
    carried = _active_carries(block, count, [tangent is not None for tangent in given[:count]], others)
    condition, body = taken(op.condition), taken(op.body)
    inner = dict(at.tangents)
    for argument, flag in zip(list(block.args), carried, strict=True):
        if flag:
            inner[argument] = block.insert_arg(argument.type, len(block.args))
            condition.block.insert_arg(argument.type, len(condition.block.args))
    found = linearize(block, inner, at.known.known, at.replace)
    values = list(yields(block).values)
    writer = _before_end(block, at)
    nexts = [_or_zeros(writer, found.get(value), value) for value, flag in zip(values, carried, strict=True) if flag]
    end(block, [*values, *nexts])
    made = WhileOp([*op.inits, *_starts(at, op, given, carried)], condition, body)
    tangents = iter(instead(at, op, made))
    return [next(tangents) if flag else None for flag in carried]


rule(CondOp, _cond_jvp, _cond)
rule(ScanOp, _scan_jvp, _scan)
rule(WhileOp, _while_jvp)
