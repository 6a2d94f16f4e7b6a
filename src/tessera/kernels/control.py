"""What rewritten kernel code calls: loops and branches over traced values, and calls of helpers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tessera.errors import CompileError
from tessera.kernels.values import Scalar, Tile, Undefined, View, is_dynamic, tracer

UNSET = object()


@dataclass(frozen=True)
class Range:
    """A loop of the kernel: `for i in tile.range(...)`. With `block`, the variable is a block of that many rows."""

    start: Any
    stop: Any
    step: Any
    block: int | None = None
    unordered: bool = False

    def __iter__(self) -> Any:
        raise CompileError(
            "a tile loop cannot be run by Python here",
            hint="write it as a plain `for x in tile.range(...)` statement in the kernel or in a function it calls",
        )


@dataclass(frozen=True)
class BlockIndex:
    """The variable of a `tile.range_n` loop: a block of rows, from `start` on."""

    start: Scalar
    rows: int


def collect(names: Sequence[str], scope: Mapping[str, Any]) -> dict[str, Any]:
    """The values of some variables before a loop or branch; those that have none are left out."""
    return {name: scope[name] for name in names if name in scope and not isinstance(scope[name], Undefined)}


def loop(iterable: Any, body: Callable[..., tuple[Any, ...]], names: Sequence[str], scope: Mapping[str, Any]) -> Any:
    """Runs a `for` statement: a tile loop becomes a loop of the program, anything else is Python's."""
    before = collect(names, scope)
    if not isinstance(iterable, Range):
        values = dict(before)
        for item in iterable:
            results = body(item, *(values.get(name, Undefined(name, "inside the loop")) for name in names))
            values = dict(zip(names, results, strict=True))
        return tuple(values.get(name, Undefined(name, "inside the loop")) for name in names)
    return _tile_loop(iterable, body, names, before)


def _tile_loop(
    bounds: Range, body: Callable[..., tuple[Any, ...]], names: Sequence[str], before: dict[str, Any]
) -> tuple[Any, ...]:
    from xdsl.dialects import scf
    from xdsl.dialects.builtin import IndexType, UnitAttr
    from xdsl.ir import Block, Region

    work = tracer()
    carried = [name for name in names if name in before and _can_change(before[name])]
    initial = {name: _as_value(before[name]) for name in carried}
    limits = [work.position(bound) for bound in (bounds.start, bounds.stop, bounds.step)]
    block = Block(arg_types=[IndexType(), *(value.ssa.type for value in initial.values())])
    after: dict[str, Any] = {}

    def run(inner: Any) -> list[Any]:
        place = Scalar(inner.args[0], None)
        variable = place if bounds.block is None else BlockIndex(place, bounds.block)
        entering = {
            name: _like(initial[name], argument) for name, argument in zip(carried, inner.args[1:], strict=True)
        }
        given = [entering.get(name, before.get(name, Undefined(name, "inside the loop"))) for name in names]
        results = dict(zip(names, body(variable, *given), strict=True))
        leaving: list[Any] = []
        for name in carried:
            after[name] = _fitting(name, initial[name], results[name])
            leaving.append(after[name].ssa)
        for name in set(before) - set(carried):
            if results[name] is not before[name]:
                raise CompileError(
                    f"{name} changes inside a tile loop, and {type(before[name]).__name__} values cannot",
                    hint="only tiles, scalars and numbers can change from one iteration to the next",
                )
        return leaving

    region = Region(block)
    work.inside(region, run)
    start, stop, step = limits
    op = scf.ForOp(start, stop, step, [value.ssa for value in initial.values()], region)
    if bounds.unordered:
        op.attributes["tile.unordered"] = UnitAttr()
    work.emit(op)
    final = {name: _like(after[name], result) for name, result in zip(carried, op.results, strict=True)}
    return tuple(final.get(name, before.get(name, Undefined(name, "inside the loop"))) for name in names)


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
    return _dynamic_branch(condition, then, otherwise, names, given)


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
        outer, work.block = work.block, region.block
        try:
            outcomes.append(dict(zip(names, body(*given), strict=True)))
        finally:
            work.block = outer
    changed: list[str] = []
    for name, start in zip(names, given, strict=True):
        results = [outcome[name] for outcome in outcomes]
        if any(isinstance(result, Undefined) for result in results) or all(result is start for result in results):
            continue
        if all(_can_change(result) for result in results):
            changed.append(name)
        elif results[0] is not results[1]:
            raise CompileError(
                f"{name} is {results[0]!r} in one branch and {results[1]!r} in the other",
                hint="only tiles, scalars and numbers can depend on a condition of the program",
            )
    final: dict[str, list[Any]] = {name: [] for name in changed}
    for region, outcome in zip(regions, outcomes, strict=True):
        outer, work.block = work.block, region.block
        try:
            for name in changed:
                model = final[name][0] if final[name] else None
                value = _as_value(outcome[name])
                final[name].append(value if model is None else _fitting(name, model, value))
            end = scf.YieldOp(*(final[name][-1].ssa for name in changed))
            work.emit(end)
        finally:
            work.block = outer
    op = scf.IfOp(condition.ssa, [final[name][0].ssa.type for name in changed], regions[0], regions[1])
    work.emit(op)
    results = {name: _like(final[name][0], result) for name, result in zip(changed, op.results, strict=True)}
    undefined = {
        name: Undefined(name, "in one branch of an if")
        for name in names
        if any(isinstance(outcome[name], Undefined) for outcome in outcomes)
    }
    return tuple(results.get(name, undefined.get(name, outcomes[0][name])) for name in names)


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

    (result,) = _dynamic_branch(condition, first, second, ["the result of a conditional expression"], [UNSET])
    return result


def static(condition: Any) -> Any:
    """The condition of an `if` that returns: Python must be able to decide it now."""
    if is_dynamic(condition):
        raise CompileError(
            f"a return under a condition of the program, {condition}",
            hint="assign the result in both branches and return it once, at the end",
        )
    return condition


def call(function: Any) -> Any:
    """A function about to be called: helpers with tile loops or branches of their own are rewritten, too."""
    if isinstance(function, FunctionType) and not (function.__module__ or "").startswith("tessera."):
        from tessera.kernels.rewrite import rewritten

        return rewritten(function)
    return function


def _can_change(value: Any) -> bool:
    return is_dynamic(value) or isinstance(value, bool | int | float)


def _as_value(value: Any) -> Any:
    """A number that changes in a loop is a scalar of the program, never a frozen constant."""
    if is_dynamic(value):
        return value
    from tessera.dtypes.types import bool_, f32

    dtype = bool_ if isinstance(value, bool) else f32 if isinstance(value, float) else None
    return tracer().convert(value, dtype)


def _like(model: Any, ssa: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(model, Scalar):
        return Scalar(ssa, model.dtype)
    return Tile(ssa, model.shape, model.dtype, denominator=model.denominator, places=model.places)


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
