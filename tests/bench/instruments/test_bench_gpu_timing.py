"""Time and energy on GPUs, as far as can be told without one: a counter's steps, who runs where, what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tessera.bench import registry
from tessera.bench.cuda import tables
from tessera.bench.engine import timer_for
from tessera.bench.instruments import gpu_timing as timing
from tessera.bench.instruments.ncu import METRICS
from tessera.bench.measuring import frameworks
from tessera.bench.measuring.definition import Setting
from tessera.bench.measuring.figures import CaseOutcome, row
from tessera.bench.measuring.frameworks import FRAMEWORKS
from tessera.bench.measuring.precision import precision
from tessera.bench.measuring.sampling import Side
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, MeasurementType
from tessera.cli import bench_session
from tessera.errors import DeviceError


class Counter:
    """Energy of a GPU at 400 W, counted every 100 ms, and a clock that only work moves on."""

    def __init__(self, watts: float = 400.0) -> None:
        self.watts, self.nanoseconds, self.worked = watts, 0, 0

    def now(self) -> int:
        return self.nanoseconds

    def read(self) -> int:
        return round(self.watts * (self.nanoseconds // 100_000_000) * 100)

    def work(self) -> int:
        """Ten calls of 2 ms."""
        self.nanoseconds += 20_000_000
        self.worked += 10
        return 10


def test_energy_is_counted_from_step_to_step() -> None:
    counter = Counter()
    found = timing.joules_per_call(counter.work, counter.read, 0.5, counter.now)
    assert found == pytest.approx(400 * 2e-3)
    assert counter.nanoseconds < 0.9e9


def test_energy_does_not_depend_on_where_a_step_begins() -> None:
    counter = Counter()
    counter.nanoseconds = 73_000_000
    assert timing.joules_per_call(counter.work, counter.read, 0.5, counter.now) == pytest.approx(0.8, rel=0.05)


def test_a_counter_that_stands_still_is_no_meter() -> None:
    counter = Counter(watts=0.0)
    with pytest.raises(BenchError, match="did not move in 3 s"):
        timing.joules_per_call(counter.work, counter.read, 0.5, counter.now)


@pytest.mark.parametrize("name", ["softmax", "layernorm", "rmsnorm", "gelu", "gemm", "flash_attention"])
def test_every_benchmark_has_ours_and_a_peer_on_gpus(name: str) -> None:
    benchmark = registry.get(name)
    assert isinstance(benchmark, OperatorBenchmark)
    kinds = {one.framework.name for one in benchmark.implementations.values() if one.framework.needs_gpu}
    assert {"tessera_cuda", "torch_cuda"} <= kinds


def choices(**given: Any) -> dict[str, Any]:
    """Options of the command line, as they are when none is given."""
    names = ("mode", "threads", "seconds", "samples", "seed", "implementations", "set_name")
    none = {"quick": False, "cold": False, "pause": 0.0, "measures": (), "precisions": ("bf16",), "sizes": ()}
    return {**dict.fromkeys(names), **none, **given}


@pytest.mark.parametrize("there", [True, False])
def test_what_runs_is_what_the_machine_is_for(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr(bench_session, "has_gpu", lambda: there)
    (config,) = bench_session.configs("softmax", choices())
    on_gpu, on_cpu = ["tessera_cuda", "torch_cuda", "inductor_cuda"], ["tessera", "torch", "inductor", "numpy"]
    assert config.implementations == (on_gpu if there else on_cpu)
    sizes = config.sizes or registry.get("softmax").get_problem_sizes()
    assert ({"rows": 16384, "cols": 4096} in sizes) == there
    (quick,) = bench_session.configs("softmax", choices(quick=True))
    assert quick.implementations == (["tessera_cuda", "torch_cuda"] if there else ["tessera", "torch", "numpy"])
    (asked,) = bench_session.configs("softmax", choices(implementations="numpy, torch_cuda"))
    assert asked.implementations == ["numpy", "torch_cuda"]


def test_ours_on_a_gpu_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "has_gpu", lambda: False)
    assert FRAMEWORKS["tessera_cuda"].missing() == "needs an NVIDIA GPU"
    assert FRAMEWORKS["tessera_cuda"].ours
    assert not FRAMEWORKS["torch_cuda"].ours


def seen(**found: Any) -> CaseOutcome:
    """A row of a GPU, as it is known when its case is over."""
    benchmark: Any = registry.get("softmax")
    side = Side("tessera_cuda", FRAMEWORKS["tessera_cuda"], lambda: None, [1e-4] * 9, starting=[5e-6] * 9)
    config = BenchmarkConfig(measurements=list(MeasurementType))
    setting = Setting(benchmark, {"rows": 64, "cols": 64}, precision("bf16"), config)
    return CaseOutcome(setting, side, [1.0] * 9, {}, {"bound": 1.0, **found}, None)


def test_a_row_of_a_gpu_has_its_own_figures() -> None:
    profile: dict[str, Any] = {**dict.fromkeys(METRICS, 50.0), "registers_per_thread": 64.0, "unavailable": {}}
    made = row(seen(kernel_ms=0.08, profile=profile))
    assert made.latency_ms == pytest.approx(0.1)
    assert made.kernel_ms == 0.08
    assert made.launch_us == pytest.approx(5.0)
    assert made.occupancy_percent == 50.0
    assert (made.registers_per_thread, made.shared_memory_per_block) == (64, 50)
    names = {"sm_efficiency", "achieved_occupancy", "tensor_active", "warp_execution_efficiency"}
    assert made.counters == dict.fromkeys(names, 50.0)
    assert not names & {name.removeprefix("counters.") for name in made.unavailable}


def test_figures_that_ncu_did_not_give_have_its_reason() -> None:
    reasons = dict.fromkeys(METRICS, "no permission")
    made = row(seen(profile={**dict.fromkeys(METRICS), "unavailable": reasons}))
    assert made.counters == {}
    assert made.occupancy_percent is None
    for name in ("occupancy_percent", "registers_per_thread", "counters.sm_efficiency", "counters.tensor_active"):
        assert made.unavailable[name] == "no permission"
    assert "kernel_ms" in made.unavailable
    without = row(seen())
    assert "--mode profiling" in without.unavailable["registers_per_thread"]
    assert "--mode profiling" in without.unavailable["occupancy_percent"]
    failed = row(seen(unavailable={"profile": "FileNotFoundError: ncu"}))
    assert failed.unavailable["counters.sm_efficiency"] == "FileNotFoundError: ncu"


def test_a_gpu_that_is_not_there_has_no_timer() -> None:
    if frameworks.has_gpu():
        pytest.skip("there is a GPU")
    timer = timer_for("cuda:0")
    with pytest.raises(DeviceError):
        timer.start()


def test_results_are_tables_for_people() -> None:
    one = {"us": 62.1, "gbps": 4322.0, "error": 1.6e-3, "bound": 4e-3, "repeatable": False, "joules": 0.031}
    profile = {**dict.fromkeys(METRICS), "sm_efficiency": 98.5}
    rows: list[dict[str, Any]] = [
        {
            "name": "softmax",
            "entrants": {
                "tessera": {**one, "profile": profile},
                "torch": {"failure": "the result is wrong", "error": None},
                "copy": {"us": 58.0, "gbps": 4628.0, "error": None},
            },
            "ratios": {"copy": {"ratio": 0.934, "interval": [0.93, 0.94]}},
            "bars": {"copy": {"bar": 0.95, "ratio": 0.934, "held": False}},
        },
        {"name": "rope", "failure": "no schedule fits"},
    ]
    record = {"environment": {"gpu": "NVIDIA H200", "driver": "580.1", "commit": "0123456789abcdef"}, "rows": rows}
    text = tables.markdown(record, "H200")
    assert "NVIDIA H200, driver 580.1, commit 0123456789ab" in text
    assert "| softmax | tessera | 62.10 | 4322 GB/s |  | 1.6e-03 | 0.031 | not the same bits each time |" in text
    assert "|  | torch |  |  |  |  |  | the result is wrong |" in text
    assert "|  | copy | 58.00 | 4628 GB/s | 0.934 (0.930–0.940) |  |  |  |" in text
    assert "| softmax | copy | 0.95 | 0.934 | missed |" in text
    assert "| softmax | tessera | 98.5 | – | – | – | – |" in text
    assert "no schedule fits" in text
    assert tables.missed(rows) == ["softmax: 0.934 of copy, the bar is 0.95"]
    assert tables.failed(rows) == ["rope: no schedule fits", "softmax: torch: the result is wrong"]
