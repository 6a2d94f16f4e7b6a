"""The machine: what it is, the state it is in while something is measured, and what the process used meanwhile.

What cannot be read here is named in `unavailable`, with the reason. Nothing is guessed.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import Any

import tessera
from tessera import knobs, subprocesses
from tessera.bench.instruments.counters import EVENTS, Counters
from tessera.bench.results.definitions import HardwareConfig
from tessera.targets.cpu import features

_ROOT = Path("/")
_LIBRARIES = ("numpy", "ml_dtypes", "llvmlite", "xdsl", "scipy", "torch", "jax", "triton", "mpi4py")
_CPU = "sys/devices/system/cpu"
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_GIT_SECONDS = 10.0
# AArch64 has no names in /proc/cpuinfo but numbers: of who made a processor, and of which it is among theirs.
_MAKERS = {
    0x41: "Arm",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x51: "Qualcomm",
    0x53: "Samsung",
    0x61: "Apple",
    0x6D: "Microsoft",
    0xC0: "Ampere",
}
_ARM_PARTS = {
    0xD03: "Cortex-A53",
    0xD07: "Cortex-A57",
    0xD08: "Cortex-A72",
    0xD0B: "Cortex-A76",
    0xD0C: "Neoverse N1",
    0xD40: "Neoverse V1",
    0xD49: "Neoverse N2",
    0xD4F: "Neoverse V2",
}


@dataclass
class Readings:
    """Figures by name, and the reasons for those that cannot be had."""

    found: dict[str, Any] = field(default_factory=dict[str, Any])
    unavailable: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, name: str, read: Callable[[], Any]) -> None:
        """Reads one figure; what is wrong with the file it is in becomes the reason."""
        try:
            self.found[name] = read()
        except OSError as error:
            self.unavailable[name] = reason_of(error)
        except ValueError as error:
            self.unavailable[name] = str(error)

    def all(self) -> dict[str, Any]:
        return {**self.found, "unavailable": self.unavailable}


def reason_of(error: OSError) -> str:
    """Why a file could not be read, in words: what, then which."""
    where = "" if error.filename is None else f": {os.fsdecode(error.filename)}"
    return f"{error.strerror or type(error).__name__}{where}"


def environment(root: Path = _ROOT) -> dict[str, Any]:
    """Properties of the machine that figures depend on, fixed during a run. `root` is where /proc and /sys are."""
    cpu, readings = root / _CPU, Readings()
    take = readings.take
    take("processor", lambda: _processor(root))
    take("cores", lambda: len(_numbers(_text(cpu / "online"))))
    take("affinity", lambda: sorted(os.sched_getaffinity(0)))
    take("threads", lambda: knobs.num_threads.value)
    take("level", features.level)
    take("host_level", features.host_level)
    take("caches", lambda: _caches(cpu / "cpu0/cache"))
    take("memory_bytes", lambda: _kibibytes(root / "proc/meminfo", "MemTotal"))
    take("large_pages", lambda: _chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")))
    take("kernel", lambda: " ".join((platform.system(), platform.release())))
    take("python", lambda: f"{platform.python_version()} ({platform.python_implementation()})")
    readings.found["tessera"] = tessera.__version__
    for name in _LIBRARIES:
        take(name, lambda name=name: _version(name))
    take("governor", lambda: _text(cpu / "cpu0/cpufreq/scaling_governor"))
    take("turbo", lambda: _turbo(cpu))
    take("smt", lambda: _smt(cpu))
    take("nominal_mhz", lambda: float(_cpuinfo(root, "cpu MHz")) if not _shows_clock(root) else _not_nominal())
    take("virtualised", lambda: "hypervisor" in _cpuinfo(root, "flags").split())
    take("hypervisor", lambda: _text(root / "sys/class/dmi/id/sys_vendor"))
    take("commit", lambda: _git("rev-parse", "HEAD"))
    take("uncommitted_changes", lambda: bool(_git("status", "--porcelain")))
    take("date", lambda: time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    return readings.all()


@dataclass
class Conditions:
    """The machine's state, read again and again: shares of processor time are since the last reading."""

    root: Path = _ROOT
    _last: tuple[int, ...] | None = None

    def read(self) -> dict[str, Any]:
        readings = Readings()
        take, root = readings.take, self.root
        take("load_average", lambda: [float(word) for word in _text(root / "proc/loadavg").split()[:3]])
        take("cpu_mhz", lambda: _clocks(root))
        take("throttle_count", lambda: _throttles(root / _CPU))
        take("available_memory_bytes", lambda: _kibibytes(root / "proc/meminfo", "MemAvailable"))
        before = self._last
        try:
            self._last = _processor_times(root)
        except (OSError, ValueError) as error:
            readings.unavailable["steal_share"] = readings.unavailable["busy_share"] = (
                reason_of(error) if isinstance(error, OSError) else str(error)
            )
            return readings.all()
        take("steal_share", lambda: _share(before, self._last, _STEAL))
        take("busy_share", lambda: _share(before, self._last, _BUSY))
        return readings.all()


