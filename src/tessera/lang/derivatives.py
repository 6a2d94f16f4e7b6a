"""Derivatives of functions over tensors: `grad`, `value_and_grad`, `vjp`, `jvp`, `linearize`, and where they stop.

Each traces the function where it is called, into a block of its own, and writes derivatives behind it; so that they
nest in any order. Outside of a trace each is a jitted function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from tessera.errors import DtypeError, EffectError, ShapeError, TesseraError, caller_span
from tessera.lang.jit import Jitted
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import tensor
from tessera.lang.tracing.graph_modules import Deferred, types
from tessera.lang.tracing.sizes import TracedSize
from tessera.lang.tracing.values import Trace, Traced, current, current_or_none, is_array, shown
from tessera.runtime.tensor.pytree import tree_flatten, tree_map, tree_unflatten
from tessera.shapes.expr import format_shape
from tessera.shapes.history import ShapeHistory

if TYPE_CHECKING:
    from xdsl.ir import Block, SSAValue

    from tessera.transforms.derivatives import checkpoints, customs, finish, graph_writer, rules
    from tessera.transforms.derivatives import table as walks
else:
    checkpoints, customs, finish, graph_writer, rules = (
        Deferred(f"tessera.transforms.derivatives.{name}")
        for name in ("checkpoints", "customs", "finish", "graph_writer", "rules")
    )
    walks = Deferred("tessera.transforms.derivatives.table")

Tree: TypeAlias = Any
Function: TypeAlias = Callable[..., Tree]


# The surface


def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Jitted:
    """The gradient of a function that gives one float, by the arguments at `argnums`, which may be pytrees.

        ts.grad(lambda w, x: ts.mean(ts.square(x @ w)))(w, x)

    With `has_aux` the function gives a pair, and so does this: the gradient, and the second of the pair.
    """

    def derived(*args: Tree, **kwargs: Tree) -> Tree:
        (_, rest), gradient = _value_and_grad(function, "grad", argnums, has_aux, args, kwargs)
        return (gradient, rest) if has_aux else gradient

    return jitted(derived, function, "grad", (argnums, has_aux))


def value_and_grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Jitted:
    """What a function gives, and its gradient; see `grad`. With `has_aux`: `(value, aux), gradient`."""

    def derived(*args: Tree, **kwargs: Tree) -> Tree:
        (value, rest), gradient = _value_and_grad(function, "value_and_grad", argnums, has_aux, args, kwargs)
        return ((value, rest), gradient) if has_aux else (value, gradient)

    return jitted(derived, function, "value_and_grad", (argnums, has_aux))


def vjp(function: Function, *primals: Tree, has_aux: bool = False) -> Tree:
    """`function(*primals)`, and a function from cotangents of what it gives to those of `primals`.

    With `has_aux` the function gives a pair, of which the second is no result; it comes last here.
    """
    if current_or_none() is not None:
        recorded = Recorded.of(function, "vjp", primals, {}, range(len(primals)), has_aux)
        recorded.linearize()
        recorded.inline()
        found = (recorded.result(), recorded.pullback)
        return (*found, recorded.aux) if has_aux else found

    def pulled(given: Sequence[Tree], cotangents: Tree) -> Tree:
        return vjp(function, *given, has_aux=has_aux)[1](cotangents)

    backward = jitted(pulled, function, "vjp", (has_aux,), signature=inspect.signature(pulled))
    forward = jitted(function, function, "value", ())
    result = forward(*primals)

    def pullback(cotangents: Tree) -> Tree:
        return backward(primals, cotangents)

    return (result[0], pullback, result[1]) if has_aux else (result, pullback)


def jvp(function: Function, primals: Sequence[Tree], tangents: Sequence[Tree], has_aux: bool = False) -> Tree:
    """`function(*primals)`, and its tangent along `tangents`, which nest as `primals` do.

    With `has_aux` the function gives a pair, of which the second is no result; it comes last here.
    """
    if current_or_none() is None:

        def derived(primals: Sequence[Tree], tangents: Sequence[Tree]) -> Tree:
            return jvp(function, primals, tangents, has_aux)

        made = jitted(derived, function, "jvp", (has_aux,), signature=inspect.signature(derived))
        return made(tuple(primals), tuple(tangents))
    recorded = Recorded.of(function, "jvp", tuple(primals), {}, range(len(primals)), has_aux)
    given = recorded.given_like(tuple(tangents), recorded.arguments, recorded.argument_tree(), "jvp: tangents")
    recorded.forwards(given)
    recorded.inline()
    found = (recorded.result(), recorded.tangent_result())
    return (*found, recorded.aux) if has_aux else found


def linearize(function: Function, *primals: Tree) -> Tree:
    """`function(*primals)`, and the linear function from tangents of `primals` to that of what it gives."""
    if current_or_none() is not None:
        recorded = Recorded.of(function, "linearize", primals, {}, range(len(primals)), False)
        recorded.linearize()
        recorded.inline()
        return recorded.result(), recorded.pushforward
    result = jitted(function, function, "value", ())(*primals)

    def pushed(given: Sequence[Tree], tangents: Sequence[Tree]) -> Tree:
        return jvp(function, given, tangents)[1]

    forward = jitted(pushed, function, "linearize", (), signature=inspect.signature(pushed))

    def pushforward(*tangents: Tree) -> Tree:
        return forward(primals, tangents)

    return result, pushforward


def stop_gradient(tree: Tree) -> Tree:
    """The same values, as constants to derivatives."""
    if current_or_none() is None:
        return tree
    ends_of(current())

    def stopped(leaf: Tree) -> Tree:
        if not isinstance(leaf, Traced):
            return leaf
        return primitives.emit("stop_gradient", lambda values: customs.StopOp(values[0]), leaf, weak=leaf.weak)

    return tree_map(stopped, tree)


# What is traced


@dataclass
class Recorded:
    """A function that was traced into a block of its own, some of whose arguments are differentiated."""

    trace: Trace
    block: Block
    name: str
    outer: list[Traced]
    """The values of the arguments, where the trace is."""
    arguments: list[Traced]
    """What stands for them in the block."""
    trees: list[tuple[int, Tree]]
    """How many leaves each argument has, and how they nest."""
    results: list[Traced]
    structure: Tree
    aux: Tree
    is_constant: list[Tree]
    """What the function gives that is no tensor, in its place; the place of a tensor has `_TENSOR`."""
    tangents: dict[SSAValue, SSAValue]
    linear: Block | None = None

    @classmethod
    def of(
        cls,
        function: Function,
        name: str,
        args: Sequence[Tree],
        kwargs: dict[str, Tree],
        argnums: Sequence[int],
        has_aux: bool,
    ) -> Recorded:
        trace = current()
        ends_of(trace)
        outer, trees, rebuilt = list[Traced](), list[tuple[int, Tree]](), list(args)
        from xdsl.ir import Block

        block = Block()
        arguments: list[Traced] = []
        for index in argnums:
            leaves, structure = tree_flatten(args[index])
            inner: list[Traced] = []
            for leaf in leaves:
                value = _differentiable(leaf, name, index)
                made = block.insert_arg(value.value.type, len(block.args))
                outer.append(value)
                inner.append(Traced(made, value.sizes, value.dtype, value.history, trace))
            arguments += inner
            trees.append((len(leaves), structure))
            rebuilt[index] = tree_unflatten(structure, inner)
        with trace.within(block):
            trace.derived += 1
            try:
                result = function(*rebuilt, **kwargs)
            finally:
                trace.derived -= 1
            aux = None
            if has_aux:
                if not is_tuple(result, 2):
                    raise TesseraError(
                        f"{name}: with has_aux the function gives a pair, got {type(result).__name__}",
                        hint="return result, aux",
                    )
                result, aux = result
                aux = tree_map(_held, aux)
            leaves, structure = tree_flatten(result)
            results: list[Traced] = []
            constants: list[Tree] = []
            for leaf in leaves:
                if isinstance(leaf, Traced | TracedSize | bool | int | float) or is_array(leaf):
                    results.append(tensor(leaf))
                    constants.append(_TENSOR)
                else:
                    constants.append(leaf)
        return cls(trace, block, name, outer, arguments, trees, results, structure, aux, constants, {})

    @property
    def known(self) -> graph_writer.Known:
        return self.trace.sizes.intervals

    @property
    def replace(self) -> rules.Replacements:
        return rules.Replacements(self.trace.replaced)

    def now(self, value: Traced) -> SSAValue:
        return self.trace.now(value.value)

    # The walks

    def linearize(self) -> None:
        """Writes what tangents need behind the function, and the linear ops into a block of their own."""
        from xdsl.ir import Block

        self.linear = linear = Block(arg_types=[one.value.type for one in self.arguments])
        self._walk(dict(zip([one.value for one in self.arguments], linear.args, strict=True)), linear)

    def forwards(self, given: Sequence[Traced]) -> None:
        self._walk({one.value: tangent.value for one, tangent in zip(self.arguments, given, strict=True)}, None)

    def _walk(self, seeds: dict[SSAValue, SSAValue], linear: Block | None) -> None:
        """Writes tangents, and takes out what was written for them and nothing uses."""
        from tessera.ir.graph.control import YieldOp
        from tessera.transforms.core.dead_code import is_dead

        own = set(self.block.ops)
        results = YieldOp([self.now(one) for one in self.results])  # results are used: this says so
        with self.trace.writing(self.block, list(seeds.values())):
            self.tangents = walks.linearize(self.block, seeds, self.known, self.replace, linear)
        tangents = YieldOp([one for one in map(self._tangent, self.results) if one is not None])
        op = self.block.last_op
        while op is not None:
            before = op.prev_op
            if op not in own and is_dead(op):
                op.detach()
                op.erase()
            op = before
        results.erase()
        tangents.erase()

    def inline(self) -> None:
        """The function's ops, and what was written behind them, become a part of what lies around."""
        for argument, value in zip(self.arguments, self.outer, strict=True):
            self.replace(argument.value, self.trace.now(value.value))
        for op in list(self.block.ops):
            op.detach()
            self.trace.block.add_op(op)

    def transposed(self, cotangents: Sequence[Traced | None]) -> list[Traced]:
        """The cotangents of arguments, from those of results."""
        linear = self.linear
        assert linear is not None
        copy, values = _copied(linear)
        writer = graph_writer.GraphWriter(self.trace.block, self.known)
        pairs: list[tuple[SSAValue, SSAValue]] = []
        for value, cotangent in zip(self.results, cotangents, strict=True):
            tangent = self._tangent(value)
            if tangent is not None and cotangent is not None:
                pairs.append((values.get(tangent, tangent), self.trace.now(cotangent.value)))
        found = walks.transpose(copy, copy.args, pairs, writer)
        given: list[Traced] = []
        for argument, one in zip(copy.args, self.outer, strict=True):
            value = found[argument] if argument in found else writer.zeros(types.graph_type(argument))
            given.append(traced(value, one.history, self.trace))
        discard(copy)
        return given

    def _tangent(self, value: Traced) -> SSAValue | None:
        return self.tangents.get(self.now(value))

    # What is given to users

    def result(self) -> Tree:
        return self._as_result([_again(self.trace, one) for one in self.results])

    def tangent_result(self) -> Tree:
        found: list[Traced] = []
        for value in self.results:
            tangent = self._tangent(value)
            if tangent is None:
                found.append(primitives.constant(0, value.sizes, value.dtype))
            else:
                found.append(traced(self.trace.now(tangent), value.history, self.trace))
        return self._as_result(found)

    def _as_result(self, values: Sequence[Traced]) -> Tree:
        given = iter(values)
        leaves = [next(given) if one is _TENSOR else one for one in self.is_constant]
        return tree_unflatten(self.structure, leaves)

    def argument_tree(self) -> Tree:
        """How the arguments nest, all of them."""
        return tree_flatten(tuple(self.as_arguments([one.dtype for one in self.arguments])))[1]

    def as_arguments(self, leaves: Sequence[Tree]) -> list[Tree]:
        """Leaves as the arguments nest them."""
        found: list[Tree] = []
        place = 0
        for count, structure in self.trees:
            found.append(tree_unflatten(structure, leaves[place : place + count]))
            place += count
        return found

    def given_like(self, tree: Tree, like: Sequence[Traced], structure: Tree, what: str) -> list[Traced]:
        """The leaves of what a user gives for values: of their structure, shapes and dtypes."""
        leaves, found = tree_flatten(tree)
        if found != structure:
            raise TesseraError(
                f"{what} nest in another way",
                shapes=[f"expected: {structure}", f"given: {found}"],
                hint="give one of the same shape and dtype for each",
            )
        given: list[Traced] = []
        for leaf, value in zip(leaves, like, strict=True):
            one = primitives.lift(leaf)
            one = primitives.cast(one, value.dtype) if one.weak else one
            if one.sizes != value.sizes or one.dtype is not value.dtype:
                raise (ShapeError if one.sizes != value.sizes else DtypeError)(
                    f"{what} have the shapes and dtypes of the values that they belong to",
                    shapes=[f"expected: {shown(value)[0]}", f"given: {shown(one)[0]}"],
                    story=one.history.lines(),
                    hint="cast or broadcast it first",
                )
            given.append(one)
        return given

    def pullback(self, cotangents: Tree) -> Tree:
        """From cotangents of the results to those of the arguments."""
        structure = tree_flatten(self._as_result(self.results))[1]
        given = self.given_like(cotangents, self.results, structure, f"{self.name}: cotangents")
        return tuple(self.as_arguments(self.transposed(given)))

    def pushforward(self, *tangents: Tree) -> Tree:
        """From tangents of the arguments to that of the results."""
        assert self.linear is not None
        given = self.given_like(tangents, self.arguments, self.argument_tree(), f"{self.name}: tangents")
        copy, values = _copied(self.linear)
        checkpoints.expand(copy, self.replace)
        if any(isinstance(op, customs.LinearOp) for op in copy.walk()):
            raise EffectError(
                "a function with a rule for reverse derivatives alone (custom_vjp) is differentiated forwards",
                span=caller_span(),
                hint="give it a custom_jvp instead, which serves both ways",
            )
        for argument, one in zip(list(copy.args), given, strict=True):
            self.replace(argument, one.value)
        for op in list(copy.ops):
            op.detach()
            self.trace.block.add_op(op)
        mapped: dict[SSAValue, SSAValue] = dict(zip(self.linear.args, [one.value for one in given], strict=True))
        before = self.tangents
        self.tangents = {value: mapped.get(one, values.get(one, one)) for value, one in before.items()}
        result = self.tangent_result()
        self.tangents = before
        return result


