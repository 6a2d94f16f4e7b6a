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

from tessera.compiler import print_records
from tessera.compiler.launch_plan import PRINTS, REPORT_WORDS, WORD, ArrayArgument, NumberArgument, Plan
from tessera.errors import DeviceError, ShapeError, TesseraError
from tessera.interpreters.core.printing import write_out
from tessera.runtime.cuda import driver, results
from tessera.runtime.cuda.backend import note_array
from tessera.runtime.cuda.launching import Geometry, Params, Start, starter, too_long
from tessera.runtime.cuda.modules import LoadedFunction, check_grid, loaded
from tessera.runtime.cuda.pool import Pool, rounded
from tessera.runtime.cuda.staging import Staging, pinned
from tessera.runtime.cuda.streams import SEVERAL, Stream, cuda_device, current_stream, current_streams, default_stream
from tessera.runtime.cuda.tensor_maps import Maps, Sized, lately
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import ALIGNMENT, Array, DeviceMemory, contiguous_strides, data_address, is_array
from tessera.runtime.device.ownership import device_of, owner_of
from tessera.runtime.program import prints
from tessera.runtime.program.executable import Runner, check_array, overlap_error, refuse_to_write
from tessera.runtime.program.overlap import Distances, distances
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor

_LARGEST_AXIS = 1 << 31


class Fresh(NamedTuple):
    """A result that each call makes anew."""

    shape: tuple[int, ...]
    storage: np.dtype[Any]
    meta: Meta

    def maker(self) -> Callable[[Stream], Array]:
        """A function that makes its memory, for use on a stream."""
        size, meta, storage, fresh = rounded(self.meta.nbytes), self.meta, self.storage, results.maker()
        return lambda stream: fresh(stream, size, meta, storage).geometry


class Report:
    """The record in which a kernel says what went wrong: memory of the GPU, zeros while nothing did.

    A kernel that prints has a buffer for that behind it, of so many bytes; others have none.
    """

    def __init__(self, device: Device, room: int = 0) -> None:
        stream = current_stream(device)
        self.context = stream.context
        self.room = room
        self.memory = Pool.of(self.context).allocate(stream, PRINTS + room)
        self.pointer = self.memory.address
        self.nbytes = PRINTS + print_records.HEAD if room else WORD * REPORT_WORDS
        """Bytes that are read and cleared each time: the words, and the head of the buffer."""
        self.host = pinned(self.context, self.nbytes)
        self.clear(stream)

    def clear(self, stream: Stream) -> None:
        """Zeros and an empty buffer, in the order of a stream."""
        zero(self.memory, WORD * REPORT_WORDS, stream)
        if self.room:
            head = ctypes.create_string_buffer(prints.empty_head(self.room), print_records.HEAD)
            target, source = self.pointer + PRINTS, ctypes.addressof(head)
            Staging.of(self.context).to_device(target, source, print_records.HEAD, stream)

    def read(self, stream: Stream) -> bytes:
        """Waits for the stream; the status and its details, and the head of the buffer."""
        with self.context as context:
            status = context.calls.to_host(self.host, self.pointer, self.nbytes, stream.handle)
        driver.check_status(status, f"reading what a kernel on {stream.device} reports")
        stream.synchronize()
        return ctypes.string_at(self.host, self.nbytes)

    def check(self, plan: Plan, stream: Stream, write: prints.Write = write_out) -> None:
        """Waits for the stream, shows what the kernel printed and raises what it reports; all is clear again then."""
        found = self.read(stream)
        status = struct.unpack_from("<q", found)[0]
        used = prints.used(found[PRINTS:]) if self.room else 0
        if not status and not used:
            return
        shown = np.empty(used, np.uint8)
        if used:
            Staging.of(self.context).to_host(data_address(shown), self.pointer + PRINTS, used, stream)
        self.clear(stream)
        stream.synchronize()
        if used:
            prints.show_records(plan, shown.data, write)
        if status:
            raise plan.failures[status - 1].error()


class Ready(NamedTuple):
    """A program for arrays of given sizes and strides: what a launch needs besides addresses and numbers."""

    function: LoadedFunction
    params: Params
    blocks: int
    maps: tuple[Sized, ...]


