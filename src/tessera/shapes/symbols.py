"""Symbols from shapes, quickly: for signatures in which each symbol is a size by itself somewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tessera.shapes.expr import Dim, Shape, evaluator


class Symbols:
    """The shapes of a signature; None for arguments without one."""

    def __init__(self, shapes: Iterable[Shape | None]) -> None:
        self.shapes = tuple(shapes)
        # Where each symbol is a size by itself for the first time: argument, axis, name.
        self.places: list[tuple[int, int, str]] = []
        known: set[str] = set()
        for place, shape in enumerate(self.shapes):
            for axis, size in enumerate(shape or ()):
                name = str(size)
                if isinstance(size, Dim) and name.isidentifier() and name not in known:
                    known.add(name)
                    self.places.append((place, axis, name))

    def quick(self, shapes: Sequence[tuple[int, ...] | None]) -> dict[str, int] | None:
        """What the symbols stand for, if that is plain and all sizes agree; None where somebody has to look closely.

        Fewer shapes than the signature has are its first.
        """
        count = len(shapes)
        found: dict[str, int] = {}
        for place, axis, name in self.places:
            if place < count:
                shape = shapes[place]
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
