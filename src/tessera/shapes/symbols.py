"""Symbols from shapes, quickly: for signatures in which each symbol is a size by itself somewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tessera.cached_property import cached_property
from tessera.shapes.expr import NAME, Dim, Shape, dim, evaluator

_WHOLE = """
def whole(shapes):
    try:
        {takes}
        return {{{listed}}} if {agrees} else None
    except (TypeError, IndexError):  # a shape is missing, or too short
        return None
"""


class Symbols:
    """The shapes of a signature; None for arguments without one."""

    def __init__(self, shapes: Iterable[Shape | None]) -> None:
        self.shapes = tuple(shapes)
        # Where each symbol is a size by itself for the first time: argument, axis, name.
        self.positions: list[tuple[int, int, str]] = []
        known: set[str] = set()
        for index, shape in enumerate(self.shapes):
            for axis, size in enumerate(shape or ()):
                name = str(size)
                if isinstance(size, Dim) and name.isidentifier() and name not in known:
                    known.add(name)
                    self.positions.append((index, axis, name))

    @cached_property
    def _whole(self) -> Callable[[Sequence[tuple[int, ...] | None]], dict[str, int] | None]:
        """`quick` for shapes of all arguments, as code."""
        known = {name: f"n{number}" for number, (_, _, name) in enumerate(self.positions)}
        takes = [f"n{number} = shapes[{index}][{axis}]" for number, (index, axis, _) in enumerate(self.positions)]
        agrees = ["True"]
        for index, shape in enumerate(self.shapes):
            if shape is None:
                continue
            if not all(dim(size).symbols <= known.keys() for size in shape):
                return lambda shapes: None
            sizes = [NAME.sub(lambda one: known[one[0]], str(size)) for size in shape]
            agrees.append(f"tuple(shapes[{index}]) == ({''.join(f'{size}, ' for size in sizes)})")
        listed = ", ".join(f"{name!r}: {number}" for name, number in known.items())
        scope: dict[str, Any] = {}
        exec(_WHOLE.format(takes="; ".join(takes) or "pass", agrees=" and ".join(agrees), listed=listed), scope)
        return scope["whole"]

    def quick(self, shapes: Sequence[tuple[int, ...] | None]) -> dict[str, int] | None:
        """The values of the symbols, if each stands alone and all sizes agree; None where the slow way must decide.

        Fewer shapes than the signature has are its first.
        """
        count = len(shapes)
        if count == len(self.shapes):
            return self._whole(shapes)
        found: dict[str, int] = {}
        for index, axis, name in self.positions:
            if index < count:
                shape = shapes[index]
                if shape is None or axis >= len(shape):
                    return None
                found[name] = shape[axis]
        try:
            for expected, shape in zip(self.shapes, shapes, strict=False):
                if expected is not None and (shape is None or evaluator(expected)(found) != tuple(shape)):
                    return None
        except KeyError:
            return None
        return found
