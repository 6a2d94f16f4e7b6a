"""CUDA devices where something is missing: what is said, and that everything else goes on."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_kernels import SCALE

import tessera as ts
from tessera.cli.environment import cuda_facts
from tessera.compiler.launch_plan import DeviceLaunch, Plan
from tessera.errors import CompileError, DeviceError, ResourceError, TesseraError
from tessera.runtime.cuda import driver, nvml, ranges
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.executable import CudaExecutable, data_address, gpu_of
from tessera.runtime.cuda.modules import Attributes, LoadedFunction
from tessera.runtime.cuda.pool import SharedHome, note_use
from tessera.runtime.cuda.streams import FreeList, StreamHandle
from tessera.runtime.device import threads
from tessera.runtime.device.device import CPU, Buffer, Device
from tessera.runtime.device.memory import DeviceMemory, PlainMemory
from tessera.runtime.device.ownership import buffer_of, owner_of
from tessera.runtime.native.device_array import device_array

ASKED = (driver.library, driver.bindings, driver.calls, driver.device_count, driver.driver_version)
BINDINGS = "cuda.bindings.driver"


class Bindings(SimpleNamespace):
    """As much of the bindings as is needed to fail."""

    status = 0
    count = 1

    def cuInit(self, flags: int) -> tuple[int]:  # noqa: N802  (the driver's name)
        return (self.status,)

    def cuDeviceGetCount(self) -> tuple[int, int]:  # noqa: N802
        return 0, self.count

    CUresult = int

    def cuGetErrorName(self, status: int) -> tuple[int, bytes | None]:  # noqa: N802
        return (0, b"CUDA_ERROR_OF_SORTS") if status != 9999 else (1, None)

    def cuGetErrorString(self, status: int) -> tuple[int, bytes | None]:  # noqa: N802
        return (0, b"of some sort") if status != 9999 else (1, None)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Generator[pytest.MonkeyPatch]:
    """A machine with a library called libcuda.so.1, in a process that has not asked for a GPU yet."""
    for asked in ASKED:
        asked.cache_clear()
    monkeypatch.setattr(driver, "LIBRARY", "libc.so.6")
    monkeypatch.setattr(Context, "_made", {})
    monkeypatch.setattr(Device("cuda", 0), "_backend", None)
    yield monkeypatch
    for asked in ASKED:
        asked.cache_clear()


def attempts() -> list[Any]:
    x = ts.ones(2)
    return [x.cuda, lambda: x.to("cuda:0"), lambda: ts.zeros(2, device="cuda"), ts.device("cuda").__enter__]


def test_no_driver(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    for attempt in attempts():
        with pytest.raises(DeviceError, match=r"there is no NVIDIA driver on this machine: .*not-there") as caught:
            attempt()
        assert "install NVIDIA's driver" in str(caught.value.hint)
    assert ts.default_device() is CPU
    assert ts.ones(2).tolist() == [1.0, 1.0]


def test_no_bindings(machine: pytest.MonkeyPatch) -> None:
    machine.setitem(sys.modules, BINDINGS, None)
    for attempt in attempts():
        with pytest.raises(DeviceError, match="need the package cuda-bindings") as caught:
            attempt()
        assert caught.value.hint == "pip install 'tessera-lang[cuda]'"


def test_no_gpu(machine: pytest.MonkeyPatch) -> None:
    machine.setitem(sys.modules, BINDINGS, Bindings(status=100))
    machine.setenv("CUDA_VISIBLE_DEVICES", "7")
    for attempt in attempts():
        with pytest.raises(DeviceError, match=r"finds no GPU \(CUDA_ERROR_NO_DEVICE\), CUDA_VISIBLE_DEVICES is '7'"):
            attempt()


def test_a_driver_that_does_not_start(machine: pytest.MonkeyPatch) -> None:
    machine.setitem(sys.modules, BINDINGS, Bindings(status=803))
    with pytest.raises(DeviceError, match="starting the NVIDIA driver: the driver says CUDA_ERROR_OF_SORTS") as caught:
        ts.ones(2).cuda()
    assert "reboot" in str(caught.value.hint)


@pytest.mark.parametrize(("count", "seen"), [(1, "1 GPU, cuda:0"), (4, "4 GPUs, cuda:0 to cuda:3")])
def test_no_such_gpu(machine: pytest.MonkeyPatch, count: int, seen: str) -> None:
    machine.setitem(sys.modules, BINDINGS, Bindings(count=count))
    with pytest.raises(DeviceError) as caught:
        ts.ones(2).cuda(7)
    assert caught.value.message == f"there is no device cuda:7: this process sees {seen}"


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [
        (2, ResourceError, "free tensors"),
        (3, DeviceError, "spawn"),
        (222, DeviceError, "newer driver"),
        (700, DeviceError, "start it anew"),
        (701, ResourceError, "smaller block"),
        (1, DeviceError, "documentation"),
    ],
)
def test_statuses_are_errors(status: int, kind: type[TesseraError], hint: str) -> None:
    found = driver.error_of(status, "loading @k", Bindings())
    assert type(found) is kind
    assert found.message == "loading @k: the driver says CUDA_ERROR_OF_SORTS (of some sort)"
    assert hint in str(found.hint)


def test_a_status_that_the_bindings_do_not_know() -> None:
    assert driver.error_of(9999, "loading @k", Bindings()).message == "loading @k: the driver says error 9999"


def test_results_of_the_bindings_are_taken_apart(machine: pytest.MonkeyPatch) -> None:
    machine.setitem(sys.modules, BINDINGS, Bindings())
    assert driver.check((0,), "it") is None
    assert driver.check((0, 5), "it") == 5
    assert driver.check((0, 5, 6), "it") == (5, 6)
    with pytest.raises(ResourceError, match="it: the driver says"):
        driver.check((2, None), "it")


def test_the_command_env_says_what_there_is(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    facts = dict(cuda_facts())
    assert facts["cuda"].startswith("none: there is no NVIDIA driver on this machine")
    assert {"cuda-bindings", "nvidia-ml-py", "nvtx", "ptxas"} <= facts.keys()


def test_no_management_library(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.library.cache_clear()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError, match="need the package nvidia-ml-py") as caught:
        nvml.library()
    assert caught.value.hint == "pip install 'tessera-lang[cuda]'"


def test_ranges_work_with_and_without_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sys.modules.get("nvtx"), None):
        if module is None:
            monkeypatch.setitem(sys.modules, "nvtx", None)
        ranges.library.cache_clear()
        with ranges.named_range("a range"):
            ranges.mark("a point")
    ranges.library.cache_clear()


def test_programs_of_the_cpu_are_refused() -> None:
    with pytest.raises(DeviceError, match="@p was compiled for the CPU"):
        CudaExecutable(Plan("p", (), 0, (1,), 0, 1, ()), b"")


def test_arrays_of_the_host_are_refused() -> None:
    x = np.zeros(5, np.float32)
    with pytest.raises(DeviceError, match="argument 0 of @scale lies on the host, the program runs on a GPU") as caught:
        CudaExecutable(SCALE, b"").bind([x, 1.0])
    assert ".cuda()" in str(caught.value.hint)


def context() -> Any:
    properties = SimpleNamespace(name="a GPU", shared_per_block=232448, architecture="sm_90")
    return SimpleNamespace(properties=properties, index=0, at_end=lambda action: action())  # pyright: ignore[reportUnknownLambdaType]


@pytest.mark.parametrize(
    ("launch", "takes", "message"),
    [
        (DeviceLaunch(128, 232_449), {}, "@k does not fit a GPU: .* 128 threads and 232,449 bytes of shared memory"),
        (DeviceLaunch(512, 0), {"most_threads": 256}, "512 threads .* 255 registers to a thread, 256 threads"),
        (DeviceLaunch(128, 0, local=16), {"local": 336}, "@k needs 336 bytes of local memory to a thread, 16 were exp"),
    ],
)
def test_kernels_that_do_not_fit_are_refused(launch: DeviceLaunch, takes: dict[str, int], message: str) -> None:
    function = LoadedFunction.__new__(LoadedFunction)
    function.name, function.context = "k", context()
    known = {"registers": 255, "local": 0, "shared": 0, "most_threads": 1024, **takes}
    function.attributes = Attributes(**known)
    with pytest.raises(ResourceError, match=message) as caught:
        function.prepare(launch, 0)
    assert "schedule" in str(caught.value.hint)


def test_a_block_of_another_size_is_a_mistake_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    function = LoadedFunction.__new__(LoadedFunction)
    function.name, function.context = "k", context()
    function.attributes = Attributes(32, 0, 0, 1024)
    monkeypatch.setattr(function, "param_bytes", lambda: 64)
    with pytest.raises(CompileError, match="@k: its params block has 64 bytes, its plan says 72"):
        function.prepare(DeviceLaunch(128, 0), 72)


class Owner(SimpleNamespace):
    """A handle of a stream that is never waited for."""

    is_gone = False


def memory(home: FreeList) -> DeviceMemory:
    return PlainMemory(home.pop(), home)


def test_memory_goes_home_with_its_last_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FreeList, "_free", FreeList.clear)
    home = FreeList(4096, Owner(value=1, context=context()))  # pyright: ignore[reportArgumentType]  # as much as counts
    home.append(0x7000_0000)
    held = memory(home)
    array = device_array(held.address, (4, 8), ts.bf16.storage, held)
    view = array[1:].T
    assert (data_address(array), data_address(view)) == (0x7000_0000, 0x7000_0010)
    assert owner_of(view) is held
    assert gpu_of(view) == Device("cuda", 0)
    assert gpu_of(np.zeros(3)) is None
    buffer = buffer_of(view, Device("cuda", 0))
    assert (buffer.pointer, buffer.nbytes) == (0x7000_0000, 4096)
    again = buffer.array(ts.bf16.storage, (2,), (2,))
    assert owner_of(again) is held
    del held, array, buffer, again
    assert home == []
    del view
    assert home == [0x7000_0000]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_collector_may_end_a_stream_before_its_memory(is_first: bool, count: int) -> None:
    """A circle has a stream, a list, memory from there, and arrays on more of it: no call is made of a dead stream."""
    done: list[tuple[str, int]] = []
    calls = SimpleNamespace(
        destroy_stream=lambda stream: done.append(("destroy", stream)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        free=lambda pointer, stream: done.append((f"free {pointer}", stream)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        synchronize_context=lambda: done.append(("wait", 0)),
    )
    where = context()
    where.calls = calls
    gc.collect()
    handle = StreamHandle(where, 77, owned=True)
    home = FreeList(4096, handle)
    circle: list[Any] = [handle, home] if is_first else [home, handle]
    home += [1]
    circle.append(circle)
    if count > 0:
        circle.append(PlainMemory(2, home))
    if count > 1:
        circle.append(device_array(3, (4, 8), ts.bf16.storage, PlainMemory(3, home)))
    del handle, home, circle
    gc.collect()
    freed = [one for one in done if one[0].startswith("free")]
    assert sorted(name for name, _ in freed) == ["free 1", "free 2", "free 3"][: count + 1]
    end = done.index(("destroy", 77))
    assert all(stream == 77 for name, stream in freed if done.index((name, stream)) < end)
    late = done[end + 1 :]
    assert not late or late[0] == ("wait", 0)
    assert all(stream != 77 for _, stream in late)


def test_memory_that_other_streams_used_goes_home_when_its_stream_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessera.runtime.cuda import pool

    waits: list[tuple[int, int]] = []
    monkeypatch.setattr(FreeList, "_free", FreeList.clear)
    monkeypatch.setattr(pool, "order", lambda where, before, after: waits.append((before, after)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    synchronized: list[bool] = []
    where = context()
    where.synchronize = lambda: synchronized.append(True)
    home = FreeList(512, Owner(value=1, context=where))  # pyright: ignore[reportArgumentType]  # as much as counts
    first, second = Owner(value=1, context=where), Owner(value=77, context=where)
    home.append(0x7000_0000)
    held = memory(home)
    note_use(held, first)  # pyright: ignore[reportArgumentType]
    assert held.home is home
    note_use(held, second)  # pyright: ignore[reportArgumentType]
    note_use(held, second)  # pyright: ignore[reportArgumentType]
    note_use(held, first)  # pyright: ignore[reportArgumentType]
    assert isinstance(held.home, SharedHome)
    assert buffer_of(device_array(held.address, (3,), np.dtype(np.uint8), held), Device("cuda", 0)).nbytes == 512
    assert (waits, home) == ([], [])
    del held
    assert (waits, home) == ([(77, 1)], [0x7000_0000])
    held = memory(home)
    note_use(held, None)
    del held
    assert (waits, synchronized, home) == ([(77, 1)], [True], [0x7000_0000])
    note_use(Buffer(0, 0, CPU, None), None)  # memory of others is none of our business


def test_the_driver_writes_the_mode_of_captures_into_memory_that_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so while other threads run: whatever they allocate meanwhile lies elsewhere."""
    modes: list[int] = []

    def exchange(address: int) -> int:
        others = [ctypes.c_int(7) for _ in range(1000)]
        asked = ctypes.c_int.from_address(address)
        modes.append(asked.value)
        asked.value = 0
        assert all(one.value == 7 for one in others)
        return 0

    monkeypatch.setattr(driver, "calls", lambda: SimpleNamespace(exchange_capture_mode=exchange))
    monkeypatch.setattr(threads, "BEFORE_WORK", [driver.stay_beside_captures])
    gc.disable()  # what is collected may have to be ended beside captures, too
    try:
        threads.before_work()
        with driver.beside_captures():
            pass
    finally:
        gc.enable()
    assert modes == [2, 2, 0]
