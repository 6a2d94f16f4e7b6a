"""The tracer at work, which intrinsics and control flow build the program with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tessera.tile.language.values import operations

if TYPE_CHECKING:
    from tessera.tile.language.tracer import Tracer


def tracer() -> Tracer:
    """The tracer at work; an intrinsic outside a kernel is an error."""
    work = operations()
    # Tracers take the IR, which a process that only runs what it finds on the disk does without.
    from tessera.tile.language.tracer import Tracer

    assert isinstance(work, Tracer)
    return work
