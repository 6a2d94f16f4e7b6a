"""Resources of a loaded kernel as the driver reports them: registers, shared memory, occupancy."""

from __future__ import annotations

from tessera.runtime.cuda.executable import CudaExecutable


def occupancy(executable: CudaExecutable, index: int = 0) -> dict[str, float]:
    """Of a program on `cuda:index`; the occupancy is the most that its resources allow, in percent."""
    launch, function = executable.plan.device, executable.function(index)
    assert launch is not None
    blocks = function.occupancy(launch.threads, launch.shared)
    has = function.context.properties
    return {
        "registers_per_thread": function.attributes.registers,
        "shared_memory_per_block": launch.shared + function.attributes.shared,
        "blocks_per_multiprocessor": blocks,
        "occupancy_percent": 100 * blocks * launch.threads / has.threads_per_multiprocessor,
    }
