"""Checks launching: where arguments go, what is refused, what failures say; through the entry and through ctypes."""

from __future__ import annotations

import ctypes
import gc
import math
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pool_programs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_programs import block, kernels

from tessera.errors import CompileError
from tessera.runtime.native import launch, objects

Maker = Callable[..., launch.Launch]
MAKERS = [launch.through_entry, launch.through_ctypes]


@pytest.fixture(params=MAKERS, ids=["entry", "ctypes"], name="make")
def _make(request: pytest.FixtureRequest) -> Maker:
    return maker(request.param)


def maker(factory: Callable[..., launch.Launch]) -> Maker:
    def make(
        name: str, template: bytes, arguments: Sequence[tuple[str, int]], scratch: int = 0, threads: int = 1
    ) -> launch.Launch:
        return factory(kernels().address(name), template, arguments, scratch, threads, kernels())

    return make


def words() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(8, -7, np.int64)


ECHO = [("array", 8), ("i64", 9), ("f32", 10), ("f64", 11), ("i1", 12), ("array", 14)]


def test_the_entry_is_what_is_used_here() -> None:
    made = launch.make(kernels().address("empty"), block(), [], 0, 1)
    assert objects.are_known()
    assert type(made) is type(len)
    assert made() == 0


@pytest.mark.parametrize("factory", MAKERS)
@given(
    integer=st.integers(-(1 << 63), (1 << 63) - 1),
    single=st.floats(width=32),
    double=st.floats(),
    flag=st.booleans(),
    offset=st.integers(0, 3),
)
def test_arguments_go_where_they_belong(
    factory: Callable[..., launch.Launch], integer: int, single: float, double: float, flag: bool, offset: int
) -> None:
    echo = maker(factory)("echo", block(0, 1, 2, 3, 4, 55, 6, 77), ECHO)
    out, other = words(), np.zeros(8, np.int64)[offset:]
    assert echo(out, integer, single, double, flag, other) == 0
    expected = struct.pack("<Qqf4xd", out.ctypes.data, integer, single, double)
    expected += struct.pack("<4q", flag, 55, other.ctypes.data, 77)
    assert out.tobytes() == expected


def test_numbers_of_other_types_are_taken_as_python_takes_them(make: Maker) -> None:
    echo, out = make("echo", block(*[0] * 8), ECHO), words()
    assert echo(out, np.uint8(200), 3, np.float32(0.5), np.True_, out) == 0
    assert (out[1], out[4]) == (200, 1)
    assert out[2:4].tobytes() == struct.pack("<f4xd", 3.0, 0.5)
    assert echo(out, True, 1e300, 10**300, np.False_, out) == 0
    assert (out[1], out[4]) == (1, 0)
    assert out[2:4].tobytes() == struct.pack("<f4xd", math.inf, 1e300)


class Derived(np.ndarray[Any, Any]):
    """An array of a type of its own."""


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4)).T[1:, ::2],
        np.zeros(()),
        np.zeros(0),
        np.zeros(3).view(Derived),
        np.frombuffer(b"read only", np.uint8),
    ],
)
def test_all_arrays_are_arrays(make: Maker, array: np.ndarray[Any, Any]) -> None:
    echo, out = make("echo", block(*[0] * 8), [("array", 8), ("array", 9)]), words()
    assert echo(out, array) == 0
    assert out[1] == array.ctypes.data


GOOD: list[Any] = [None, 1, 1.0, 1.0, True, np.zeros(1)]


