"""Kernels as machine code against the interpreter: odd sizes, strides, no rows at all, and programs that fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import library as lib
import numpy as np
import pytest
from specified import KVCache, flash_attention

import tessera as ts
from tessera import CompileError, DType, EffectError, Schedule, bf16, f32, i32, kernel, knobs, tile
from tessera.errors import DtypeError
from tessera.interpreters.levels import tile as tile_interpreter
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.runtime.program.executable import Executable
from tessera.tile.calls.settings import settings

Array = np.ndarray[Any, np.dtype[Any]]
Make = Callable[..., Array]

# Relative to the largest number of the result: a few roundings, of sums in another order.
TOLERANCES = {f32: 4e-6, bf16: 1.6e-2, i32: 0.0}


def plain(array: Array) -> Array:
    return array


def strided(array: Array) -> Array:
    """The same numbers, with each axis backwards and every other element of its memory."""
    backwards = (slice(None, None, -2),) * array.ndim
    memory = np.full(tuple(2 * size for size in array.shape), 77, array.dtype)
    memory[backwards] = array
    return memory[backwards]


def transposed(array: Array) -> Array:
    """The same numbers, with columns side by side."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


class Numbers:
    """Arrays of random numbers in one layout."""

    def __init__(self, dtype: DType, layout: Callable[[Array], Array]) -> None:
        self.dtype, self.layout, self.random = dtype, layout, np.random.default_rng(0)

    def __call__(self, *shape: int) -> Array:
        return self.layout(self.random.standard_normal(shape).astype(self.dtype.storage))

    def whole(self, high: int, *shape: int) -> Array:
        return self.layout(self.random.integers(0, high, shape).astype(np.int32))


def attended(new: Numbers, rows: int, width: int = 13) -> list[Array]:
    return [new(2, 4, rows, width), new(2, 2, 37, width), new(2, 2, 37, width)]


