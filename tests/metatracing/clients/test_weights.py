"""Weights in tiers: how they lie is a fact, what is in them never is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Tensor, jit, kernel, knobs, tile
from tessera.metatracing import GuardType, ManualClock, MetaTracingRuntime, RuntimeConfig
from tessera.tile.calls.settings import settings

HAS_CODE = settings() is not None
EAGER: dict[str, Any] = {
    "background_compilation": False,
    "sample_period": 0,
    "tier2_compilation_threshold_ms": 0.0,
    "tier3_specialization_threshold_ms": 0.0,
    "contest_rounds": 1,
    "candidates": 1,
    "bridge_calls": 1,
}


@kernel
def scaled_rows(x: Any, w: Any):
    return tile.load(x) * tile.load(w)


@pytest.fixture(name="runtime")
def _runtime(tmp_path: Path) -> Iterator[MetaTracingRuntime]:
    """One whose clients reach the next tier at every call: time stands still."""
    with knobs.cache_dir.using(tmp_path):
        yield MetaTracingRuntime(RuntimeConfig(**EAGER), clock=ManualClock())


def layouts(rows: int, columns: int) -> dict[str, Tensor]:
    """One weight, lying in several ways."""
    plain = ts.randn((rows, columns), seed=3)
    wide = ts.randn((rows, 2 * columns), seed=4)
    wide[:, ::2] = plain
    tall = ts.randn((2 * rows, columns), seed=5)
    tall[::2] = plain
    return {
        "plain": plain,
        "by columns": ts.from_numpy(np.asfortranarray(plain.numpy())),
        "every other column": wide[:, ::2],
        "every other row": tall[::2],
        "backwards": ts.from_numpy(np.ascontiguousarray(plain.numpy()[::-1]))[::-1],
    }


def test_a_weight_that_lies_otherwise_is_refused_by_a_guard(runtime: MetaTracingRuntime) -> None:
    run, x = runtime.tiered(scaled_rows), ts.randn((6, 8), seed=1)
    weights = layouts(6, 8)

    def check(name: str) -> int:
        found, tier = run.call_with_tier(x, weights[name])
        np.testing.assert_array_equal(found.numpy(), x.numpy() * weights["plain"].numpy())
        return int(tier)

    reached = [check("plain") for _ in range(30)]
    if not HAS_CODE:
        return
    assert reached[-1] == 3
    (site,) = runtime.sites()
    special = site.programs[0]
    assert any(
        one.guard_type is GuardType.STRIDE_GUARD and one.word.startswith("w.") for one in special.compiled.guards
    )
    for name in ("by columns", "every other column"):
        assert not special.serves((x, weights[name])), name
    for name in weights:  # at whatever tier: code that makes no use of a stride serves any
        check(name)
    failures = runtime.get_runtime_stats().guard_failures
    assert any(word.startswith("w.stride") for word in failures)
    assert check("plain") == 3


@pytest.mark.parametrize("name", ["plain", "by columns", "every other column", "every other row", "backwards"])
def test_functions_take_weights_as_they_lie(runtime: MetaTracingRuntime, name: str) -> None:
    @jit(tiers=runtime)
    def layer(x: Any, params: dict[str, Any]) -> Any:
        return x @ params["w"]

    x, weights = ts.randn((5, 6), seed=1), layouts(6, 8)
    for layout in ("plain", name, "plain", name):
        for _ in range(12):
            found = layer(x, {"w": weights[layout]}).numpy().astype(np.float64)
            exact = x.numpy().astype(np.float64) @ weights["plain"].numpy()
            assert np.linalg.norm(found - exact) <= 2e-6 * np.linalg.norm(exact)


def test_what_is_in_a_weight_is_no_fact(runtime: MetaTracingRuntime) -> None:
    """No copy is kept: what is written into a weight counts from the next call on, at every tier."""
    w = ts.ones((4, 4))

    @jit(tiers=runtime)
    def captured(x: Any) -> Any:
        return x @ w

    x, run = ts.ones((3, 4)), runtime.tiered(scaled_rows)
    for number in range(30):
        w.numpy()[...] = number  # without a call that says so
        assert captured(x).numpy()[0, 0] == 4 * number
        assert run(ts.ones((4, 4)), w).numpy()[0, 0] == number
    assert runtime.counts["invalidations"] == 0
