"""How the values of a tile function change with another running maximum: an analysis.

A loop carries m, the greatest numbers seen so far, and makes m' = max(m, t) of it in every iteration. Sums of
exponentials are taken relative to m, so that nothing overflows; what is stored at last does not depend on it. This is
proven here: suppose m + g were carried instead of m, with any number g for each row, another one in every iteration.
Each value then is what it was, times e^(power · g), plus shift · g, or it is neither. A kernel may choose its own m
where everything that leaves the loop by a store comes out with power and shift 0.

A g belongs to an iteration: m has the one of the iteration before, m' the new one. What is carried must have the same
degree in the first when an iteration begins as it has in the second when it ends. Where m is −∞, g is 0: no number has
been seen.

The exponentials have to be those of the numbers that the maximum is of. None is above 1 then, and a maximum that is too
low by g lets none grow beyond e^g. This is also why NaN and ∞ among them need no care: they reach the sums themselves,
as long as weights are not masked afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import NO_POLICY, Policy, f32, f64
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.algebra.ratios import Ratios, is_near, multiplied
from tessera.transforms.algebra.running_max import ONE, CarriedMax, RunningMaximum, Same, Unraised, stripped

Weights = tuple[float, float]
"""How often g counts: that of the iteration before, and the new one."""


def _plus(a: Weights, b: Weights, factor: float = 1.0) -> Weights:
    first, second = (0.0 if is_near(x, -factor * y) else x + factor * y for x, y in zip(a, b, strict=True))
    return first, second


def _times(a: Weights, factor: float) -> Weights:
    return a[0] * factor, a[1] * factor


_NONE: Weights = (0.0, 0.0)


@dataclass(frozen=True)
class Degree:
    """A value times e^(power · g), or a value plus shift · g; g differs along `axes` of the value."""

    power: Weights = _NONE
    shift: Weights = _NONE
    axes: tuple[int, ...] = ()

    def same(self, other: Degree) -> bool:
        pairs = zip(self.power + self.shift, other.power + other.shift, strict=True)
        return self.axes == other.axes and all(is_near(a, b) for a, b in pairs)


class Other(Enum):
    """Values that have no degree."""

    NOTHING = "0: a value times anything"
    INFINITE = "∞ or −∞: a value times anything, or plus anything"
    UNKNOWN = "not known yet"
    MIXED = "neither a power nor a shift"


@dataclass(frozen=True)
class Cases:
    """One degree where a condition is true, another where it is not."""

    condition: tuple[SSAValue, tuple[int, ...]]
    """The value that says it, and which axis of the tile each of its axes is."""
    chosen: State
    otherwise: State


State = Degree | Other | Cases
FIXED = Degree()
"""The degree of values that do not change."""
_ROOM = 2.0**127
"""Types with numbers up to there have room for sums that grow."""


def _made(power: Weights, shift: Weights, axes: tuple[int, ...]) -> Degree:
    return FIXED if power == shift == _NONE else Degree(power, shift, axes)


def _common(a: State, b: State) -> State:
    """The degree that both have."""
    if Other.MIXED in (a, b) or isinstance(a, Cases) or isinstance(b, Cases):
        return Other.MIXED
    for one, other in ((a, b), (b, a)):
        if one in (Other.UNKNOWN, Other.INFINITE):
            return other
    for one, other in ((a, b), (b, a)):
        if one is Other.NOTHING and (not isinstance(other, Degree) or other.shift == _NONE):
            return other
    return a if isinstance(a, Degree) and isinstance(b, Degree) and a.same(b) else Other.MIXED


def _plain(state: State) -> State:
    """Numbers that need not be told apart."""
    return FIXED if state in (Other.NOTHING, Other.INFINITE) else state


@dataclass(frozen=True)
class Freedom:
    """The proof that a running maximum may lag behind."""

    unraised: Unraised
    growth: float
    """e^(growth · g) is the most by which a weight grows where the maximum is too low by g."""
    reaches_down: bool
    """Whether a maximum may be too high as well: no type loses small weights, and weights are rounded to 16 bits, so
    that a greater exponent may cost last digits."""


def freedom_of(top: RunningMaximum, slack: float) -> Freedom | None:
    """Whether a maximum may be too low, as long as no weight exceeds 2^slack; None where it may not."""
    degrees = Degrees(top)
    carried = degrees.solve()
    if carried is None or not degrees.follow_results(carried) or not _starts_well(top, carried):
        return None
    powers = [degrees.weight_power(op) for op in top.block.ops if degrees.is_weight(op)]
    if not powers or None in powers or not degrees.has_room(slack):
        return None
    growth = max(power for power in powers if power is not None)
    return Freedom(degrees.unraised, growth, degrees.reaches_down())


def _starts_well(top: RunningMaximum, carried: Sequence[State]) -> bool:
    """Sums of nothing are 0: while a maximum is −∞, it makes no difference what they are multiplied by."""
    if top.start != -math.inf:
        return True
    pairs = zip(top.loop.iter_args, carried, strict=True)
    others = [(value, state) for index, (value, state) in enumerate(pairs) if index != top.index and state != FIXED]
    return all(
        isinstance(state, Degree) and state.shift == _NONE and constant_of(value) == 0 for value, state in others
    )


class Degrees:
    """The states of the values of a loop, and of what comes behind it; values that are not in here are fixed."""

    def __init__(self, top: RunningMaximum) -> None:
        self.top = top
        self.unraised = Unraised(top)
        self.found: dict[SSAValue, State] = {}
        # Where one of these is that number, each g that is counted here is 0.
        self.nothing_seen: dict[tuple[SSAValue, float], tuple[int, ...]] = {
            (top.carried, -math.inf): (0,),
            (top.updated, -math.inf): (0, 1),
            (top.loop.results[top.index], -math.inf): (0, 1),
        }
        self.axes = top.long_axes

    def of(self, value: SSAValue) -> State:
        if value in self.found:
            return self.found[value]
        number = constant_of(value)
        if number == 0:
            return Other.NOTHING
        return Other.INFINITE if number is not None and math.isinf(number) else FIXED

    def solve(self) -> list[State] | None:
        """The degrees of all that the loop carries, at the beginning of an iteration; None where there are none."""
        top = self.top
        carried: list[State] = [Other.UNKNOWN if _is_float(value) else FIXED for value in top.loop.iter_args]
        # Each pass over the body finds the degree of at least one more value, or ends.
        for _ in carried:
            ends = self._iterate(carried)
            if ends is None:
                return None
            better = [
                _begun(end) if state is Other.UNKNOWN else state for state, end in zip(carried, ends, strict=True)
            ]
            if better == carried:
                break
            carried = better
        carried = [FIXED if state is Other.UNKNOWN else state for state in carried]
        ends = self._iterate(carried)
        if ends is None:
            return None
        for state, end in zip(carried, ends, strict=True):
            if not isinstance(state, Degree) or not _agrees(state, end):
                return None
        # Numbers to be compared with the maxima are the same in any case.
        return carried if _plain(self.of(top.reduced.result)) == FIXED else None

    def _iterate(self, carried: Sequence[State]) -> list[State] | None:
        """The states at the end of an iteration that begins with `carried`; None where others look at the values."""
        top, block = self.top, self.top.block
        self.found = {
            value: state for value, state in zip(block.args[1:], carried, strict=True) if _plain(state) != FIXED
        }
        self.found[top.carried] = Degree(shift=(1.0, 0.0), axes=self.axes)
        end = block.last_op
        assert end is not None
        if not all(self._note(op) for op in block.ops if op is not end):
            return None
        return [self.of(value) for value in end.operands]

    def follow_results(self, carried: Sequence[State]) -> bool:
        """Whether nothing behind the loop depends on the maximum."""
        for total in self._totals():
            self.nothing_seen[total, 0.0] = (0, 1)
        self.found.update(
            {
                value: state
                for value, state in zip(self.top.loop.results, carried, strict=True)
                if _plain(state) != FIXED
            }
        )
        op = self.top.loop.next_op
        while op is not None:
            if not self._note(op):
                return False
            op = op.next_op
        return True

    def _note(self, op: Operation) -> bool:
        """Finds the state of an op's result; False where it does what no state is known for."""
        if op is self.top.update:
            self.found[self.top.updated] = Degree(shift=(0.0, 1.0), axes=self.axes)
            return True
        touched = [self.of(value) for inner in op.walk() for value in inner.operands]
        if all(_plain(state) == FIXED for state in touched):
            return True
        rule = _RULES.get(type(op))
        if rule is None:
            # A state that is not known yet has to be found to be fixed.
            return all(_plain(state) in (FIXED, Other.UNKNOWN) for state in touched)
        self.found[op.results[0]] = rule(self, op)
        return True

    def _totals(self) -> Iterator[SSAValue]:
        """Results of the loop that are 0 only where the maximum never rose: the greatest number has a weight of 1."""
        top, end = self.top, self.top.block.last_op
        assert end is not None
        for value, carried, result in zip(end.operands, top.block.args[1:], top.loop.results, strict=True):
            op = value.owner
            if isinstance(op, tile.EwOp) and op.fn.data == "add" and tile_type(value).get_shape() == top.shape:
                for old, new in (op.operands_, op.operands_[::-1]):
                    if self.unraised.of(old) == Same(carried) and self._sums_all_weights(new):
                        yield result

    def _sums_all_weights(self, value: SSAValue) -> bool:
        op, reduced = stripped(value)[0].owner, self.top.reduced
        if not isinstance(op, tile.ReduceOp) or op.kind.data != "sum" or op.axis != reduced.axis:
            return False
        weight = op.operand.owner
        same = op.operand.type == reduced.operand.type
        return same and isinstance(weight, tile.EwOp) and self.is_weight(weight) and bool(self.weight_power(weight))

    # The exponentials

    def is_weight(self, op: Operation) -> bool:
        """Whether an op is an exponential relative to the new maximum."""
        if not isinstance(op, tile.EwOp) or op.fn.data not in UNITS or self.unraised.of(op.result) is ONE:
            return False
        state = self.of(op.result)
        return isinstance(state, Degree) and state.power != _NONE

    def weight_power(self, op: Operation) -> float | None:
        """How a weight follows g, if it is at most 1: an exponential of a number less the greatest of them."""
        state = self.of(op.results[0])
        difference = multiplied(op.operands[0])[0].owner
        if not isinstance(state, Degree) or not isinstance(difference, tile.EwOp) or difference.fn.data != "sub":
            return None
        number, greatest = difference.operands_
        level, degree = self.unraised.of(greatest), self.of(greatest)
        if not isinstance(level, CarriedMax) or not isinstance(degree, Degree) or degree.shift[0] or state.power[0]:
            return None
        top = self.top
        source, axes_of_number = stripped(number)
        if source.type == top.candidate.type:
            ratio, axes = Ratios().of(source, top.candidate), tuple(axes_of_number[axis] for axis in self.axes)
        else:
            ratio, axes = Ratios().of(number, top.reduced.operand), top.axes
            ratio = None if ratio is None else ratio / top.scale
        near = ratio is not None and degree.axes == axes and is_near(ratio, level.factor)
        return -state.power[1] if near else None

    def has_room(self, slack: float) -> bool:
        """Whether every type that holds a value which grows can hold it, and those that move exactly enough."""
        for value, state in self.found.items():
            if not isinstance(state, Degree) or state == FIXED:
                continue
            dtype = tile_dtype(value)
            if state.shift != _NONE and dtype not in (f32, f64):
                return False
            if state.power != _NONE and dtype.max_value < _ROOM:
                source: Any = value.owner
                while isinstance(source, tile.BroadcastOp | tile.ExpandOp | tile.TransOp) or _is_cast(source):
                    source = source.operands[0].owner
                weight = isinstance(source, tile.EwOp) and self.is_weight(source)
                if not weight or 2.0**slack > dtype.max_value:
                    return False
        return True

    def reaches_down(self) -> bool:
        """Whether all types that hold a value which grows or shrinks have the exponents of f32, and one few digits."""
        moved = [value for value, state in self.found.items() if isinstance(state, Degree) and state.power != _NONE]
        dtypes = {tile_dtype(value) for value in moved}
        return all(dtype.max_value >= _ROOM for dtype in dtypes) and any(dtype.bits == 16 for dtype in dtypes)


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and tile_dtype(value).is_float


