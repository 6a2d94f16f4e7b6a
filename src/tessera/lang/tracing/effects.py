"""Effects of traced code: which are allowed where, and at whose line one is not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from tessera.errors import EffectError
from tessera.lang.tracing.values import current

_pure: ContextVar[tuple[str, ...]] = ContextVar("pure", default=())


@contextmanager
def pure(reason: str) -> Generator[None]:
    """No effects meanwhile; `reason` says why, such as "the operator gelu is declared pure"."""
    token = _pure.set((*_pure.get(), reason))
    try:
        yield
    finally:
        _pure.reset(token)


def allow(effect: str, what: str) -> None:
    """Notes an effect of the function that is traced, or refuses it here."""
    reasons = _pure.get()
    if reasons:
        raise EffectError(
            f"{what} has the effect {effect}, which is not allowed here: {reasons[-1]}",
            hint="move the effect outside, or pass what it gives as an argument",
        )
    current().effects[effect] = None
