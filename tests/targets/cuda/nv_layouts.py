"""Random layouts, and what threads hold by them: the simplest possible reading of a layout, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tessera.targets.cuda.ir.layouts import Digit, Layout, replicas

Array = np.ndarray[Any, np.dtype[Any]]


def random_layout(chance: np.random.Generator, shape: Sequence[int], threads: int, *, odd: bool = False) -> Layout:
    """A layout that covers a shape, sometimes more of it; `odd` ones have digits that are no powers of two."""
    digits: list[Digit] = []
    for axis, size in enumerate(shape):
        step = 1
        while step < size:
            ways = int(chance.choice([2, 3, 4, 5] if odd else [2, 4, 8]))
            digits.append(Digit(ways, axis, step))
            step *= ways
    chance.shuffle(digits)
    digits = [Digit(*map(int, digit)) for digit in digits]
    left, held, turns = threads, list[Digit](), list[Digit]()
    for digit in digits:
        fits = digit.size <= left if odd else left % digit.size == 0
        if fits and chance.random() < 0.7:
            held.append(digit)
            left //= digit.size
        else:
            turns.append(digit)
    if left > 1 and chance.random() < 0.8:
        held.insert(int(chance.integers(len(held) + 1)), replicas(left))
    return Layout.of(held, turns) if chance.random() < 0.7 else Layout(tuple(held), tuple(turns))


def coordinates(layout: Layout, rank: int, threads: int) -> Array:
    """[thread, register, axis] → coordinate, digit by digit."""
    found = np.zeros((threads, layout.count, rank), np.int64)
    for thread, register in itertools.product(range(threads), range(layout.count)):
        for digits, number in ((layout.threads, thread), (layout.registers, register)):
            rest = number
            for digit in digits:
                rest, value = divmod(rest, digit.size)
                if digit.axis >= 0:
                    found[thread, register, digit.axis] += value * digit.step
    return found


def scatter(array: Array, layout: Layout, threads: int, ghost: Any = 0) -> Array:
    """[thread, register] → the element that is there; `ghost` beyond the tile."""
    places = coordinates(layout, array.ndim, threads)
    inside = (places < np.array(array.shape)).all(-1)
    found = np.full(inside.shape, ghost, array.dtype)
    found[inside] = array[tuple(places[inside].T)]
    return found
