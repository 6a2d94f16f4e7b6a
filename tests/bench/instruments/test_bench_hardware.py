"""Tests what is read of the machine: from this one, and from folders laid out like /proc and /sys of others."""

from __future__ import annotations

import errno
import json
import mmap
import os
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tessera.bench.instruments import counters, hardware
from tessera.bench.instruments.counters import EVENTS, Counters
from tessera.bench.instruments.hardware import Conditions, EnergyMeter, HardwareProfiler
from tessera.targets.cpu import features


def put(root: Path, path: str, content: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content + "\n", encoding="utf-8")


CPU = "sys/devices/system/cpu"


def server(root: Path) -> Path:
    """A machine of bare metal with everything that can be read."""
    flags = "fpu aperfmperf avx2"
    put(root, "proc/cpuinfo", f"model name\t: A Fast One\ncpu MHz\t\t: 3100.5\nflags\t\t: {flags}\n\ncpu MHz\t: 2900.0")
    put(root, "proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 10 kB\nMemAvailable: 524288 kB")
    put(root, "proc/loadavg", "0.50 0.25 0.10 1/100 4242")
    put(root, "proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3 4")
    put(root, f"{CPU}/online", "0-1,4")
    put(root, f"{CPU}/intel_pstate/no_turbo", "0")
    put(root, f"{CPU}/cpu0/topology/thread_siblings_list", "0,4")
    put(root, f"{CPU}/cpu0/cpufreq/scaling_governor", "performance")
    for cpu, package in (("cpu0", "7"), ("cpu1", "7")):
        put(root, f"{CPU}/{cpu}/thermal_throttle/core_throttle_count", "2")
        put(root, f"{CPU}/{cpu}/thermal_throttle/package_throttle_count", package)
        put(root, f"{CPU}/{cpu}/cpufreq/scaling_cur_freq", "3500000")
    for index, (level, kind, size) in enumerate(
        (("1", "Data", "48K"), ("1", "Instruction", "32K"), ("3", "Unified", "2M"))
    ):
        folder = f"{CPU}/cpu0/cache/index{index}"
        for name, value in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", "0-3")):
            put(root, f"{folder}/{name}", value)
    return root


