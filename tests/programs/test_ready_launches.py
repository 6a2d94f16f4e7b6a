"""What a GPU's launches find ready, on an imitated one: tensor maps of arrays that were given lately, and events."""

from __future__ import annotations

import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from imitated_gpu import Imitation

import tessera as ts
from tessera import bf16
from tessera.compiler.launch_plan import ArrayArgument, DeviceLaunch, MapAxis, Plan, TensorMap
from tessera.errors import DeviceError
from tessera.runtime.cache.newest import shorten
from tessera.runtime.cuda import tensor_maps
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import data_address
from tessera.shapes.expr import dim
from tessera.tiers.sites.timing import CudaTimer

_LOST = 201


def program(monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> CudaExecutable:
    """A program that reads a matrix by boxes of some width; it is bound, and never launched."""

    def loaded(self: CudaExecutable, index: int) -> Any:
        return SimpleNamespace(handle=1, context=Context.of(index), name=name)

    monkeypatch.setattr(CudaExecutable, "_loaded", loaded)
    boxes = TensorMap(64, 0, (MapAxis(1, "whole", 1), MapAxis(0, "whole", 1)), (width, 8), 0)
    matrix = ArrayArgument(0, bf16, (dim("m"), dim("n")), False)
    launch = DeviceLaunch(128, 1024, maps=(boxes,))
    return CudaExecutable(
        Plan(name, (matrix,), 0, (dim("m"), 1), 5, 8, (), device=launch, block_bytes=192), name.encode()
    )


def test_another_program_of_a_kernel_has_maps_of_the_arrays_given_lately(
    monkeypatch: pytest.MonkeyPatch, gpu: Imitation
) -> None:
    tensor_maps.lately.cache_clear()
    x, y, taller = (ts.ones((rows, 64), bf16, device="cuda").geometry for rows in (16, 16, 24))
    first = program(monkeypatch, "read", 64).bound([x])
    assert gpu.mapped == []
    for _ in range(2):
        first.maps_of([x])
        first.maps_of([y])
    given = [data_address(x), data_address(y)]
    assert gpu.mapped == given
    second = program(monkeypatch, "read", 32).bound([x])
    assert gpu.mapped == 2 * given  # when it was bound
    maps = second.maps_of([x]) + second.maps_of([y])
    assert gpu.mapped == 2 * given
    assert all((one != other).any() for one, other in zip(maps, first.maps_of([x]) + first.maps_of([y]), strict=True))
    program(monkeypatch, "read", 64).bound([taller])
    program(monkeypatch, "written", 64).bound([x])
    assert gpu.mapped == 2 * given  # none is known of other arrays, nor of another kernel


def test_maps_that_cannot_be_made_ahead_are_left_to_calls(monkeypatch: pytest.MonkeyPatch, gpu: Imitation) -> None:
    tensor_maps.lately.cache_clear()
    arrays = [ts.ones((16, 64), bf16, device="cuda").geometry for _ in range(6)]
    first = program(monkeypatch, "read", 64).bound(arrays[:1])
    for one in arrays:
        first.maps_of([one])
    gpu.mapped.clear()
    gpu.lost_maps = 2  # the first attempt, and the one with the context
    second = program(monkeypatch, "read", 32).bound(arrays[:1])
    assert gpu.mapped == [data_address(one) for one in arrays[3:]]  # of the last four, but for the one that failed
    second.maps_of(arrays[2:3])
    assert gpu.mapped[-1] == data_address(arrays[2])


def test_threads_that_forget_the_oldest_do_not_disturb_each_other() -> None:
    known: dict[tuple[int, int], None] = {}
    barrier = Barrier(4)

    def add(who: int) -> None:
        barrier.wait()
        for number in range(20_000):
            known[who, number] = None
            shorten(known, 16)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(add, range(4)))  # raises what they raised
    finally:
        sys.setswitchinterval(usual)
    assert 0 < len(known) <= 16
    assert max(number for _, number in known) == 19_999


def test_events_are_recorded_without_asking_for_the_context_where_it_is_current(gpu: Imitation) -> None:
    seen: list[str] = []
    statuses: list[int] = []

    def record(event: int, stream: int) -> int:
        seen.append("event")
        return statuses.pop() if statuses else 0

    def elapsed(out: int, *events: int) -> int:
        ctypes.c_float.from_address(out).value = 0.25
        return 0

    gpu.record_event, gpu.elapsed_time = record, elapsed  # pyright: ignore[reportAttributeAccessIssue]
    timer = CudaTimer(Device("cuda", 0))

    def run(value: int) -> int:
        seen.append("run")
        return value

    for lost in (0, 1):
        statuses += [_LOST] * lost
        result, reading = timer.timed(run, [7])
        assert (result, None if reading is None else reading()) == (7, 250_000)
    assert seen == ["event", "run", "event", "event", "event", "run", "event"]
    statuses += [_LOST] * 2
    with pytest.raises(DeviceError):
        timer.timed(run, [7])
    assert seen[-1] == "event"  # nothing was launched without its time being taken