def _rounds_plainly(op: tile.EwOp) -> bool:
    """Whether the policy of an op changes nothing here. Of what saturates early, `has_room` asks that it does not."""
    if op.policy is None:
        return True
    early = tile_dtype(op.result).max_value < _ROOM
    return op.policy.data in (NO_POLICY, Policy(accum=op.policy.data.accum, saturate=early))


def _is_cast(op: Any) -> bool:
    return isinstance(op, tile.EwOp) and op.fn.data == "cast"


def _begun(end: State) -> State:
    """The state with which a value begins the next iteration."""
    if not isinstance(end, Degree):
        return Other.UNKNOWN
    return _made((end.power[1], 0.0), (end.shift[1], 0.0), end.axes)


def _agrees(state: Degree, end: State) -> bool:
    """Whether a value ends an iteration as it began it."""
    later = Degree((0.0, state.power[0]), (0.0, state.shift[0]), state.axes)
    return _common(later, end) is not Other.MIXED and end is not Other.UNKNOWN


# Rules: what an op makes of states


def _of_elementwise(work: Degrees, op: tile.EwOp) -> State:
    name, operands = op.fn.data, op.operands_
    states = [work.of(operand) for operand in operands]
    if name == "select" and (rising := work.unraised.rising(op)) is not None:
        # Where the maximum stays, both are 1; where it rises, the question is answered.
        state, (_, axes) = work.of(rising), stripped(operands[0])
        stays = all(work.unraised.of(value) is ONE for value in operands[1:])
        aligned = isinstance(state, Degree) and state.axes == tuple(axes[axis] for axis in work.axes)
        return state if stays and aligned else Other.MIXED
    conditions = {state.condition for state in states if isinstance(state, Cases)}
    if len(conditions) > 1:
        return Other.MIXED
    for condition in conditions:
        chosen, otherwise = (
            _of_states(work, op, [_case(state, truth) for state in states], {condition: truth})
            for truth in (True, False)
        )
        return _either(condition, chosen, otherwise)
    return _of_states(work, op, states, {})


