"""Executables: compiled programs in memory, bound to the shapes and strides of arrays, and run on them.

Binding does once what does not depend on where arrays lie: sizes, strides, grid and results' shapes are worked out, the
program is asked how much scratch memory it needs, and a launch is made that only takes addresses and numbers.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from tessera.compiler.launch_plan import ArrayArgument, NumberArgument, Plan
from tessera.dtypes.types import DType
from tessera.errors import DtypeError, EffectError, ResourceError, ShapeError
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.device import CPU
from tessera.runtime.device.memory import ALIGNMENT, Array, aligned_empty, contiguous_strides, data_address, is_array
from tessera.runtime.native import fresh_arrays, launch, pool
from tessera.runtime.program.overlap import Distances, OverlapError, distances, overlapping
from tessera.runtime.program.prints import Write, printing
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.tracked import counted, is_tracked, plain
from tessera.targets.cpu import features
from tessera.targets.llvm import image

Runner: TypeAlias = Callable[..., Any]
Geometry: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides of an array, in elements."""

# Fewer bytes than this are done before another thread has come.
_ONE_THREAD_BYTES = 32 * 1024
_LARGEST_SMALL = 1 << 20
_WORD = struct.Struct("<q")
_PACKING = {"i64": "<q", "f32": "<f4x", "f64": "<d", "i1": "<?7x"}
# Scratch memory that depends on a number is found by trying some.
_PROBES: dict[str, tuple[float, ...]] = {
    "i64": (0, 1, 7, 65, 4099, 1 << 20, -1),
    "f32": (0.0, 1.0, 1e6),
    "f64": (0.0, 1.0, 1e6),
    "i1": (False, True),
}


class Fresh(NamedTuple):
    """A result that each call makes anew."""

    shape: tuple[int, ...]
    storage: np.dtype[Any]
    meta: Meta

    def maker(self) -> Callable[[], Array]:
        """A function that makes its memory. Large arrays come from NumPy, which asks the system for large pages."""
        small = self.meta.nbytes <= _LARGEST_SMALL
        return (fresh_arrays.maker(self.shape, self.storage) if small else None) or partial(
            aligned_empty, self.shape, self.storage
        )

    @staticmethod
    def of(dtype: DType, shape: tuple[int, ...]) -> Fresh:
        return Fresh(shape, dtype.storage, Meta(dtype, shape, contiguous_strides(shape, 1), CPU, ALIGNMENT))


class Ready(NamedTuple):
    """A program for arrays of given sizes and strides: all that a launch needs besides addresses and numbers.

    `scratch` is None where it depends on the numbers. `is_empty`: the grid has no points, and there is nothing to do.
    """

    entry: int
    template: bytes
    threads: int
    scratch: int | None
    is_empty: bool
    open: tuple[tuple[int, int], ...] = ()
    """Words of the template whose numbers are tracked: at which byte, and the number."""


