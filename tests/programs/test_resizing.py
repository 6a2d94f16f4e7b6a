"""Programs bound to other sizes by code that earlier bindings left: they launch what one bound from scratch does."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from imitated_gpu import Imitation
from program_cases import CHAIN, check_close, drawn, expected, program_of
from transformer_block import arguments, transformer_block

import tessera as ts
from sequence_tables import noted_tables
from tessera import DType, Tensor, jit
from tessera.lang.operators import gelu, matmul
from tessera.programs import Program, resizing
from tessera.runtime.cuda.streams import default_stream

FAR = 1 << 40


@pytest.fixture(name="tables")
def _tables(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The tables of all sequences that are made."""
    return noted_tables(monkeypatch)


class Counting:
    """Counts how often buffers are assigned, to know which bindings took the long way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        from tessera.programs import program

        for module in (program, resizing):
            monkeypatch.setattr(module, "assign_buffers", self._counted(module.assign_buffers))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def assign_buffers(*given: Any) -> Any:
            self.count += 1
            return real(*given)

        return assign_buffers


def launched(gpu: Imitation, program: Program, values: Sequence[Tensor]) -> list[tuple[str, int, bytes]]:
    """What a call launches, with memory at addresses that are the same for all calls, and never read."""
    stream = default_stream("cuda:0")
    stream.free.clear()
    stream.arenas.clear()
    stream.counters.clear()
    addresses = iter(range(FAR, 2 * FAR, 1 << 30))

    def allocate(out: int, *_: int) -> int:
        ctypes.c_uint64.from_address(out).value = next(addresses)
        return 0

    nothing: Callable[..., int] = lambda *_: 0  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        for name, call in {"allocate": allocate, "free": nothing, "fill_bytes": nothing, "_run": nothing}.items():
            patch.setitem(gpu.__dict__, name, call)
        gpu.records = []
        results = program.bind(values).run(*values)
        found, gpu.records = gpu.records, None
        described = [(one.meta.shape, one.meta.strides, one.meta.dtype) for one in results]
        del results
        stream.free.clear()
        stream.arenas.clear()
        stream.counters.clear()
        stream.workspaces.clear()
    assert found
    return [*found, ("results", 0, repr(described).encode())]


def variant(function: Any, *args: Any, **kwargs: Any) -> Program:
    """The program of a jitted function for sizes that change."""
    return function.lower(*args, **kwargs).program


def check_launches(gpu: Imitation, program: Program, kinds: Sequence[Sequence[Tensor]]) -> None:
    for values in kinds:
        anew = replace(program)
        assert launched(gpu, program, values) == launched(gpu, anew, values)
        assert program.memory == anew.memory


@pytest.mark.parametrize("dtype", [ts.bf16, ts.f32], ids=str)
def test_products_launch_the_same(gpu: Imitation, monkeypatch: pytest.MonkeyPatch, dtype: DType) -> None:
    def layers(x: Any, first: Any, second: Any) -> Any:
        return matmul(gelu(matmul(x, first)), second)

    layers.__annotations__["x"] = Tensor["B", "S", 64]
    width = 64
    first, second = drawn((width, 128), dtype).to("cuda"), drawn((128, width), dtype, seed=1).to("cuda")
    host = drawn((3, 700, width), dtype)
    whole = host.to("cuda")
    function = jit(layers)
    program = variant(function, whole, first, second)
    numbers = random.Random(0)
    kinds: list[list[Tensor]] = []
    for _ in range(30):
        batch, length = numbers.randint(1, 3), numbers.randint(1, 700)
        is_part = batch == 1  # rows of several would have to be copied first
        x = whole[:batch, :length] if is_part else host[:batch, :length].copy().to("cuda")
        kinds.append([x, first, second])
    check_launches(gpu, program, kinds)
    counting = Counting(monkeypatch)
    for length in range(300, 340):
        program.bind([host[:2, :length].copy().to("cuda"), first, second])
    assert not counting.count


def test_chains_launch_the_same(gpu: Imitation, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(CHAIN, "cuda")
    numbers = random.Random(1)

    def values(rows: int, columns: int) -> list[Tensor]:
        return [drawn((rows, columns)).to("cuda"), drawn((rows, columns)).to("cuda"), drawn((columns,)).to("cuda")]

    check_launches(gpu, program, [values(numbers.randint(1, 40), numbers.randint(1, 90)) for _ in range(40)])
    given = [drawn((21, 48)), drawn((21, 48), seed=1), drawn((48,), seed=2)]
    on_device = [one.to("cuda") for one in given]
    counting = Counting(monkeypatch)
    check_close(program.bind(on_device)(*on_device), expected(CHAIN, given))
    assert not counting.count


@pytest.mark.acceptance
def test_the_block_launches_the_same(gpu: Imitation, monkeypatch: pytest.MonkeyPatch) -> None:
    function = jit(transformer_block)
    for dtype in (ts.bf16, ts.f16):
        kinds: list[list[Tensor]] = []
        numbers = random.Random(2)
        program = None
        for _ in range(40):
            batch, length, past = numbers.randint(1, 3), numbers.randint(1, 90), numbers.randint(0, 40)
            x, params, cache = arguments(dtype, batch=batch, length=length, past=past, width=256, heads=2)
            x, *cached = x.to("cuda"), cache[0].to("cuda"), cache[1].to("cuda")
            params = {name: value.to("cuda") for name, value in params.items()}
            program = program or variant(function, x, params, tuple(cached), heads=2)
            kinds.append([x, *[params[name] for name in sorted(params)], *cached])
        assert program is not None
        check_launches(gpu, program, kinds)


def check_tables(tables: list[bytes], program: Program, values: Sequence[Tensor]) -> None:
    found: list[tuple[list[bytes], Sequence[Tensor]]] = []
    anew = replace(program)
    for one in (program, anew):
        tables.clear()
        results = one.bind(values)(*values)
        found.append((list(tables), results))
    (mine, results), (other, again) = found
    assert mine == other
    assert mine
    assert program.memory == anew.memory
    for one, two in zip(results, again, strict=True):
        assert one.meta is two.meta
        assert one.numpy().tobytes() == two.numpy().tobytes()


def test_tables_of_the_cpu_are_the_same(tables: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(CHAIN, "cpu")
    numbers = random.Random(3)
    for _ in range(40):
        rows, columns = numbers.randint(1, 400), numbers.randint(1, 90)
        check_tables(
            tables, program, [drawn((rows, columns)), drawn((columns, rows), seed=1).T, drawn((columns,), seed=2)]
        )
    counting = Counting(monkeypatch)
    values = [drawn((123, 45)), drawn((45, 123), seed=1).T, drawn((45,), seed=2)]
    check_close(program.bind(values)(*values), expected(CHAIN, values))
    assert not counting.count


def test_tables_of_products_are_the_same(tables: list[bytes]) -> None:
    def layers(x: Any, first: Any, second: Any) -> Any:
        return matmul(gelu(matmul(x, first)), second)

    layers.__annotations__ |= {"x": Tensor["M", "K"], "first": Tensor["K", "N"], "second": Tensor["N", "P"]}
    numbers = random.Random(4)

    def values() -> list[Tensor]:
        rows, inner, columns, last = (numbers.randint(2, 300) for _ in range(4))
        return [drawn((rows, inner)), drawn((inner, columns), seed=1), drawn((columns, last), seed=2)]

    program = variant(jit(layers), *values())
    for _ in range(30):
        check_tables(tables, program, values())


@pytest.mark.parametrize("sizes", [(3, 4), (0, 4), (3, 0), (0, 0), (1, 1), (70, 65)], ids=str)
def test_a_result_is_made_at_every_size_of_the_others(sizes: tuple[int, int]) -> None:
    """Sizes that are declared to be open may be 0: what does not have such an axis is made all the same."""

    def beside(x: Any, rows: Any, columns: Any) -> Any:
        grown, small = ts.exp(rows), ts.exp(columns)
        return x * grown + small, grown, small, ts.sum(rows)

    beside.__annotations__ |= {"x": Tensor["M", "N"], "rows": Tensor["M", 1], "columns": Tensor["N"]}
    function = jit(beside)
    for seed, (m, n) in enumerate(((7, 9), sizes)):
        x, rows, columns = (drawn(shape, seed=10 * seed + index) for index, shape in enumerate(((m, n), (m, 1), (n,))))
        grown, small = np.exp(rows.numpy()), np.exp(columns.numpy())
        wanted = (x.numpy() * grown + small, grown, small, rows.numpy().sum())
        for found, exact in zip(function(x, rows, columns), wanted, strict=True):
            np.testing.assert_allclose(found.numpy(), exact, rtol=1e-5, atol=1e-6)
    assert len([one for family in function.families.values() for one in family.variants]) == 1