class BoundKernel(NamedTuple):
    """A program for arrays of given shapes and strides, as launches and graphs need it."""

    plan: Plan
    device: Device
    function: LoadedFunction
    params: Params
    blocks: int
    fresh: tuple[Callable[[Stream], Array], ...]
    metas: tuple[Meta, ...]
    maps: tuple[Maps, ...]
    start: Start
    apart: tuple[Distances, ...]

    def maps_of(self, arrays: Sequence[Array]) -> list[Array]:
        """The tensor maps of all arrays, results too."""
        return [one.of(data_address(arrays[one.kind.recipe.argument])) for one in self.maps]

    def check_apart(self, values: Sequence[Any]) -> None:
        """Refuses arrays that overlap, if the program was compiled for others."""
        error = overlap_error(self.plan, self.apart, values)
        if error.pairs:
            raise error

    def results(self, arrays: Sequence[Array]) -> Any:
        """The value that a call returns, given the arrays of its results."""
        tensors = [Tensor.fresh(array, meta) for array, meta in zip(arrays, self.metas, strict=True)]
        return tensors[0] if len(tensors) == 1 else tuple(tensors) if tensors else None


class CudaExecutable:
    """A program for GPUs. It is loaded into the context of each GPU whose arrays it is bound to."""

    def __init__(self, plan: Plan, ptx: bytes) -> None:
        if plan.device is None:
            raise DeviceError(f"@{plan.name} was compiled for the CPU", hint="compile it for a GPU, or use Executable")
        self.plan = plan
        self.ptx = ptx
        self.nbytes = len(ptx)
        self._functions: dict[int, LoadedFunction] = {}
        self._lock = Lock()

    def function(self, index: int) -> LoadedFunction:
        """The kernel in the context of `cuda:index`, checked to fit there."""
        found = self._functions.get(index)
        if found is None:
            with self._lock:
                found = self._functions.get(index) or self._loaded(index)
                self._functions[index] = found
        return found

    def _loaded(self, index: int) -> LoadedFunction:
        assert self.plan.device is not None
        found = loaded(index, self.ptx, f"@{self.plan.name}").function(self.plan.name)
        found.prepare(self.plan.device, self.plan.block_bytes)
        return found

    def bind(self, values: Sequence[Any], *, deterministic: bool = True) -> Runner:
        """A function of the inputs, for arrays of these shapes and strides on one GPU, and any numbers.

        It takes arrays and Python numbers, and returns None, the result as a tensor, or a tuple of results.
        """
        return runner(self.bound(values))

    def bound(self, values: Sequence[Any]) -> BoundKernel:
        """The program for such arrays."""
        plan = self.plan
        arrays: list[Array | None] = [value if is_array(value) else None for value in values]
        for index, (argument, array) in enumerate(zip(plan.inputs, arrays, strict=True)):
            if isinstance(argument, ArrayArgument):
                check_array(plan, index, argument, array)
        device = self._device(arrays)
        sizes = plan.sizes([None if array is None else array.shape for array in arrays])
        shapes = plan.result_shapes(sizes)
        fresh = [_fresh(one.dtype, shape, device) for one, shape in zip(plan.results, shapes, strict=True)]
        geometry = [None if array is None else Geometry(array.shape, _in_elements(array)) for array in arrays]
        whole = [*geometry, *(Geometry(one.meta.shape, one.meta.strides) for one in fresh)]
        ready, apart = self.ready(whole, device), tuple(distances(plan, geometry))
        return BoundKernel(
            plan,
            device,
            ready.function,
            ready.params,
            ready.blocks,
            tuple(one.maker() for one in fresh),
            tuple(one.meta for one in fresh),
            tuple(self._kept_maps(one, whole[one.kind.recipe.argument]) for one in ready.maps),
            starter(ready.params, ready.function, ready.blocks, apart),
            apart,
        )

    def ready(self, geometry: Sequence[Geometry | None], device: Device) -> Ready:
        """A launch of the program on arrays of these sizes and strides, results too; None for numbers."""
        plan, launch = self.plan, self.plan.device
        assert launch is not None
        sizes = plan.sizes([None if one is None else one.sizes for one in geometry])
        grid = plan.extents(sizes)
        plan.check_covers(sizes, grid)
        if _product(grid):
            plan.check([None if one is None else (one.sizes, one.strides) for one in geometry])
        self._check_sizes(geometry)
        params = Params(plan, geometry, grid)
        function = self.function(device.index)
        function.context.be_current()
        blocks = launch.blocks(_product(grid), function.context.properties.multiprocessors)
        check_grid(plan.name, blocks)
        return Ready(function, params, blocks, tuple(self._maps(geometry, device.index)) if blocks else ())

    def _check_sizes(self, geometry: Sequence[Geometry | None]) -> None:
        """Kernels count positions along an axis in 32 bits."""
        for index, measured in enumerate(geometry):
            if measured is not None and any(size >= _LARGEST_AXIS for size in measured.sizes):
                raise ShapeError(
                    f"argument {index} of @{self.plan.name}: {max(measured.sizes):,} elements along an axis, and GPUs "
                    f"count to {_LARGEST_AXIS - 1:,}",
                    hint="split the array along that axis",
                )

    def _device(self, arrays: Sequence[Array | None]) -> Device:
        """The GPU on which all arrays lie."""
        known: dict[Device, int] = {}
        for index, array in enumerate(arrays):
            if array is None:
                continue
            found = gpu_of(array)
            if found is None or found.kind != "cuda":
                raise DeviceError(
                    f"argument {index} of @{self.plan.name} lies on {found or 'the host'}, the program runs on a GPU",
                    hint="bring it over first: .cuda()",
                )
            known.setdefault(found, index)
        if len(known) > 1:
            where = ", ".join(f"argument {index} on {device}" for device, index in known.items())
            raise DeviceError(f"@{self.plan.name} runs on one GPU: {where}", hint="bring all arrays to one: .to(...)")
        return next(iter(known), cuda_device(None))

    def _kept_maps(self, sized: Sized, measured: Geometry | None) -> Maps:
        """The maps of an argument, those of arrays that were given for it lately among them."""
        kind, known = sized
        argument = (self.plan.name, kind.recipe.argument, measured, kind.index)
        return kind.maps(known.sizes, known.strides, lately(argument))

    def _maps(self, geometry: Sequence[Geometry | None], index: int) -> list[Sized]:
        assert self.plan.device is not None
        found: list[Sized] = []
        for recipe in self.plan.device.maps:
            argument, measured = self.plan.arguments[recipe.argument], geometry[recipe.argument]
            assert isinstance(argument, ArrayArgument)
            assert measured is not None
            what = f"argument {recipe.argument} of @{self.plan.name}"
            found.append(Sized.of(recipe, argument.dtype, measured.sizes, measured.strides, what, index))
        return found