class _Tensor:
    """Stands where a tensor is among results."""


_TENSOR = _Tensor()


def _copied(block: Block) -> tuple[Block, dict[SSAValue, SSAValue]]:
    """A copy of a block, and what its values have become."""
    from xdsl.ir import Block

    values: dict[SSAValue, SSAValue] = {}
    made = Block(arg_types=[argument.type for argument in block.args])
    values |= dict(zip(block.args, made.args, strict=True))
    for op in block.ops:
        made.add_op(op.clone(values))
    return made, values


def discard(block: Block) -> None:
    for op in reversed(list(block.ops)):
        op.detach()
        op.erase(safe_erase=False)


def ends_of(trace: Trace) -> None:
    """Once a trace has ended, ops that live in it alone go."""
    if "derivatives" not in trace.kept:
        trace.kept["derivatives"] = True
        replace = rules.Replacements(trace.replaced)
        trace.ends.append(lambda: finish.finish(trace.body, replace))


def traced(value: SSAValue, history: ShapeHistory, trace: Trace) -> Traced:
    type_ = types.graph_type(value)
    return Traced(value, type_.shape, type_.dtype, history, trace)


def _again(trace: Trace, value: Traced) -> Traced:
    return Traced(trace.now(value.value), value.sizes, value.dtype, value.history, trace, weak=value.weak)