def _case(state: State, truth: bool) -> State:
    if not isinstance(state, Cases):
        return state
    return state.chosen if truth else state.otherwise


def _either(condition: tuple[SSAValue, tuple[int, ...]], chosen: State, otherwise: State) -> State:
    common = _common(chosen, otherwise)
    nested = any(isinstance(state, Cases) or state is Other.MIXED for state in (chosen, otherwise))
    return common if common is not Other.MIXED or nested else Cases(condition, chosen, otherwise)


def _of_states(
    work: Degrees, op: tile.EwOp, states: Sequence[State], truths: Mapping[tuple[SSAValue, tuple[int, ...]], bool]
) -> State:
    name = op.fn.data
    if name == "select":
        truth = truths.get(stripped(op.operands_[0]))
        if truth is not None:
            return states[1] if truth else states[2]
        return _of_select(work, op, states)
    if Other.MIXED in states or not _rounds_plainly(op) or op.seed is not None:
        return Other.MIXED
    numbers = [constant_of(operand) for operand in op.operands_]
    if name in _COMPARES:
        return FIXED if _is_decided(states, numbers) else Other.MIXED
    if name in _ASKS:
        return FIXED
    if name == "fma":
        product = _PAIRS["mul"](states[:2], numbers[:2])
        return _PAIRS["add"]([product, states[2]], [None, numbers[2]])
    if name in _PAIRS:
        return _PAIRS[name](states, numbers)
    (state,) = states if len(states) == 1 else (Other.MIXED,)
    if state is Other.UNKNOWN:
        return state
    if name == "cast" and not tile_dtype(op.result).is_float:
        return Other.MIXED
    rule = _UNARY.get(name)
    return Other.MIXED if rule is None or not isinstance(state, Degree) else rule(state)


