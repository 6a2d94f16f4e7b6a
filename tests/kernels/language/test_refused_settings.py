"""Checks that what kernels and schedules cannot mean is refused at the user's line, and hints in vain are told."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tessera as ts
from tessera import (
    AutotuneError,
    CompileError,
    ResourceError,
    Schedule,
    TesseraError,
    TesseraWarning,
    errors,
    kernel,
    knobs,
    tile,
)
from tessera.tile.language.schedule import space

BAD_NUMBERS: list[Any] = [0, -1, -5, True, False, 2.0, math.nan, math.inf, "8", b"8", [8], 1j]


def doubled(x: Any) -> Any:
    return tile.load(x) * 2.0


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(errors, "_told", set[str]())
    # What is on the disk is not traced again.
    with warnings.catch_warnings(), knobs.cache_dir.using(tmp_path):
        warnings.simplefilter("error", TesseraWarning)
        yield


@pytest.mark.parametrize("name", ["warps", "stages", "vector", "d"])
@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1 << 70], ids=repr)
def test_numbers_of_schedules(name: str, value: Any) -> None:
    if name == "d" and value == 1 << 70:
        return  # any width fits, unless it is said otherwise
    with pytest.raises(ResourceError, match=name):
        Schedule(**{name: value})
    with pytest.raises(TesseraError):
        getattr(space(), name, space().block)(**{"values": [value]} if name != "d" else {"d": [value]}).first()


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1 << 70], ids=repr)
def test_blocks(value: Any) -> None:
    with pytest.raises(ResourceError, match="block"):
        Schedule(block=(value,))
    with pytest.raises(ResourceError, match=r"block|tile of"):
        Schedule(block=(64, value))
    with pytest.raises(AutotuneError):
        space().block(m=[64], n=[value]).first()


@pytest.mark.parametrize("block", [64, "64", 0, (1, 2, 3, 4), math.nan, {"m"}], ids=repr)
def test_what_is_no_block(block: Any) -> None:
    with pytest.raises(ResourceError, match="block"):
        Schedule(block=block)


@pytest.mark.parametrize("value", ["XOR", "", "rotate", 1, True], ids=repr)
def test_swizzles(value: Any) -> None:
    with pytest.raises(ResourceError, match="swizzle must be none or xor"):
        Schedule(swizzle=value)
    with pytest.raises(AutotuneError, match="swizzle of a schedule space"):
        space().swizzle([value])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(({"metric": one}, "unknown metric") for one in ("bananas", "", None, 3, "Latency_ms")),
        *(({"budget_ms": one}, "budget_ms is a number") for one in BAD_NUMBERS if one != 2.0),
        *(({"cache": one}, "cache is the path") for one in ("", 3, True, b"x")),
        ({"space": {"BM": [64], "BX": [1]}}, "unknown choice"),
        ({"space": {"BM": []}}, "no values for m"),
        ({"space": {"BM": [-64]}}, "m of a schedule space is a positive integer"),
        ({"space": {"BM": [64], "warps": [3]}}, "no valid point"),
    ],
    ids=repr,
)
def test_what_cannot_be_tuned(given: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"space": {"BM": [64]}, **given}
    with pytest.raises(AutotuneError, match=said) as caught:
        kernel.autotune(**arguments)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert caught.value.hint


@pytest.mark.parametrize("schedule", [64, "fast", {"block": 64}, (64, 64)], ids=repr)
def test_what_is_no_schedule(schedule: Any) -> None:
    with pytest.raises(CompileError, match=r"kernel\.schedule takes a Schedule"):
        kernel.schedule(schedule)
    with pytest.raises(CompileError, match="with_schedule takes a Schedule"):
        kernel(doubled).with_schedule(schedule)
    with pytest.raises(CompileError, match="@kernel takes a Schedule"):
        kernel(doubled, schedule=schedule)


def test_errors_of_changed_schedules_are_at_the_line_that_changes_them() -> None:
    with pytest.raises(ResourceError, match="warps must be a power of two") as caught:
        Schedule().with_warps(3)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


@kernel
def tripled(
    x: Any, *, memory: Any = None, vector: Any = None, prefetch: Any = None, ahead: Any = None, stored: Any = None
):
    y, row = tile.zeros((4, 4)), 0
    for i in tile.range(0, 4, 4, prefetch=ahead):
        y = y + tile.load(x, at=(i, 0), shape=(4, 4), memory=memory, vector=vector, prefetch=prefetch) * 3.0
    tile.store(x, y, at=(row, 0), vector=stored)


def test_hints_for_gpus_are_told_by_kernels_for_cpus() -> None:
    """The specification's own schedule runs; its author can learn what it does not do here."""
    fresh = kernel(tripled.function, schedule=Schedule(block=(16, 16), warps=8, stages=3, vector=8, swizzle="none"))
    x = ts.ones((4, 4))
    with knobs.backend.using("cpu"):
        fresh[1](x, memory="smem", prefetch=2)
    assert x.tolist() == [[3.0] * 4] * 4
    told = str(fresh.explain())
    reason = "it is a hint for GPUs: a processor's caches and the width of its vectors decide"
    for hint in ("swizzle=none", "memory=smem", "prefetch=2", "vector=8 in 2 places"):
        assert f"{hint}: {reason}" in told


HINTS: list[tuple[dict[str, Any], str]] = [
    ({"memory": "l2"}, 'memory of tile.load is "smem" or "registers", got \'l2\''),
    ({"memory": 1}, 'memory of tile.load is "smem" or "registers", got 1'),
    ({"vector": 3}, "vector is a power of two, got 3"),
    ({"vector": 0}, "vector must be positive, got 0"),
    ({"stored": 6}, "vector is a power of two, got 6"),
    ({"stored": "wide"}, "vector must be an integer known now, got 'wide'"),
    ({"prefetch": 0}, "prefetch must be positive, got 0"),
    ({"prefetch": True}, "prefetch must be an integer known now, got True"),
    ({"ahead": 0}, "prefetch must be positive, got 0"),
    ({"ahead": 1.5}, "prefetch must be an integer known now, got 1.5"),
]


@pytest.mark.parametrize(("hints", "message"), HINTS)
def test_what_is_no_hint(hints: dict[str, Any], message: str) -> None:
    with pytest.raises(TesseraError, match=re.escape(message)) as found:
        tripled[1](ts.ones((4, 4)), **hints)
    assert found.value.span is not None
    assert found.value.span.file == __file__


def test_a_store_under_a_mask_has_no_vector() -> None:
    @kernel
    def masked(x: Any):
        tile.store(x, tile.zeros((4, 4)), at=(0, 0), mask=tile.iota(4)[:, None] < tile.iota(4), vector=2)

    with pytest.raises(CompileError, match="a store under a mask has no vector"):
        masked[1](ts.ones((4, 4)))
