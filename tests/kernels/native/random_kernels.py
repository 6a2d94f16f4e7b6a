"""Random tile kernels as data: what a kernel does, step by step, run by the tile language and by NumPy.

Values are small whole numbers, and each step keeps them so: all element types hold them exactly, sums in any order are
equal, and results are compared bit by bit. Arrays are views of one buffer, which overlap or do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tessera import DType, Schedule, bf16, f16, f32, f64, i8, i16, i32, i64, kernel, tile

if TYPE_CHECKING:
    Filled = Any
else:
    from tessera import Out as Filled

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Step: TypeAlias = tuple[Any, ...]
DTYPES: tuple[DType, ...] = (f32, f64, f16, bf16, i8, i16, i32, i64)
MOST = 7
"""The largest value; 16 of them fit into eight bits."""
SIDE = 16


class Case(NamedTuple):
    """A kernel, where its arguments lie in a buffer, and how it is compiled."""

    dtype: DType
    rank: int
    steps: tuple[Step, ...]
    views: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]
    """Of each argument the first element, the shape, and the strides in elements."""
    grid: int
    schedule: Schedule
    seed: int


@kernel
def run_steps(x: Any, y: Any, z: Filled, *, steps: tuple[Step, ...], dtype: DType):
    arguments, made = (x, y, z), []
    for step, *parts in steps:
        step(arguments, made, dtype, *parts)


def _offsets(at: Sequence[int], rows: int) -> list[Any]:
    """Where a step begins: at a place, and so many rows further in each program instance."""
    return [tile.program_id(0) * rows + at[0] if rows else at[0], *at[1:]]


def _load(arguments: Any, made: list[Any], dtype: DType, which: int, at: Any, shape: Any, rows: int) -> None:
    made.append(tile.load(arguments[which], at=tuple(_offsets(at, rows)), shape=shape))


def _store(arguments: Any, made: list[Any], dtype: DType, which: int, value: int, at: Any, rows: int) -> None:
    tile.store(arguments[which], made[value], at=tuple(_offsets(at, rows)))


def _small(value: Any) -> Any:
    return tile.minimum(tile.maximum(value, -MOST), MOST)


def _combine(arguments: Any, made: list[Any], dtype: DType, how: str, one: int, other: int) -> None:
    a, b = made[one], made[other]
    made.append(tile.cast(_small(a + b if how == "add" else a - b if how == "sub" else a * b), dtype))


def _choose(arguments: Any, made: list[Any], dtype: DType, one: int, other: int) -> None:
    made.append(tile.where(made[one] > made[other], made[one], -made[other]))


def _fold(arguments: Any, made: list[Any], dtype: DType, how: str, one: int, axis: int) -> None:
    fold = tile.sum if how == "sum" else tile.max if how == "max" else tile.min
    found = fold(made[one], axis, keepdims=True)
    made.append(tile.broadcast(tile.cast(_small(found), dtype), made[one].shape))


def _transpose(arguments: Any, made: list[Any], dtype: DType, one: int) -> None:
    made.append(made[one].T)


def _dot(arguments: Any, made: list[Any], dtype: DType, one: int, other: int) -> None:
    made.append(tile.cast(_small(tile.dot(made[one], made[other])), dtype))


def _loop(
    arguments: Any, made: list[Any], dtype: DType, source: int, target: int, at: Any, shape: Any, step: int
) -> None:
    """Several times: adds what is loaded to a sum, and stores that further on."""
    total = tile.zeros(shape, dtype)
    for number in tile.range(3):
        total = tile.cast(_small(total + tile.load(arguments[source], at=(number * step, *at[1:]), shape=shape)), dtype)
        tile.store(arguments[target], total, at=(number * step + at[0], *at[1:]))
    made.append(total)


STEPS: dict[str, Callable[..., None]] = {
    "load": _load,
    "store": _store,
    "combine": _combine,
    "choose": _choose,
    "fold": _fold,
    "transpose": _transpose,
    "dot": _dot,
    "loop": _loop,
}
COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


class Reference:
    """The same steps by NumPy, in float64, one after the other."""

    def __init__(self, case: Case, arguments: Sequence[Array]) -> None:
        self.case, self.arguments = case, arguments

    def run(self) -> None:
        for program in range(self.case.grid):
            self.program, made = program, list[Array]()
            for name, *parts in self.case.steps:
                getattr(self, f"_{name}")(made, *parts)

    def _at(self, at: Sequence[int], rows: int) -> list[int]:
        return [at[0] + self.program * rows, *at[1:]]

    def _read(self, which: int, at: Sequence[int], shape: Sequence[int]) -> Array:
        array, found = self.arguments[which], np.zeros(shape)
        place = tuple(slice(a, a + n) for a, n in zip(at, shape, strict=True))
        inside = array[place].astype(np.float64)
        found[tuple(slice(n) for n in inside.shape)] = inside
        return found

    def _write(self, which: int, value: Array, at: Sequence[int]) -> None:
        array = self.arguments[which]
        target = array[tuple(slice(a, a + n) for a, n in zip(at, value.shape, strict=True))]
        target[...] = value[tuple(slice(n) for n in target.shape)].astype(array.dtype)

    def _load(self, made: list[Array], which: int, at: Any, shape: Any, rows: int) -> None:
        made.append(self._read(which, self._at(at, rows), shape))

    def _store(self, made: list[Array], which: int, value: int, at: Any, rows: int) -> None:
        self._write(which, made[value], self._at(at, rows))

    def _combine(self, made: list[Array], how: str, one: int, other: int) -> None:
        made.append(np.clip(COMBINE[how](made[one], made[other]), -MOST, MOST))

    def _choose(self, made: list[Array], one: int, other: int) -> None:
        made.append(np.where(made[one] > made[other], made[one], -made[other]))

    def _fold(self, made: list[Array], how: str, one: int, axis: int) -> None:
        found = {"sum": np.sum, "max": np.max, "min": np.min}[how](made[one], axis=axis, keepdims=True)
        made.append(np.broadcast_to(np.clip(found, -MOST, MOST), made[one].shape))

    def _transpose(self, made: list[Array], one: int) -> None:
        made.append(made[one].T)

    def _dot(self, made: list[Array], one: int, other: int) -> None:
        made.append(np.clip(made[one] @ made[other], -MOST, MOST))

    def _loop(self, made: list[Array], source: int, target: int, at: Any, shape: Any, step: int) -> None:
        total = np.zeros(shape)
        for iteration in range(3):
            total = np.clip(total + self._read(source, (iteration * step, *at[1:]), shape), -MOST, MOST)
            self._write(target, total, (iteration * step + at[0], *at[1:]))
        made.append(total)


def random_case(seed: int) -> Case:
    """A case by its number."""
    random = Random(seed)
    dtype, rank = random.choice(DTYPES), random.choice((1, 2, 2))
    grid = random.choice((1, 1, 1, 4))
    views = _partitioned(random, rank) if grid > 1 else tuple(_view(random, rank) for _ in range(3))
    steps = _steps(random, dtype, rank, views, grid)
    schedule = Schedule(
        block=random.choice(((64, 64), (32, 16), (16, 48, 16), (8, 8), (128, 32))), warps=random.choice((1, 2, 4, 8))
    )
    return Case(dtype, rank, steps, views, grid, schedule, seed)


def _view(random: Random, rank: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """A view of the buffer, that may begin anywhere and run in any direction."""
    if rank == 1:
        step = random.choice((1, 1, 1, 2, -1))
        size = random.choice((SIDE, SIDE, 2 * SIDE, 11))
        start = random.choice((0, 0, 0, 1, 3, 8, SIDE)) + (size - 1 if step < 0 else 0)
        return start, (size,), (step,)
    rows, columns = random.choice((SIDE, SIDE, 11)), random.choice((SIDE, SIDE, 13))
    strides = random.choice(((SIDE, 1), (SIDE, 1), (1, SIDE), (2 * SIDE, 1), (SIDE, 2)))
    if strides == (SIDE, 2):  # each row ends before the next begins
        columns = SIDE // 2
    return random.choice((0, 0, 0, 1, 5, SIDE, 8 * SIDE)), (rows, columns), strides


def _partitioned(random: Random, rank: int) -> tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]:
    """Views of which each program instance has rows of its own: all are one, or lie apart."""
    sizes = (4 * SIDE,) if rank == 1 else (4 * SIDE, SIDE)
    strides = (1,) if rank == 1 else (SIDE, 1)
    length = 4 * SIDE * (1 if rank == 1 else SIDE)
    return tuple((random.choice((0, 0, length)), sizes, strides) for _ in range(3))


def _steps(random: Random, dtype: DType, rank: int, views: Sequence[Any], grid: int) -> tuple[Step, ...]:
    shape = (SIDE,) * rank
    steps: list[Step] = []
    rows = SIDE if grid > 1 else 0
    count = 0

    def place() -> tuple[int, ...]:
        if grid > 1:
            return (0,) * rank
        return tuple(random.choice((0, 0, 0, 1, 3, 8)) for _ in range(rank))

    def some() -> int:
        return random.randrange(count)

    for _ in range(random.randint(4, 9)):
        options = ["load", "store", "combine", "choose", "fold"] if count else ["load"]
        if count and rank == 2:
            options += ["transpose", "dot"]
        if count and grid == 1:
            options.append("loop")
        name = random.choice(options)
        match name:
            case "load":
                steps.append((name, random.randrange(3), place(), shape, rows))
            case "store":
                steps.append((name, random.choice((2, 2, 1)), some(), place(), rows))
            case "combine":
                steps.append((name, random.choice(list(COMBINE)), some(), some()))
            case "choose":
                steps.append((name, some(), some()))
            case "fold":
                steps.append((name, random.choice(("sum", "max", "min")), some(), random.randrange(rank)))
            case "transpose":
                steps.append((name, some()))
            case "dot":
                if not dtype.is_float or dtype is f64:
                    continue
                steps.append((name, some(), some()))
            case _:
                steps.append((name, random.randrange(3), random.choice((1, 2)), place(), shape, random.choice((1, 4))))
        count += name != "store"
    steps.append(("store", 2, some(), place(), rows))
    return tuple(steps)


def arrays_of(case: Case, buffer: Array) -> list[Array]:
    """The arguments of a case, in a buffer."""
    item = buffer.itemsize
    return [
        np.ndarray(shape, buffer.dtype, buffer, start * item, tuple(stride * item for stride in strides))
        for start, shape, strides in case.views
    ]


def fresh_buffer(case: Case) -> Array:
    """Small whole numbers, the same for the same case."""
    numbers = np.random.default_rng(case.seed).integers(-MOST, MOST + 1, 64 * SIDE * SIDE)
    return numbers.astype(case.dtype.storage)


def expected(case: Case) -> Array:
    """The buffer as the case leaves it."""
    buffer = fresh_buffer(case)
    Reference(case, arrays_of(case, buffer)).run()
    return buffer


def found(case: Case) -> Array:
    """The buffer as the kernel leaves it, by the backend that is chosen around."""
    buffer = fresh_buffer(case)
    call(case, arrays_of(case, buffer))
    return buffer


def call(case: Case, arguments: Sequence[Any]) -> None:
    """Calls the kernel of a case."""
    steps = tuple((STEPS[name], *parts) for name, *parts in case.steps)
    run_steps.with_schedule(case.schedule)[case.grid](*arguments, steps=steps, dtype=case.dtype)
