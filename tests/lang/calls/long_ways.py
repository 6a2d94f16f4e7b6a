"""Calls that generated code has nothing for, noted as they are made."""

from __future__ import annotations

from typing import Any

from tessera.lang.jit import Jitted


def slow_calls(function: Jitted) -> list[Any]:
    """Notes the calls that go the long way."""
    calls: list[Any] = []
    quick = function.quicks[-1]
    slowly = quick.slowly

    def noted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return slowly(*args, **kwargs)

    quick.slowly = noted
    return calls
