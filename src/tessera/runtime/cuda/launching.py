"""Launching: the params block of a kernel, and callables that fill it in and hand it to the driver.

A kernel has one parameter, a block of words: pointers, sizes and strides of arrays, numbers, the grid's extents, and
tensor maps. What does not change between calls is in a template. On CPython the entry that runs the CPU's kernels fills
in the rest, with a few instructions (`host_steps.ll`) instead of such a kernel; elsewhere Python and ctypes do so.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tessera import python_versions
from tessera.compiler.launch_plan import WORD, ArrayArgument, NumberArgument, Plan
from tessera.device_names import CPU_FAMILIES
from tessera.errors import DtypeError
from tessera.runtime.cache import store as compile_cache
from tessera.runtime.cache.build import build
from tessera.runtime.cuda.modules import LoadedFunction
from tessera.runtime.device.memory import Array, data_address
from tessera.runtime.native import code
from tessera.runtime.native import launch as host_launch
from tessera.runtime.program.executable import start_pool
from tessera.runtime.program.overlap import Distances
from tessera.shapes.tracked import is_tracked, plain
from tessera.targets.cpu import features
from tessera.targets.llvm import image

Start: TypeAlias = Callable[..., int | tuple[int, ...]]
"""Takes the arrays and numbers of the plan, the stream, the counters and the report where it has such, and the maps."""

FIRST_WORD = 16  # of the params block, in the args block of a host kernel
STREAM_WORD, BLOCKS_WORD = 10, 11
_LONGEST = 1 << 63


class Geometry(NamedTuple):
    """Sizes and strides of an array, in elements; of a number, nothing."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Params:
    """The params block of a plan for arrays of given sizes and strides."""

    def __init__(self, plan: Plan, geometry: Sequence[Geometry | None], grid: Sequence[int]) -> None:
        assert plan.device is not None
        self.plan, self.device = plan, plan.device
        template = bytearray(max(plan.block_bytes, WORD * plan.words))
        self.open: list[tuple[int, int]] = []
        """Numbers that are tracked, and at which byte they are."""

        def fill(word: int, numbers: Sequence[int]) -> None:
            struct.pack_into(f"<{len(numbers)}q", template, WORD * word, *map(plain, numbers))
            self.open += [(WORD * (word + index), one) for index, one in enumerate(numbers) if is_tracked(one)]

        for argument, found in zip(plan.arguments, geometry, strict=True):
            if found is not None:
                fill(argument.word + 1, [*found.sizes, *found.strides])
        fill(plan.grid_word, grid)
        self.template = bytes(template)
        # What a call gives besides the arguments, and into which words that goes.
        self.extra = [word for word in (self.device.counters_word, self.device.report_word) if word >= 0]

    def filled(self, values: Sequence[Any], extra: Sequence[int], maps: Sequence[Array]) -> Any:
        """The block as ctypes has it, for arrays and numbers, the further words, and tensor maps."""
        block = bytearray(self.template)
        for index, (argument, value) in enumerate(zip(self.plan.arguments, values, strict=True)):
            if isinstance(argument, ArrayArgument):
                struct.pack_into("<Q", block, WORD * argument.word, data_address(value))
            else:
                _STORES[argument.kind](block, WORD * argument.word, value, f"argument {index} of @{self.plan.name}")
        for word, number in zip(self.extra, extra, strict=True):
            struct.pack_into("<Q", block, WORD * word, number)
        for recipe, found in zip(self.device.maps, maps, strict=True):
            struct.pack_into("<16Q", block, recipe.offset, *found.tolist())
        return (ctypes.c_char * len(block)).from_buffer(block)


def _store_integer(block: bytearray, offset: int, value: Any, what: str) -> None:
    if not -_LONGEST <= value < _LONGEST:
        raise too_long(what, value)
    struct.pack_into("<q", block, offset, value)


def too_long(what: str, value: int) -> DtypeError:
    """The error for an integer that does not fit its word."""
    return DtypeError(
        f"{what}: expected a number of i64, got {value!r}",
        hint=f"give one whole number from {-_LONGEST} to {_LONGEST - 1}",
    )


def _store_single(block: bytearray, offset: int, value: Any, what: str) -> None:
    struct.pack_into("<f", block, offset, ctypes.c_float(value).value)


def _store_double(block: bytearray, offset: int, value: Any, what: str) -> None:
    struct.pack_into("<d", block, offset, value)


def _store_bool(block: bytearray, offset: int, value: Any, what: str) -> None:
    struct.pack_into("<q", block, offset, bool(value))


_STORES = {"i64": _store_integer, "f32": _store_single, "f64": _store_double, "i1": _store_bool}


