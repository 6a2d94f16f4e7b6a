"""Fixtures of several tests of tiers."""

from __future__ import annotations

from typing import Any

import pytest

from tessera.tiers.tiered import Tiered


@pytest.fixture(name="slow_calls")
def _slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of tiered calls that took the slow path."""
    calls: list[Any] = []
    slow_path = Tiered.slow_path

    def noted(self: Tiered, args: Any, kwargs: Any) -> Any:
        calls.append(args)
        return slow_path(self, args, kwargs)

    monkeypatch.setattr(Tiered, "slow_path", noted)
    return calls