def gpu_of(array: Array) -> Device | None:
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


class _Form(NamedTuple):
    """The parameters of the code of a call: arguments by their indices, results and tensor maps by their number."""

    inputs: int
    arrays: tuple[int, ...]
    written: tuple[int, ...]
    results: int
    maps: tuple[int, ...]
    counters: int
    reports: bool
    launches: bool


_RUN = """
def make(bound, streams, index, default, start, fail, explain, refuse, fresh, several, note, address, zeroed, take,
         finish{given}):
    def run({values}):
        stream = streams().get(index, default)
        if stream.graph is not None:
            bound.check_apart(({values}))
            return stream.graph.record(bound, ({values}))
{checks}{makes}{launch}        return {result}
    return run
"""
_LAUNCH = """{before}        try:
            status = start({passed})
        except (OverflowError, MemoryError) as error:
            explain(bound, ({values}), error)
        if status != 0:
            fail(bound, stream, ({passed}), status)
        if several:
            note(stream, ({arrays}))
{after}"""
_MAP = """        map{index} = maps{index}.get(address({array}))
        if map{index} is None:
            map{index} = encode{index}(address({array}))
"""
_RESULT = """        tensor{index} = fresh(stream, size{index}, meta{index}, storage{index})
        array{index} = tensor{index}.geometry
"""
_COUNTERS = "        counters = stream.counters.get({size}) or zeroed(stream, {size})\n"


@lru_cache(maxsize=256)
def _run_maker(form: _Form) -> Callable[..., Runner]:
    """A function that makes runners of a form: code without loops and lists."""
    inputs = [f"value{index}" for index in range(form.inputs)]
    made = [f"array{index}" for index in range(form.results)]
    everything = [*inputs, *made]
    values = "".join(f"{name}, " for name in inputs)
    passed = [*everything, "stream.handle"]
    before = "".join(_MAP.format(index=index, array=everything[which]) for index, which in enumerate(form.maps))
    if form.counters:
        before += _COUNTERS.format(size=form.counters)
        passed.append("counters")
    if form.reports:
        before += "        report = take(bound.device, bound.plan)\n"
        passed.append("report.pointer")
    passed += [f"map{index}" for index in range(len(form.maps))]
    tensors = [f"tensor{index}" for index in range(form.results)]
    given = [part for index in range(form.results) for part in (f"size{index}", f"meta{index}", f"storage{index}")]
    given += [part for index in range(len(form.maps)) for part in (f"maps{index}", f"encode{index}")]
    launch = _LAUNCH.format(
        before=before,
        passed="".join(f"{name}, " for name in passed),
        values=values,
        arrays="".join(f"{inputs[index]}, " for index in form.arrays),
        after="        finish(bound, stream, report)\n" if form.reports else "",
    )
    text = _RUN.format(
        given="".join(f", {name}" for name in given),
        values=values,
        checks="".join(
            f"        if not {inputs[index]}.flags.writeable:\n            refuse(bound.plan, {index})\n"
            for index in form.written
        ),
        makes="".join(_RESULT.format(index=index) for index in range(form.results)),
        launch=launch if form.launches else "",
        result=tensors[0] if form.results == 1 else f"({', '.join(tensors)})" if form.results else None,
    )
    scope: dict[str, Any] = {"__name__": __name__}
    exec(text, scope)
    return scope["make"]