class Executable:
    """A program in memory, for as long as this or one of its launches is referenced."""

    def __init__(self, plan: Plan, code: bytes) -> None:
        self.plan = plan
        self.nbytes = len(code)
        self.image = image.load(code)
        self._entry = self.image.address(plan.name)
        scratch = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._workspace = scratch(self.image.address(f"{plan.name}.workspace"))

    def bind(self, values: Sequence[Any], *, deterministic: bool = True) -> Runner:
        """A function of the inputs, for arrays of these shapes and strides, and any numbers.

        It takes arrays and Python numbers, and returns None, the result as a tensor, or a tuple of results. Unless it
        need not be `deterministic`, a program whose results depend on the order of its parts runs on one thread.
        """
        plan = self.plan
        arrays: list[Array | None] = [value if is_array(value) else None for value in values]
        for index, (argument, array) in enumerate(zip(plan.inputs, arrays, strict=True)):
            if isinstance(argument, ArrayArgument):
                check_array(plan, index, argument, array)
        sizes = plan.sizes([None if array is None else array.shape for array in arrays])
        fresh = [
            Fresh.of(argument.dtype, shape)
            for argument, shape in zip(plan.results, plan.result_shapes(sizes), strict=True)
        ]
        grid = plan.extents(sizes)
        plan.check_covers(sizes, grid)
        given = [None if array is None else (array.shape, _in_elements(array)) for array in arrays]
        geometry = [*given, *((one.meta.shape, one.meta.strides) for one in fresh)]
        if 0 not in grid:
            plan.check(geometry)
        template, _ = self._template(geometry, grid)
        apart = list(distances(plan, given))
        touched = sum(one.meta.nbytes for one in fresh) + sum(array.nbytes for array in arrays if array is not None)
        threads = self._threads(math.prod(grid), touched, deterministic)
        start = self._launch(template, threads, apart=apart)
        return _runner(plan, printing(plan, start) if plan.prints else start, apart, fresh)

    def ready(self, geometry: Sequence[Geometry | None], *, deterministic: bool = True) -> Ready:
        """A launch of the program on arrays of these sizes and strides, results too; None for numbers."""
        plan = self.plan
        sizes = plan.sizes([None if found is None else found[0] for found in geometry])
        grid = plan.extents(sizes)
        plan.check_covers(sizes, grid)
        if 0 not in grid:
            plan.check(geometry)
        template, opened = self._template(geometry, grid)
        touched = sum(
            math.prod(found[0]) * argument.dtype.storage.itemsize
            for argument, found in zip(plan.arguments, geometry, strict=True)
            if isinstance(argument, ArrayArgument) and found is not None
        )
        start_pool()
        scratch = counted(_Need(self, template, [offset for offset, _ in opened]).found, *[one for _, one in opened])
        threads = counted(self._threads, math.prod(grid), touched, deterministic)
        return Ready(self._entry, bytes(template), threads, None if scratch < 0 else scratch, 0 in grid, tuple(opened))

    def _threads(self, instances: int, touched: int, deterministic: bool) -> int:
        alone = instances <= 1 or touched <= _ONE_THREAD_BYTES or (self.plan.ordered and deterministic)
        return 1 if alone else pool.MOST_THREADS

    def launch(self, ready: Ready, write: Write) -> launch.Launch:
        """A function of the addresses of arrays, as whole numbers, and of numbers, that runs the program."""
        start = self._launch(bytearray(ready.template), ready.threads, arrays="i64")
        return printing(self.plan, start, write) if self.plan.prints else start

    def _template(
        self, geometry: Sequence[Geometry | None], grid: tuple[int, ...]
    ) -> tuple[bytearray, list[tuple[int, int]]]:
        """The args block; and numbers in it that are tracked, with the bytes that they are at."""
        template = bytearray(launch.WORD * (launch.FIRST_SLOT + self.plan.words))
        opened: list[tuple[int, int]] = []

        def fill(word: int, numbers: Sequence[int]) -> None:
            first = launch.WORD * (launch.FIRST_SLOT + word)
            struct.pack_into(f"<{len(numbers)}q", template, first, *map(plain, numbers))
            opened.extend((first + launch.WORD * at, one) for at, one in enumerate(numbers) if is_tracked(one))

        for argument, found in zip(self.plan.arguments, geometry, strict=True):
            if found is not None:
                fill(argument.word + 1, [*found[0], *found[1]])
        fill(self.plan.grid_word, grid)
        return template, opened

    def _launch(
        self, template: bytearray, threads: int, arrays: str = "array", apart: Sequence[Distances] = ()
    ) -> launch.Launch:
        start_pool()
        arguments = [
            (one.kind if isinstance(one, NumberArgument) else arrays, launch.FIRST_SLOT + one.word)
            for one in self.plan.arguments
        ]
        if self.plan.prints:  # behind the arguments: the address of the buffer
            arguments.append(("i64", launch.FIRST_SLOT + self.plan.prints_word))

        pairs = [launch.Pair(arguments[one.first][1], arguments[one.second][1], one.above, one.below) for one in apart]

        def made(scratch: int) -> launch.Launch:
            return launch.make(self._entry, bytes(template), arguments, scratch, threads, keep=self.image, apart=pairs)

        needs = self.needs(template)
        return made(needs.pop()) if len(needs) == 1 else self._launch_by_numbers(template, self._numbers(), made)

    def _numbers(self) -> list[tuple[int, NumberArgument]]:
        """The numbers among the arguments, with their indices."""
        return [(index, one) for index, one in enumerate(self.plan.arguments) if isinstance(one, NumberArgument)]

    def needs(self, template: bytearray) -> set[int]:
        """How many bytes a thread needs, for several numbers: one answer where it does not depend on them."""
        numbers = self._numbers()
        return {self._scratch(template, [one for _, one in numbers], values) for values in _probes(numbers)}

    def _launch_by_numbers(
        self, template: bytearray, numbers: Sequence[tuple[int, NumberArgument]], made: Callable[[int], launch.Launch]
    ) -> launch.Launch:
        """For programs whose need of memory depends on their numbers: a launch for each need."""
        launches: dict[int, launch.Launch] = {}
        kinds = [one for _, one in numbers]

        def run(*values: Any) -> int | tuple[int, ...]:
            try:
                scratch = self._scratch(bytearray(template), kinds, [values[index] for index, _ in numbers])
            except struct.error:
                scratch = 0  # a number that does not fit: the launch says so
            found = launches.get(scratch)
            if found is None:
                found = launches.setdefault(scratch, made(scratch))
            return found(*values)

        return run

    def _scratch(self, template: bytearray, numbers: Sequence[NumberArgument], values: Sequence[Any]) -> int:
        """How many bytes a thread needs for these numbers."""
        for number, value in zip(numbers, values, strict=True):
            offset = launch.WORD * (launch.FIRST_SLOT + number.word)
            struct.pack_into(_PACKING[number.kind], template, offset, value)
        found = self._workspace(ctypes.addressof(ctypes.c_char.from_buffer(template)))
        # The program may have reported a failure, as it would for these numbers; that is for the launch to say.
        template[: launch.WORD * launch.FIRST_SLOT] = bytes(launch.WORD * launch.FIRST_SLOT)
        return found


