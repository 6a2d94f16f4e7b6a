"""The functions that rewritten kernel code calls: loops and branches over traced values, and calls of helpers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any, cast

from tessera.dtypes.types import DType, bool_, f32
from tessera.errors import CompileError, caller_span
from tessera.ir.tile.hints import Hints
from tessera.tile.language.current_tracer import tracer
from tessera.tile.language.kernel_code import is_kernel_module
from tessera.tile.language.rewrite import rewrite
from tessera.tile.language.values import BlockIndex, Scalar, Tile, Undefined, View, is_dynamic

UNSET = object()


@dataclass(frozen=True)
class Range:
    """A loop of the kernel: `for i in tile.range(...)`. With `block`, the variable is a block of that many rows."""

    start: Any
    stop: Any
    step: Any
    block: int | None = None
    unordered: bool = False
    prefetch: int | None = None
    """A hint for the loads of the loop that have none of their own."""

    def __iter__(self) -> Any:
        raise CompileError(
            "a tile loop cannot be run by Python here",
            hint="write it as a plain `for x in tile.range(...)` statement in the kernel or in a function it calls",
        )

    __reversed__ = __len__ = __iter__


def collect(names: Sequence[str], scope: Mapping[str, Any]) -> dict[str, Any]:
    """The values of some variables before a loop or branch; those that have none are left out."""
    return {name: scope[name] for name in names if name in scope and not isinstance(scope[name], Undefined)}


def loop(
    iterable: Any,
    body: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    scope: Mapping[str, Any],
    left: str | None = None,
) -> Any:
    """Runs a `for` statement: a tile loop becomes a loop of the program, anything else is Python's.

    `left` is the flag among the variables that says that the loop is left.
    """
    before = collect(names, scope)
    if not isinstance(iterable, Range):
        values = dict(before)
        for item in iterable:
            results = body(item, *(values.get(name, Undefined(name, "inside the loop")) for name in names))
            values = dict(zip(names, results, strict=True))
            if left is not None and static(values[left], "break", "use tile.where"):
                break
        return tuple(values.get(name, Undefined(name, "inside the loop")) for name in names)
    return (
        _tile_loop(iterable, body, names, before) if left is None else _left_loop(iterable, body, names, before, left)
    )


def _left_loop(
    bounds: Range, body: Callable[..., tuple[Any, ...]], names: Sequence[str], before: dict[str, Any], left: str
) -> tuple[Any, ...]:
    """A tile loop that may end early: a `while` that counts."""
    work, index = tracer(), names.index(left)
    start, stop = (Scalar(work.position(bound), None) for bound in (bounds.start, bounds.stop))
    by = upward(bounds.step)

    def test(at: Any, *values: Any) -> Any:
        return every(at < stop, lambda: negated(values[index]))

    def step(at: Any, *values: Any) -> tuple[Any, ...]:
        return (at + by, *body(at if bounds.block is None else BlockIndex(at, bounds.block), *values))

    counted = {_COUNTER: start, **before}
    return _while(start < stop, test, step, (_COUNTER, *names), counted, bounds.prefetch)[1:]


def upward(step: Any) -> Any:
    """The step of a loop: one that only the program knows is checked there, and the loop ends whatever it is."""
    if not isinstance(step, Scalar):
        return step
    work = tracer()
    work.check_step(Scalar(work.position(step), None))
    return work.combine("max", step, 1)


_COUNTER = "the counter of the loop"


def is_of_program(first: Sequence[Any]) -> bool:
    """Whether a condition is known only when the kernel runs."""
    if isinstance(first[0], Tile):
        bool(first[0])  # raises, and says what to write instead
    return isinstance(first[0], Scalar)


def repeat(
    first: Sequence[Any],
    test: Callable[..., Any],
    body: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    scope: Mapping[str, Any],
    left: str | None = None,
) -> tuple[Any, ...]:
    """Runs a `while` statement whose condition is the program's."""
    index = None if left is None else names.index(left)

    def goes_on(*values: Any) -> Any:
        return test(*values) if index is None else every(negated(values[index]), lambda: test(*values))

    return _while(first[0], goes_on, body, names, collect(names, scope))


