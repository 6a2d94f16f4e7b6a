"""Advice on candidates: the schedule that the models hold to be the best for a call of a kernel, kept on the disk.

A model has to trace the kernel under every schedule that it is asked about. That is done where programs are compiled,
in another process; calls only read the result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tessera.errors import TesseraError
from tessera.metatracing.models.kernel_times import KernelTimes, shipped
from tessera.metatracing.models.situation import Situation
from tessera.metatracing.models.work_features import Machine
from tessera.runtime.cache import store as cache
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import Described
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.settings import Settings
from tessera.tile.language.schedule import Schedule


def model_name(here: Settings) -> str | None:
    """The model of the machine that programs are compiled for; None where there is none."""
    return here.compiler.timing_model(here.level)


def model_for(here: Settings) -> KernelTimes | None:
    """The model of that name, for as many threads as there are."""
    from tessera.runtime.native import pool

    name = model_name(here)
    found = None if name is None else shipped(name)
    if found is None or found.machine.is_gpu:
        return found
    return replace(found, machine=Machine(found.machine.kind, pool.threads(), found.machine.name))


def advised(
    kernel: Kernel,
    values: Sequence[Any],
    static: Mapping[str, Any],
    times: KernelTimes,
    others: Sequence[Schedule] = (),
) -> Schedule | None:
    """The schedule that is expected to gain most over the kernel's own; None where none is expected to gain.

    Those that a recommender goes through are compared, and these others.
    """
    from tessera.metatracing.analysis.recommendations import Recommender
    from tessera.metatracing.analysis.specializations import InstructionParams, TileParams

    here = Situation(kernel, tuple(values), static, times.machine)
    now = here.program()
    if not times.knows(now):
        return None
    ratio, best = 1.0, None
    for made, gain in Recommender(times).candidates(here, now, schedules_only=True):
        if gain.ratio > ratio and isinstance(made.params, TileParams | InstructionParams):
            ratio, best = gain.ratio, made.params.schedule
    for schedule in others:
        with suppress(TesseraError):  # no such program
            then = replace(here, kernel=here.with_schedule(schedule)).program()
            if times.knows(then) and (expected := times.gain(now, then).ratio) > ratio:
                ratio, best = expected, schedule
    return best


def key_of(identity: str, described: Described) -> str:
    """The key of the advice for a call."""
    sizes = tuple([(one.shape, one.strides) if isinstance(one, Meta) else None for one in described])
    return cache.key_of("advice", identity, sizes)


def keep(key: str, schedule: Schedule) -> None:
    cache.shared().put(key, json.dumps({"block": schedule.block, "warps": schedule.warps}).encode())


def kept(key: str) -> Schedule | None:
    """The schedule that `keep` stored, in this or another process."""
    data = cache.shared().get(key)
    try:
        found: Any = json.loads(b"" if data is None else data)
        return Schedule(block=tuple(map(int, found["block"])), warps=found["warps"])
    except cache.UNREADABLE:
        return None
