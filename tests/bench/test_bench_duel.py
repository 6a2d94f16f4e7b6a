"""Duels: equal code raises no alarm, slower code does; how often is counted at full length by `make acceptance`."""

from __future__ import annotations

import dataclasses
from typing import Any

import cheats
import numpy as np
import pytest
from click.testing import CliRunner

from tessera.bench import registry
from tessera.bench.duels import BUDGET, calibrate, duel, slowed
from tessera.bench.measuring import frameworks
from tessera.bench.measuring.precision import precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.comparison import Change, Verdict
from tessera.bench.results.definitions import BenchError
from tessera.cli.main import cli

F32 = precision("f32")
ONE_THREAD = dataclasses.replace(BUDGET, threads=1)
BRIEF = dataclasses.replace(ONE_THREAD, seconds_per_case=1.5)
# The three kernels, at sizes that take some tenths of a millisecond.
KERNELS: dict[str, dict[str, Any]] = {
    "softmax": {"rows": 512, "cols": 512},
    "gemm": {"m": 256, "n": 256, "k": 128},
    "flash_attention": {"batch_size": 1, "num_heads": 4, "seq_len": 256, "head_dim": 64, "causal": True},
}


def benchmark_of(name: str) -> OperatorBenchmark:
    found = registry.get(name)
    assert isinstance(found, OperatorBenchmark)
    return found


def ours(benchmark: OperatorBenchmark) -> Any:
    return next(iter(benchmark.implementations.values()))


VAGUE = 100.0
"""An interval so wide, in per cent, says too little of how much slower something is."""


def decided(benchmark: OperatorBenchmark, name: str, first: Any, second: Any) -> Change:
    """A duel that was decided: where a busy machine leaves one open or vague, it is fought again with twice the time.

    A clear case ends as soon as it is decided, so that the longer ones cost nothing on an idle machine.
    """
    config = BRIEF
    change = duel(benchmark, KERNELS[name], F32, first, second, config)
    for _ in range(4):
        low, high = change.interval_percent or (-VAGUE, VAGUE)
        if change.verdict is not Verdict.UNDECIDED and high - low < VAGUE:
            break
        config = dataclasses.replace(config, seconds_per_case=2 * config.seconds_per_case)
        change = duel(benchmark, KERNELS[name], F32, first, second, config)
    return change


@pytest.mark.quick(name=["softmax"])
@pytest.mark.parametrize("name", KERNELS)
def test_half_as_fast_again_is_a_regression_and_the_other_way_round_an_improvement(name: str) -> None:
    benchmark = benchmark_of(name)
    own = ours(benchmark)
    slower = slowed(own, 100.0)
    worse = decided(benchmark, name, own, slower)
    assert worse.verdict is Verdict.REGRESSION, worse.reason
    assert worse.change_percent is not None
    assert 50 < worse.change_percent < 200
    better = decided(benchmark, name, slower, own)
    assert better.verdict is Verdict.IMPROVEMENT, better.reason


@pytest.mark.acceptance
def test_a_kernel_against_itself_is_no_regression() -> None:
    found = calibrate(benchmark_of("softmax"), KERNELS["softmax"], F32, 0.0, 3, BRIEF)
    assert found.count == 3
    assert found.share(Verdict.REGRESSION, Verdict.IMPROVEMENT) == 0.0, str(found)


def test_a_clear_case_is_decided_early() -> None:
    benchmark = benchmark_of("softmax")
    own = ours(benchmark)
    change = duel(benchmark, KERNELS["softmax"], F32, own, slowed(own, 300.0), ONE_THREAD)
    assert change.verdict is Verdict.REGRESSION
    assert change.samples[0] < 200


def test_slowing_down_changes_no_result() -> None:
    benchmark = benchmark_of("softmax")
    x = np.linspace(-1, 1, 512 * 512, dtype=np.float32).reshape(512, 512)
    own = ours(benchmark)
    calls = [one.built(benchmark, KERNELS["softmax"], F32).call for one in (own, slowed(own, 50.0))]
    first, second = (call(own.framework.adapt(x)).numpy() for call in calls)
    assert np.array_equal(first, second)


def test_a_duel_without_time_is_undecided() -> None:
    benchmark = benchmark_of("softmax")
    own = ours(benchmark)
    found = duel(benchmark, KERNELS["softmax"], F32, own, own, dataclasses.replace(ONE_THREAD, seconds_per_case=1e-6))
    assert found.verdict is Verdict.UNDECIDED
    assert found.samples[0] == 3


def test_a_side_that_is_refused_ends_the_duel() -> None:
    benchmark = cheats.CheatsBenchmark()
    both = benchmark.implementations
    with pytest.raises(BenchError, match="wrong"):
        duel(benchmark, cheats.ROWS, F32, both["honest"], both["cached"], BRIEF)


def test_a_duel_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "has_gpu", lambda: False)
    words = ["bench", "duel", "softmax", "--size", "rows=512,cols=512"]
    slower = CliRunner().invoke(cli, [*words, "tessera", "numpy"])
    assert slower.exit_code == 4, slower.output
    assert "regression" in slower.output
    faster = CliRunner().invoke(cli, [*words, "numpy", "tessera"])
    assert faster.exit_code == 0, faster.output
    assert "improvement" in faster.output
    missing = CliRunner().invoke(cli, ["bench", "duel", "flash_attention", "tessera", "torch_sdpa_cudnn"])
    assert isinstance(missing.exception, BenchError)


def test_calibrate_from_the_command_line() -> None:
    words = ["bench", "calibrate", "softmax", "--size", "rows=64,cols=64", "--slower", "200", "--count", "1"]
    found = CliRunner().invoke(cli, words)
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert any(line.startswith("0 % slower: 1 duels") for line in lines)
    assert any(line.startswith("200 % slower: 1 duels") for line in lines)


@pytest.mark.acceptance
@pytest.mark.parametrize(("name", "count"), [("softmax", 80), ("gemm", 60), ("flash_attention", 60)])
def test_equal_code_is_hardly_ever_called_different(name: str, count: int) -> None:
    found = calibrate(benchmark_of(name), KERNELS[name], F32, 0.0, count, ONE_THREAD)
    alarms = found.verdicts[Verdict.REGRESSION] + found.verdicts[Verdict.IMPROVEMENT]
    # 1 % of 200, in all three: none of 60, and at most one of 80.
    assert alarms <= count // 80, str(found)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", KERNELS)
def test_five_percent_are_caught(name: str) -> None:
    found = calibrate(benchmark_of(name), KERNELS[name], F32, 5.0, 60, ONE_THREAD)
    assert found.share(Verdict.REGRESSION) >= 0.95, str(found)
    assert found.share(Verdict.UNDECIDED) <= 0.05, str(found)
