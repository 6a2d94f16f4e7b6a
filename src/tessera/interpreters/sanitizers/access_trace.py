"""Which program instance touched which elements of which argument, where in the source, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera.errors import SourceSpan

Array = np.ndarray[Any, np.dtype[Any]]
AccessKind: TypeAlias = Literal["read", "write", "atomic"]


@dataclass(frozen=True, eq=False)
class Access:
    """One load, store or atomic of one program instance.

    `offsets` are the elements touched, in the order of the tile, counted from the argument's first element; what lies
    outside the view is left out. `step` counts the ops that the instance has run, this one included.
    """

    program: tuple[int, ...]
    span: SourceSpan | None
    kind: AccessKind
    argument: int
    offsets: Array
    step: int


class Trace(list[Access]):
    """The accesses of a run, in the order of the interpreter: one program instance after the other."""
