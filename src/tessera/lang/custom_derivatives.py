"""Functions with derivatives of their own: `custom_jvp` and `custom_vjp`."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from tessera.errors import DtypeError, ShapeError, TesseraError
from tessera.lang.derivatives import Function, Tree, ends_of, is_tuple, traced
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import tensor
from tessera.lang.tracing.graph_modules import Deferred, control, types
from tessera.lang.tracing.values import Traced, current, current_or_none, is_array, shown
from tessera.runtime.tensor.pytree import tree_flatten, tree_unflatten
from tessera.shapes.history import ShapeHistory

if TYPE_CHECKING:
    from xdsl.ir import Block, SSAValue

    from tessera.transforms.derivatives import customs
else:
    customs = Deferred("tessera.transforms.derivatives.customs")


Both: TypeAlias = "tuple[list[SSAValue], list[SSAValue]]"
"""Results and their tangents."""


class CustomDerivatives(ABC):
    """A function over tensors whose derivatives follow from rules that are given with it."""

    def __init__(self, function: Function) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __get__(self, instance: object, owner: type | None = None) -> Function:
        return self if instance is None else functools.partial(self, instance)

    @abstractmethod
    def rule(self, call: _Call) -> customs.CustomRule:
        """The rule as graphs have it, for one call."""

    def __call__(self, *args: Tree) -> Tree:
        if current_or_none() is None:
            return self.function(*args)
        trace = current()
        ends_of(trace)
        leaves, structure = tree_flatten(args)
        places = [index for index, leaf in enumerate(leaves) if _is_value(leaf)]
        given = [tensor(leaves[index]) for index in places]
        call = _Call(self.name, leaves, structure, places, given)
        region = control.body_of([])
        with trace.within(region.block):
            result = self.function(*call.arguments(given))
            results, call.structure = tree_flatten(result)
            call.results = [tensor(one) for one in results]
            primitives.write(control.YieldOp([one.value for one in call.results]))
        op = customs.CustomOp(
            [one.value for one in given], self.rule(call), [one.value.type for one in call.results], region
        )
        primitives.write(op)
        values = [traced(value, one.history, trace) for value, one in zip(op.results_, call.results, strict=True)]
        return tree_unflatten(call.structure, values)


def _is_value(leaf: Tree) -> bool:
    return isinstance(leaf, Traced | float) or is_array(leaf)


class _Call:
    """One call of such a function: which of its arguments' leaves are values, and what it gives."""

    def __init__(
        self, name: str, leaves: Sequence[Tree], given: Tree, places: Sequence[int], values: Sequence[Traced]
    ) -> None:
        self.name = name
        self.leaves = list(leaves)
        self.given = given
        self.places = places
        self.values = values
        self.results: list[Traced] = []
        self.structure: Tree = None

    def arguments(self, values: Sequence[Traced]) -> tuple[Tree, ...]:
        """The call's arguments with these values."""
        leaves = list(self.leaves)
        for place, value in zip(self.places, values, strict=True):
            leaves[place] = value
        return tree_unflatten(self.given, leaves)

    def lifted(self, values: Sequence[SSAValue], like: Sequence[Traced] | None = None) -> list[Traced]:
        histories = [one.history for one in (self.values if like is None else like)]
        return [traced(value, one, current()) for value, one in zip(values, histories, strict=True)]

    def checked(self, found: Sequence[Tree], like: Sequence[Traced], what: str) -> list[SSAValue | None]:
        """What a rule gives for values, of their shapes and dtypes; None stands for zeros."""
        if len(found) != len(like):
            raise TesseraError(
                f"{self.name}: {what} gives {len(found)} values for {len(like)}",
                hint="give one for each, nested as the values are; None for zeros",
            )
        given: list[SSAValue | None] = []
        for leaf, value in zip(found, like, strict=True):
            if leaf is None:
                given.append(None)
                continue
            one = primitives.lift(leaf)
            one = primitives.cast(one, value.dtype) if one.weak else one
            if one.sizes != value.sizes or one.dtype is not value.dtype:
                raise (ShapeError if one.sizes != value.sizes else DtypeError)(
                    f"{self.name}: {what} gives other shapes or dtypes than the values have that they belong to",
                    shapes=[f"expected: {shown(value)[0]}", f"given: {shown(one)[0]}"],
                    story=one.history.lines(),
                    hint="sum or broadcast it to the shape, and cast it",
                )
            given.append(one.value)
        return given


def _leaves(tree: Tree) -> list[Tree]:
    """Leaves of a tree, in which None is one."""
    import optree

    return optree.tree_leaves(tree, none_is_leaf=True, namespace="tessera")