_conditions = Conditions()


def conditions() -> dict[str, Any]:
    """The state of this machine, for one row: load, clocks, throttling, time that the hypervisor took, free memory."""
    return _conditions.read()


def detect() -> HardwareConfig:
    """This machine. Its bandwidth is None: it is not known before `ceilings.measure` has measured it."""
    level = features.level()
    return HardwareConfig(
        gpu_arch=f"{features.FAMILY_NAMES[features.family()]} {level}",
        gpu_count=0,
        memory_size_gb=round(_kibibytes(_ROOT / "proc/meminfo", "MemTotal") / 1e9, 1),
        memory_bandwidth_gbps=None,
        compute_capability=level,
        tensor_cores=features.has_matrix_unit(level),
        nvlink_bandwidth_gbps=0.0,
        nvswitch_bandwidth_gbps=0.0,
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip()


def _numbers(text: str) -> list[int]:
    """The kernel's lists: `0-3,8`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _chosen(text: str) -> str:
    """The kernel's choices: `always [madvise] never`."""
    found = re.search(r"\[(\w+)\]", text)
    if found is None:
        raise ValueError(f"expected a choice in brackets, got {text!r}")
    return found[1]


def _cpuinfo(root: Path, name: str) -> str:
    """The value of the first processor under a name."""
    path = root / "proc/cpuinfo"
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    raise ValueError(f"{path} has no {name!r}")


def _processor(root: Path) -> str:
    """The processor's name, or for AArch64 what its numbers stand for."""
    try:
        return _cpuinfo(root, "model name")
    except ValueError as error:
        try:
            maker, part = (int(_cpuinfo(root, f"CPU {name}"), 0) for name in ("implementer", "part"))
        except ValueError:
            raise error from None
    name = _ARM_PARTS.get(part) if maker == 0x41 else None
    return f"{_MAKERS.get(maker, f'maker {maker:#x}')} {name or f'part {part:#x}'}"


def _kibibytes(path: Path, name: str) -> int:
    """Bytes that a file of /proc gives in kB."""
    found = re.search(rf"^{name}:\s*(\d+) kB", _text(path), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path} has no {name}")
    return int(found[1]) * 1024


def _caches(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index in sorted(folder.glob("index*")):
        size = _text(index / "size")
        found.append(
            {
                "level": int(_text(index / "level")),
                "kind": _text(index / "type").lower(),
                "bytes": int(size[:-1]) * _UNITS[size[-1]] if size[-1:] in _UNITS else int(size),
                "shared_by": len(_numbers(_text(index / "shared_cpu_list"))),
            }
        )
    if not found:
        raise ValueError(f"no caches are listed in {folder}")
    return found


def last_level_cache_bytes(root: Path = _ROOT) -> int | None:
    """The largest cache of the first processor, None where the kernel lists none."""
    try:
        return max(cache["bytes"] for cache in _caches(root / _CPU / "cpu0/cache") if cache["kind"] != "instruction")
    except (OSError, ValueError):
        return None


def available_memory_bytes(root: Path = _ROOT) -> int:
    """Bytes of memory that are available without swapping."""
    return _kibibytes(root / "proc/meminfo", "MemAvailable")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        raise ValueError("not installed") from None


def _turbo(cpu: Path) -> bool:
    """Whether the processor may run faster than its nominal clock, by either of the kernel's switches."""
    off, on = cpu / "intel_pstate/no_turbo", cpu / "cpufreq/boost"
    if off.exists():
        return _text(off) == "0"
    if on.exists():
        return _text(on) == "1"
    raise ValueError(f"the kernel has neither {off} nor {on}")


def _smt(cpu: Path) -> bool:
    """Whether cores run several threads each."""
    return len(_numbers(_text(cpu / "cpu0/topology/thread_siblings_list"))) > 1


def _shows_clock(root: Path) -> bool:
    """Whether /proc/cpuinfo has the clock at the moment: without these counters it repeats the nominal one."""
    return "aperfmperf" in _cpuinfo(root, "flags").split()


def _not_nominal() -> float:
    raise ValueError("the kernel shows the clock at the moment instead; see cpu_mhz of each row")


def _clocks(root: Path) -> list[float]:
    """The clock of each processor, in MHz."""
    files = sorted((root / _CPU).glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))
    if files:
        return [int(_text(path)) / 1e3 for path in files]
    if not _shows_clock(root):
        nominal = _cpuinfo(root, "cpu MHz")
        raise ValueError(f"no cpufreq and no aperfmperf here: {root / 'proc/cpuinfo'} repeats the nominal {nominal}")
    found = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return [float(value) for value in found]


def _throttles(cpu: Path) -> int:
    """How often cores or packages were slowed down because of heat, since the start."""
    files = sorted(cpu.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))
    if not files:
        raise ValueError(f"the kernel has no thermal_throttle in {cpu / 'cpu0'}")
    cores = [int(_text(path)) for path in files if path.name.startswith("core")]
    # All cores of a package repeat its count.
    packages = [int(_text(path)) for path in files if path.name.startswith("package")]
    return sum(cores) + max(packages, default=0)


