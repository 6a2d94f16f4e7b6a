"""Sequences: several launches by one call, values that they share, the first failure, and nothing behind it."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

from sequence_tables import noted_tables
from tessera.errors import CompileError
from tessera.runtime.native import launch, pool, sequence
from tessera.shapes.tracked import Trail, is_tracked, plain
from tessera.targets.cpu import features
from tessera.targets.llvm import image, machine

# Adds the number in word 9 to what word 8 points at; a negative sum is a failure that says which.
TEXT = """
define i64 @add(ptr %args, i64 %thread, i64 %threads, ptr %workspace) {
entry:
  %at = getelementptr i64, ptr %args, i64 8
  %target = load ptr, ptr %at
  %number_at = getelementptr i64, ptr %args, i64 9
  %number = load i64, ptr %number_at
  %before = load i64, ptr %target
  %after = add i64 %before, %number
  %negative = icmp slt i64 %after, 0
  br i1 %negative, label %fail, label %fine
fail:
  %status_at = getelementptr i64, ptr %args, i64 1
  store i64 7, ptr %status_at
  %said_at = getelementptr i64, ptr %args, i64 2
  store i64 %after, ptr %said_at
  ret i64 0
fine:
  store i64 %after, ptr %target
  ret i64 0
}
"""


@pytest.fixture(name="add", scope="module")
def _add() -> tuple[int, image.Image]:
    processor, extras = features.target(features.level())
    found = image.load(image.flatten(machine.compile_text(TEXT, cpu=processor, features=extras)))
    return found.address("add"), found


def step(entry: int, *fields: sequence.Field, number: int = 0) -> sequence.Step:
    template = bytes(launch.WORD * launch.FIRST_SLOT) + struct.pack("<2q", 0, number)
    return sequence.Step(entry, template, fields, 0, 1)


def test_launches_share_values(add: tuple[int, image.Image]) -> None:
    entry, held = add
    pool.start()
    word = launch.WORD
    steps = [
        step(entry, sequence.Field(8 * word, 0), number=5),  # values[0][0] += 5
        step(entry, sequence.Field(8 * word, 0, word), sequence.Field(9 * word, 1)),  # values[0][1] += values[1]
        step(entry, sequence.Field(8 * word, 2), sequence.Field(9 * word, 1, 100)),  # *values[2] += values[1] + 100
    ]
    run = sequence.make(steps, ["array", "i64", "i64"], keep=held)
    array, other = np.zeros(2, np.int64), ctypes.c_int64(1)
    assert run(array, 3, ctypes.addressof(other)) == 0
    assert run(array, -1, ctypes.addressof(other)) == 0
    assert (array.tolist(), other.value) == ([10, 2], 1 + 103 + 99)


def test_the_first_failure_ends_it(add: tuple[int, image.Image]) -> None:
    entry, held = add
    pool.start()
    steps = [
        step(entry, sequence.Field(64, 0), number=5),
        step(entry, sequence.Field(64, 0), number=-8),
        step(entry, sequence.Field(64, 0), number=100),
    ]
    run = sequence.make(steps, ["array"], keep=held)
    array = np.zeros(1, np.int64)
    assert run(array) == (7, 1, -3, 0, 0, 0, 0)
    assert array[0] == 5
    assert sequence.make([], [], keep=held)() == 0


def test_tracked_numbers_are_filled_in(add: tuple[int, image.Image], monkeypatch: pytest.MonkeyPatch) -> None:
    entry, held = add
    pool.start()
    tables = noted_tables(monkeypatch)

    def made(added: Any, scratch: Any, threads: Any, number: Any) -> Any:
        known = step(entry, sequence.Field(64, 0, 8), number=3)
        tracked = sequence.Step(
            entry,
            bytes(launch.WORD * launch.FIRST_SLOT) + struct.pack("<2q", 0, plain(number)),
            (sequence.Field(64, 0, added),),
            scratch,
            threads,
            ((9 * launch.WORD, number),) if is_tracked(number) else (),
        )
        return sequence.make([known, tracked], ["array"], keep=held)

    trail = Trail()
    code = trail.function(made(*map(trail.give, (0, 64, 1, 7))).text)
    array = np.zeros(3, np.int64)
    assert not tables
    assert code(16, 128, 2, 40)(array) == 0
    assert made(16, 128, 1, 40)(array) == 0  # on one thread
    assert array.tolist() == [0, 6, array[2]]
    made(16, 128, 2, 40)
    assert tables[0] == tables[2] != tables[1]


def test_calls_are_checked(add: tuple[int, image.Image]) -> None:
    entry, held = add
    pool.start()
    run = sequence.make([step(entry, sequence.Field(64, 0), number=5)], ["array"], keep=held)
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        run(1, 2)
    with pytest.raises(TypeError, match="expected an array"):
        run(1)
    with pytest.raises(CompileError, match="values"):
        sequence.make([], ["i64"] * 4000)
    with pytest.raises(CompileError, match="too large"):
        sequence.make([sequence.Step(entry, bytes(1 << 15), (), 0, 1)], [])