def _while(
    first: Any,
    test: Callable[..., Any],
    body: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    before: dict[str, Any],
    prefetch: int | None = None,
) -> tuple[Any, ...]:
    """A loop that goes on while a flag holds, which is worked out before the loop and at the end of each iteration."""
    from xdsl.dialects import scf
    from xdsl.dialects.builtin import IntegerType
    from xdsl.ir import Block, Region

    from tessera.ir.tile.hint_attributes import give_hints

    work = tracer()
    carried = _Carried(names, before)
    flag, types = work.convert(_truth(first), bool_), [value.ssa.type for value in carried.initial.values()]
    asked = Block(arg_types=[IntegerType(1), *types])
    condition = scf.ConditionOp(*asked.args)
    work.locate(condition)
    asked.add_op(condition)

    def run(inner: Any, moving: frozenset[tuple[str, int]]) -> list[Any]:
        after = carried.through(body, [], inner.args, moving)
        again = work.convert(_truth(test(*carried.values(after))), bool_)
        return [again.ssa, *(value.ssa for value in after.values())]

    region = carried.settled(lambda: Block(arg_types=types), run)
    op = scf.WhileOp([flag.ssa, *(value.ssa for value in carried.initial.values())], types, Region(asked), region)
    give_hints(op, Hints(prefetch=prefetch))
    work.emit(op)
    return carried.results(op.results, region)


def _tile_loop(
    bounds: Range, body: Callable[..., tuple[Any, ...]], names: Sequence[str], before: dict[str, Any]
) -> tuple[Any, ...]:
    from xdsl.dialects import scf
    from xdsl.dialects.builtin import IndexType, UnitAttr
    from xdsl.ir import Block

    from tessera.ir.tile.dialect import LoadOp
    from tessera.ir.tile.hint_attributes import give_hints

    work = tracer()
    carried = _Carried(names, before)
    start, stop, step = [work.position(bound) for bound in (bounds.start, bounds.stop, upward(bounds.step))]

    def run(inner: Any, moving: frozenset[tuple[str, int]]) -> list[Any]:
        at = Scalar(inner.args[0], None)
        item = at if bounds.block is None else BlockIndex(at, bounds.block)
        return [value.ssa for value in carried.through(body, [item], inner.args[1:], moving).values()]

    types = [value.ssa.type for value in carried.initial.values()]
    region = carried.settled(lambda: Block(arg_types=[IndexType(), *types]), run)
    op = scf.ForOp(start, stop, step, [value.ssa for value in carried.initial.values()], region)
    if bounds.unordered:
        op.attributes["tile.unordered"] = UnitAttr()
    hints = Hints(prefetch=bounds.prefetch)
    for one in (op, *(load for load in region.block.ops if isinstance(load, LoadOp))):
        give_hints(one, hints)
    work.emit(op)
    return carried.results(op.results, region)


