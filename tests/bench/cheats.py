"""A small honest benchmark, and implementations of it that cheat, crash, hang or eat memory."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

import numpy as np

from tessera.bench import OperatorBenchmark, implementation, register

ROWS = {"rows": 256, "cols": 256}


def product(a: Any, b: Any) -> Any:
    return a @ b


class Later:
    """A result that is computed when it is looked at."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.dtype = a, b, a.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.a @ self.b


class _Product(OperatorBenchmark):
    """a·b, honestly."""

    description = "a product"
    precisions = ("f32",)
    sizes = (ROWS,)
    quick = (ROWS,)

    def shapes(self, size: Any) -> list[tuple[int, ...]]:
        return [(size["rows"], size["cols"]), (size["cols"], size["cols"])]

    def truth(self, size: Any, rows: Any, *inputs: Any) -> Any:
        return inputs[0][rows] @ inputs[1]

    def flops(self, size: Any) -> float:
        return 2.0 * size["rows"] * size["cols"] ** 2

    @implementation("numpy")
    def honest(self, size: Any, precision: Any) -> Any:
        return product


@register
class HonestBenchmark(_Product):
    name = "product_honest"

    @implementation("numpy")
    def again(self, size: Any, precision: Any) -> Any:
        return product


@register
class CheatsBenchmark(_Product):
    name = "product_cheats"

    @implementation("numpy")
    def cached(self, size: Any, precision: Any) -> Any:
        """Returns what it returned the first time."""
        kept: list[Any] = []

        def call(a: Any, b: Any) -> Any:
            if not kept:
                kept.append(a @ b)
            return kept[0]

        return call

    @implementation("numpy")
    def skips_repeats(self, size: Any, precision: Any) -> Any:
        """Computes once for each pair of arrays that it is given."""
        seen: dict[tuple[int, int], Any] = {}

        def call(a: Any, b: Any) -> Any:
            key = (a.__array_interface__["data"][0], b.__array_interface__["data"][0])
            if key not in seen:
                seen[key] = a @ b
            return seen[key]

        return call

    @implementation("numpy")
    def finishes_later(self, size: Any, precision: Any) -> Any:
        """Gives the work to a thread and returns at once."""

        def call(a: Any, b: Any) -> Any:
            out = np.zeros((size["rows"], size["cols"]), np.float32)

            def work() -> None:
                time.sleep(0.002)
                np.matmul(a, b, out=out)

            threading.Thread(target=work, daemon=True).start()
            return out

        return call

    @implementation("numpy")
    def finishes_soon(self, size: Any, precision: Any) -> Any:
        """The same without waiting, as fast as it can."""

        def call(a: Any, b: Any) -> Any:
            out = np.zeros((size["rows"], size["cols"]), np.float32)
            threading.Thread(target=np.matmul, args=(a, b), kwargs={"out": out}, daemon=True).start()
            return out

        return call

    @implementation("numpy")
    def promises(self, size: Any, precision: Any) -> Any:
        """Returns something that computes when it is looked at."""
        return Later

    @implementation("numpy")
    def lower_precision(self, size: Any, precision: Any) -> Any:
        """Computes in half precision and returns single."""

        def call(a: Any, b: Any) -> Any:
            return (a.astype(np.float16).astype(np.float32) @ b.astype(np.float16).astype(np.float32)).astype(
                np.float32
            )

        return call

    @implementation("numpy")
    def returns_half(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            return (a @ b).astype(np.float16)

        return call

    @implementation("numpy")
    def skips_the_last_rows(self, size: Any, precision: Any) -> Any:
        """Leaves out a sixteenth of the work."""

        def call(a: Any, b: Any) -> Any:
            out = np.zeros((size["rows"], size["cols"]), np.float32)
            most = size["rows"] * 15 // 16
            np.matmul(a[:most], b, out=out[:most])
            return out

        return call


@register
class ClevererBenchmark(_Product):
    name = "product_cleverer"

    @implementation("numpy")
    def works_ahead(self, size: Any, precision: Any) -> Any:
        """Computes for all arrays it has ever been given, whenever it finds one that it has no result for."""
        known: dict[int, tuple[Any, Any]] = {}
        ahead: dict[tuple[Any, ...], Any] = {}
        CHEATED["calls"] = CHEATED["hits"] = 0

        def mark(a: Any, b: Any) -> tuple[Any, ...]:
            return a.ctypes.data, float(a[0, 0]), float(a[-1, -1]), float(b[0, 0]), float(b[-1, -1])

        def call(a: Any, b: Any) -> Any:
            key = mark(a, b)
            CHEATED["calls"] += 1
            CHEATED["hits"] += key in ahead
            if key not in ahead:
                known[a.ctypes.data] = a, b
                ahead.clear()
                ahead.update({mark(x, y): x @ y for x, y in known.values()})
            return ahead[key]

        return call

    @implementation("numpy")
    def changes_inputs(self, size: Any, precision: Any) -> Any:
        """Makes the truth easy."""

        def call(a: Any, b: Any) -> Any:
            b.fill(0)
            return np.zeros((size["rows"], size["cols"]), np.float32)

        return call

    @implementation("numpy")
    def remembers_contents(self, size: Any, precision: Any) -> Any:
        """Looks up what it has computed before by what is in the arrays."""
        seen: dict[bytes, Any] = {}
        CHEATED["calls"] = CHEATED["hits"] = 0

        def call(a: Any, b: Any) -> Any:
            key = a[0].tobytes() + b[0].tobytes()
            CHEATED["calls"] += 1
            CHEATED["hits"] += key in seen
            if key not in seen:
                seen[key] = a @ b
            return seen[key]

        return call

    @implementation("numpy")
    def computes_now_and_then(self, size: Any, precision: Any) -> Any:
        """Honest in its first calls and in one of four after that."""
        calls: list[int] = []

        def call(a: Any, b: Any) -> Any:
            calls.append(1)
            if len(calls) < 10 or len(calls) % 4 == 0:
                return a @ b
            return np.zeros((size["rows"], size["cols"]), np.float32)

        return call

    @implementation("numpy")
    def leaves(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            raise SystemExit(3)

        return call


CHEATED = {"calls": 0, "hits": 0}


def _half_speed(real: Any) -> Any:
    return lambda: real() // 2


@register
class TimerBenchmark(_Product):
    name = "product_timer"

    @implementation("numpy")
    def patches_time(self, size: Any, precision: Any) -> Any:
        """Replaces the clock that a benchmark is expected to use."""
        time.perf_counter_ns = _half_speed(time.perf_counter_ns)
        return product

    @implementation("numpy")
    def patches_ours(self, size: Any, precision: Any) -> Any:
        """Replaces our own."""
        from tessera.bench.instruments import clock

        clock.now = _half_speed(clock.now)
        return product


@register
class FailingBenchmark(_Product):
    name = "product_failing"

    @implementation("numpy")
    def raises(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            raise RuntimeError("no such luck")

        return call

    @implementation("numpy")
    def crashes(self, size: Any, precision: Any) -> Any:
        calls: list[int] = []

        def call(a: Any, b: Any) -> Any:
            calls.append(1)
            if len(calls) > 10:  # in the middle of sampling
                ctypes.string_at(0)
            return a @ b

        return call

    @implementation("numpy")
    def exits(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            os._exit(7)

        return call

    @implementation("numpy")
    def eats_memory(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            return np.ones((1 << 60,), np.uint8)  # more than any address space has

        return call

    @implementation("numpy")
    def eats_memory_slowly(self, size: Any, precision: Any) -> Any:
        kept: list[Any] = []

        def call(a: Any, b: Any) -> Any:
            while True:  # until the limit of the worker says no; nothing is written, so nothing is really used
                kept.append(np.empty((1 << 30,), np.uint8))

        return call


@register
class HangingBenchmark(_Product):
    name = "product_hanging"

    @implementation("numpy")
    def hangs(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            time.sleep(3600)

        return call


@register
class SlowBenchmark(_Product):
    """Takes long enough to be interrupted."""

    name = "product_slow"
    sizes = (ROWS, {"rows": 128, "cols": 256}, {"rows": 64, "cols": 256})

    @implementation("numpy")
    def slow(self, size: Any, precision: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            time.sleep(0.01)
            return a @ b

        return call