def _of_select(work: Degrees, op: tile.EwOp, states: Sequence[State]) -> State:
    condition, chosen, otherwise = states
    if _plain(condition) != FIXED:
        return Other.MIXED
    asked = work.unraised.question(op.operands_[0])
    if asked is not None and (asked.value, asked.number) in work.nothing_seen:
        known = work.nothing_seen[asked.value, asked.number]
        state, ordinary = (chosen, otherwise) if asked.says else (otherwise, chosen)
        aligned = not isinstance(ordinary, Degree) or ordinary.axes == tuple(asked.axes[axis] for axis in work.axes)
        if aligned and _common(_cleared(state, known), _cleared(ordinary, known)) is not Other.MIXED:
            return ordinary
    return _either(stripped(op.operands_[0]), chosen, otherwise)


def _cleared(state: State, known: Sequence[int]) -> State:
    """The part of a degree that is left where some g are 0."""
    if not isinstance(state, Degree):
        return FIXED if state is Other.NOTHING else state
    power, shift = (tuple(0.0 if at in known else w[at] for at in (0, 1)) for w in (state.power, state.shift))
    return _made((power[0], power[1]), (shift[0], shift[1]), state.axes)


def _is_decided(states: Sequence[State], numbers: Sequence[float | None]) -> bool:
    """Whether a comparison comes out the same in any case."""
    if Other.UNKNOWN in states:
        return True
    for state, number in zip(states, reversed(numbers), strict=True):
        if isinstance(state, Degree) and state != FIXED and number is not None:
            return math.isinf(number) or (number == 0 and state.shift == _NONE)
    return _common(states[0], states[1]) is not Other.MIXED


