"""A launch of a program: its code, its arguments, and the counts of a walk through some of its blocks.

Counts of a call are those of the walked blocks, times the number of blocks that each stands for.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tessera.cached_property import cached_property
from tessera.compiler.launch_plan import WORD, ArrayArgument, DeviceLaunch, Plan
from tessera.errors import DeviceError, ResourceError
from tessera.metatracing.events.walk import Walk, Walked
from tessera.runtime.device.memory import contiguous_strides
from tessera.runtime.tensor.meta import Meta
from tessera.targets.cuda.ptx.reading import Code, read
from tessera.tiers.client import described
from tessera.tiers.records import Described, LaunchFacts

if TYPE_CHECKING:
    from tessera.tile.calls.function import Kernel

ARGUMENT_BITS = 40
"""Arguments are put so far apart that an address says which of them it is in."""
_COUNTERS = 1 << 60
SAMPLED_BLOCKS = 16
"""Blocks of a launch that are walked: those of large grids are much alike, but for edges and masks."""
SAMPLED_PROGRAMS = 48
"""Program instances that are walked of persistent CTAs."""


@dataclass(frozen=True)
class Limits:
    """The resources of a multiprocessor; those of the H200."""

    multiprocessors: int = 132
    threads: int = 2048
    blocks: int = 32
    registers: int = 65536
    shared: int = 228 * 1024
    shared_of_block: int = 1024
    """Bytes that every block takes besides its own."""
    arch: str = "sm_90a"


H200 = Limits()
NO_FACTS = LaunchFacts()


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel; None where neither a driver nor an assembler gave them."""

    registers: int | None
    spilled_bytes: int | None
    shared: int
    threads: int

    def occupancy(self, limits: Limits = H200) -> float | None:
        """The part of a multiprocessor's threads that fit: by registers, shared memory, threads and blocks."""
        if self.registers is None:
            return None
        warps = -(-self.threads // 32)
        per_warp = -(-max(1, self.registers) * 32 // 256) * 256
        fitting = [
            limits.threads // self.threads,
            limits.blocks,
            limits.registers // (per_warp * warps),
            limits.shared // (self.shared + limits.shared_of_block),
        ]
        return min(fitting) * self.threads / limits.threads


@dataclass(frozen=True)
class KernelExecution:
    """One launch of a compiled kernel. `seconds` is how long it took, where that was measured."""

    plan: Plan
    ptx: str
    arguments: Described
    facts: LaunchFacts = NO_FACTS
    seconds: float | None = None
    limits: Limits = H200

    @staticmethod
    def of(kernel: Kernel, *args: Any, arch: str = "sm_90a", **kwargs: Any) -> KernelExecution:
        """A kernel as it would be launched on such arguments. It is compiled here; no GPU is needed."""
        from tessera.tile.calls.settings import settings_of_gpu

        program, values = kernel.program_for(args, kwargs, settings_of_gpu(arch))
        return KernelExecution.launched(program.executable, values, limits=replace(H200, arch=arch))

    @staticmethod
    def launched(
        executable: Any,
        values: Sequence[Any],
        *,
        facts: LaunchFacts | None = None,
        seconds: float | None = None,
        limits: Limits = H200,
    ) -> KernelExecution:
        """An executable of a GPU, and the tensors and numbers that it runs on, or metas of tensors."""
        plan: Plan = executable.plan
        if plan.device is None:
            raise DeviceError(
                f"@{plan.name} is a program of the CPU, and events are those of a GPU's threads",
                hint="compile it for a GPU: KernelExecution.of(kernel, *args); or take HostExecution",
            )
        ptx, facts = executable.ptx.decode(), facts or LaunchFacts()
        return KernelExecution(plan, ptx, described(values), facts, seconds, limits)

    # The launch

    @property
    def device(self) -> DeviceLaunch:
        assert self.plan.device is not None
        return self.plan.device

    @cached_property
    def code(self) -> Code:
        return read(self.ptx)

    @cached_property
    def geometry(self) -> list[tuple[tuple[int, ...], tuple[int, ...]] | None]:
        """Sizes and strides of all arrays, those that the launch makes too; None for numbers."""
        found: list[tuple[tuple[int, ...], tuple[int, ...]] | None] = [
            (one.shape, one.strides) if isinstance(one, Meta) else None for one in self.arguments
        ]
        shapes = self.plan.result_shapes(self._sizes)
        return [*found, *((shape, contiguous_strides(shape, 1)) for shape in shapes)]

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return self.plan.sizes([one.shape if isinstance(one, Meta) else None for one in self.arguments])

    @cached_property
    def grid(self) -> tuple[int, ...]:
        return self.plan.extents(self._sizes)

    @property
    def programs(self) -> int:
        return prod(self.grid)

    @cached_property
    def blocks(self) -> int:
        """Blocks that are launched."""
        return self.device.blocks(self.programs, self.limits.multiprocessors)

    def nbytes(self, argument: int) -> int:
        """The bytes of an array among the arguments, each element once."""
        found, how = self.geometry[argument], self.plan.arguments[argument]
        assert isinstance(how, ArrayArgument)
        return 0 if found is None else prod(found[0]) * how.dtype.storage.itemsize

    def params(self) -> bytes:
        """The params block, with arrays far apart at made-up addresses."""
        plan = self.plan
        block = bytearray(max(plan.block_bytes, WORD * plan.words))
        for index, (argument, found) in enumerate(zip(plan.arguments, self.geometry, strict=True)):
            if found is not None:
                words = [(index + 1) << ARGUMENT_BITS, *found[0], *found[1]]
                struct.pack_into(f"<{len(words)}q", block, WORD * argument.word, *words)
            else:
                value = self.arguments[index]
                spelled = "<d" if isinstance(value, float) else "<q"
                if isinstance(value, float) and getattr(argument, "kind", "") == "f32":
                    spelled = "<f"
                struct.pack_into(spelled, block, WORD * argument.word, value)
        struct.pack_into(f"<{len(self.grid)}q", block, WORD * plan.grid_word, *self.grid)
        for word in (self.device.counters_word, self.device.report_word):
            if word >= 0:
                struct.pack_into("<q", block, WORD * word, _COUNTERS)
        return bytes(block)

    # The walk

    @cached_property
    def _sample(self) -> tuple[list[int], int, float]:
        """Blocks to walk, the step between further program instances, and how many each of those walked stands for."""
        launched, programs, cluster = self.blocks, self.programs, self.device.cluster
        if not launched:
            return [], 1, 0.0
        if self.device.counters_word < 0 or programs <= launched:
            count = min(launched, SAMPLED_BLOCKS)
            chosen = sorted({round(block) for block in np.linspace(0, launched - 1, count)})
            if cluster > 1:
                chosen = sorted({block // cluster * cluster + rank for block in chosen for rank in range(cluster)})
            return chosen, 1, launched / len(chosen)
        chosen = list(range(cluster)) if cluster > 1 else sorted({0, launched // 2, launched - 1})
        rest = programs - launched
        step = max(1, rest // SAMPLED_PROGRAMS)
        return chosen, step, programs / (len(chosen) + -(-rest // step))

    @cached_property
    def walked(self) -> Walked:
        """The walk through some blocks."""
        chosen, step, _ = self._sample
        return Walk(
            self.code,
            threads=self.device.threads,
            blocks=chosen or [0],
            launched=self.blocks,
            params=self.params(),
            counter_step=step,
            cluster=self.device.cluster,
        ).run()

    @property
    def scale(self) -> float:
        """How many blocks, or program instances, of the launch each walked one stands for."""
        return self._sample[2]

    def total(self, count: float) -> int:
        """A count of the walk, scaled to the whole call."""
        return round(count * self.scale)

    # Resources

    @cached_property
    def resources(self) -> Resources:
        """The resources by the driver where it was loaded, else by the assembler where there is one."""
        device = self.device
        if self.facts.registers is not None:
            return Resources(self.facts.registers, device.local, device.shared, device.threads)
        from tessera.targets.cuda.ptx.assembler import assemble

        try:
            used = assemble(self.ptx, self.limits.arch).kernels[self.plan.name]
        except (ResourceError, KeyError):
            return Resources(None, None, device.shared, device.threads)
        spilled = used.spill_stores + used.spill_loads
        return Resources(used.registers, spilled, device.shared + used.shared, device.threads)

    @property
    def occupancy(self) -> float | None:
        """The part of a multiprocessor's threads that are there at once."""
        return self.resources.occupancy(self.limits) if self.facts.occupancy is None else self.facts.occupancy

    @property
    def registers_and_shared(self) -> tuple[int | None, int | None]:
        """The registers of a thread, where they are known, and the shared memory of a block."""
        return self.resources.registers, self.resources.shared