def runner(bound: BoundKernel) -> Runner:
    """Writes the code of a call: memory for the results, the launch, and tensors of the results."""
    plan, launch = bound.plan, bound.params.device
    arrays = tuple(index for index, one in enumerate(plan.inputs) if isinstance(one, ArrayArgument))
    written = tuple(index for index, one in enumerate(plan.inputs) if isinstance(one, ArrayArgument) and one.written)
    form = _Form(
        len(plan.inputs),
        arrays,
        written,
        len(bound.fresh),
        tuple(one.kind.recipe.argument for one in bound.maps),
        launch.counters if launch.counters_word >= 0 else 0,
        launch.report_word >= 0,
        bound.blocks > 0,
    )
    given = [part for meta in bound.metas for part in (rounded(meta.nbytes), meta, meta.dtype.storage)]
    given += [part for one in bound.maps for part in (one.made, one.of)]
    return _run_maker(form)(
        bound,
        current_streams,
        bound.device.index,
        default_stream(bound.device),
        bound.start,
        _fail,
        _explain,
        refuse_to_write,
        results.maker(),
        SEVERAL,
        note,
        data_address,
        zeroed_counters,
        take_report,
        _finish,
        *given,
    )


def note(stream: Stream, arrays: Sequence[Array]) -> None:
    """The memory of arrays is used on a stream."""
    for array in arrays:
        note_array(array, stream)


def zero(memory: DeviceMemory, nbytes: int, stream: Stream) -> None:
    """Zeros, in the order of a stream."""
    with stream.context as context:
        status = context.calls.fill_bytes(memory.address, 0, nbytes, stream.handle)
    driver.check_status(status, f"filling {nbytes:,} bytes of {stream.device}")


def zeroed_counters(stream: Stream, nbytes: int) -> int:
    """The address of zeroed memory that kernels on a stream may use one after the other, and leave zeroed."""
    memory = Pool.of(stream.context).allocate(stream, nbytes)
    zero(memory, nbytes, stream)
    stream.workspaces.append(memory)
    return stream.counters.setdefault(nbytes, memory.address)


_reports: dict[tuple[int, int], list[Report]] = {}


def take_report(device: Device, plan: Plan) -> Report:
    """A record that no kernel uses."""
    size = prints.buffer_size() if plan.prints else 0
    try:
        return _reports[device.index, size].pop()
    except (KeyError, IndexError):
        return Report(device, size)


def return_report(report: Report) -> None:
    """Keeps a record, which is clear, for the next."""
    _reports.setdefault((report.context.index, report.room), []).append(report)


def _finish(bound: BoundKernel, stream: Stream, report: Report) -> None:
    finish(bound.plan, stream, report)


def finish(plan: Plan, stream: Stream, report: Report, write: prints.Write = write_out) -> None:
    """Waits for a kernel, shows what it printed and raises what it reports."""
    try:
        report.check(plan, stream, write)
    except TesseraError:
        stream.counters.clear()  # it may have stopped before it had put them back to zero
        raise
    finally:
        return_report(report)


def _fail(bound: BoundKernel, stream: Stream, passed: Sequence[Any], status: int | tuple[int, ...]) -> None:
    if isinstance(status, int):
        raise overlap_error(bound.plan, bound.apart, passed)
    code = status[0]
    if code in driver.CONTEXT_STATUSES:  # of another GPU, or none: this thread has not used this one before
        bound.function.context.settle()
        with bound.function.context:
            again = bound.start(*passed)
        if again == 0:
            return
        code = again if isinstance(again, int) else again[0]
    stream.counters.clear()
    driver.refuse(code, launching(bound))


def launching(bound: BoundKernel) -> str:
    """A description of a launch for errors."""
    launch = bound.params.device
    return (
        f"launching @{bound.plan.name} on {bound.device}, {bound.blocks:,} blocks of {launch.threads} threads and "
        f"{launch.shared:,} bytes of shared memory"
    )


def _explain(bound: BoundKernel, values: Sequence[Any], error: Exception) -> NoReturn:
    for index, (argument, value) in enumerate(zip(bound.plan.inputs, values, strict=True)):
        if isinstance(argument, NumberArgument) and argument.kind == "i64" and not -(1 << 63) <= value < 1 << 63:
            raise too_long(f"argument {index} of @{bound.plan.name}", value) from None
    raise error