class _Carried:
    """The variables that a loop changes, and what they are before it, in it and behind it."""

    def __init__(self, names: Sequence[str], before: dict[str, Any]) -> None:
        self.names, self.before = names, before
        self.leaves = _spread(before)
        self.initial = {path: _as_value(value) for path, value in self.leaves.items() if _can_change(value)}
        self.after: dict[str, Any] = {}
        self.moving: frozenset[tuple[str, int]] = frozenset()

    def settled(self, block: Callable[[], Any], run: Callable[[Any, frozenset[tuple[str, int]]], list[Any]]) -> Any:
        """The body, built with `run` again until it is known which tiles move along an array."""
        from xdsl.ir import Region

        while True:
            region, moving = Region(block()), self.moving
            tracer().inside(region, lambda inner, moving=moving: run(inner, moving))
            # A tile that enters at one place of an array and leaves at another has no known place.
            moved = {
                (path, axis)
                for path, value in self.initial.items()
                for axis, one in (value.axis_bounds.items() if isinstance(value, Tile) else ())
                if not one.same(self.after[path].axis_bounds.get(axis))
            }
            if moved <= self.moving:
                return region
            self.moving |= moved
            region.drop_all_references()

    def through(
        self,
        body: Callable[..., tuple[Any, ...]],
        items: Sequence[Any],
        arguments: Sequence[Any],
        moving: frozenset[tuple[str, int]],
    ) -> dict[str, Any]:
        """Runs the body once, on a block's arguments: what the variables are at its end."""
        entering, after = dict(self.leaves), dict[str, Any]()
        for (path, value), argument in zip(self.initial.items(), arguments, strict=True):
            entering[path] = _like(value, argument, {axis for name, axis in moving if name == path})
        results = body(*items, *self.values(entering))
        leaving = {name: value for name, value in zip(self.names, results, strict=True) if name in self.before}
        for path, value in _spread(leaving, self.before).items():
            if path in self.initial:
                after[path] = _fitting(path, self.initial[path], value)
            elif value is not entering[path]:
                raise CompileError(
                    f"{path} changes inside a tile loop, and {type(value).__name__} values cannot",
                    hint="only tiles, scalars, numbers and tuples of them can change from one iteration to the next",
                )
        self.after = {path: after[path] for path in self.initial}
        return self.after

    def values(self, leaves: Mapping[str, Any]) -> list[Any]:
        """The variables, from what their parts are."""
        known = {**self.leaves, **leaves}
        return [
            _gather(name, self.before[name], known) if name in self.before else Undefined(name, "inside the loop")
            for name in self.names
        ]

    def results(self, results: Sequence[Any], region: Any) -> tuple[Any, ...]:
        """The variables behind the loop."""
        final = dict(self.leaves)
        for (path, value), result in zip(self.after.items(), results, strict=True):
            lost = {axis for name, axis in self.moving if name == path}
            final[path] = _like(value, result, lost | {axis for axis in _axes(value) if _within(value, axis, region)})
        return tuple(self.values(final))


