"""`@operator`: a function over tensors that is part of a trace inside `jit`, and compiled by itself outside.

Its body is written over primitives. A parameter annotated `Array` takes tensors and numbers, which are arguments;
all other parameters are static.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tessera.errors import TesseraError, caller_span
from tessera.lang.jit import Jitted
from tessera.lang.spellings import as_known, by_name
from tessera.lang.tracing.effects import pure
from tessera.lang.tracing.values import Traced, current_or_none, shown, stories
from tessera.runtime.tensor.pytree import tree_leaves
from tessera.tracebacks import trim

P = ParamSpec("P")
R = TypeVar("R")
_TRACED = re.compile(r"\bTraced\b")


def operator(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function over tensors as an operator; it has no effects."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    arrays = [one.name for one in parameters if "Array" in str(one.annotation)]
    named, shown_as = by_name(signature), _as_callers_see(signature)
    name = function.__name__.lstrip("_")
    reason = f"the operator {name} is pure"

    @functools.wraps(function)
    def traced(*args: P.args, **kwargs: P.kwargs) -> R:
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Traced)]
        try:
            with pure(reason):
                result = function(*args, **kwargs)
        except TesseraError as error:
            # What the operator did on its way is its own affair: the story is that of what it was given.
            error.shapes = error.shapes or shown(*given)
            error.story = stories(given) or error.story
            raise
        except (Warning, MemoryError):
            raise
        except Exception as problem:  # of the operator's own code: nothing of a user runs here
            raise TesseraError(
                f"{name} cannot be traced for these arguments: {type(problem).__name__}: {problem}",
                shapes=shown(*given),
                story=stories(given),
                hint=f"it takes {name}{shown_as}; where the arguments are such, this is a fault of Tessera",
            ) from problem
        if given:
            _tell(name, given, result)
        return result

    # Code of calls is generated for parameters that have names.
    vars(traced)["__signature__"] = signature.replace(
        parameters=[
            one.replace(kind=one.POSITIONAL_OR_KEYWORD) if one.kind is one.POSITIONAL_ONLY else one
            for one in parameters
        ]
    )
    eager = Jitted(traced, number_parameters=arrays, name=name, identity=function, careful=True)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if kwargs and not named.issuperset(kwargs):
                given, options = as_known(name, shown_as, args, kwargs)
                again: Callable[..., R] = call
                return again(*given, **options)
            return traced(*args, **kwargs) if current_or_none() is not None else eager(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    vars(call)["__signature__"] = shown_as
    vars(call)["eager"] = eager  # for those who look inside
    return call


class _Written(str):
    """An annotation that `help` shows as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _as_callers_see(signature: inspect.Signature) -> inspect.Signature:
    """A signature for callers of an operator: what is traced inside of it is a tensor for them."""

    def written(annotation: Any) -> Any:
        text = annotation if isinstance(annotation, str) else None
        return annotation if text is None else _Written(_TRACED.sub("Tensor", text))

    parameters = [one.replace(annotation=written(one.annotation)) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=written(signature.return_annotation))


def operator_called(name: str, said: str, function: Callable[P, R]) -> Callable[P, R]:
    """Makes an operator of one of several functions that are written once; `said` is its docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = said
    return operator(function)


def _tell(name: str, given: list[Traced], result: Any) -> None:
    """In the story of a value an operator is one step, whatever primitives it took."""
    span = caller_span()
    for value in tree_leaves(result):
        if isinstance(value, Traced) and not any(value is one for one in given):
            value.history = given[0].history.step(name, value.sizes, span)