def _product(states: Sequence[State], numbers: Sequence[float | None], sign: float = 1.0) -> State:
    first, second = states
    if Other.NOTHING in (first, second) and (sign > 0 or second is not Other.NOTHING):
        return Other.NOTHING
    if Other.UNKNOWN in (first, second):
        return Other.UNKNOWN
    if not isinstance(first, Degree) or not isinstance(second, Degree):
        return Other.MIXED
    if first.shift == second.shift == _NONE:
        axes = _axes(first, second)
        return Other.MIXED if axes is None else _made(_plus(first.power, second.power, sign), _NONE, axes)
    for state, number in ((first, numbers[1]), (second, numbers[0] if sign > 0 else None)):
        if state.shift != _NONE and number:
            return _made(_NONE, _times(state.shift, number if sign > 0 else 1 / number), state.axes)
    return Other.MIXED


def _axes(first: Degree, second: Degree) -> tuple[int, ...] | None:
    if FIXED in (first, second) or first.axes == second.axes:
        return second.axes if first == FIXED else first.axes
    return None


def _sum(states: Sequence[State], numbers: Sequence[float | None], sign: float = 1.0) -> State:
    if not any(isinstance(state, Degree) and state.shift != _NONE for state in states):
        return _common(states[0], states[1])
    for other in (Other.INFINITE, Other.UNKNOWN):
        if other in states:
            return other
    first, second = (_plain(state) for state in states)
    if not isinstance(first, Degree) or not isinstance(second, Degree):
        return Other.MIXED
    axes = _axes(first, second)
    if axes is None or first.power != _NONE or second.power != _NONE:
        return Other.MIXED
    return _made(_NONE, _plus(first.shift, second.shift, sign), axes)


