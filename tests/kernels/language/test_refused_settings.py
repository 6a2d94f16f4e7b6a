"""Checks that what kernels and schedules cannot mean is refused at the user's line, and that idle hints are told of."""

from __future__ import annotations

import math
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
from tessera.tile.language.schedule import UNREAD, space

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


def test_hints_that_no_target_reads_are_told_of_once_and_run() -> None:
    """The specification's own schedule runs; who wrote it learns what it does not do."""
    chosen = Schedule(block=(16, 16), warps=8, stages=3, vector=8, swizzle="xor")
    assert chosen.unread() == UNREAD
    with pytest.warns(TesseraWarning, match="no target reads vector and swizzle") as said:
        made = kernel.schedule(chosen)(doubled)
    assert said[0].filename == __file__
    assert kernel(doubled, schedule=chosen)(ts.ones((3, 4))).tolist() == [[2.0] * 4] * 3  # told before
    assert made(ts.ones((3, 4))).tolist() == [[2.0] * 4] * 3
    assert Schedule(block=(16, 16), warps=8, stages=3).unread() == ()
    kernel.schedule(Schedule(block=(16, 16), warps=8, stages=3))(doubled)


@pytest.mark.parametrize("hint", ["vector", "prefetch"])
def test_hints_of_loads_are_told_of_once(hint: str) -> None:
    def made(amount: int) -> Any:
        if hint == "vector":

            @kernel
            def loads(x: Any) -> Any:
                return tile.load(x, vector=amount) * 3.0
        else:

            @kernel
            def loads(x: Any) -> Any:
                return tile.load(x, prefetch=amount) * 3.0

        return loads

    with pytest.warns(TesseraWarning, match=f"no target reads {hint} of tile.load"):
        assert made(4)(ts.ones((5,))).tolist() == [3.0] * 5
    assert made(8)(ts.ones((5,))).tolist() == [3.0] * 5
    with pytest.raises(TesseraError, match=hint):
        made(0)(ts.ones((5,)))


def test_hints_of_loops_are_told_of_once() -> None:
    @kernel
    def summed(x: Any, y: Any) -> None:
        total = tile.zeros((4,))
        for start in tile.range(0, 8, 4, prefetch=2):
            total = total + tile.load(x, at=(start,), shape=(4,))
        tile.store(y, total, at=(0,))

    y = ts.zeros((4,))
    with pytest.warns(TesseraWarning, match=r"no target reads prefetch of tile\.range"):
        summed[1](ts.ones((8,)), y)
    assert y.tolist() == [2.0] * 4