def starter(params: Params, function: LoadedFunction, blocks: int, apart: Sequence[Distances] = ()) -> Start:
    """A callable that launches a kernel of so many blocks: 0, or the driver's status first in a tuple.

    Where arrays overlap that must be `apart`, it launches nothing and returns the host's `OVERLAP`.
    """
    factory = _through_entry if has_entry() else through_ctypes
    return factory(params, function, blocks, apart)


@cache
def has_entry() -> bool:
    """Whether the host's entry can be used: on Linux, and where arrays are laid out as it expects."""
    if sys.platform != "linux" or features.machine() not in CPU_FAMILIES:
        return False
    start_pool()
    return host_launch.is_known()


def arguments_of(params: Params) -> tuple[list[tuple[str, int]], bytes]:
    """The arguments of the host's entry, each with its slot, and the words that follow the params block."""
    found = [
        (one.kind if isinstance(one, NumberArgument) else "array", FIRST_WORD + one.word)
        for one in params.plan.arguments
    ]
    found.append(("i64", STREAM_WORD))
    found += [("i64", FIRST_WORD + word) for word in params.extra]
    first = FIRST_WORD + -(-len(params.template) // WORD)
    table = b""
    for index, recipe in enumerate(params.device.maps):
        found.append(("array", first + 2 * index))
        table += struct.pack("<2q", 0, WORD * FIRST_WORD + recipe.offset)
    return found, table


class HostBlock(NamedTuple):
    """A launch as the host's entry and its sequences run it: code, args block, arguments of it, and what they need."""

    entry: int
    template: bytes
    arguments: list[tuple[str, int]]
    keep: object
    open: list[tuple[int, int]]
    """Words of the template whose numbers are tracked: at which byte, and the number."""


def host_block(params: Params, function: LoadedFunction, blocks: int) -> HostBlock:
    """A launch of so many blocks. Arguments are those of the plan, then as `arguments_of` says."""
    arguments, table = arguments_of(params)
    device, calls = params.device, function.context.calls
    address = ctypes.cast(calls.launch, ctypes.c_void_p).value or 0
    block = params.template + bytes(-len(params.template) % WORD)
    table_at = WORD * FIRST_WORD + len(block)
    words = (address, function.handle, 0, plain(blocks), device.threads, device.shared, len(device.maps), table_at)
    template = bytes(WORD * host_launch.FIRST_SLOT) + struct.pack("<8q", *words) + block + table
    kernel = steps_on_host()
    opened = [(WORD * FIRST_WORD + offset, number) for offset, number in params.open]
    if is_tracked(blocks):
        opened.append((WORD * BLOCKS_WORD, blocks))
    return HostBlock(kernel.address("launch_on_device"), template, arguments, (kernel, function), opened)


def _through_entry(params: Params, function: LoadedFunction, blocks: int, apart: Sequence[Distances]) -> Start:
    made = host_block(params, function, blocks)
    slots = [slot for _, slot in made.arguments]
    pairs = [host_launch.Pair(slots[one.first], slots[one.second], one.above, one.below) for one in apart]
    return host_launch.make(made.entry, made.template, made.arguments, 0, 1, keep=made.keep, apart=pairs)


@cache
def steps_on_host() -> image.Image:
    """The few instructions, from the compile cache or compiled and kept there."""
    compiler = build()
    if compiler is None:
        return image.load(_compiled())
    store, key = compile_cache.shared(), compile_cache.key_of("launch on device", compiler, features.family())
    found = store.get(key)
    if found is None:
        found = _compiled()
        store.put(key, found)
    return image.load(found)


def _compiled() -> bytes:
    from tessera.targets.llvm.machine import compile_text

    texts = [_read("host_steps.ll")]
    if python_versions.is_known():
        texts += [code.interface_text(), _read("results.ll")]
    processor = features.LEAST_PROCESSORS[features.family()]
    return image.flatten(compile_text("\n".join(texts), cpu=processor, features="", passes="always-inline"))


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def through_ctypes(params: Params, function: LoadedFunction, blocks: int, apart: Sequence[Distances] = ()) -> Start:
    """The callable as Python and ctypes make it."""
    device, count = params.device, len(params.plan.arguments)
    first_map = count + 1 + len(params.extra)

    def start(*values: Any) -> int | tuple[int, ...]:
        if any(
            one.above < data_address(values[one.second]) - data_address(values[one.first]) < one.below for one in apart
        ):
            return host_launch.OVERLAP
        block = params.filled(values[:count], values[count + 1 : first_map], values[first_map:])
        status = function.launch(block, blocks, device.threads, device.shared, values[count])
        return (status,) if status else 0

    return start