_PAIRS: Mapping[str, Callable[[Sequence[State], Sequence[float | None]], State]] = {
    "mul": _product,
    "div": lambda states, numbers: _product(states, numbers, -1.0),
    "add": _sum,
    "sub": lambda states, numbers: _sum(states, numbers, -1.0),
    "max": lambda states, numbers: _common(*states),
    "min": lambda states, numbers: _common(*states),
}
_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")
_ASKS = ("isnan", "isinf", "isfinite")
UNITS = {"exp": 1.0, "exp2": math.log(2)}


def _exponential(unit: float) -> Callable[[Degree], State]:
    def rule(state: Degree) -> State:
        return Other.MIXED if state.power != _NONE else _made(_times(state.shift, unit), _NONE, state.axes)

    return rule


def _logarithm(unit: float) -> Callable[[Degree], State]:
    def rule(state: Degree) -> State:
        return Other.MIXED if state.shift != _NONE else _made(_NONE, _times(state.power, 1 / unit), state.axes)

    return rule


def _raised(exponent: float) -> Callable[[Degree], State]:
    def rule(state: Degree) -> State:
        return Other.MIXED if state.shift != _NONE else replace(state, power=_times(state.power, exponent))

    return rule


_UNARY: Mapping[str, Callable[[Degree], State]] = {
    "cast": lambda state: state,
    "neg": lambda state: replace(state, shift=_times(state.shift, -1.0)),
    "abs": _raised(1.0),
    "sqrt": _raised(0.5),
    "rsqrt": _raised(-0.5),
    "reciprocal": _raised(-1.0),
    "exp": _exponential(UNITS["exp"]),
    "exp2": _exponential(UNITS["exp2"]),
    "log": _logarithm(UNITS["exp"]),
    "log2": _logarithm(UNITS["exp2"]),
}


def _of_expand(work: Degrees, op: tile.ExpandOp) -> State:
    axis = op.axis.value.data
    return _moved(work.of(op.operand), lambda old: old + (old >= axis))


def _of_broadcast(work: Degrees, op: tile.BroadcastOp) -> State:
    return work.of(op.operand)


def _of_trans(work: Degrees, op: tile.TransOp) -> State:
    permutation = list(op.permutation.iter_values())
    return _moved(work.of(op.operand), permutation.index)


def _moved(state: State, move: Callable[[int], int]) -> State:
    if isinstance(state, Cases):
        value, axes = state.condition
        condition = value, tuple(map(move, axes))
        return Cases(condition, _moved(state.chosen, move), _moved(state.otherwise, move))
    return replace(state, axes=tuple(map(move, state.axes))) if isinstance(state, Degree) else state


def _of_reduce(work: Degrees, op: tile.ReduceOp) -> State:
    state, axis, kind = work.of(op.operand), op.axis.value.data, op.kind.data
    if not isinstance(state, Degree):
        return state if state is Other.UNKNOWN else Other.MIXED
    follows = kind in ("max", "min", "top") or (kind == "sum" and state.shift == _NONE)
    return _moved(state, lambda old: old - (old > axis)) if follows and axis not in state.axes else Other.MIXED


def _of_dot(work: Degrees, op: tile.DotOp) -> State:
    left, right = _plain(work.of(op.a)), _plain(work.of(op.b))
    if Other.UNKNOWN in (left, right):
        return Other.UNKNOWN
    if not isinstance(left, Degree) or not isinstance(right, Degree) or FIXED not in (left, right):
        return Other.MIXED
    # The axis that is summed over is the last of one and the last but one of the other.
    depth = tile_type(op.a).get_num_dims() - 1
    if depth in left.axes or depth - 1 in right.axes or left.shift != _NONE or right.shift != _NONE:
        return Other.MIXED
    return _common(right if left == FIXED else left, work.of(op.c))


_RULES: Mapping[type[Operation], Callable[[Degrees, Any], State]] = {
    tile.EwOp: _of_elementwise,
    tile.ExpandOp: _of_expand,
    tile.BroadcastOp: _of_broadcast,
    tile.TransOp: _of_trans,
    tile.ReduceOp: _of_reduce,
    tile.DotOp: _of_dot,
}
