"""Executables of a GPU: programs loaded into its context, bound to the shapes and strides of arrays, and launched.

Binding does once what does not depend on where arrays lie: sizes, strides, grid and the results' shapes are worked out,
and a launch is made that only takes addresses and numbers. A call allocates the results on the current stream and
launches there; it does not wait, unless the program can report a failure.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tessera.errors import DeviceError, DtypeError, ShapeError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.backend import CudaBackend, note_array
from tessera.runtime.cuda.launching import Geometry, Params, Start, starter, too_long
from tessera.runtime.cuda.modules import Function, Module, check_grid
from tessera.runtime.cuda.pool import Pool, rounded
from tessera.runtime.cuda.staging import pinned
from tessera.runtime.cuda.streams import SEVERAL, Stream, cuda_device, current_streams, default_stream
from tessera.runtime.cuda.tensor_maps import Maps
from tessera.runtime.device import Device
from tessera.runtime.executable import Runner, refuse_to_write
from tessera.runtime.launch_plan import WORD, ArrayArgument, NumberArgument, Plan
from tessera.runtime.memory import ALIGNMENT, Array, DeviceMemory, contiguous_strides, device_of, owner_of
from tessera.runtime.meta import Meta
from tessera.runtime.tensor import Tensor

_REPORT_WORDS = 7
_DATA_AT = 16  # in an array object


class Fresh(NamedTuple):
    """A result that each call makes anew."""

    shape: tuple[int, ...]
    storage: np.dtype[Any]
    meta: Meta

    def maker(self) -> Callable[[Stream], Array]:
        """What makes its memory, for use on a stream."""
        size, shape, storage = rounded(self.meta.nbytes), self.shape, self.storage
        backend = self.meta.device.backend
        assert isinstance(backend, CudaBackend)
        at, array, take = DeviceMemory.from_address, np.ndarray, backend.pool.take

        def make(stream: Stream) -> Array:
            try:
                home = stream.free[size]
                memory = at(home.pop())
            except (KeyError, IndexError):
                memory, home = take(stream, size)
            memory.home = home
            return array(shape, storage, memory)

        return make


class Report:
    """The record in which a kernel says what went wrong: memory of the GPU, zeros while nothing did."""

    def __init__(self, device: Device) -> None:
        backend = device.backend
        assert isinstance(backend, CudaBackend)
        self.buffer = backend.allocate(WORD * _REPORT_WORDS)
        self.backend = backend
        self.host = pinned(backend.context, WORD * _REPORT_WORDS)
        self.clear()

    def clear(self) -> None:
        self.backend.fill_zeros(self.buffer.pointer, WORD * _REPORT_WORDS)

    def read(self, stream: Stream) -> tuple[int, ...]:
        """Waits for the stream; the status and its details."""
        nbytes = WORD * _REPORT_WORDS
        with self.backend.context as context:
            status = context.calls.to_host(self.host, self.buffer.pointer, nbytes, stream.handle)
        driver.check_status(status, f"reading what a kernel on {stream.device} reports")
        stream.synchronize()
        return struct.unpack(f"<{_REPORT_WORDS}q", ctypes.string_at(self.host, nbytes))


class Bound(NamedTuple):
    """A program for arrays of given shapes and strides, as launches and graphs need it."""

    plan: Plan
    device: Device
    function: Function
    params: Params
    blocks: int
    fresh: tuple[Callable[[Stream], Array], ...]
    metas: tuple[Meta, ...]
    maps: tuple[Maps, ...]
    start: Start

    def maps_of(self, arrays: Sequence[Array]) -> list[Array]:
        """The tensor maps of all arrays, results too."""
        return [one.of(data_address(arrays[one.recipe.argument])) for one in self.maps]

    def results(self, arrays: Sequence[Array]) -> Any:
        """What a call returns, given the arrays of its results."""
        tensors = [Tensor.fresh(array, meta) for array, meta in zip(arrays, self.metas, strict=True)]
        return tensors[0] if len(tensors) == 1 else tuple(tensors) if tensors else None


class CudaExecutable:
    """A program for GPUs. It is loaded into the context of each GPU whose arrays it is bound to."""

    def __init__(self, plan: Plan, ptx: bytes) -> None:
        if plan.device is None:
            raise DeviceError(f"@{plan.name} was compiled for the CPU", hint="compile it for a GPU, or use Executable")
        self.plan = plan
        self.ptx = ptx
        self._functions: dict[int, Function] = {}
        self._lock = Lock()

    def function(self, index: int) -> Function:
        """The kernel in the context of `cuda:index`, checked to fit there."""
        found = self._functions.get(index)
        if found is None:
            with self._lock:
                found = self._functions.get(index) or self._loaded(index)
                self._functions[index] = found
        return found

    def _loaded(self, index: int) -> Function:
        assert self.plan.device is not None
        found = Module(index, self.ptx, f"@{self.plan.name}").function(self.plan.name)
        found.prepare(self.plan.device, self.plan.block_bytes)
        return found

    def bind(self, values: Sequence[Any], *, deterministic: bool = True) -> Runner:
        """A function of the inputs, for arrays of these shapes and strides on one GPU, and any numbers.

        It takes arrays and Python numbers, and returns None, the result as a tensor, or a tuple of results.
        """
        bound = self.bound(values)
        return _runner(bound)

    def bound(self, values: Sequence[Any]) -> Bound:
        """The program for such arrays."""
        plan, launch = self.plan, self.plan.device
        assert launch is not None
        arrays: list[Array | None] = [value if isinstance(value, np.ndarray) else None for value in values]
        for place, (argument, array) in enumerate(zip(plan.inputs, arrays, strict=True)):
            if isinstance(argument, ArrayArgument):
                self._check(place, argument, array)
        device = self._device(arrays)
        sizes = plan.sizes([None if array is None else array.shape for array in arrays])
        shapes = plan.result_shapes(sizes)
        fresh = [_fresh(one.dtype, shape, device) for one, shape in zip(plan.results, shapes, strict=True)]
        grid = plan.extents(sizes)
        geometry = [None if array is None else Geometry(array.shape, _in_elements(array)) for array in arrays]
        geometry += [Geometry(one.meta.shape, one.meta.strides) for one in fresh]
        params = Params(plan, geometry, grid)
        function = self.function(device.index)
        blocks = launch.blocks(_product(grid), function.context.properties.multiprocessors)
        check_grid(plan.name, blocks)
        return Bound(
            plan,
            device,
            function,
            params,
            blocks,
            tuple(one.maker() for one in fresh),
            tuple(one.meta for one in fresh),
            tuple(self._maps(geometry)) if blocks else (),
            starter(params, function, blocks),
        )

    def _check(self, place: int, argument: ArrayArgument, array: Array | None) -> None:
        what = f"argument {place} of @{self.plan.name}"
        if array is None or array.dtype != argument.dtype.storage:
            found = "a number" if array is None else array.dtype
            raise DtypeError(f"{what}: expected an array of {argument.dtype}, got {found}")
        if any(stride % array.itemsize for stride in array.strides):
            raise ShapeError(
                f"{what}: strides of {array.strides} bytes are not whole elements of {array.itemsize} bytes",
                hint="give a copy of the array",
            )
        if argument.written and not array.flags.writeable:
            refuse_to_write(self.plan, place)

    def _device(self, arrays: Sequence[Array | None]) -> Device:
        """The GPU on which all arrays lie."""
        known: dict[Device, int] = {}
        for place, array in enumerate(arrays):
            if array is None:
                continue
            found = place_of(array)
            if found is None or found.kind != "cuda":
                raise DeviceError(
                    f"argument {place} of @{self.plan.name} lies on {found or 'the host'}, the program runs on a GPU",
                    hint="bring it over first: .cuda()",
                )
            known.setdefault(found, place)
        if len(known) > 1:
            where = ", ".join(f"argument {place} on {device}" for device, place in known.items())
            raise DeviceError(f"@{self.plan.name} runs on one GPU: {where}", hint="bring all arrays to one: .to(...)")
        return next(iter(known), cuda_device(None))

    def _maps(self, geometry: Sequence[Geometry | None]) -> list[Maps]:
        assert self.plan.device is not None
        found: list[Maps] = []
        for recipe in self.plan.device.maps:
            argument, measured = self.plan.arguments[recipe.argument], geometry[recipe.argument]
            assert isinstance(argument, ArrayArgument)
            assert measured is not None
            what = f"argument {recipe.argument} of @{self.plan.name}"
            found.append(Maps(recipe, argument.dtype, measured.sizes, measured.strides, what))
        return found


def place_of(array: Array) -> Device | None:
    """The device of an array; None for the host's own."""
    owner = owner_of(array)
    if isinstance(owner, DeviceMemory):
        home: Any = owner.home
        return Device("cuda", home.owner.context.index)
    return device_of(array)