# Each call gets arrays and a number of rows; it returns its results and the arrays that it filled.
CALLS: dict[str, Callable[[Numbers, int], Any]] = {
    "saxpy": lambda new, rows: lib.saxpy(new(rows), new(rows), 1.5),
    "softmax": lambda new, rows: lib.softmax(new(rows, 13)),
    "layernorm": lambda new, rows: lib.layernorm(new(3, rows, 13), new(13), new(13)),
    "rmsnorm": lambda new, rows: lib.rmsnorm(new(rows, 33), new(33)),
    "gemm": lambda new, rows: _filling(
        lib.gemm[(rows + 31) // 32, 2], [new(rows, 21), new(21, 50), new(50), new(rows, 50)], epilogue=lib.gelu
    ),
    "transpose": lambda new, rows: _filling(lib.transpose[(rows + 63) // 64, 1], [new(rows, 13), new(13, rows)]),
    "attention": lambda new, rows: lib.attention(*attended(new, rows), mask=lib.causal),
    "window_attention": lambda new, rows: lib.window_attention(*attended(new, rows), 5),
    "softcap_attention": lambda new, rows: lib.softcap_attention(*attended(new, rows), cap=5.0),
    "alibi_attention": lambda new, rows: lib.alibi_attention(*attended(new, rows), new(8)),
    "sigmoid_attention": lambda new, rows: lib.sigmoid_attention(*attended(new, rows), -0.5),
    "mlp": lambda new, rows: lib.mlp(new(rows, 13), new(13, 50), new(50, 13)),
    "histogram": lambda new, rows: _filling(
        lib.histogram, [new.whole(7, rows), new.layout(np.zeros(7, np.int32))], bins=7
    ),
    "logsumexp": lambda new, rows: lib.logsumexp(new(rows, 100)),
    "rope": lambda new, rows: _filling(lib.rope, [new(3, rows, 14), new(3, rows, 14)]),
    "flash_attention": lambda new, rows: flash_attention(
        new(4, rows, 16), KVCache(new(4, 37, 16), new(4, 37, 16)), dropout=0.25, causal=True
    ),
}


def _filling(call: Any, arrays: Sequence[Array], **options: Any) -> Array:
    """What a kernel makes of its last argument."""
    assert call(*arrays, **options) is None
    return arrays[-1]


def results(call: Callable[[Numbers, int], Any], dtype: DType, layout: Callable[[Array], Array], rows: int) -> Array:
    found = call(Numbers(dtype, layout), rows)
    return np.asarray(found.numpy() if isinstance(found, ts.Tensor) else found)


@pytest.mark.quick(5)(
    name=[
        "saxpy",
        "softmax",
        "layernorm",
        "gemm",
        "transpose",
        "attention",
        "mlp",
        "histogram",
        "logsumexp",
        "rope",
        "flash_attention",
    ]
)
@pytest.mark.parametrize("name", CALLS)
def test_machine_code_gives_what_the_interpreter_gives(name: str) -> None:
    call, dtype = CALLS[name], bf16 if name == "flash_attention" else f32
    with knobs.interpret.using(True):
        expected = results(call, dtype, plain, 67)
    bound = TOLERANCES[i32 if expected.dtype == np.int32 else dtype] * np.abs(expected.astype(np.float64)).max()
    with knobs.backend.using("cpu"):
        for layout in (plain, strided):
            found = results(call, dtype, layout, 67)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            assert np.abs(found.astype(np.float64) - expected.astype(np.float64)).max() <= bound
        none = results(call, dtype, plain, 0)
    with knobs.interpret.using(True):
        assert np.array_equal(none, results(call, dtype, plain, 0))


@pytest.mark.quick(1)
@pytest.mark.parametrize("optimization", [0, 1, 2])
def test_every_optimization_computes_the_same(optimization: int) -> None:
    with knobs.interpret.using(True):
        expected = results(CALLS["softcap_attention"], f32, plain, 35)
    with knobs.backend.using("cpu"), knobs.optimization.using(optimization):
        for layout in (plain, strided, transposed):
            found = results(CALLS["softcap_attention"], f32, layout, 35)
            assert np.abs(found - expected).max() <= TOLERANCES[f32] * np.abs(expected).max()


@pytest.fixture(name="interpreted")
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that the interpreter runs."""
    names: list[str] = []
    run = tile_interpreter.run_kernel

    def noted(module: Any, name: str, *args: Any, **options: Any) -> None:
        names.append(name)
        run(module, name, *args, **options)

    monkeypatch.setattr(tile_interpreter, "run_kernel", noted)
    return names


@kernel
def doubled(x: Any):
    return tile.load(x) * 2


def test_the_interpreter_runs_where_it_is_asked_for(interpreted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(5, dtype=np.float32)

    def is_interpreted() -> bool:
        interpreted.clear()
        assert doubled(x).tolist() == [0, 2, 4, 6, 8]
        return interpreted == ["doubled"]

    assert not is_interpreted()
    with knobs.interpret.using(True):
        assert is_interpreted()
    with knobs.backend.using("interpreter"):
        assert is_interpreted()
    with checking(Checks.all()):
        assert is_interpreted()
    with checking(Checks(), trace=Trace()):
        assert is_interpreted()
    with checking(Checks()):
        assert not is_interpreted()
    knobs.backend.set("interpreter")
    try:
        assert is_interpreted()
    finally:
        knobs.backend.reset()
    assert not is_interpreted()


@kernel
def stopping(x: Any):
    rows = tile.load(x)
    tile.breakpoint(rows)
    return rows


@kernel
def cubed(x: Any):
    return tile.sum(tile.sum(tile.broadcast(tile.load(x)[:, None, None], (64, 2, 3)), 1), 1)


def test_tiles_of_three_axes_are_machine_code(interpreted: list[str]) -> None:
    assert cubed(np.arange(3, dtype=np.float32)).tolist() == [0, 6, 12]
    assert not interpreted


@pytest.mark.parametrize(("refused", "reason"), [(stopping, "stops in a debugger")])
def test_what_has_no_machine_code_is_interpreted(
    refused: Any, reason: str, interpreted: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    x = np.arange(3, dtype=np.float32)
    with knobs.logs.using("fallbacks"):
        first = refused(x).tolist()
        assert refused(x).tolist() == first
    assert interpreted == [refused.__name__] * 2
    (message,) = [record.getMessage() for record in caplog.records if record.name == "tessera.fallbacks"]
    assert message.startswith(f"{refused.__name__} runs in the interpreter: ")
    assert reason in message
    with knobs.backend.using("cpu"), pytest.raises(CompileError, match=reason):
        refused(x)


def test_backends_that_do_not_exist_are_refused() -> None:
    with (
        knobs.backend.using("tpu"),
        pytest.raises(ts.DeviceError, match="a backend among auto, cpu, interpreter, got 'tpu'"),
    ):
        doubled(np.ones(3, np.float32))


@kernel
def filled(x: Any, y: Any, value: float):
    tile.store(y, tile.load(x) + value)


def test_arrays_that_are_read_only_are_not_written() -> None:
    x, y = ts.ones(5), np.zeros(5, np.float32)
    filled(x, y, 1.0)
    assert (y == 2).all()
    y.flags.writeable = False
    for target in (y, ts.asarray(y)):
        for _ in range(2):
            with pytest.raises(EffectError, match="argument 1 of @filled is written, and the array given is read-only"):
                filled(x, target, 3.0)
    assert (y == 2).all()
    # Another array of the same shape and strides may be written, and this one read.
    free = np.zeros(5, np.float32)
    filled(y, free, 1.0)
    assert (free == 3).all()


def test_a_kernel_may_write_what_it_reads() -> None:
    x = np.arange(200, dtype=np.float32)
    filled(x, x, 1.0)
    assert (x == np.arange(200) + 1).all()


@kernel
def limited(x: Any, y: Any, *, limit: float):
    rows = tile.load(x)
    tile.assert_(rows < limit, "all are below the limit")  # noqa: PT009  (a kernel's)
    tile.store(y, rows)


@kernel
def shared_out(x: Any, n: int):
    return tile.load(x) + tile.cast(tile.load(x, at=(7 // n,), shape=(1,)), f32)


def test_programs_that_fail_say_where_and_why() -> None:
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    limited(x, y, limit=5.0)
    assert np.array_equal(y, x)
    for _ in range(2):
        with pytest.raises(CompileError, match="assertion failed: all are below the limit") as caught:
            limited(x, y, limit=4.0)
        assert caught.value.span is not None
        assert "tile.assert_(rows < limit" in caught.value.span.excerpt()
        assert caught.value.span.excerpt().splitlines()[1].count("^") > 1
    assert shared_out(x, 2).tolist() == [3, 4, 5, 6, 7]
    with pytest.raises(CompileError, match="divides by zero") as caught:
        shared_out(x, 0)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_numbers_must_fit() -> None:
    x = np.arange(5, dtype=np.float32)
    for backend in ("cpu", "interpreter"):
        with knobs.backend.using(backend), pytest.raises(DtypeError, match="expected a number of i64"):
            shared_out(x, 1 << 64)


@kernel.schedule(Schedule(block=(2, 2)))
def numbers(x: Any, n: int, a: float, flag: bool):
    return tile.load(x) * a + tile.cast(n, f32) + (1.0 if flag else 0.0)


def test_numbers_are_passed_at_each_call() -> None:
    x = np.ones(5, np.float32)
    for n, a, flag in ((1, 2.0, True), (-3, 0.5, False), (1 << 20, -1.0, True)):
        assert set(numbers(x, n, a, flag).tolist()) == {a + n + flag}


@kernel
def added_up(x: Any, total: Any):
    tile.atomic_add(total, tile.sum(tile.load(x), 0, keepdims=True), at=(0,))


def test_sums_in_memory_are_the_same_every_time_unless_they_need_not_be() -> None:
    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    found: set[float] = set()
    for _ in range(20):
        total = np.zeros(1, np.float32)
        added_up(x, total)
        found.add(float(total[0]))
    assert len(found) == 1
    with knobs.deterministic.using(False):
        total = np.zeros(1, np.float32)
        added_up(x, total)
    assert abs(total[0] - found.pop()) < 1e-2

    def threads() -> int:
        """How many may share the work: what several add has no order."""
        chosen = settings()
        assert chosen is not None
        program, values = added_up.program_for((x, total), {}, chosen)
        assert isinstance(program.executable, Executable)
        geometry = [(one.shape, (1,)) for one in values]
        return program.executable.ready(geometry, deterministic=chosen.deterministic).threads

    assert threads() == 1
    with knobs.deterministic.using(False):
        assert threads() > 1


def test_names_may_have_any_letters() -> None:
    @kernel
    def größer(x: Any):  # noqa: PLC2401  (the point)
        return tile.load(x) + 1

    unnamed: Any = kernel(lambda x: tile.load(x) * 2)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with knobs.backend.using("cpu"):
        assert größer(ts.ones(3)).tolist() == [2.0] * 3
        assert unnamed(ts.ones(3)).tolist() == [2.0] * 3


def test_several_results_and_their_memory() -> None:
    @kernel
    def both(x: Any):
        rows = tile.load(x)
        return tile.sum(rows), tile.cast(rows, bf16)

    total, same = both(ts.ones((70, 3)))
    assert (total.dtype, total.shape, same.dtype, same.shape) == (f32, (70,), bf16, (70, 3))
    assert set(total.tolist()) == {3.0}
    for result in (total, same):
        assert result.pointer % 64 == 0
        assert result.writable
        assert result.buffer.nbytes == result.nbytes
        assert result.meta is ts.empty(result.shape, result.dtype).meta
    large = both(ts.ones((70000, 8)))[1]
    assert large.pointer % 64 == 0
    assert (large.numpy() == 1).all()
