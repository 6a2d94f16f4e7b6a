"""A kernel in its current form with its arguments and machine: the subject of predictions and recommendations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tessera.metatracing.models.work_features import Machine, ModelledProgram
from tessera.tiers.client import described
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.settings import settings_of_gpu
from tessera.tile.language.schedule import Schedule

Under = Callable[[Schedule], Kernel]
"""A kernel under a schedule: where its grid is given, that follows from the block."""


@dataclass(frozen=True)
class Situation:
    """A kernel, its arguments and its machine. Tensors among the arguments may be stand-ins without numbers.

    `assumed`: all sizes and strides are known to the program. `tolerance` is the relative error that results may have,
    where the caller has said so. `under` is the kernel under another schedule, where it runs on a grid of its own;
    without it there are no other blocks for such a kernel.
    """

    kernel: Kernel
    args: tuple[Any, ...]
    static: Mapping[str, Any]
    machine: Machine
    assumed: bool = False
    tolerance: float | None = None
    under: Under | None = None

    @property
    def changes_schedule(self) -> bool:
        return self.under is not None or self.kernel.follows_block

    def with_schedule(self, schedule: Schedule) -> Kernel:
        return (self.under or self.kernel.with_schedule)(schedule)

    def form(self) -> Kernel:
        """The kernel with what is assumed."""
        return self.kernel.assume("sizes", "strides") if self.assumed else self.kernel

    def program(self) -> ModelledProgram:
        """The program as models see it."""
        from tessera.metatracing.events.tile_work import tile_work

        form = self.kernel
        if self.machine.is_gpu:
            form = form.form_for(self.args, self.static, settings_of_gpu("sm_90a"))
        instance = form.lower(*self.args, **self.static)
        rows = (instance.schedule.block or (1,))[0]
        work = tile_work(instance, described(self.args), clipped=not self.machine.is_gpu)
        return ModelledProgram(work, rows, instance.schedule.warps, self.assumed)
