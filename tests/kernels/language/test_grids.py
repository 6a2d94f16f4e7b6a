"""Grids that are given, worked out or inferred: they have all axes that are used, and reach all of an output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera import KTile, Out, Schedule, f32, kernel, knobs, tile
from tessera.bench.cuda.kernel_texts import text_for
from tessera.compiler.launch_plan import Plan
from tessera.errors import CompileError, DeviceError, EffectError, ShapeError, TesseraError
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir.tile.dialect import FuncOp
from tessera.ir.tile.reach import covers

Array = np.ndarray[Any, np.dtype[Any]]
UNWRITTEN = Checks(unwritten=True)
BACKENDS = ("cpu", "interpreter")
if TYPE_CHECKING:
    Matrix = Filled = Filling = Any
else:
    Matrix, Filled, Filling = KTile["M", "N", f32], Out[KTile["M", "N", f32]], Out


def _column() -> Any:
    return tile.program_id(1)


@kernel
def by_blocks(x: Any, y: Any):
    here = tile.context()
    at = (tile.program_id(0) * here.m, tile.program_id(1) * here.n)
    tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)) + 1.0, at=at)


@kernel
def in_a_helper(x: Any, y: Any):
    here = tile.context()
    at = (here.row_start, _column() * here.n)
    tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)) + 1.0, at=at)


@kernel
def in_a_branch(x: Any, y: Filling, flag: bool):
    here = tile.context()
    start = here.row_start * 0
    if flag:
        start = tile.program_id(1) * here.n
    tile.store(y, tile.load(x, at=(here.row_start, start), shape=(here.m, here.n)), at=(here.row_start, start))


@kernel
def in_a_loop(x: Any, y: Any):
    here = tile.context()
    for i in tile.range(2):
        at = (here.row_start, (tile.program_id(2) + i) * here.n)
        tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)), at=at)


@kernel
def before_the_context(x: Any, y: Any):
    column = tile.program_id(1)
    here = tile.context()
    at = (here.row_start, column * here.n)
    tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)) + 1.0, at=at)


@kernel
def without_a_context(x: Any, y: Filling):
    at = (tile.program_id(0) * 64, tile.program_id(1) * 64)
    tile.store(y, tile.load(x, at=at, shape=(64, 64)) + 1.0, at=at)


def ones_and_zeros() -> tuple[Array, Array]:
    return np.ones((130, 200), np.float32), np.zeros((130, 200), np.float32)


def _missing(name: str, used: int, inferred: bool) -> str:
    had = r"none is given: the one inferred, \[.*\]" if inferred else r"the one given, \[3\]"
    return rf"{name} uses {used} axes of a grid, and {had}, has 1"


TWO_AXES = [
    (by_blocks, (), 2),
    (in_a_helper, (), 2),
    (in_a_branch, (True,), 2),
    (in_a_loop, (), 3),
    (before_the_context, (), 2),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("used", "more", "axes"), TWO_AXES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_grid_has_all_axes_that_are_used(backend: str, used: Any, more: tuple[Any, ...], axes: int) -> None:
    x, y = ones_and_zeros()
    name = used.__name__
    with knobs.backend.using(backend):
        with pytest.raises(ShapeError, match=_missing(name, axes, inferred=True)) as found:
            used(x, y, *more)
        assert f"tile.program_id({axes - 1}) at " in found.value.story[-1]
        assert f"{name}[{', '.join('ijk'[:axes])}](...)" in (found.value.hint or "")
        with pytest.raises(ShapeError, match=_missing(name, axes, inferred=False)):
            used[3](x, y, *more)
    assert (y == 0).all()


FORMS: dict[str, Callable[[Any], Any]] = {
    "schedule": lambda given: given.with_schedule(Schedule(block=(16, 32))),
    "assume": lambda given: given.assume(),
    "tuned": lambda given: kernel.autotune(space={"BM": [16, 32], "BN": [32]})(given.function),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_kernel_says_so(form: str) -> None:
    x, y = ones_and_zeros()
    for grid in (None, 3):
        made = FORMS[form](by_blocks)
        with pytest.raises(ShapeError, match="uses 2 axes"):
            (made if grid is None else made[grid])(x, y)
    with pytest.raises(ShapeError, match="uses 2 axes"):
        by_blocks.lower(x, y)


def test_for_a_gpu() -> None:
    x, y = map(ts.asarray, ones_and_zeros())
    with pytest.raises(ShapeError, match="uses 2 axes"):
        text_for(by_blocks, x, y)
    assert "ctaid" in text_for(by_blocks[3, 4], x, y)


@kernel
def filled_by_blocks(x: Matrix, y: Filled):
    here = tile.context()
    at = (tile.program_id(0) * here.m, tile.program_id(1) * here.n)
    tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)) + 1.0, at=at)


@kernel
def filled_unclearly(x: Matrix, y: Filled):
    here = tile.context()
    at = (tile.program_id(0) * here.m, tile.program_id(1) * tile.program_id(1) * here.n)
    tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)) + 1.0, at=at)


def _blocks(x: Any, block: Any) -> tuple[Any, Any]:
    return tile.cdiv(x.shape[0], block.m), tile.cdiv(x.shape[1], block.n)


_of_sizes = filled_by_blocks.grid(_blocks)


def _enough(x: Any) -> Any:
    return filled_by_blocks[3, 4](x) * 2.0


@pytest.mark.parametrize("tiers", ["off", "auto"])
@pytest.mark.parametrize("interpret", [False, True])
def test_inside_of_jit(tiers: Any, interpret: bool) -> None:
    def without(x: Any) -> Any:
        return filled_unclearly(x) * 2.0

    def inferred(x: Any) -> Any:
        return filled_by_blocks(x) * 2.0

    def worked_out(x: Any) -> Any:
        return _of_sizes(x) * 2.0

    def too_small(x: Any) -> Any:
        return filled_by_blocks[3, 3](x) * 2.0

    x = ts.ones((130, 200))
    with knobs.interpret.using(interpret):
        with pytest.raises(ShapeError, match="uses 2 axes of a grid"):
            ts.jit(without, tiers=tiers)(x)
        with pytest.raises(ShapeError, match=r"no program instance of filled_by_blocks\w* writes y\[:, 192:\]"):
            ts.jit(too_small, tiers=tiers)(x)
        enough = inferred if interpret else worked_out
        assert (ts.jit(enough, tiers=tiers)(x).numpy() == 4).all()


def test_more_axes_than_are_used() -> None:
    x, y = ones_and_zeros()
    without_a_context[3, 4, 1](x, y)
    assert (y == 2).all()
    y[:] = 0
    by_blocks[5, 6](x, y)
    assert (y == 2).all()


@pytest.mark.parametrize("grid", [lambda: 3, 2.0, "3", (), (1, 1, 1, 1), (-1,), True, (2, None)])
def test_what_is_no_grid(grid: Any) -> None:
    with pytest.raises(ShapeError, match="a grid is one to three sizes"):
        by_blocks[grid]


# Grids that are too small


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ((2, 4), r"y\[128:\]: its size along axis 0 is 130"),
        ((3, 3), r"y\[:, 192:\]"),
        ((1, 1), r"y\[64:\]"),
        ((0, 4), r"y\[0:\]"),
    ],
)
def test_a_grid_that_is_too_small_for_an_output(backend: str, grid: Any, message: str) -> None:
    x, y = ones_and_zeros()
    with (
        knobs.backend.using(backend),
        pytest.raises(ShapeError, match=f"no program instance of without_a_context writes {message}"),
    ):
        without_a_context[grid](x, y)
    assert (y == 0).all()


@kernel
def copied(x: Any, y: Filling):
    tile.store(y, tile.load(x) + 1.0)


@kernel
def returned(x: Any):
    return tile.load(x) + 1.0


@kernel
def by_heads(x: Any, y: Filling):
    head = tile.program_id(1)
    here = (tile.program_id(0) * 16, 0)
    tile.store(y[head], tile.load(x[head], at=here, shape=(16, 8)), at=here)


@kernel
def in_steps(x: Any, y: Filling):
    first = tile.program_id(0) * 32
    for i in tile.range(0, 32, 8):
        tile.store(y, tile.load(x, at=(first + i,), shape=(8,)), at=(first + i,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_relatives_of_a_grid_that_is_too_small(backend: str) -> None:
    """An output larger than what drives the grid, fresh results, leading axes, stores in loops."""
    long, short = np.ones((200, 8), np.float32), np.ones((60, 8), np.float32)
    cases: list[tuple[Callable[[], Any], str | None]] = [
        (lambda: copied(short, np.zeros_like(long)), r"y\[64:\]"),
        (lambda: copied(long, np.zeros_like(short)), None),
        (lambda: returned[3](long), r"result\[192:\]"),
        (lambda: returned[4](long), None),
        (lambda: by_heads[1, 2](np.ones((3, 16, 8), np.float32), np.ones((3, 16, 8), np.float32)), r"y\[2:\]"),
        (lambda: by_heads[1, 3](np.ones((3, 16, 8), np.float32), np.ones((3, 17, 8), np.float32)), r"y\[:, 16:\]"),
        (lambda: by_heads[1, 3](np.ones((3, 16, 8), np.float32), np.ones((3, 16, 8), np.float32)), None),
        (lambda: in_steps[2](np.ones(70, np.float32), np.ones(70, np.float32)), r"y\[64:\]"),
        (lambda: in_steps[3](np.ones(70, np.float32), np.ones(70, np.float32)), None),
    ]
    for call, message in cases:
        with knobs.backend.using(backend):
            if message is None:
                call()
            else:
                with pytest.raises(ShapeError, match=f"writes {message}"):
                    call()


@kernel
def batched(x: Any):
    return tile.load(x) * 2.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_more_program_instances_than_points_of_leading_axes(backend: str) -> None:
    """Program instances beyond the last point would work on memory of others."""
    x = np.ones((2, 3, 70, 8), np.float32)
    with knobs.backend.using(backend):
        assert (batched[2, 6](x).numpy() == 2).all()
        with pytest.raises(CompileError, match="fewer points of its leading axes than the 7 programs"):
            batched[2, 7](x)
        with pytest.raises(ShapeError, match=r"writes result"):
            batched[1, 6](x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_program_instance_indexes_what_is_not_there(backend: str) -> None:
    """A grid that is too large along an axis by which arrays are indexed: machine code would write elsewhere."""
    x, y = np.ones((3, 16, 8), np.float32), np.zeros((3, 16, 8), np.float32)
    with knobs.backend.using(backend):
        by_heads[2, 3](x, y)
        with pytest.raises(ShapeError, match=r"by_heads index [xy] up to 3 along axis 0, and its size there is 3"):
            by_heads[1, 4](x, y)
        with pytest.raises(ShapeError, match="index y up to 2 along axis 0, and its size there is 2"):
            by_heads[1, 3](x, y[:2])
        by_heads[1, 9](x[:, :0], y[:, :0])
    assert (y == 1).all()


def test_an_index_in_a_branch_is_not_flagged() -> None:
    @kernel
    def some(x: Any, y: Filling):
        head = tile.program_id(0)
        if head < 3:
            tile.store(y[head], tile.load(x[head], at=(0,), shape=(8,)), at=(0,))

    x, y = np.ones((3, 8), np.float32), np.zeros((3, 8), np.float32)
    some[5](x, y)
    assert (y == 1).all()


def test_what_is_not_flagged() -> None:
    """Arrays without Out, offsets that only the run knows, and what a kernel leaves alone on purpose."""

    @kernel
    def somewhere(x: Any, y: Filling, start: int):
        tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(start + tile.program_id(0) * 8,))

    @kernel
    def plain(x: Any, y: Any):
        tile.store(y, tile.load(x, at=(tile.program_id(0) * 8,), shape=(8,)), at=(tile.program_id(0) * 8,))

    @kernel
    def first_rows(x: Any, y: Filling):
        tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(0,))

    x = np.ones(64, np.float32)
    for called, more in ((somewhere[1], (8,)), (plain[2], ()), (first_rows[1], ())):
        y = np.zeros(64, np.float32)
        called(x, y, *more)
        assert 8 <= y.sum() <= 16


@settings(max_examples=16)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
)
def test_a_grid_is_refused_just_where_something_stays_unwritten(
    shape: tuple[int, int], grid: tuple[int, int], block: tuple[int, int]
) -> None:
    @kernel
    def blocks(y: Filling, *, m: int, n: int):
        tile.store(y, tile.ones((m, n)), at=(tile.program_id(0) * m, tile.program_id(1) * n))

    y = np.zeros(shape, np.float32)
    covered = all(count * extent >= size for count, extent, size in zip(grid, block, shape, strict=True))
    with knobs.backend.using("interpreter"):
        try:
            blocks[grid](y, m=block[0], n=block[1])
        except ShapeError:
            assert not covered
        else:
            assert covered
            assert (y == 1).all()


def test_a_plan_keeps_how_far_program_instances_reach() -> None:
    module = without_a_context[2, 2].lower(*ones_and_zeros()).module
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    found = covers(function)
    assert [(one.name, one.axis, str(one.reach)) for one in found] == [("y", 0, "128"), ("y", 1, "128")]
    plan = Plan("k", (), 0, (), 0, 0, (), covers=found)
    assert Plan.decoded(plan.encoded()).covers == found
    assert not covers(
        next(op for op in returned.lower(ones_and_zeros()[0]).module.body.block.ops if isinstance(op, FuncOp))
    )


# Unwritten elements


@kernel
def every_other(x: Any, y: Filling):
    first = tile.program_id(0) * 8
    tile.store(y, tile.load(x, at=(first,), shape=(4,)), at=(first,))
    tile.store(y, tile.load(x, at=(60,), shape=(4,)), at=(60,))


@kernel
def summed(x: Any, y: Filling, total: Any):
    rows = tile.load(x, at=(tile.program_id(0) * 8,), shape=(8,))
    tile.store(y, rows, at=(tile.program_id(0) * 8,))
    tile.atomic_add(total, tile.sum(rows, keepdims=True), at=(0,))


@kernel
def by_atomics(x: Any, y: Filling):
    tile.atomic_add(y, tile.load(x, at=(tile.program_id(0) * 8,), shape=(8,)), at=(tile.program_id(0) * 8,))


@kernel
def once(x: Any, y: Filling, flag: bool):
    if flag:
        tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(0,))


def test_the_check_finds_elements_that_were_not_written() -> None:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with checking(UNWRITTEN), pytest.raises(EffectError) as found:
        every_other[8](x, y)
    message = "no program instance of every_other has written y[4]; 28 of the 64 elements of y hold nothing"
    assert found.value.message == message
    assert found.value.shapes == ("y [64]", "grid [8]")
    with checking(UNWRITTEN), pytest.raises(EffectError, match=r"once has written y\[0\]; 8 of the 8"):
        once[1](x[:8], y[:8], False)
    with checking(UNWRITTEN), pytest.raises(EffectError, match=r"has written y\[1, 0\]; 4 of the 8 elements"):
        partly[1](np.zeros((2, 4), np.float32))


@kernel
def partly(y: Filling):
    tile.store(y, tile.ones((1, 4)), at=(0, 0))


def test_the_check_leaves_be_what_is_written() -> None:
    x, y, total = np.ones(64, np.float32), np.zeros(64, np.float32), np.zeros(1, np.float32)
    with checking(UNWRITTEN):
        summed[8](x, y, total)  # an input that program instances add to
        by_atomics[8](x, y)
        once[1](x[:8], y[:8], True)
        by_atomics[0](x, y[:0])
        copied(x[:0].reshape(0, 4), np.zeros((0, 4), np.float32))
        y[:] = 0
        every_other[8](y, y)  # shares the memory of an input, and holds what that does


def test_the_knob_runs_kernels_in_the_interpreter(caplog: pytest.LogCaptureFixture) -> None:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with knobs.checks.using("unwritten"), knobs.logs.using("fallbacks"):
        with pytest.raises(EffectError, match="28 of the 64 elements of y hold nothing"):
            every_other[8](x, y)
        assert "machine code has no check unwritten" in caplog.text
        assert (ts.jit(_enough)(ts.ones((130, 200))).numpy() == 4).all()
    with knobs.checks.using("unwritten"), knobs.backend.using("cpu"), pytest.raises(DeviceError, match="has no check"):
        every_other[8](x, y)
    every_other[8](x, y)


def test_errors_are_at_the_call() -> None:
    x, y = ones_and_zeros()
    for call in (lambda: by_blocks(x, y), lambda: without_a_context[1, 1](x, y)):
        with pytest.raises(TesseraError) as found:
            call()
        assert found.value.span is not None
        assert found.value.span.file == __file__