def _fresh(dtype: Any, shape: tuple[int, ...], device: Device) -> Fresh:
    return Fresh(shape, dtype.storage, Meta(dtype, shape, contiguous_strides(shape, 1), device, ALIGNMENT))


def _in_elements(array: Array) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def _product(extents: Sequence[int]) -> int:
    total = 1
    for extent in extents:
        total *= max(extent, 0)
    return total


def _data_reader() -> Callable[[Array], int]:
    """A function that reads where an array begins out of the array object, a tenth of what NumPy takes for it."""
    words = (ctypes.c_uint64 * (1 << 58)).from_address(0)
    shift = 3

    def read(array: Array) -> int:
        return words[(id(array) + _DATA_AT) >> shift]

    example = np.arange(6.0)
    tries = (example, example[2:], example.reshape(2, 3).T)
    is_as_expected = all(read(array) == array.ctypes.data for array in tries)
    return read if is_as_expected else lambda array: array.ctypes.data


data_address = _data_reader()

_RUN = """
def make(bound, index, streams, default, start, fail, refuse, tensor, several, note, address, work{given}):
    def run({values}):
        stream = streams().get(index, default)
        if stream.graph is not None:
            return stream.graph.record(bound, ({values}))
{checks}{makes}{maps}{works}{launch}        if several:
            note(stream, ({arrays}))
        return {result}
    return run
"""
_LAUNCH = """        try:
            status = start({passed})
        except (OverflowError, MemoryError) as error:
            explain(bound, ({values}), error)
        if status != 0:
            fail(bound, ({passed}), status)
"""


@lru_cache(maxsize=256)
def _run_maker(shape: _Shape) -> Callable[..., Runner]:
    """A function that makes runners of this shape: code without loops and lists."""
    values = "".join(f"value{place}, " for place in range(shape.inputs))
    made = [f"array{place}" for place in range(shape.results)]
    every = [f"value{place}" for place in range(shape.inputs)] + made
    tensors = [f"tensor({name}, meta{place})" for place, name in enumerate(made)]
    maps = [
        f"        map{place} = made{place}.get(address({every[argument]})) or encode{place}(address({every[argument]}))\n"
        for place, argument in enumerate(shape.maps)
    ]
    # Arrays have no truth value, so a map that is not there is told by None.
    maps = [
        f"        map{place} = made{place}.get(address({every[argument]}))\n"
        f"        if map{place} is None:\n            map{place} = encode{place}(address({every[argument]}))\n"
        for place, argument in enumerate(shape.maps)
    ]
    passed = [*every, "stream.handle", *(["counters"] if shape.counters else []), *(["0"] if False else [])]
    passed += [f"map{place}" for place in range(len(shape.maps))]
    del tensors, passed, maps
    raise NotImplementedError
