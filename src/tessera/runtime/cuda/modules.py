"""Modules: PTX or machine code loaded into a context, its functions, and what they take of a multiprocessor.

PTX is loaded as it is, never linked: the linker ignores the register budgets that kernels set. Machine code from ptxas,
where there is one, is kept in the compile cache, so that the next process need not assemble; elsewhere the driver keeps
what it assembled itself.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tessera.cached_property import cached_property
from tessera.compiler.launch_plan import DeviceLaunch
from tessera.errors import CompileError, DeviceError, ResourceError, TesseraError
from tessera.runtime.cache import store as cache
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.targets.cuda.ptx.tools import BRIEFLY, find_ptxas

if TYPE_CHECKING:
    from tessera.targets.cuda.ptx.assembler import Assembly

_ELF = b"\x7fELF"
_LOG_BYTES = 16384
_PLAIN_SHARED = 47 << 10  # more must be asked for; a kernel may have a little of its own besides
_LARGEST_GRID = (1 << 31) - 1
_LITTLE_WORK = 1  # of the driver's levels of optimization: the one at which it is done first
# What the driver answers to machine code or PTX that it cannot use.
_UNUSABLE = frozenset({200, 209, 218, 219, 221, 222, 223})


@dataclass(frozen=True, slots=True)
class Attributes:
    """Resources of a function: registers and local bytes of a thread, static shared bytes of a block."""

    registers: int
    local: int
    shared: int
    most_threads: int


_ATTRIBUTES = {
    "registers": "NUM_REGS",
    "local": "LOCAL_SIZE_BYTES",
    "shared": "SHARED_SIZE_BYTES",
    "most_threads": "MAX_THREADS_PER_BLOCK",
}


class Module:
    """Code in the context of `cuda:index`, for as long as this or one of its functions is referenced."""

    def __init__(self, index: int, code: bytes, what: str, *, keep: bool = True) -> None:
        """Loads PTX or machine code. `what` is it in words; where it is not to be kept, the driver assembles it."""
        self.context = Context.of(index)
        self.what = what
        self.handle = self._load(code, keep)

    def _load(self, code: bytes, keep: bool) -> int:
        is_ptx = not code.startswith(_ELF)
        machine_code: bytes | None = None
        if is_ptx and keep:
            look = _found if is_fast_compile(code) else assembled
            machine_code = look(code, self.context)
        if machine_code is not None:
            try:
                return self._loaded(machine_code)
            except _UnusableError:  # of a ptxas that is newer than the driver
                pass
        try:
            return self._loaded(code + b"\0" if is_ptx else code, fast=is_fast_compile(code))
        except _UnusableError as refusal:
            raise refusal.error(self.what, self._log(code) if is_ptx else []) from None

    def _loaded(self, code: bytes, *, fast: bool = False) -> int:
        cu = driver.bindings()
        with self.context:
            if fast:
                options = [cu.CUjit_option.CU_JIT_OPTIMIZATION_LEVEL]
                status, found = cu.cuModuleLoadDataEx(code, len(options), options, [_LITTLE_WORK])
            else:
                status, found = cu.cuModuleLoadData(code)
        if int(status) in _UNUSABLE:
            raise _UnusableError(int(status))
        if status:
            driver.refuse(int(status), f"loading {self.what}")
        return int(found)

    def _log(self, code: bytes) -> list[str]:
        """The messages of the driver's assembler about PTX that it refuses."""
        cu = driver.bindings()
        option = cu.CUjit_option
        log = bytearray(_LOG_BYTES)
        names = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        with self.context:
            cu.cuModuleLoadDataEx(code + b"\0", len(names), names, [log, len(log)])
        return log.split(b"\0")[0].decode(errors="replace").strip().splitlines()

    def function(self, name: str) -> LoadedFunction:
        """A kernel of the module."""
        with self.context:
            found = driver.check(driver.bindings().cuModuleGetFunction(self.handle, name.encode()), f"finding @{name}")
        return LoadedFunction(self, name, int(found))

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            unload = driver.bindings().cuModuleUnload
            self.context.at_end(lambda: unload(self.handle))


