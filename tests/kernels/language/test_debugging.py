"""Stopping in a debugger while a kernel runs, and seeing its tiles."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.stdlib import typed_attention


@kernel.schedule(Schedule(block=(2, 2)))
def watched(x: Any):
    y = tile.load(x)
    tile.breakpoint(y, y * 2.0)
    return y


def test_a_debugger_stops_in_every_program_instance_and_sees_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[dict[str, Any]] = []

    def hook() -> None:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        stops.append(dict(frame.f_back.f_locals))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    x = ts.asarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    watched(x)
    assert [stop["program"] for stop in stops] == [(0,), (1,)]
    for number, stop in enumerate(stops):
        rows = x.numpy()[2 * number : 2 * number + 2]
        assert np.array_equal(stop["tiles"][0], rows)
        assert np.array_equal(stop["tiles"][1], rows * 2)
        assert stop["source"].file == __file__
        assert stop["source"].excerpt().splitlines()[0].endswith("tile.breakpoint(y, y * 2.0)")


def test_rows_with_everything_masked_have_no_share_and_no_nan() -> None:
    q = ts.randn((1, 8, 16), ts.bf16, seed=1)
    found, shares = typed_attention(q, q[:, :0], q[:, :0], causal=False)
    assert (found.numpy() == 0).all()
    assert (shares.numpy() == -np.inf).all()