# Fields of the first line of /proc/stat: user nice system idle iowait irq softirq steal. Guests are in user.
_BUSY, _STEAL = (0, 1, 2, 5, 6), (7,)


def _processor_times(root: Path) -> tuple[int, ...]:
    first = _text(root / "proc/stat").splitlines()[0]
    words = first.split()
    if not first.startswith("cpu ") or len(words) < 9:
        raise ValueError(f"{root / 'proc/stat'} has no steal time in its first line")
    return tuple(int(word) for word in words[1:9])


def _share(before: tuple[int, ...] | None, now: tuple[int, ...] | None, which: tuple[int, ...]) -> float:
    if before is None or now is None:
        raise ValueError("the first reading: there is none before it to compare with")
    passed = [after - earlier for earlier, after in zip(before, now, strict=True)]
    if sum(passed) <= 0:
        raise ValueError("no tick has passed since the last reading")
    return round(sum(passed[index] for index in which) / sum(passed), 4)


def _git(*words: str) -> str:
    """The output of git for the project's checkout; an installed package may well lie inside another project's."""
    folder = Path(__file__).resolve().parents[4]
    if not (folder / ".git").exists():
        raise ValueError("the package does not run from a checkout")
    if (git := subprocesses.executable("git")) is None:
        raise ValueError("there is no git on the path")
    try:
        done = subprocess.run(
            [git, "-C", str(folder), *words], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"git gave no answer in {_GIT_SECONDS:.0f} s") from None
    if done.returncode:
        raise ValueError(done.stderr.strip() or f"git ended with {done.returncode}")
    return done.stdout.strip()


class EnergyMeter:
    """Joules that the processors and their memory used, by the counters of RAPL; `unavailable` says why there are none.

    The counters are of whole packages: what other processes do is in them. They wrap around after some minutes at full
    load; one wrap is accounted for, more cannot be detected.
    """

    def __init__(self, root: Path = Path("/sys/class/powercap")) -> None:
        self.unavailable: str | None = None
        self._domains: dict[str, Path] = {}
        self._began: dict[str, int] = {}
        if not root.is_dir():
            self.unavailable = f"the kernel has no {root}: no RAPL, as in most virtual machines"
            return
        try:
            for folder in sorted(root.glob("intel-rapl:*")):
                name = _text(folder / "name")
                # Cores and graphics are in their package already, and packages in the platform.
                if name.startswith("package") or name == "dram":
                    self._domains[f"{folder.name} {name}"] = folder
            self._read()
        except (OSError, ValueError) as error:
            self.unavailable = reason_of(error) if isinstance(error, OSError) else str(error)
            return
        if not self._domains:
            self.unavailable = f"no package is listed in {root}"

    def start(self) -> None:
        """Begins to count."""
        if self.unavailable is None:
            self._began = self._read()

    def stop(self) -> float | None:
        """The joules since `start`; None where there is no meter."""
        if self.unavailable is not None or not self._began:
            return None
        microjoules = 0
        for name, now in self._read().items():
            used = now - self._began[name]
            microjoules += used if used >= 0 else used + int(_text(self._domains[name] / "max_energy_range_uj"))
        return microjoules / 1e6

    def _read(self) -> dict[str, int]:
        return {name: int(_text(folder / "energy_uj")) for name, folder in self._domains.items()}


@dataclass
class ProfilingHandle:
    """The counters when the profiling began.

    Nsight's tools start the process that they look at, so they cannot be asked from inside it: there are no sessions.
    """

    metrics: tuple[str, ...]
    began: float
    usage: resource.struct_rusage
    energy: EnergyMeter | None = None
    counters: Counters | None = None
    ncu_session: object | None = None
    nsys_session: object | None = None
    unavailable: dict[str, str] = field(default_factory=dict[str, str])


# What `getrusage` calls the figures of a process.
_USAGE: Mapping[str, str] = {
    "user_seconds": "ru_utime",
    "system_seconds": "ru_stime",
    "voluntary_switches": "ru_nvcsw",
    "involuntary_switches": "ru_nivcsw",
    "minor_faults": "ru_minflt",
    "major_faults": "ru_majflt",
}
_MEMORY: Mapping[str, str] = {"rss_bytes": "VmRSS", "peak_rss_bytes": "VmHWM"}
METRICS: tuple[str, ...] = ("wall_seconds", *_USAGE, *_MEMORY, "energy_joules", *EVENTS)
_NSIGHT = ("sm_efficiency", "achieved_occupancy", "tensor_active", "warp_execution_efficiency")


