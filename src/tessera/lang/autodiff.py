"""`autodiff`: a decorator that gives a function its derivatives as methods."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tessera.lang.derivatives import Function, Tree, grad, jvp, value_and_grad, vjp
from tessera.lang.jit import Jitted


class Differentiable:
    """A function with its derivatives as methods."""

    def __init__(self, function: Function) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Tree, **kwargs: Tree) -> Tree:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<autodiff {getattr(self.function, '__name__', self.function)}>"

    def grad(self, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Jitted:
        """See `tessera.grad`."""
        return grad(self.function, argnums, has_aux)

    def value_and_grad(self, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Jitted:
        """See `tessera.value_and_grad`."""
        return value_and_grad(self.function, argnums, has_aux)

    def vjp(self, *primals: Tree) -> Tree:
        """See `tessera.vjp`."""
        return vjp(self.function, *primals)

    def jvp(self, primals: Sequence[Tree], tangents: Sequence[Tree]) -> Tree:
        """See `tessera.jvp`."""
        return jvp(self.function, primals, tangents)


class _Autodiff:
    """The decorator. `jit @ autodiff`, as the lines `@jit @autodiff` read, is one after the other."""

    __name__ = "autodiff"

    def __call__(self, function: Function) -> Differentiable:
        """Gives a function `.grad()`, `.value_and_grad()`, `.vjp()` and `.jvp()`."""
        return Differentiable(function)

    def __rmatmul__(self, outer: Function) -> Function:
        def both(function: Function) -> Differentiable:
            return Differentiable(outer(function))

        return both

    def __repr__(self) -> str:
        return "<decorator autodiff>"


autodiff = _Autodiff()