@pytest.mark.parametrize(
    ("index", "value", "said"),
    [
        (5, [1.0], "argument 5 of the kernel: expected an array, got <class 'list'>"),
        (5, None, "argument 5 of the kernel: expected an array, got <class 'NoneType'>"),
        (5, np.float32(1), "argument 5 of the kernel: expected an array, got <class 'numpy.float32'>"),
        (1, 1.0, "'float' object cannot be interpreted as an integer"),
        (1, "1", "'str' object cannot be interpreted as an integer"),
        (2, "1", "must be real number, not str"),
        (3, None, "must be real number, not NoneType"),
        (4, 1, "argument 4 of the kernel: expected a bool, got <class 'int'>"),
        (4, None, "argument 4 of the kernel: expected a bool, got <class 'NoneType'>"),
    ],
)
def test_other_types_are_refused_before_anything_runs(make: Maker, index: int, value: Any, said: str) -> None:
    echo, out = make("echo", block(*[0] * 8), ECHO), words()
    values = [out, *GOOD[1:]]
    values[index] = value
    with pytest.raises(TypeError) as caught:
        echo(*values)
    assert str(caught.value) == said
    assert (out == -7).all()


def test_a_wrong_number_of_arguments_is_refused(make: Maker) -> None:
    echo, out = make("echo", block(*[0] * 8), ECHO), words()
    for values in ([], [out], [out, *GOOD[1:], 1]):
        with pytest.raises(TypeError, match=f"the kernel takes 6 arguments, got {len(values)}"):
            echo(*values)
    with pytest.raises(TypeError, match="keyword"):
        echo(out, *GOOD[1:-1], last=out)
    assert (out == -7).all()


def test_integers_of_more_than_64_bits_are_refused(make: Maker) -> None:
    echo, out = make("echo", block(*[0] * 8), [("array", 8), ("i64", 9)]), words()
    for number in (1 << 63, -(1 << 63) - 1, 10**30):
        with pytest.raises(OverflowError):
            echo(out, number)
    assert (out == -7).all()


def test_errors_of_the_arguments_themselves_come_through(make: Maker) -> None:
    class Stubborn:
        """No number after all."""

        def __index__(self) -> int:
            raise KeyError("no")

        def __float__(self) -> float:
            raise LookupError("no")

    echo, out = make("echo", block(*[0] * 8), ECHO), words()
    with pytest.raises(KeyError):
        echo(out, Stubborn(), 1.0, 1.0, True, out)
    with pytest.raises(LookupError):
        echo(out, 1, Stubborn(), 1.0, True, out)
    assert echo(out, -1, -1.0, -1.0, True, out) == 0


def test_failures_tell_what_the_kernel_wrote(make: Maker) -> None:
    fail = make("fail", block(0), [("i64", 8)], 0, 2)
    for code in (1, 77, 1 << 62):
        assert fail(code) == (code, 20, 30, -40, 50, 60, (1 << 63) - 1)
    assert fail(0) == 0


def test_every_call_starts_from_the_template(make: Maker) -> None:
    out = np.zeros(8, np.float32)
    fill = make("fill", block(0, 8, 0), [("array", 8), ("f32", 10)], 0, 2)
    for value in range(100):
        assert fill(out, value) == 0
        assert (out == value).all()


