"""`tessera.verify`: promises of a kernel about its numbers, proven before it runs or checked while it does.

A verified kernel is a kernel. A promise that intervals prove costs nothing at run time; the others are checked by
running the program in the interpreter, whatever the target, so that a violation names the op, the source line, the
program instance and the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast, overload

from tessera.errors import CompileError
from tessera.interpreters.sanitizers.checks import NumericChecks, asked, checking
from tessera.tile.calls.function import Kernel, kernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.interpreting import interpret
from tessera.tile.calls.numerics import Limits, Numerics, Report
from tessera.tile.identity.pickling import Made

__all__ = ["Numerics", "Report", "Verified", "numerics"]


class Verified(Kernel):
    """A kernel whose numbers are verified at every call."""

    def __init__(self, base: Kernel, promises: Numerics) -> None:
        super().__init__(base.function)
        # Forms under a grid are kept by each kernel for itself: those of the base are not verified.
        vars(self).update(vars(base), _grids={})
        self.promises = promises
        # By the number of the instance, which lives as long as its kernel.
        self._reports: dict[int, Report] = {}

    @property
    def description(self) -> str:
        return f"{super().description}, verified to be {self.promises}"

    def as_made(self) -> Made:
        make, (function, form) = super().as_made()
        return _verified_again, (function, make, form, self.promises)

    def verification(self, *args: Any, **kwargs: Any) -> Report:
        """Which promises are proven for the program of these arguments, and which are checked when it runs."""
        return self._report(self._instance_for(args, kwargs)[0])

    def _report(self, instance: Instance) -> Report:
        from tessera.tile.calls.proofs import prove

        if id(instance) not in self._reports:
            self._reports[id(instance)] = prove(self.promises, instance)
        return self._reports[id(instance)]

    def calling(self) -> Callable[..., Any]:
        """Every call needs its instance, which the promises are about."""
        return lambda *args, **kwargs: self.trace_and_run(args, kwargs)

    def execute(self, instance: Instance, values: Sequence[Any]) -> Any:
        """Runs an instance on its target if everything is proven, else in the interpreter, under checks."""
        from tessera.tile.calls.proofs import check_inputs, inputs_may_change

        check_inputs(self.promises, instance, values)
        proven = frozenset[str]() if inputs_may_change(instance, values) else self._report(instance).proven
        left = {check: value for check, value in self.promises.wanted.items() if check not in proven}
        if not left:
            return super().execute(instance, values)
        around = asked()
        with checking(NumericChecks(**left).beside(around.checks), trace=around.trace):
            return interpret(instance, values)


def _verified_again(
    function: Any, make: Callable[..., Kernel], form: Mapping[str, Any], promises: Numerics
) -> Verified:
    return Verified(make(function, form), promises)


@overload
def numerics(decorated: Callable[..., Any], /) -> Verified: ...
@overload
def numerics(
    *,
    stable: bool = True,
    bounded: Sequence[float] | None = None,
    inputs: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
) -> Callable[[Callable[..., Any]], Verified]: ...
def numerics(
    decorated: Callable[..., Any] | None = None,
    /,
    *,
    stable: bool = True,
    bounded: Sequence[float] | None = None,
    inputs: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
) -> Any:
    """Verifies a kernel's numbers at every call; decorates a kernel, or a function that becomes one.

    `stable`: no op makes a NaN or an infinity out of finite numbers, none underflows, and no signed integer wraps.
    `bounded`: every float that is stored or returned lies between two numbers. `inputs`: so does every float that comes
    in, or every argument that a mapping names; that is checked at the call, and proofs rest on it.
    """
    limits = None if bounded is None else _limits("bounded", bounded)
    if not stable and limits is None:
        raise CompileError(
            "verify.numerics has nothing to verify", hint="give stable=True, bounded=[low, high], or both"
        )
    promises = Numerics(bool(stable), limits, _inputs(inputs))

    def decorate(given: Callable[..., Any]) -> Verified:
        if isinstance(given, Verified):
            raise CompileError(
                f"{given.__name__} is verified already, to be {given.promises}",
                hint="give everything to one verify.numerics",
            )
        if not isinstance(given, Kernel | FunctionType):
            raise CompileError(
                f"verify.numerics decorates a kernel, got {given!r}", hint="write @verify.numerics(...) above @kernel"
            )
        made: Kernel = given if isinstance(given, Kernel) else kernel(given)
        _check_names(promises, made)
        return Verified(made, promises)

    return decorate if decorated is None else decorate(decorated)


def _limits(what: str, given: Any) -> Limits:
    pair = tuple(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else ()
    if len(pair) != 2 or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in pair):
        raise CompileError(f"{what} takes two numbers, got {given!r}", hint="write [-100, 100], for example")
    low, high = float(pair[0]), float(pair[1])
    if math.isnan(low) or math.isnan(high) or low > high:
        raise CompileError(
            f"{what} takes two numbers, the lower first, got {given!r}", hint="write [-100, 100], for example"
        )
    return low, high


def _inputs(given: Any) -> dict[str | None, Limits]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        named = cast("Mapping[str, Any]", given)
        return {name: _limits(f"inputs of {name}", limits) for name, limits in named.items()}
    return {None: _limits("inputs", given)}


def _check_names(promises: Numerics, made: Kernel) -> None:
    """Names are parameters, or attributes of one: `cache.K`."""
    known = made.signature.parameters
    for name in promises.inputs:
        if name is not None and name.split(".")[0] not in known:
            raise CompileError(
                f"inputs bounds {name}, which {made.__name__} does not take", hint=f"it takes {', '.join(known)}"
            )


def __dir__() -> list[str]:
    return sorted(__all__)