class custom_jvp(CustomDerivatives):  # noqa: N801  (a decorator)
    """A function with a rule of its own for tangents, from which both ways of derivatives follow.

        @ts.custom_jvp
        def log1pexp(x):
            return ts.log(1 + ts.exp(x))

        @log1pexp.defjvp
        def rule(primals, tangents):
            (x,), (t,) = primals, tangents
            return log1pexp(x), t * ts.sigmoid(x)

    The second that the rule gives is linear in the tangents.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._rule: Function | None = None

    def defjvp(self, rule: Function) -> Function:
        """Sets the rule: from tuples of arguments and of their tangents to a pair of the result and its tangent."""
        self._rule = rule
        return rule

    def rule(self, call: _Call) -> customs.CustomRule:
        rule = self._rule
        if rule is None:
            raise TesseraError(f"{self.name} is a custom_jvp without a rule", hint=f"@{self.name}.defjvp gives it one")

        def write(block: Block, primals: Sequence[SSAValue], tangents: Sequence[SSAValue]) -> Both:
            with current().writing(block, [*primals, *tangents]):
                along: list[Tree] = [0.0] * len(call.leaves)
                for place, value in zip(call.places, call.lifted(tangents), strict=True):
                    along[place] = value
                given = call.arguments(call.lifted(primals))
                pair = rule(given, tree_unflatten(call.given, along))
                if not is_tuple(pair, 2):
                    raise TesseraError(
                        f"{self.name}: the rule of a custom_jvp gives a pair of the result and its tangent",
                        hint="return result, tangent",
                    )
                values, found = (call.checked(_leaves(one), call.results, "the rule of custom_jvp") for one in pair)
                return [one for one in values if one is not None], [
                    primitives.constant(0, value.sizes, value.dtype).value if one is None else one
                    for one, value in zip(found, call.results, strict=True)
                ]

        return customs.CustomRule(self.name, jvp=write)


class custom_vjp(CustomDerivatives):  # noqa: N801  (a decorator)
    """A function with a rule of its own for cotangents.

        @ts.custom_vjp
        def clipped(x):
            return x

        clipped.defvjp(lambda x: (x, None), lambda residuals, g: (ts.clip(g, -1, 1),))

    The first function of `defvjp` gives the result and residuals, of any structure; the second takes residuals and the
    cotangent of the result, and gives those of all arguments, None for zeros.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._rules: tuple[Function, Function] | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Sets the two functions."""
        self._rules = forward, backward

    def rule(self, call: _Call) -> customs.CustomRule:
        if self._rules is None:
            raise TesseraError(
                f"{self.name} is a custom_vjp without rules", hint=f"{self.name}.defvjp(forward, backward) gives them"
            )
        forward, backward = self._rules
        kept: list[tuple[Tree, list[Tree], list[int]]] = []

        def go(block: Block, primals: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
            with current().writing(block, primals):
                pair = forward(*call.arguments(call.lifted(primals)))
                if not is_tuple(pair, 2):
                    raise TesseraError(
                        f"{self.name}: the forward function of a custom_vjp gives a pair of the result and residuals",
                        hint="return result, residuals",
                    )
                found = call.checked(_leaves(pair[0]), call.results, "the forward function of custom_vjp")
                results = [one for one in found if one is not None]
                leaves, structure = tree_flatten(pair[1])
                places = [index for index, leaf in enumerate(leaves) if _is_value(leaf)]
                values = [tensor(leaves[index]) for index in places]
                kept[:] = [(structure, leaves, places)]
                return results, [one.value for one in values]

        def back(block: Block, residuals: Sequence[SSAValue], cotangents: Sequence[SSAValue]) -> list[SSAValue | None]:
            with current().writing(block, [*residuals, *cotangents]):
                structure, leaves, places = kept[0]
                rebuilt = list(leaves)
                for place, value in zip(places, residuals, strict=True):
                    sizes = types.graph_type(value).shape
                    rebuilt[place] = traced(value, ShapeHistory("residual", sizes), current())
                given = tree_unflatten(call.structure, call.lifted(cotangents, call.results))
                found = backward(tree_unflatten(structure, rebuilt), given)
                if not is_tuple(found):
                    raise TesseraError(
                        f"{self.name}: the backward function of a custom_vjp gives a tuple, one for each argument",
                        hint="return (cotangent,), None for zeros",
                    )
                return call.checked(self._of_values(call, found), call.values, "the backward function of custom_vjp")

        return customs.CustomRule(self.name, forward=go, backward=back)

    def _of_values(self, call: _Call, found: tuple[Tree, ...]) -> list[Tree]:
        """The cotangents of an argument's values; None for a whole argument stands for zeros of all of it."""
        args = tree_unflatten(call.given, call.leaves)
        if len(found) != len(args):
            raise TesseraError(
                f"{self.name}: the backward function of custom_vjp gives {len(found)} cotangents for {len(args)} "
                "arguments",
                hint="give one for each, None for zeros",
            )
        leaves: list[Tree] = []
        for one, argument in zip(found, args, strict=True):
            count = len(tree_flatten(argument)[0])
            leaves += [None] * count if one is None else _leaves(one)
        return [leaves[place] for place in call.places] if len(leaves) == len(call.leaves) else leaves