def is_tuple(value: Tree, count: int | None = None) -> bool:
    """Whether a function of a user's gave a tuple, and one so long."""
    return value.__class__ is tuple and count in (None, len(value))


def _held(leaf: Tree) -> Tree:
    return tensor(leaf) if is_array(leaf) else leaf


def _differentiable(leaf: Tree, name: str, index: int) -> Traced:
    if not (isinstance(leaf, Traced | bool | int | float) or is_array(leaf)):
        raise DtypeError(
            f"{name}: argument {index} has a {type(leaf).__name__}, which has no derivative",
            hint="leave the argument out of argnums, or pass it in another one",
        )
    value = tensor(leaf)
    if not value.dtype.is_float:
        raise DtypeError(
            f"{name}: argument {index} is of {value.dtype}, and derivatives are taken by floats",
            shapes=shown(value),
            story=value.history.lines(),
            hint="choose other arguments with argnums, or cast it to f32",
        )
    return value


def _value_and_grad(
    function: Function,
    name: str,
    argnums: int | Sequence[int],
    has_aux: bool,
    args: Sequence[Tree],
    kwargs: dict[str, Tree],
) -> tuple[tuple[Tree, Tree], Tree]:
    chosen = chosen_arguments(function, name, argnums, len(args))
    recorded = Recorded.of(function, name, args, kwargs, chosen, has_aux)
    if len(recorded.results) != 1 or recorded.results[0].sizes or not recorded.results[0].dtype.is_float:
        given = [f"{format_shape(one.sizes)} of {one.dtype}" for one in recorded.results]
        raise ShapeError(
            f"{name}: the function gives one float without axes, got {', '.join(given) or 'nothing'}",
            shapes=given,
            story=recorded.results[0].history.lines() if recorded.results else (),
            hint="reduce it with ts.sum or ts.mean; has_aux=True gives other results beside it; ts.vjp and ts.jacrev "
            "take functions with more",
        )
    recorded.linearize()
    recorded.inline()
    (loss,) = recorded.results
    one = primitives.constant(1, (), loss.dtype)
    found = recorded.as_arguments(recorded.transposed([one]))
    assert recorded.linear is not None
    discard(recorded.linear)
    gradient = found[0] if isinstance(argnums, int) else tuple(found)
    return (recorded.result(), recorded.aux), gradient