class _Need(NamedTuple):
    """Asks a program how many bytes of scratch memory a thread needs, with other numbers at some offsets of a block."""

    executable: Executable
    template: bytearray
    offsets: Sequence[int]

    def found(self, *numbers: int) -> int:
        """How many; -1 where that depends on the program's own numbers."""
        template = bytearray(self.template)
        for offset, number in zip(self.offsets, numbers, strict=True):
            _WORD.pack_into(template, offset, number)
        needs = self.executable.needs(template)
        return needs.pop() if len(needs) == 1 else -1


def _in_elements(array: Array) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def _probes(numbers: Sequence[tuple[int, NumberArgument]]) -> Iterator[Sequence[float]]:
    """Values to try: all numbers alike, and each one on its own."""
    choices = [_PROBES[one.kind] for _, one in numbers]
    yield from itertools.islice(zip(*map(itertools.cycle, choices), strict=True), max(map(len, choices), default=0))
    usual = [options[0] for options in choices]
    for index, options in enumerate(choices):
        for value in options:
            yield [*usual[:index], value, *usual[index + 1 :]]
    if not numbers:
        yield []


_RUN = """
def make(plan, apart, start, fail, explain, refuse, tensor{given}):
    def run({values}):
{checks}{makes}        try:
            status = start({passed})
        except (OverflowError, MemoryError) as error:
            explain(plan, ({values}), error)
        if status != 0:
            fail(plan, apart, status, ({values}))
        return {result}
    return run
"""


