"""Spill retries: compiles of a kernel, each with less in registers than the one before, until nothing spills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tessera.compiler.artifact import Artifact, LoweredKernel, Source, Words, plan_of
from tessera.compiler.attempts import Attempt, Fit, first_that_fits
from tessera.compiler.launch_plan import Failure, Plan
from tessera.compiler.options import CompileOptions
from tessera.compiler.target import Local
from tessera.ir.tile import dialect as tile
from tessera.targets.common.stage_times import StageTimes
from tessera.targets.cuda.compile import CompiledPtx, compile_kernel
from tessera.targets.cuda.device_launch import launch_of
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Facts

MOST_ATTEMPTS = 4
"""The first compile, one without warp specialization, and two under smaller plans."""


class _Assembled(NamedTuple):
    """A compiled kernel, and the bytes of local memory that the GPU's assembler found a thread to need."""

    made: CompiledPtx
    code: bytes
    spilled: int
    seconds: dict[str, float]
    """Of asking it."""


class SpillRetries:
    """Compiles of one kernel, each with less in registers than the one before."""

    def __init__(self, source: Source, options: CompileOptions, facts: Facts, local: Local | None) -> None:
        self.source, self.options, self.facts, self.local = source, options, facts, local
        self.report = CompileReport()
        self.codes: list[bytes] = []

    def run(self) -> LoweredKernel:
        found = first_that_fits(self._attempts(), self.report, is_slower=True)
        assert found is not None
        made, seconds = found.made, {**found.made.seconds, **found.seconds}
        self.report.way = made.report.way

        def finish() -> Artifact:
            return Artifact(self._plan(found), found.code, made.guards, seconds, self.report)

        return LoweredKernel(made.module, made.llvm, lambda: made.ptx, finish, made.guards, seconds, self.report)

    def _attempts(self) -> Iterator[Attempt[_Assembled]]:
        for spill_retry in range(MOST_ATTEMPTS):
            count = len(self.codes)
            way = f"with less in registers, retry {spill_retry}" if spill_retry else "as planned"
            yield Attempt(way, partial(self._make, spill_retry), self._fits)
            if len(self.codes) == count:
                return

    def _make(self, spill_retry: int) -> _Assembled:
        made = compile_kernel(self.source.module, self.source.name, self.options, self.facts, spill_retry)
        for refusal in made.report.refusals:
            self.report.refuse(refusal)
        code = made.ptx.encode()
        laps = StageTimes()
        spilled = 0 if self.local is None or code in self.codes else self.local(self.source.name, code)
        if self.local is not None:
            laps.lap("check-spills")
        return _Assembled(made, code, spilled, laps)

    def _fits(self, one: _Assembled) -> Fit:
        if one.code in self.codes:
            return Fit("its code is that of the attempt before")
        self.codes.append(one.code)
        if one.spilled <= one.made.local:
            return Fit()
        words = f"{one.spilled} bytes of a thread's values lie in local memory, and {one.made.local} may"
        # The last one runs anyhow.
        return Fit(words, 1 / len(self.codes), "give it a smaller block, or fewer stages")

    def _plan(self, found: _Assembled) -> Plan:
        made, block = found.made, found.made.block
        assert made.function is not None
        words = Words(block.first, block.grid, block.words, block.report if tile.records_prints(made.function) else -1)
        plan = plan_of(self.source, words, made.messages)
        launch = replace(launch_of(made.function, made), local=max(made.local, found.spilled))
        checks = tuple((one.condition, Failure(one.message, one.span, one.check)) for one in made.checks)
        return replace(plan, grid=made.grid, device=launch, block_bytes=block.size, checks=checks)