def test_blocks_may_be_large(make: Maker) -> None:
    template = block(*range(launch.LARGEST_BLOCK // 8 - 8))
    echo, out = make("echo", template, [("array", 8)]), words()
    assert echo(out) == 0
    assert out[1:].tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("template", "arguments", "scratch", "threads", "said"),
    [
        (bytes(63), [], 0, 1, "starts with 8 zeros, got 63 bytes"),
        (bytes(56), [], 0, 1, "8 to 2048 words"),
        (bytes(launch.LARGEST_BLOCK + 8), [], 0, 1, "got 16392 bytes"),
        (b"\1" + bytes(63), [], 0, 1, "starts with 8 zeros"),
        (bytes(80), [("array", 7)], 0, 1, "in words 8 to 9, got 'array' in word 7"),
        (bytes(80), [("array", 8), ("i64", 10)], 0, 1, "got 'i64' in word 10"),
        (bytes(80), [("bf16", 8)], 0, 1, "the kinds array, i64, f32, f64, i1"),
        (bytes(80), [], -1, 1, "got 1 and -1 bytes"),
        (bytes(80), [], 0, 0, "got 0 and 0 bytes"),
    ],
)
def test_records_that_make_no_sense_are_refused(
    template: bytes, arguments: list[tuple[str, int]], scratch: int, threads: int, said: str
) -> None:
    with pytest.raises(CompileError, match=said):
        launch.make(kernels().address("empty"), template, arguments, scratch, threads)


def test_a_launch_keeps_its_image_and_nothing_else(make: Maker) -> None:
    class Image:
        """Something to keep alive."""

    image = Image()
    alive = weakref.ref(image)
    factory = launch.through_entry if type(make("empty", block(), [])) is type(len) else launch.through_ctypes
    made = factory(kernels().address("empty"), block(), [], 0, 1, image)
    del image
    gc.collect()
    assert alive() is not None
    assert made() == 0
    del made
    gc.collect()
    assert alive() is None


def test_calls_leave_no_references_behind(make: Maker) -> None:
    echo, out, other = make("echo", block(*[0] * 8), ECHO), words(), np.zeros(3)
    fail = make("fail", block(0), [("i64", 8)])
    number, real, wrong = 1 << 40, 1.25, ["no array"]

    def calls() -> None:
        for _ in range(500):
            echo(out, number, real, real, True, other)
            fail(number)
            for values in ([out, number, real, real, True, wrong], [out, real, real, real, True, other], [out]):
                with pytest.raises(TypeError):
                    echo(*values)

    calls()
    gc.collect()
    things = (out, other, number, real, wrong, echo, TypeError, np.ndarray, 0)
    before = [sys.getrefcount(thing) for thing in things], len(gc.get_objects())
    calls()
    gc.collect()
    after = [sys.getrefcount(thing) for thing in things], len(gc.get_objects())
    assert all(abs(new - old) < 100 for old, new in zip(before[0], after[0], strict=True))
    assert abs(after[1] - before[1]) < 100


def test_other_python_threads_run_meanwhile(make: Maker) -> None:
    sleep = make("sleep", block(0), [("i64", 8)], 0, 2)
    begin = time.monotonic()
    caller = threading.Thread(target=sleep, args=(400_000,))
    caller.start()
    launches = 0
    while caller.is_alive():
        launches += 1
        time.sleep(0.001)
    assert launches > 20
    assert time.monotonic() - begin < 20


def test_an_interpreter_without_the_entry_goes_through_ctypes() -> None:
    code = """
import sys
import numpy as np
import pool_programs
from pool_programs import block
from tessera.runtime.native import launch, pool
sys.getobjects = None  # as in builds that trace references
assert "PyEval" not in pool.runtime_text()
pool.start()
kernels = pool_programs.kernels()
fill = launch.make(kernels.address("fill"), block(0, 0, 0), [("array", 8), ("i64", 9), ("f32", 10)], 64, 2)
out = np.zeros(3, np.float32)
print(type(fill).__name__, fill(out, 2, 1.5), out.tolist(), pool.start().image.names)
"""
    done = pool_programs.run_process(["-c", code])
    assert done.stderr == ""
    names = "('prepare', 'resize', 'wanted', 'forget', 'dispatch', 'sequence')"
    assert done.stdout == f"function 0 [1.5, 1.5, 0.0] {names}\n"


def test_objects_laid_out_differently_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_DATA_AT", 24)
    objects.are_known.cache_clear()
    try:
        assert not objects.are_known()
        made = launch.make(kernels().address("empty"), block(), [], 0, 1)
        assert type(made) is not type(len)
        assert made() == 0
    finally:
        objects.are_known.cache_clear()


def test_a_function_in_a_cycle_has_its_definition_to_the_end() -> None:
    """Python's collector empties what it finds in some order: not what a function still looks at."""
    address = objects.definition("nothing", 1)
    before = ctypes.string_at(address, 32)
    for _ in range(10):
        holds: list[object] = []
        holds.append(objects.built_in("nothing", 1, b"", holds))
        del holds
        gc.collect()
        assert [float(number) for number in range(1000)]  # they would take its memory
        assert ctypes.string_at(address, 32) == before
    assert objects.definition("nothing", 1) == address
