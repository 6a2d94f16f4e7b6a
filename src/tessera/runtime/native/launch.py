"""Launching: callables that put Python's arguments into a kernel's args block and run it.

The args block is words of 8 bytes: 0 the work queue, 1 the status, 2 to 7 the details of a failure, from 8 on what the
kernel was compiled to find there. A launch copies its template, fills in the arguments, releases the interpreter lock
and dispatches. It returns 0, or `(status, word 2, …, word 7)` where the kernel reports a failure. Negative statuses
belong to the runtime. Where arrays that must not overlap do, it runs nothing and returns `OVERLAP`.

One machine-code entry in the runtime image (`launch.ll`) serves all kernels: a built-in function whose `self` is a
record of the kernel's address, its threads, its arguments and its template. Where an interpreter's objects are not laid
out as that entry expects, Python and ctypes do the same, more slowly.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tessera.errors import CompileError
from tessera.runtime.native import objects, pool
from tessera.runtime.native.device_array import DeviceArray

Launch: TypeAlias = Callable[..., int | tuple[int, ...]]

WORD = 8
FIRST_SLOT = 8
LARGEST_BLOCK = 16384  # it is on the stack
OVERLAP = -35
KINDS = {"array": 0, "i64": 1, "f32": 2, "f64": 3, "i1": 4}

_RECORD = struct.Struct("<QqQqqq")
_ARGUMENT = struct.Struct("<iI")
_PAIR = struct.Struct("<iiqq")


class Pair(NamedTuple):
    """Two arrays that must not overlap: their slots, and between which distances in bytes they would.

    The distance is that of the second one's address from the first one's.
    """

    first: int
    second: int
    above: int
    below: int


def make(
    kernel_address: int,
    template: bytes,
    arguments: Sequence[tuple[str, int]],
    workspace_bytes: int,
    threads: int,
    *,
    keep: object = None,
    apart: Sequence[Pair] = (),
) -> Launch:
    """A callable that launches the kernel with arguments of these kinds, each into its slot (a word of the args block).

    At most `threads` threads run it, or as many as the pool has, each with `workspace_bytes` of scratch memory. The
    callable keeps `keep` alive: the image that the kernel is in. Arrays are trusted: it is for the caller to know that
    their types, sizes and strides are what the template says. Those that must not overlap are in pairs `apart`.
    """
    _check(template, arguments, workspace_bytes, threads)
    factory = through_entry if is_known() else through_ctypes
    return factory(kernel_address, template, arguments, workspace_bytes, threads, keep, apart)


def maker(
    kernel_address: int, example: bytes, arguments: Sequence[tuple[str, int]], workspace_bytes: int, threads: int
) -> Callable[[bytes, object], Launch]:
    """`make` for many of a kind: what makes launches of templates like the example, and of what they keep alive."""
    _check(example, arguments, workspace_bytes, threads)
    if not is_known():
        return lambda template, keep: through_ctypes(
            kernel_address, template, arguments, workspace_bytes, threads, keep
        )
    head = _record(kernel_address, len(example), arguments, workspace_bytes, threads, 0)
    build, address = objects.builder(), _entry()
    return lambda template, keep: build(address, head + template, keep)


def _check(template: bytes, arguments: Sequence[tuple[str, int]], workspace_bytes: int, threads: int) -> None:
    words, rest = divmod(len(template), WORD)
    if rest or not FIRST_SLOT * WORD <= len(template) <= LARGEST_BLOCK or any(template[: FIRST_SLOT * WORD]):
        raise CompileError(
            f"expected an args block of {FIRST_SLOT} to {LARGEST_BLOCK // WORD} words that starts with {FIRST_SLOT} "
            f"zeros, got {len(template)} bytes"
        )
    for kind, slot in arguments:
        if kind not in KINDS or not FIRST_SLOT <= slot < words:
            raise CompileError(
                f"expected arguments of the kinds {', '.join(KINDS)} in words {FIRST_SLOT} to {words - 1}, "
                f"got {kind!r} in word {slot}"
            )
    if workspace_bytes < 0 or threads < 1:
        raise CompileError(f"expected some threads and scratch memory, got {threads} and {workspace_bytes} bytes")


def is_known() -> bool:
    """Whether the entry works on objects here: on arrays of the host, and on those of devices."""
    return objects.are_known() and _address_at() is not None


@cache
def _address_at() -> int | None:
    """Where arrays of devices have their address; None where that cannot be told."""
    return objects.slot_of(DeviceArray(1 << 40, (), np.dtype(np.uint8), None), "address")


@cache
def _entry() -> int:
    """Where the entry is defined, for all launches."""
    runtime = pool.start()
    introduced = (np.ndarray, np.bool_, True, False, TypeError, DeviceArray)
    introduce = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(introduced) + 1))(runtime.image.address("introduce"))
    introduce(*map(id, introduced), _address_at())
    return objects.definition("launch", runtime.image.address("launch"))


def through_entry(
    kernel: int,
    template: bytes,
    arguments: Sequence[tuple[str, int]],
    scratch: int,
    threads: int,
    keep: object,
    apart: Sequence[Pair] = (),
) -> Launch:
    """The callable as a built-in function of the machine-code entry."""
    record = _record(kernel, len(template), arguments, scratch, threads, len(apart)) + template
    pairs = b"".join(_PAIR.pack(one.first * WORD, one.second * WORD, one.above, one.below) for one in apart)
    return objects.builder()(_entry(), record + pairs, keep)


def _record(
    kernel: int, nbytes: int, arguments: Sequence[tuple[str, int]], scratch: int, threads: int, pairs: int
) -> bytes:
    """The record in front of a template, which the entry reads."""
    parts = [_RECORD.pack(kernel, threads, scratch, len(arguments), nbytes, pairs)]
    parts += [_ARGUMENT.pack(KINDS[kind], slot * WORD) for kind, slot in arguments]
    return b"".join(parts)


def through_ctypes(
    kernel: int,
    template: bytes,
    arguments: Sequence[tuple[str, int]],
    scratch: int,
    threads: int,
    keep: object,
    apart: Sequence[Pair] = (),
) -> Launch:
    """The callable as Python and ctypes make it."""
    dispatch = pool.start().dispatch
    stores = [(_STORES[kind], slot * WORD) for kind, slot in arguments]

    def launch(*values: Any) -> int | tuple[int, ...]:
        if len(values) != len(stores):
            raise TypeError(f"the kernel takes {len(stores)} arguments, got {len(values)}")
        memory = bytearray(len(template) + 64)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        start = -address % 64
        memory[start : start + len(template)] = template
        for index, ((store, offset), value) in enumerate(zip(stores, values, strict=True)):
            store(memory, start + offset, value, index)
        for first, second, above, below in apart:
            (one,) = struct.unpack_from("<Q", memory, start + first * WORD)
            (other,) = struct.unpack_from("<Q", memory, start + second * WORD)
            if above < other - one < below:
                return OVERLAP
        status = dispatch(kernel, address + start, threads, scratch)
        if status == 0:
            return 0
        if status == pool.OUT_OF_MEMORY:
            raise MemoryError
        return (status, *struct.unpack_from("<6q", memory, start + 2 * WORD))

    launch.kept = keep  # pyright: ignore[reportFunctionMemberAccess]  # only so that it lives as long
    return launch


def _store_array(memory: bytearray, offset: int, value: object, index: int) -> None:
    if not isinstance(value, np.ndarray | DeviceArray):
        raise TypeError(f"argument {index} of the kernel: expected an array, got {type(value)!r}")
    struct.pack_into("<Q", memory, offset, value.address if isinstance(value, DeviceArray) else value.ctypes.data)


def _store_integer(memory: bytearray, offset: int, value: Any, index: int) -> None:
    number = operator.index(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(f"argument {index} of the kernel: {number} has more than 64 bits")
    struct.pack_into("<q", memory, offset, number)


def _store_single(memory: bytearray, offset: int, value: Any, index: int) -> None:
    struct.pack_into("<f", memory, offset, ctypes.c_float(value).value)


def _store_double(memory: bytearray, offset: int, value: Any, index: int) -> None:
    struct.pack_into("<d", memory, offset, ctypes.c_double(value).value)


def _store_bool(memory: bytearray, offset: int, value: object, index: int) -> None:
    if type(value) not in (bool, np.bool_):
        raise TypeError(f"argument {index} of the kernel: expected a bool, got {type(value)!r}")
    struct.pack_into("<q", memory, offset, bool(value))


_STORES: dict[str, Callable[[bytearray, int, Any, int], None]] = {
    "array": _store_array,
    "i64": _store_integer,
    "f32": _store_single,
    "f64": _store_double,
    "i1": _store_bool,
}