def test_this_machine_is_described_and_nothing_is_both_there_and_missing() -> None:
    found = hardware.environment()
    json.dumps(found)
    assert found["level"] == features.level()
    assert found["affinity"] == sorted(os.sched_getaffinity(0))
    assert found["numpy"] == np.__version__
    assert found["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert not found.keys() & found["unavailable"].keys()
    assert all(found["unavailable"].values())
    named = {*found, *found["unavailable"]}
    assert {"processor", "caches", "governor", "turbo", "smt", "virtualised", "commit", "torch", "jax"} <= named


def test_a_server_with_everything(tmp_path: Path) -> None:
    found = hardware.environment(server(tmp_path))
    assert found["processor"] == "A Fast One"
    assert found["cores"] == 3
    assert found["memory_bytes"] == 2**30
    assert found["governor"] == "performance"
    assert (found["turbo"], found["smt"], found["virtualised"]) == (True, True, False)
    assert [(cache["level"], cache["kind"], cache["bytes"]) for cache in found["caches"]] == [
        (1, "data", 48 * 1024),
        (1, "instruction", 32 * 1024),
        (3, "unified", 2 * 2**20),
    ]
    assert hardware.last_level_cache_bytes(tmp_path) == 2 * 2**20
    assert hardware.available_memory_bytes(tmp_path) == 2**29


@pytest.mark.parametrize(
    ("maker", "part", "name"),
    [
        ("0x41", "0xd0c", "Arm Neoverse N1"),
        ("0x41", "0xfff", "Arm part 0xfff"),
        ("0xc0", "0xac3", "Ampere part 0xac3"),
        ("0x99", "0xd0c", "maker 0x99 part 0xd0c"),
    ],
)
def test_processors_of_aarch64_have_numbers(tmp_path: Path, maker: str, part: str, name: str) -> None:
    put(tmp_path, "proc/cpuinfo", f"Features\t: fp asimd\nCPU implementer\t: {maker}\nCPU part\t: {part}")
    found = hardware.environment(tmp_path)
    assert found["processor"] == name
    assert "has no 'flags'" in found["unavailable"]["virtualised"]


def test_conditions_of_a_server_and_shares_since_the_last_reading(tmp_path: Path) -> None:
    conditions = Conditions(server(tmp_path))
    first = conditions.read()
    assert first["load_average"] == [0.5, 0.25, 0.1]
    assert first["cpu_mhz"] == [3500.0, 3500.0]
    assert first["throttle_count"] == 2 + 2 + 7
    assert set(first["unavailable"]) == {"steal_share", "busy_share"}
    assert "first reading" in first["unavailable"]["steal_share"]
    put(tmp_path, "proc/stat", "cpu  130 0 110 840 0 0 0 20 0 0")
    second = conditions.read()
    assert second["steal_share"] == 0.2
    assert second["busy_share"] == 0.4
    assert second["unavailable"] == {}
    assert "no tick" in conditions.read()["unavailable"]["steal_share"]


def test_clocks_without_cpufreq_are_the_kernels_or_unavailable(tmp_path: Path) -> None:
    root = server(tmp_path)
    for cpu in ("cpu0", "cpu1"):
        (root / CPU / cpu / "cpufreq/scaling_cur_freq").unlink()
    assert Conditions(root).read()["cpu_mhz"] == [3100.5, 2900.0]
    # A virtual machine repeats the nominal clock, which says nothing about the clock.
    put(root, "proc/cpuinfo", "model name : X\ncpu MHz : 2100.000\nflags : fpu hypervisor")
    found = Conditions(root).read()
    assert "cpu_mhz" not in found
    assert "nominal 2100.000" in found["unavailable"]["cpu_mhz"]
    assert hardware.environment(root)["nominal_mhz"] == 2100.0
    assert hardware.environment(root)["virtualised"] is True


def test_a_machine_without_anything_says_why(tmp_path: Path) -> None:
    found = Conditions(tmp_path).read()
    assert set(found) == {"unavailable"}
    assert all(str(tmp_path) in reason for reason in found["unavailable"].values())
    described = hardware.environment(tmp_path)
    assert "processor" in described["unavailable"]
    assert "caches" in described["unavailable"]
    assert hardware.last_level_cache_bytes(tmp_path) is None


def test_conditions_of_this_machine() -> None:
    hardware.conditions()
    time.sleep(0.05)
    found = hardware.conditions()
    assert 0 <= found["busy_share"] <= 1
    assert found["available_memory_bytes"] > 0


def test_detect_describes_this_machine() -> None:
    found = hardware.detect()
    assert found.gpu_arch == f"{'AArch64' if features.family() == 'aarch64' else 'x86-64'} {features.level()}"
    assert found.gpu_count == 0
    assert found.memory_bandwidth_gbps is None
    assert found.tensor_cores == (features.level() == "amx")
    assert found.memory_size_gb == pytest.approx(hardware.environment()["memory_bytes"] / 1e9, abs=0.1)


# Energy


def domain(root: Path, folder: str, name: str, microjoules: int, most: int = 1000_000_000) -> None:
    put(root, f"{folder}/name", name)
    put(root, f"{folder}/energy_uj", str(microjoules))
    put(root, f"{folder}/max_energy_range_uj", str(most))


def test_energy_is_of_packages_and_memory_and_survives_a_wrap_of_the_counter(tmp_path: Path) -> None:
    domain(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    domain(tmp_path, "intel-rapl:0:0", "core", 1_000_000)
    domain(tmp_path, "intel-rapl:0:1", "dram", 999_000_000)
    domain(tmp_path, "intel-rapl:1", "psys", 7_000_000)
    meter = EnergyMeter(tmp_path)
    assert meter.unavailable is None
    assert meter.stop() is None  # it was not started
    meter.start()
    domain(tmp_path, "intel-rapl:0", "package-0", 7_500_000)
    domain(tmp_path, "intel-rapl:0:0", "core", 900_000_000)
    domain(tmp_path, "intel-rapl:0:1", "dram", 500_000)
    domain(tmp_path, "intel-rapl:1", "psys", 900_000_000)
    assert meter.stop() == pytest.approx(2.5 + 1.5)


def test_no_energy_meter_says_why(tmp_path: Path) -> None:
    assert "no RAPL" in (EnergyMeter(tmp_path / "none").unavailable or "")
    assert "no package" in (EnergyMeter(tmp_path).unavailable or "")
    domain(tmp_path, "intel-rapl:0", "package-0", 1)
    (tmp_path / "intel-rapl:0/energy_uj").unlink()
    meter = EnergyMeter(tmp_path)
    assert "No such file" in (meter.unavailable or "")
    meter.start()
    assert meter.stop() is None


def test_energy_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain(tmp_path, "intel-rapl:0", "package-0", 1)
    read = Path.read_text

    def refuse(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "energy_uj":  # as on kernels since 5.10, for all but root
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refuse)
    reason = EnergyMeter(tmp_path).unavailable or ""
    assert "Permission denied" in reason
    assert "energy_uj" in reason


# Counters and profiles


def test_counters_count_or_say_why_not() -> None:
    with Counters() as counting:
        sum(range(200_000))
    found = counting.found
    assert {*found, *found["unavailable"]} == {*EVENTS, "unavailable"}
    assert all(found["unavailable"].values())
    for event in EVENTS.keys() & found.keys():
        assert found[event] > 0 or event.endswith("misses"), event


def test_counters_see_all_threads() -> None:
    """By the kernel's own clock, which every machine has where it permits counting at all."""
    go, stop = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        data = bytes(1 << 20)
        while not stop.is_set():
            np.frombuffer(data, np.uint8).sum()

    early = threading.Thread(target=work)
    early.start()
    counting = Counters(["cpu_nanoseconds"])
    counting.start()
    own = time.thread_time()
    late = threading.Thread(target=work)  # starts after counting did
    late.start()
    go.set()
    time.sleep(0.3)
    stop.set()
    early.join()
    late.join()
    own = time.thread_time() - own
    found = counting.stop()
    if "cpu_nanoseconds" in found["unavailable"]:
        pytest.skip(found["unavailable"]["cpu_nanoseconds"])
    assert found["cpu_nanoseconds"] / 1e9 > own + 0.02


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOENT, "no such counter"),
        (errno.EACCES, "perf_event_paranoid is"),
        (errno.EPERM, "perf_event_paranoid is"),
        (errno.ENOSYS, "no perf_event_open"),
        (errno.EMFILE, "EMFILE"),
    ],
)
def test_counters_that_cannot_be_had_say_why(code: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(event: str, thread: int) -> list[int]:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(counters, "_opened", refuse)
    with Counters(["cycles"]) as counting:
        pass
    assert words in counting.found["unavailable"]["cycles"]


def test_counters_leave_no_files_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with Counters():
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_profile_of_memory_and_time() -> None:
    profiler = HardwareProfiler()
    handle = profiler.start_profiling()
    with mmap.mmap(-1, 16 << 20) as held:  # NumPy's memory might stay with the process
        held.write(b"1" * len(held))
    began = time.process_time()
    while time.process_time() - began < 0.05:
        pass
    found = profiler.stop_profiling(handle)
    assert {*found, *found["unavailable"]} >= {*hardware.METRICS, "unavailable"}
    assert not found.keys() & found["unavailable"].keys()
    assert found["user_seconds"] + found["system_seconds"] >= 0.04
    assert found["wall_seconds"] >= 0.05
    if "peak_rss_bytes" in found:
        assert found["peak_rss_bytes"] - found["rss_bytes"] > 8 << 20


def test_a_profile_has_only_what_was_asked_for() -> None:
    profiler = HardwareProfiler()
    found = profiler.stop_profiling(profiler.start_profiling(["wall_seconds", "sm_efficiency", "no_such"]))
    assert {name for name in found if not name.startswith("gpu_")} == {"wall_seconds", "unavailable"}
    assert set(found["unavailable"]) == {"sm_efficiency", "no_such"}


def test_a_peak_that_cannot_be_reset_is_not_given(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/status", "VmRSS: 1 kB\nVmHWM: 2 kB")
    (tmp_path / "proc/self/clear_refs").mkdir()
    profiler = HardwareProfiler(tmp_path)
    counters = {name: value for name, value in profiler.get_memory_counters().items() if not name.startswith("gpu_")}
    assert counters == {"rss_bytes": 1024, "peak_rss_bytes": 2048}
    found = profiler.stop_profiling(profiler.start_profiling(["rss_bytes", "peak_rss_bytes"]))
    assert found["rss_bytes"] == 1024
    assert "cannot be reset" in found["unavailable"]["peak_rss_bytes"]


def test_what_is_not_there_is_named() -> None:
    profiler = HardwareProfiler()
    assert profiler.nsys_available == ("nsys" not in profiler.unavailable)
    assert profiler.ncu_available == ("ncu" not in profiler.unavailable)
    assert profiler.nvml_available == ("nvml" not in profiler.unavailable)


class Nvml(ModuleType):
    """A stand-in with NVML's names, and two GPUs."""

    NVMLError = RuntimeError
    count = 2

    def nvmlInit(self) -> None:  # noqa: N802
        if self.count < 0:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMemoryInfo(self, device: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=100 + device, free=7)

    def nvmlDeviceGetUtilizationRates(self, device: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(gpu=50 + device, memory=25)


def test_gpus_are_read_through_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Nvml("pynvml")
    library.__spec__ = ModuleSpec("pynvml", None)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    profiler = HardwareProfiler()
    assert profiler.nvml_available
    found = profiler.get_memory_counters()
    assert (found["gpu_0_memory_used"], found["gpu_1_memory_used"]) == (100, 101)
    assert (found["gpu_1_gpu_util"], found["gpu_1_mem_util"], found["gpu_1_memory_free"]) == (51, 25, 7)
    library.count = 0
    assert HardwareProfiler().unavailable["nvml"] == "NVML lists no GPU"
    library.count = -1
    assert HardwareProfiler().unavailable["nvml"] == "NVML cannot be used: Driver Not Loaded"