class HardwareProfiler:
    """Memory and energy of a process, from the operating system, and of GPUs, from NVML where there are some."""

    def __init__(self, root: Path = _ROOT) -> None:
        self._root = root
        self.unavailable: dict[str, str] = {}
        self._nvml = self._find_nvml()
        self.nvml_available = self._nvml is not None
        self.nsys_available = self._has_tool("nsys")
        self.ncu_available = self._has_tool("ncu")

    def get_memory_counters(self) -> dict[str, int]:
        """Bytes in use: of this process, its largest so far, and of every GPU; and how busy GPUs are, in percent."""
        status = self._root / "proc/self/status"
        counters = {name: _kibibytes(status, field) for name, field in _MEMORY.items()}
        if self._nvml is not None:
            for index in range(self._nvml.nvmlDeviceGetCount()):
                device = self._nvml.nvmlDeviceGetHandleByIndex(index)
                memory = self._nvml.nvmlDeviceGetMemoryInfo(device)
                used = self._nvml.nvmlDeviceGetUtilizationRates(device)
                counters[f"gpu_{index}_memory_used"] = int(memory.used)
                counters[f"gpu_{index}_memory_free"] = int(memory.free)
                counters[f"gpu_{index}_gpu_util"] = int(used.gpu)
                counters[f"gpu_{index}_mem_util"] = int(used.memory)
        return counters

    def reset_peak_memory(self) -> str | None:
        """Lets the largest amount so far be the present one; where that is not permitted, the reason."""
        try:
            (self._root / "proc/self/clear_refs").write_text("5", encoding="ascii")
        except OSError as error:
            return f"cannot be reset, so it is of the whole process ({reason_of(error)})"
        return None

    def start_profiling(self, metrics: Sequence[str] = METRICS) -> ProfilingHandle:
        """Begins to count; `metrics` are names of `METRICS`. Others end up in `unavailable`."""
        unavailable = {name: self._why_not(name) for name in metrics if name not in METRICS}
        energy = EnergyMeter() if "energy_joules" in metrics else None
        if "peak_rss_bytes" in metrics and (reason := self.reset_peak_memory()):
            unavailable["peak_rss_bytes"] = reason
        asked = [name for name in EVENTS if name in metrics]
        counters = Counters(asked) if asked else None
        if energy is not None:
            energy.start()
        if counters is not None:
            counters.start()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return ProfilingHandle(tuple(metrics), time.perf_counter(), usage, energy, counters, unavailable=unavailable)

    def stop_profiling(self, handle: ProfilingHandle) -> dict[str, Any]:
        """The use since the handle was made, by the names asked for, and `unavailable`."""
        wall = time.perf_counter() - handle.began
        usage = resource.getrusage(resource.RUSAGE_SELF)
        found: dict[str, Any] = {} if handle.counters is None else handle.counters.stop()
        unavailable = {**handle.unavailable, **found.pop("unavailable", {})}
        found["wall_seconds"] = wall
        for name, field_name in _USAGE.items():
            found[name] = getattr(usage, field_name) - getattr(handle.usage, field_name)
        found.update(self.get_memory_counters())
        if handle.energy is not None:
            joules = handle.energy.stop()
            if joules is None:
                unavailable["energy_joules"] = handle.energy.unavailable or "the meter was not started"
            else:
                found["energy_joules"] = joules
        kept = {name: found[name] for name in handle.metrics if name in found and name not in unavailable}
        devices = {name: value for name, value in found.items() if name.startswith("gpu_")}
        return {**kept, **devices, "unavailable": unavailable}

    def _why_not(self, metric: str) -> str:
        if metric in _NSIGHT:
            return self.unavailable.get("ncu") or "Nsight Compute starts what it measures: use --mode profiling"
        return f"no such metric; there are {', '.join(METRICS)}"

    def _has_tool(self, name: str) -> bool:
        if subprocesses.executable(name) is not None:
            return True
        self.unavailable[name] = f"there is no {name} on the path"
        return False

    def _find_nvml(self) -> Any:
        """NVIDIA's library, initialised; None where there is none, or no GPU."""
        if util.find_spec("pynvml") is None:
            self.unavailable["nvml"] = "nvidia-ml-py is not installed"
            return None
        import pynvml as library  # pyright: ignore[reportMissingImports]

        nvml: Any = library
        try:
            nvml.nvmlInit()
            if nvml.nvmlDeviceGetCount() > 0:
                return nvml
            self.unavailable["nvml"] = "NVML lists no GPU"
        except nvml.NVMLError as error:
            self.unavailable["nvml"] = f"NVML cannot be used: {error}"
        return None