def chosen_arguments(function: Function, name: str, argnums: int | Sequence[int], count: int) -> list[int]:
    given = [argnums] if isinstance(argnums, int) else list(argnums)
    chosen = [index + count if index < 0 else index for index in given]
    if not chosen or any(not 0 <= index < count for index in chosen) or len(set(chosen)) < len(chosen):
        raise TesseraError(
            f"{name}: argnums={argnums!r} of a call of {_name(function)} with {count} arguments",
            span=caller_span(),
            hint="argnums counts arguments without a keyword from 0, each once",
        )
    return chosen


# Functions outside of traces


def _name(function: Function) -> str:
    return getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__)


def _is_jitted(function: object) -> TypeGuard[Jitted]:
    return isinstance(function, Jitted)


def jitted(
    derived: Function,
    function: Function,
    what: str,
    options: tuple[object, ...],
    *,
    signature: inspect.Signature | None = None,
) -> Jitted:
    """A jitted function for a derivative; the same one for the same function, whose programs are kept with it."""
    kept: dict[tuple[str, ...], Jitted] = {}
    owner = function.__dict__ if isinstance(getattr(function, "__dict__", None), dict) else None
    key = (what, *map(str, options))
    if owner is not None and (inspect.isfunction(function) or _is_jitted(function)):
        kept = owner.setdefault(_KEPT, kept)
        if key in kept:
            return kept[key]
    given = inspect.signature(function) if signature is None else signature
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values()]
    given = given.replace(parameters=plain, return_annotation=inspect.Signature.empty)

    def called(*args: Tree, **kwargs: Tree) -> Tree:
        bound = given.bind(*args, **kwargs)
        return derived(*bound.args, **bound.kwargs)

    vars(called)["__signature__"] = given
    called.__doc__ = f"{what} of {_name(function)}"
    static = function.static_options if _is_jitted(function) and signature is None else {}
    made = Jitted(called, name=f"{what}({_name(function)})", identity=derived, **static)
    kept[key] = made
    return made


_KEPT = "__tessera_derivatives__"
