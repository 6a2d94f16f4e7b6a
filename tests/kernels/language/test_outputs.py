"""Arguments annotated `Out`: what the annotation means, what it finds in kernels, and its attribute in the IR."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera import KTile, Out, Schedule, Tensor, f32, kernel, tile
from tessera.errors import DtypeError, EffectError, RaceError, ShapeError, TesseraError
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text
from tessera.ir.tile.dialect import FuncOp
from tessera.shapes.annotations import TensorType
from tessera.shapes.signature import Signature
from tessera.tile.calls.levels import calling_module, lower_through

Array = np.ndarray[Any, np.dtype[Any]]
UNINITIALISED = Checks(uninitialised=True)
if TYPE_CHECKING:
    Line = Filled = FilledTensor = AnyFilled = Bare = Any
else:
    Line, Filled, FilledTensor = KTile["N", f32], Out[KTile["N", f32]], Out[Tensor["N", f32]]
    AnyFilled, Bare = Out[KTile], Out


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def program(instance: Any) -> FuncOp:
    function = instance.module.body.block.first_op
    assert isinstance(function, FuncOp)
    return function


# The annotation.


def test_it_wraps_the_type_of_an_array() -> None:
    inner = KTile.__class_getitem__(("N", f32))
    marked = Out.__class_getitem__(inner)
    assert (marked.dims, marked.dtype, marked.form, marked.out) == (inner.dims, f32, "ktile", True)
    assert not inner.out
    assert str(marked) == 'Out[KTile["N", f32]]'
    assert str(marked | None) == 'Out[KTile["N", f32]] | None'
    assert Out.__class_getitem__(Tensor) == TensorType((), any_leading=True, out=True)


@pytest.mark.parametrize("wrong", ["N", 3, int, list, ("N", f32), None, ts.Tile, TensorType((), form="tile")])
def test_it_wraps_nothing_else(wrong: object) -> None:
    with pytest.raises(ShapeError, match="Out takes the type of an array"):
        Out.__class_getitem__(wrong)


def test_a_signature_knows_its_outputs_and_still_checks_them() -> None:
    def f(a: Line, b: Filled, c: FilledTensor, d: Out, e: AnyFilled, n: int) -> None: ...

    signature = Signature.of(f)
    assert signature.outputs == {"b", "c", "d", "e"}
    signature.bind({"a": ts.ones(3), "b": ts.ones(3), "d": ts.ones((2, 2))})
    with pytest.raises(ShapeError, match="argument 'b', axis 0: expected N = 3, got 4"):
        signature.bind({"a": ts.ones(3), "b": ts.ones(4)})
    with pytest.raises(DtypeError, match="argument 'c': expected f32, got i64"):
        signature.bind({"c": ts.arange(3)})


def test_an_unreadable_output_is_not_taken_for_something_else() -> None:
    def f(a: Out[Unheard]) -> None: ...  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType, reportInvalidTypeForm]

    with pytest.raises(ShapeError, match="cannot read the annotation"):
        Signature.of(f)


# What it finds.


def filling(annotation: Any) -> Any:
    """A kernel that copies x to y, blocks of 4, having read y first if told to."""

    def fill(x: Any, y: Any, *, peek: bool) -> None:
        at = [tile.program_id(0) * 4]
        before = tile.load(y, at=at, shape=[4]) if peek else 0.0
        tile.store(y, tile.load(x, at=at, shape=[4]) + before, at=at)

    fill.__annotations__["y"] = annotation
    return kernel(fill)


@pytest.mark.parametrize("annotation", [Filled, FilledTensor, AnyFilled, Out], ids=str)
def test_every_form_is_watched(annotation: Any) -> None:
    fill, x, y = filling(annotation)[3], floats(10), np.full(10, np.nan, np.float32)
    with checking(Checks.all()):
        fill(x, y, peek=False)
    assert (x == y).all()
    with (
        pytest.raises(EffectError, match=r"program instance \[0\] reads y\[0\], which nothing has written"),
        checking(Checks.all()),
    ):
        fill(x, y, peek=True)
    # Without the check, memory is what it is.
    fill(x, y, peek=True)
    assert (y == 2 * x).all()


@pytest.mark.parametrize("annotation", [Line, KTile, Any, None], ids=str)
def test_other_arguments_are_inputs_that_hold_something(annotation: Any) -> None:
    fill, x, y = filling(annotation)[3], floats(10), np.ones(10, np.float32)
    with checking(Checks.all()):
        fill(x, y, peek=True)
    assert (y == x + 1).all()


steps = st.lists(
    st.tuples(st.sampled_from(["read", "write", "atomic"]), st.integers(-3, 12), st.integers(1, 5)), max_size=8
)


@kernel
def play(y: Filled, seen: Any, shift: int, *, script: tuple[tuple[str, int, int], ...]) -> None:
    base = tile.program_id(0) * shift
    for kind, start, size in script:
        if kind == "read":
            # A loaded tile must be used, or the load is removed.
            tile.store(seen, tile.load(y, at=[base + start], shape=[size]), at=[base + start])
        elif kind == "write":
            tile.store(y, tile.ones((size,)), at=[base + start])
        else:
            tile.atomic_add(y, tile.ones((size,)), at=[base + start])


def first_mistake(n: int, programs: int, shift: int, script: tuple[tuple[str, int, int], ...]) -> str | None:
    """The rule itself: elements of the array, in the order of the run, that no program instance has written before."""
    written: set[int] = set()
    for at in range(programs):
        for kind, start, size in script:
            inside = [place for place in range(at * shift + start, at * shift + start + size) if 0 <= place < n]
            for place in inside:
                if kind != "write" and place not in written:
                    verb = "reads" if kind == "read" else "updates atomically"
                    return f"program instance [{at}] {verb} y[{place}], which nothing has written"
            if kind != "read":
                written |= set(inside)
    return None


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 4), steps.map(tuple))
def test_the_rule_holds_for_any_program(n: int, programs: int, shift: int, script: Any) -> None:
    expected = first_mistake(n, programs, shift, script)
    y, seen = np.zeros(n, np.float32), np.zeros(n, np.float32)
    try:
        with checking(UNINITIALISED):
            play[programs](y, seen, shift, script=script)
        found = None
    except EffectError as error:
        found = error.message
    assert found == expected


def test_what_another_instance_wrote_is_a_race() -> None:
    script = (("write", 0, 2), ("read", -2, 4))
    with checking(UNINITIALISED):
        play[2](floats(8), floats(8), 2, script=script)
    message = r"program instances \[0\] and \[1\] race: the first writes y\[0\], the second reads it"
    with checking(Checks(uninitialised=True, races=True)), pytest.raises(RaceError, match=message):
        play[2](floats(8), floats(8), 2, script=script)


def test_an_output_that_shares_memory_with_an_input_holds_its_values() -> None:
    line = floats(8)
    with checking(UNINITIALISED):
        play[1](line, line, 0, script=(("read", 0, 5),))
        with pytest.raises(EffectError, match=r"reads y\[4\]"):
            play[1](line, line[:4], 0, script=(("read", 0, 5),))


def test_elements_that_are_not_written_are_a_mistake_where_that_is_asked() -> None:
    y = np.full(8, 7, np.float32)
    with checking(replace(Checks.all(), unwritten=False)):
        play[1](y, floats(8), 0, script=(("write", 0, 3),))
    assert y.tolist() == [1, 1, 1, 7, 7, 7, 7, 7]
    with checking(Checks.all()), pytest.raises(EffectError) as found:
        play[1](y, floats(8), 0, script=(("write", 0, 3),))
    assert found.value.message == "no program instance of play has written y[3]; 5 of the 8 elements of y hold nothing"


@pytest.mark.parametrize("value", [2.0, 3, True, "text", None, object()], ids=lambda value: type(value).__name__)
def test_only_an_array_can_be_filled(value: Any) -> None:
    with pytest.raises(TesseraError, match="is not an array, and Out says"):
        filling(Out)[1](floats(4), value, peek=False)


# Its attribute in the IR.


def test_the_program_says_what_it_fills_and_reads_back() -> None:
    module = filling(Filled)[1].lower(floats(4), floats(4), peek=False).module
    written = text.write(module)
    assert "outputs 0 fills [1] shapes [[x_0], [N]]" in written
    assert text.write(text.read(written)) == written
    assert program(filling(Line)[1].lower(floats(4), floats(4), peek=False)).filled == ()


@kernel
def both(low: Bare, x: Line, high: Filled, n: int):
    at = [tile.context().row_start]
    block = tile.load(x)
    tile.store(low, -block, at=at)
    tile.store(high, block + n, at=at)
    return block * 2.0


def test_outputs_and_results_go_together() -> None:
    x, low, high = floats(10), np.zeros(10, np.float32), np.zeros(10, np.float32)
    small = both.with_schedule(Schedule(block=(4,)))
    with checking(Checks.all()):
        found = small(low, x, high, 3)
    assert (low == -x).all()
    assert (high == x + 3).all()
    assert (found.numpy() == 2 * x).all()
    function = program(small.lower(low, x, high, 3))
    assert (function.filled, function.input_count, function.blank) == ((0, 2), 4, {0, 2, 4})


@kernel
def negate(x: Line, y: Filled, n: int):
    tile.store(y, tile.load(x) * n)
    return tile.load(x)


def test_in_a_graph_what_is_filled_is_a_result() -> None:
    from tessera.interpreters.levels.graph import run_function

    x = floats(70)
    instance = negate.lower(x, floats(70), -1)
    compiled = lower_through(instance, negate.schedule)
    calling = calling_module(instance, negate.schedule)
    text.verify(calling)
    for module in (calling, text.read(text.write(compiled.module))):
        filled, returned = run_function(module, "main", [x, -1])
        assert (filled == -x).all()
        assert (returned == x).all()
    assert program(instance).filled == (1,), "the instance itself has not changed"