_looked_at: dict[tuple[int, bytes], Module] = {}


def look_at(index: int, code: bytes, what: str) -> Module:
    """Loads code to see what it takes. Who loads it next is given the same module: assembling takes long."""
    _looked_at.clear()
    return _looked_at.setdefault((index, code), Module(index, code, what))


def loaded(index: int, code: bytes, what: str) -> Module:
    """A module of this code: the one that was looked at last, or a new one."""
    return _looked_at.pop((index, code), None) or Module(index, code, what)


class _UnusableError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def error(self, what: str, log: list[str]) -> TesseraError:
        found = driver.error_of(self.status, f"loading {what}")
        return CompileError(found.message, hint=found.hint, story=log)


class LoadedFunction:
    """A kernel that can be launched."""

    def __init__(self, module: Module, name: str, handle: int) -> None:
        self.module = module
        self.name = name
        self.handle = handle
        self.context = module.context
        self._shared = _PLAIN_SHARED

    @cached_property
    def attributes(self) -> Attributes:
        cu = driver.bindings()

        def asked(name: str) -> int:
            which = getattr(cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
            return int(driver.check(cu.cuFuncGetAttribute(which, self.handle), f"asking what @{self.name} takes"))

        with self.context:
            return Attributes(**{field: asked(name) for field, name in _ATTRIBUTES.items()})

    def param_bytes(self) -> int | None:
        """The size of the params block that the kernel was compiled with; None where the driver cannot tell."""
        cu = driver.bindings()
        if driver.driver_version() < 12040 or not hasattr(cu, "cuFuncGetParamInfo"):
            return None
        with self.context:
            status, _, size = cu.cuFuncGetParamInfo(self.handle, 0)
        return None if status else int(size)

    def prepare(self, launch: DeviceLaunch, block_bytes: int) -> None:
        """Checks that the kernel can run as planned, and tells the driver how much shared memory it will ask for."""
        has, takes = self.context.properties, self.attributes
        shared = launch.shared + takes.shared
        if shared > has.shared_per_block or launch.threads > takes.most_threads:
            raise ResourceError(
                f"@{self.name} does not fit {has.name}: a block has {launch.threads} threads and {shared:,} bytes of "
                f"shared memory; with {takes.registers} registers to a thread, {takes.most_threads} threads and "
                f"{has.shared_per_block:,} bytes are possible",
                hint="use a schedule with smaller blocks or fewer stages",
            )
        if takes.local > launch.local:
            raise ResourceError(
                f"@{self.name} needs {takes.local} bytes of local memory to a thread, {launch.local} were expected: "
                f"its {takes.registers} registers do not hold its values",
                hint="use a schedule with smaller blocks or more warps",
            )
        size = self.param_bytes()
        if size is not None and size != block_bytes:
            raise CompileError(f"@{self.name}: its params block has {size} bytes, its plan says {block_bytes}")
        self._allow_shared(launch.shared)

    def _allow_shared(self, nbytes: int) -> None:
        if nbytes <= self._shared:
            return
        cu = driver.bindings()
        which = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self.context:
            status = cu.cuFuncSetAttribute(self.handle, which, nbytes)
        driver.check(status, f"asking for {nbytes:,} bytes of shared memory for @{self.name}")
        self._shared = nbytes

    def occupancy(self, threads: int, shared: int) -> int:
        """How many blocks of so many threads, and bytes of dynamic shared memory, a multiprocessor holds at once."""
        self._allow_shared(shared)
        ask = driver.bindings().cuOccupancyMaxActiveBlocksPerMultiprocessor
        with self.context:
            return int(driver.check(ask(self.handle, threads, shared), f"asking for the occupancy of @{self.name}"))

    def launch(self, block: Any, blocks: int, threads: int, shared: int, stream: int) -> int:
        """Launches with a params block, ctypes' or an address; the driver's status."""
        address = block if isinstance(block, int) else ctypes.addressof(block)
        pointers = ctypes.c_void_p(address)
        with self.context as context:
            return context.calls.launch(
                self.handle, blocks, 1, 1, threads, 1, 1, shared, stream, ctypes.addressof(pointers), None
            )

    def launch_words(self, words: Sequence[int], blocks: int, threads: int, stream: int) -> None:
        """Launches a kernel whose params block is words of 64 bits."""
        block = ctypes.create_string_buffer(struct.pack(f"<{len(words)}q", *words))
        driver.check_status(self.launch(block, blocks, threads, 0, stream), f"launching @{self.name}")


def check_grid(name: str, blocks: int) -> None:
    """Refuses more blocks than a grid may have."""
    if blocks > _LARGEST_GRID:
        raise ResourceError(
            f"@{name}: a grid of {blocks:,} blocks; a GPU takes {_LARGEST_GRID:,}",
            hint="let each program instance do more",
        )


def local_memory_of(name: str, code: bytes) -> int:
    """Bytes of local memory that a thread needs, as the GPU's assembler found; 0 where there is no GPU to ask.

    Where ptxas says that there are none, the GPU is not asked: a process that compiles would take it from callers. But
    code that is needed soon is not assembled twice: in a process that runs kernels, the driver loads it anyhow.
    """
    try:
        if driver.device_count() == 0:
            return 0
    except DeviceError:
        return 0
    context = Context.of(0)
    if not (context.is_open and is_fast_compile(code)) and stack_of(code, name, context) == 0:
        return 0
    return look_at(0, code, f"@{name}").function(name).attributes.local


def is_fast_compile(code: bytes) -> bool:
    """Whether code is PTX of a fast compile: needed at once, and replaced later."""
    return code.startswith(BRIEFLY.encode())


def assembled(ptx: bytes, context: Context) -> bytes | None:
    """Machine code of PTX for a GPU: from the compile cache, or from ptxas and kept there; None without ptxas."""
    found = _found(ptx, context)
    if found is not None:
        return found
    made = _assembly(ptx, context)
    if made is None:
        return None
    cache.shared().put(_key_of("cubin", ptx, context), made.cubin)
    return made.cubin


def _found(ptx: bytes, context: Context) -> bytes | None:
    """Machine code that is in the compile cache already."""
    return cache.shared().get(_key_of("cubin", ptx, context))


def stack_of(ptx: bytes, name: str, context: Context) -> int | None:
    """Bytes of stack that a thread of a kernel has, by ptxas; None where there is none. The GPU is left alone.

    What is assembled for that is kept: who loads the kernel finds it.
    """
    key = _key_of("stack", ptx, context)
    found = cache.shared().get(key)
    if found is not None and found.isdigit() and len(found) < 10:
        return int(found)
    made = _assembly(ptx, context)
    usage = None if made is None else made.kernels.get(name)
    if made is None or usage is None:
        return None
    cache.shared().put(_key_of("cubin", ptx, context), made.cubin)
    cache.shared().put(key, str(usage.stack).encode())
    return usage.stack


def _key_of(what: str, ptx: bytes, context: Context) -> str:
    built_for = context.properties.architecture
    return cache.key_of(what, ptx, target_of(ptx) or built_for, built_for, driver.driver_version())


def _assembly(ptx: bytes, context: Context) -> Assembly | None:
    if find_ptxas() is None:
        return None
    # What it takes to run ptxas is loaded only now: the next process does without.
    from tessera.targets.cuda.ptx.assembler import assemble

    try:
        return assemble(ptx.decode(), target_of(ptx) or context.properties.architecture)
    except (TesseraError, OSError):  # the driver may know better, and needs no disk; it says what is wrong if not
        return None


def target_of(ptx: bytes) -> str | None:
    """The architecture that PTX was written for, where machine code must be for just that: sm_90a and its like."""
    for line in ptx.splitlines():
        if line.startswith(b".target"):
            name = line.split()[1].rstrip(b",").decode()
            return name if name[-1].isalpha() else None
    return None