def _spread(values: Mapping[str, Any], like: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The members of tuples one by one, as `name[0]`; with `like`, of tuples that have the same structure there."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        model = value if like is None else like[name]
        if not isinstance(model, tuple):
            found[name] = value
            continue
        members = cast("tuple[Any, ...]", model)
        if not isinstance(value, tuple) or len(cast("tuple[Any, ...]", value)) != len(members):
            raise CompileError(
                f"{name} was a tuple of {len(members)} and becomes {value!r}",
                hint="a variable keeps its structure in a loop or branch",
            )
        names = [f"{name}[{index}]" for index, _ in enumerate(members)]
        inner = None if like is None else dict(zip(names, members, strict=True))
        found |= _spread(dict(zip(names, cast("tuple[Any, ...]", value), strict=True)), inner)
    return found


def _gather(name: str, model: Any, leaves: Mapping[str, Any]) -> Any:
    """The reverse of `_spread`, for one variable."""
    if not isinstance(model, tuple):
        return leaves[name]
    members = cast("tuple[Any, ...]", model)
    made = (_gather(f"{name}[{index}]", member, leaves) for index, member in enumerate(members))
    # A named tuple stays one.
    return getattr(members, "_make", tuple)(made)


def branch(
    condition: Any,
    then: Callable[..., tuple[Any, ...]],
    otherwise: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    scope: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Runs an `if` statement: on a scalar of the program both branches are traced, else Python decides now."""
    before = collect(names, scope)
    given = [before.get(name, Undefined(name, "in one branch of an if")) for name in names]
    if isinstance(condition, Tile):
        bool(condition)  # raises, and says what to write instead
    if not isinstance(condition, Scalar):
        return (then if condition else otherwise)(*given)
    return _dynamic_branch(_truth(condition), then, otherwise, names, given)


def _dynamic_branch(
    condition: Scalar,
    then: Callable[..., tuple[Any, ...]],
    otherwise: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    given: list[Any],
) -> tuple[Any, ...]:
    from xdsl.dialects import scf
    from xdsl.ir import Block, Region

    work = tracer()
    regions = [Region(Block()), Region(Block())]
    outcomes: list[dict[str, Any]] = []
    for region, body in zip(regions, (then, otherwise), strict=True):
        with work.building(region.block):
            outcomes.append(dict(zip(names, body(*given), strict=True)))
    final: dict[str, Any] = {}
    for name in names:
        if any(isinstance(outcome[name], Undefined) for outcome in outcomes):
            final[name] = Undefined(name, "in one branch of an if")
        else:
            final[name] = outcomes[0][name]
    defined = {name: value for name, value in final.items() if not isinstance(value, Undefined)}
    sides = [_spread({name: outcome[name] for name in defined}, defined) for outcome in outcomes]
    changed: list[str] = []
    for path, first in sides[0].items():
        second = sides[1][path]
        if first is second:
            continue
        if not _can_change(first) or not _can_change(second):
            raise CompileError(
                f"{path} is {first!r} in one branch and {second!r} in the other",
                hint="only tiles, scalars and numbers can depend on a condition of the program",
            )
        changed.append(path)
    types = {path: _common_type(sides[0][path], sides[1][path]) for path in changed}
    ends: list[list[Any]] = []
    for region, side in zip(regions, sides, strict=True):
        with work.building(region.block):
            model = ends[0] if ends else [None] * len(changed)
            made = [_as_value(side[path], types[path]) for path in changed]
            ends.append(
                [
                    value if like is None else _fitting(path, like, value)
                    for path, like, value in zip(changed, model, made, strict=True)
                ]
            )
            work.emit(scf.YieldOp(*(value.ssa for value in ends[-1])))
    op = scf.IfOp(condition.ssa, [value.ssa.type for value in ends[0]], regions[0], regions[1])
    work.emit(op)
    leaves = dict(sides[0])
    for path, one, other, result in zip(changed, *ends, op.results, strict=True):
        leaves[path] = _either(one, other, result)
    return tuple(_gather(name, defined[name], leaves) if name in defined else final[name] for name in names)


def _common_type(first: Any, second: Any) -> DType | None:
    """The type in which two numbers or scalars meet: numbers are weakly typed. None is a position."""
    if isinstance(first, Tile) or isinstance(second, Tile):
        return None
    if isinstance(first, Scalar) or isinstance(second, Scalar):
        return tracer().scalar_type(first, second)
    types = [number_type(first), number_type(second)]
    return f32 if f32 in types else bool_ if types == [bool_, bool_] else None


def choose(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`a if condition else b`."""
    if isinstance(condition, Tile):
        bool(condition)
    if not isinstance(condition, Scalar):
        return then() if condition else otherwise()

    def first(_: Any) -> tuple[Any, ...]:
        return (then(),)

    def second(_: Any) -> tuple[Any, ...]:
        return (otherwise(),)

    (result,) = _dynamic_branch(_truth(condition), first, second, ["the result of a conditional expression"], [UNSET])
    return result


def _truth(condition: Any) -> Any:
    """A condition of the program as a flag, any other as Python takes it."""
    if isinstance(condition, Scalar):
        return condition if condition.dtype is bool_ else condition != 0
    return bool(condition)


def every(first: Any, *rest: Callable[[], Any]) -> Any:
    """`a and b`: on scalars of the program both are computed."""
    result = first
    for later in rest:
        if isinstance(result, Scalar):
            result = _truth(result) & _truth(later())
        elif result:
            result = later()
        else:
            return result
    return result


def some(first: Any, *rest: Callable[[], Any]) -> Any:
    """`a or b`: on scalars of the program both are computed."""
    result = first
    for later in rest:
        if isinstance(result, Scalar):
            result = _truth(result) | _truth(later())
        elif not result:
            result = later()
        else:
            return result
    return result


def negated(value: Any) -> Any:
    """`not a`."""
    return ~_truth(value) if isinstance(value, Scalar) else not value


def returned(value: Any) -> Any:
    """The result of a function. The last function to return is the kernel itself: its results belong to that line."""
    tracer().ending = caller_span()
    return value


def static(condition: Any, statement: str, instead: str) -> Any:
    """The condition of a statement that Python must be able to decide now."""
    if is_dynamic(condition):
        raise CompileError(f"{statement} under a condition of the program, {condition}", hint=instead)
    return condition


def rewritten(function: FunctionType) -> FunctionType:
    """The function with its tile loops and branches rewritten as calls of this module."""
    return rewrite(function, sys.modules[__name__])


def call(function: Any) -> Any:
    """A function about to be called: helpers with tile loops or branches of their own are rewritten, too."""
    if isinstance(function, FunctionType):
        return rewritten(function) if is_kernel_module(function.__module__) else function
    if isinstance(function, MethodType):
        return MethodType(call(function.__func__), function.__self__)
    if isinstance(function, partial):
        given = cast("partial[Any]", function)
        return partial(call(given.func), *given.args, **given.keywords)
    return function


def number_type(value: Any) -> DType | None:
    """The type of a Python number in a program; None is a position."""
    return bool_ if isinstance(value, bool) else f32 if isinstance(value, float) else None


def _can_change(value: Any) -> bool:
    return is_dynamic(value) or isinstance(value, bool | int | float)


def _as_value(value: Any, dtype: DType | None = None) -> Any:
    """A number that changes in a loop is a scalar of the program, never a frozen constant."""
    if isinstance(value, Tile):
        return value
    if isinstance(value, Scalar):
        return value if dtype is None else tracer().convert(value, dtype)
    return tracer().convert(value, dtype or number_type(value))


def _like(model: Any, ssa: Any, lost: Collection[int] = ()) -> Any:
    """Another value of the same kind; along the axes `lost`, its place in an array is not known."""
    if isinstance(model, Scalar):
        return Scalar(ssa, model.dtype)
    axis_bounds = {axis: bounds.lost() if axis in lost else bounds for axis, bounds in model.axis_bounds.items()}
    return Tile(ssa, model.shape, model.dtype, denominator=model.denominator, axis_bounds=axis_bounds)


def _either(one: Any, other: Any, ssa: Any) -> Any:
    """The result of an if: what both branches agree on."""
    if isinstance(one, Scalar):
        return Scalar(ssa, one.dtype)
    axis_bounds = other.axis_bounds | one.axis_bounds
    lost = {
        axis
        for axis in axis_bounds
        if axis not in one.axis_bounds or not one.axis_bounds[axis].same(other.axis_bounds.get(axis))
    }
    model = Tile(ssa, one.shape, one.dtype, denominator=one.denominator or other.denominator, axis_bounds=axis_bounds)
    return _like(model, ssa, lost)


def _axes(value: Any) -> Collection[int]:
    return value.axis_bounds if isinstance(value, Tile) else ()


def _within(value: Tile, axis: int, region: Any) -> bool:
    """Whether a tile's place along an axis is computed inside a region, and has no meaning after it."""
    from xdsl.ir import Block

    for bound in (edge for one in value.axis_bounds[axis].bounds for edge in (one.start, one.limit)):
        if isinstance(bound, Scalar):
            owner = bound.ssa.owner
            block = owner if isinstance(owner, Block) else owner.parent
            while block is not None:
                if block is region.block:
                    return True
                block = block.parent_block()
    return False


def _fitting(name: str, model: Any, value: Any) -> Any:
    """A value that stands for `name` after an iteration or in the other branch: of the same type as before."""
    if isinstance(value, Undefined):
        raise CompileError(f"{name} has no value at the end of the loop body", hint=f"assign {name} in every branch")
    if isinstance(value, View) or not _can_change(value):
        raise CompileError(f"{name} was {model!r} and becomes {value!r}", hint="a variable keeps its type in a loop")
    if isinstance(model, Scalar) and not isinstance(value, Tile):
        if isinstance(value, Scalar) and value.dtype is not model.dtype:
            raise CompileError(f"{name} was {model!r} and becomes {value!r}", hint="convert it with tile.cast")
        if isinstance(value, float) and not (model.dtype is not None and model.dtype.is_float):
            raise CompileError(f"{name} was {model!r} and becomes {value}", hint="start with a float")
        return tracer().convert(value, model.dtype)
    if isinstance(model, Tile) and isinstance(value, Tile):
        if value.shape != model.shape or value.dtype.base is not model.dtype.base:
            raise CompileError(
                f"{name} was {model!r} and becomes {value!r}",
                shapes=[f"before {list(model.shape)}", f"after {list(value.shape)}"],
                hint="a variable keeps its shape and element type in a loop or branch; cast or broadcast it",
            )
        return value
    raise CompileError(
        f"{name} was {model!r} and becomes {value!r}", hint="a variable keeps its kind in a loop or branch"
    )