@lru_cache(maxsize=256)
def _run_maker(inputs: int, written: tuple[int, ...], results: int) -> Callable[..., Runner]:
    """A function that makes runners with so many inputs and results: code without loops and lists."""
    values = "".join(f"value{index}, " for index in range(inputs))
    tensors = [f"tensor(array{index}, meta{index})" for index in range(results)]
    text = _RUN.format(
        given="".join(f", fresh{index}, meta{index}" for index in range(results)),
        values=values,
        checks="".join(
            f"        if not value{index}.flags.writeable:\n            refuse(plan, {index})\n" for index in written
        ),
        makes="".join(f"        array{index} = fresh{index}()\n" for index in range(results)),
        passed=values + "".join(f"array{index}, " for index in range(results)),
        result=tensors[0] if results == 1 else f"({', '.join(tensors)})" if results else None,
    )
    scope: dict[str, Any] = {"__name__": __name__}
    exec(text, scope)
    return scope["make"]


def _runner(plan: Plan, start: launch.Launch, apart: Sequence[Distances], results: Sequence[Fresh]) -> Runner:
    """Writes the code of a call: memory for the results, the launch, and tensors of the results."""
    written = tuple(index for index, one in enumerate(plan.inputs) if isinstance(one, ArrayArgument) and one.written)
    make = _run_maker(len(plan.inputs), written, len(results))
    fresh = [part for one in results for part in (one.maker(), one.meta)]
    return make(plan, apart, start, _fail, _explain, refuse_to_write, Tensor.fresh, *fresh)


def check_array(plan: Plan, index: int, argument: ArrayArgument, array: Array | None) -> None:
    """Whether a plan can take an array: its type, strides of whole elements, and that it may be written if it is."""
    what = f"argument {index} of @{plan.name}"
    if array is None or array.dtype != argument.dtype.storage:
        found = "a number" if array is None else array.dtype
        raise DtypeError(f"{what}: expected an array of {argument.dtype}, got {found}")
    if any(stride % array.itemsize for stride in array.strides):
        raise ShapeError(
            f"{what}: strides of {array.strides} bytes are not whole elements of {array.itemsize} bytes",
            hint="give a copy of the array",
        )
    if argument.written and not array.flags.writeable:
        refuse_to_write(plan, index)


def refuse_to_write(plan: Plan, index: int) -> NoReturn:
    raise EffectError(
        f"argument {index} of @{plan.name} is written, and the array given is read-only",
        hint="give a writable array, such as a copy",
    )


def _fail(plan: Plan, apart: Sequence[Distances], status: int | tuple[int, ...], values: Sequence[Any]) -> NoReturn:
    if status == launch.OVERLAP:
        raise overlap_error(plan, apart, values)
    code = status if isinstance(status, int) else status[0]
    raise plan.failures[code - 1].error()


def overlap_error(plan: Plan, apart: Sequence[Distances], values: Sequence[Any]) -> OverlapError:
    """The error for arrays that overlap."""
    addresses = [data_address(value) if hasattr(value, "flags") else None for value in values]
    return OverlapError(plan.name, overlapping(apart, addresses))


def _explain(plan: Plan, values: Sequence[Any], error: Exception) -> NoReturn:
    if isinstance(error, MemoryError):
        raise ResourceError(
            f"@{plan.name}: scratch memory cannot be had", hint="use fewer threads or smaller blocks"
        ) from None
    for index, (argument, value) in enumerate(zip(plan.inputs, values, strict=True)):
        if isinstance(argument, NumberArgument) and argument.kind == "i64" and not -(1 << 63) <= value < 1 << 63:
            raise DtypeError(
                f"argument {index} of @{plan.name}: expected a number of i64, got {value!r}",
                hint=f"give one whole number from {-(1 << 63)} to {(1 << 63) - 1}",
            ) from None
    raise error


def start_pool() -> None:
    """Starts the machine code that runs kernels on threads: from the compile cache, or compiled and kept there."""
    if pool.is_running():
        return
    compiler = build()
    if compiler is None:
        pool.start()
        return
    store, key = cache.shared(), cache.key_of("runtime", compiler, features.family())
    found = store.get(key)
    if found is not None:
        try:
            pool.start(found)
        except ResourceError:  # it is no image, or not a whole one
            found = None
    if found is None:
        made = pool.compile_runtime()
        store.put(key, made)
        pool.start(made)
