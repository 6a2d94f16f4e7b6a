"""Tile kernels in tiers: right at every tier, on the disk, in another process, on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import tessera as ts
from tessera import Schedule, Tile, f32, kernel, knobs, tile, verify
from tessera.metatracing import (
    AttentionParams,
    ExecutionTier,
    HotspotCriteria,
    HotspotDetector,
    MetaTracingRuntime,
    RuntimeConfig,
    execute_flash_attention,
)
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.clients.shipping import pack, unpack
from tessera.tiers.stand_ins import stand_in
from tessera.tile.calls.settings import settings

HAS_CODE = settings() is not None
native = pytest.mark.skipif(not HAS_CODE, reason="kernels have machine code on x86-64 Linux only")
FACTOR = 3.0
BOUNDS = {"f32": 2e-6, "bf16": 4e-3, "f16": 5e-4}
HOT: dict[str, Any] = {
    "background_compilation": False,
    "tier2_compilation_threshold_ms": 0.01,
    "tier3_specialization_threshold_ms": 0.02,
    "contest_rounds": 1,
}


@kernel
def saxpy(x: Any, y: Any, a: float):
    return tile.cast(a * tile.load(x).to(f32) + tile.load(y).to(f32), x.dtype)


@kernel
def tripled(x: Any):
    return tile.load(x) * FACTOR


@pytest.fixture(name="cache", autouse=True)
def _cache(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache_dir.using(tmp_path):
        yield tmp_path


def attended(q: Any, k: Any, v: Any, *, causal: bool, scale: float) -> Any:
    q, k, v = (np.asarray(x.cpu().numpy(), np.float64) for x in (q, k, v))
    scores = scale * (q @ k.swapaxes(-1, -2))
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def error(found: Any, exact: Any) -> float:
    return float(np.linalg.norm(found.cpu().numpy().astype(np.float64) - exact) / np.linalg.norm(exact))


def attention_at_all_tiers(device: str, dtype: Any, rows: int, calls: int) -> None:
    """Attention at all tiers, for one length and then another; every result is compared."""
    runtime = MetaTracingRuntime(RuntimeConfig(**HOT))
    params = AttentionParams(is_causal=True, softmax_scale=0.2)
    reached: set[int] = set()
    for length in (rows, rows + 9, rows):
        q, k, v = (ts.randn((1, 2, length, 16), dtype, seed=seed).to(device) for seed in range(3))
        exact = attended(q, k, v, causal=True, scale=0.2)
        for _ in range(calls):
            o = ts.zeros((1, 2, length, 16), dtype).to(device)
            result = runtime.execute_flash_attention(q, k, v, o, params)
            assert result.output is o
            reached.add(int(result.tier_used))
            assert error(o, exact) < BOUNDS[str(dtype)]
    stats = runtime.get_runtime_stats()
    assert stats.total_executions == 3 * calls
    assert reached == ({1, 2, 3} if HAS_CODE or device != "cpu" else {1})
    assert runtime.get_traces()[0].input_profile.is_causal
    assert runtime.get_performance_history()[-1].input_profile.softmax_scale == 0.2
    assert {one.context.always_causal for one in runtime.manager.specialized_kernels()} <= {True}


def test_attention_reaches_all_tiers() -> None:
    attention_at_all_tiers("cpu", ts.f32, 24, 20 if HAS_CODE else 2)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [ts.f16, ts.bf16], ids=str)
def test_attention_reaches_all_tiers_on_a_gpu(dtype: Any) -> None:
    attention_at_all_tiers("cuda:0", dtype, 200, 40)


def test_attention_without_an_output() -> None:
    q = ts.randn((1, 1, 8, 4), seed=1)
    result = execute_flash_attention(q, q, q)
    assert result.tier_used is ExecutionTier.TIER1_INTERPRETER
    assert error(result.output, attended(q, q, q, causal=False, scale=0.5)) < BOUNDS["f32"]


def test_hotspots_are_found_in_traces() -> None:
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False))
    x = ts.ones(32)
    run = runtime.tiered(tripled)
    for _ in range(6):
        run(x)
    (found,) = HotspotDetector().detect_hotspots(runtime.get_traces(), HotspotCriteria(min_execution_time_ms=0.0))
    assert found.execution_count == 6
    assert found.input_pattern.site == "tripled"
    assert found.optimization_potential == pytest.approx(1 - found.average_performance)
    assert not HotspotDetector().detect_hotspots(runtime.get_traces(), HotspotCriteria(min_execution_count=7))


def test_a_captured_value_that_changes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = MetaTracingRuntime(RuntimeConfig(**HOT)).tiered(tripled)
    x = ts.ones(10)
    for _ in range(15):
        assert float(run(x).numpy()[0]) == 3.0
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 4.0)
    assert float(run(x).numpy()[0]) == 4.0


@native
def test_settings_that_change_are_noticed_and_come_back(slow_calls: list[Any]) -> None:
    """However they are set; calls that have an entry take no other way."""
    run = MetaTracingRuntime(RuntimeConfig(background_compilation=False)).tiered(tripled)
    x = ts.ones(10)

    def called() -> tuple[int, int]:
        before = len(slow_calls)
        assert all(run(x).tolist() == [3.0] * 10 for _ in range(4))
        return len(run.sites), len(slow_calls) - before

    assert called() == (1, 1)
    with knobs.optimization.using(1):
        assert called() == (2, 1)
    knobs.optimization.set(2)
    try:
        assert called() == (3, 1)
        knobs.optimization.set(0)
        assert called() == (4, 1)
        with knobs.optimization.using(1):
            assert called() == (4, 0)
    finally:
        knobs.optimization.reset()
    assert called() == (4, 0)


def test_arguments_of_other_libraries_and_by_name() -> None:
    run = MetaTracingRuntime(RuntimeConfig(**HOT)).tiered(saxpy)
    x = np.arange(7, dtype=np.float32)
    for _ in range(4):
        assert (run(x, a=2.0, y=x).numpy() == 3 * x).all()
    with pytest.raises(ts.CompileError, match="missing a required argument"):
        run(x, x)


def test_kernels_without_tiers_run_as_ever() -> None:
    @verify.numerics(bounded=[-10, 10])
    @kernel
    def checked(x: Tile) -> Tile:
        return x + 1.0

    runtime = MetaTracingRuntime(RuntimeConfig(**HOT))
    assert (runtime.tiered(checked)(ts.ones(5)).numpy() == 2).all()
    assert runtime.get_traces() == []


def test_stand_ins_are_what_they_stand_for() -> None:
    x = ts.arange(240, dtype=f32).reshape(4, 60)
    for tensor in (x, x.T, x[1:, 3:], x[::-1], x[:0], ts.ones(()), x.broadcast_to(3, 4, 60)):
        assert stand_in(tensor.meta).meta is tensor.meta


def test_functions_go_to_other_processes_by_value() -> None:
    def outer(x: int) -> int:
        return inner(x) + 1

    def inner(x: int) -> int:
        return outer(x - 1) if x > 0 else int(FACTOR)

    sent = unpack(pack(outer))
    assert sent is not outer
    assert sent(4) == outer(4)
    assert unpack(pack(saxpy.function)).__code__ == saxpy.function.__code__


SENT = """
import json, sys
from tessera.metatracing.clients.worker import build
sys.stdout.buffer.write(build(sys.stdin.buffer.read()))
"""


@pytest.mark.quick(1)
@native
@pytest.mark.parametrize("which", ["plain", "captured", "static"])
def test_what_another_process_compiled_is_found(which: str, cache: Path) -> None:
    from tessera.metatracing import TierLevel

    size = 5.0

    @kernel
    def shifted(x: Any, a: float, *, change: Any):
        return a * change(tile.load(x)) + size

    client = KernelClient({"plain": saxpy, "captured": tripled, "static": shifted}[which])
    x = ts.ones(100)

    def change(rows: Any) -> Any:
        return tile.exp(rows)

    cases: dict[str, tuple[Any, dict[str, Any]]] = {
        "plain": ((x, x, 2.0), {}),
        "captured": ((x,), {}),
        "static": ((x, 7.0), {"change": change}),
    }
    call = client.call(*cases[which])
    assert call is not None
    levels = [
        TierLevel(ExecutionTier.TIER2_STANDARD, (), Schedule(block=(32,))),
        TierLevel(ExecutionTier.TIER3_SPECIALIZED, ("x.size[0]",)),
    ]
    assert [client.find(call, level) for level in levels] == [None, None]
    packed = client.request(call, levels)
    assert packed is not None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", SENT], input=packed, capture_output=True, env=environment, check=True)
    assert done.stdout == b"[null, null]"
    assert None not in [client.find(call, level) for level in levels]


FIRST = """
import sys, time
import numpy as np
import tessera as ts
from tessera import kernel, tile
from tessera.metatracing import MetaTracingRuntime

@kernel
def halved(x):
    return tile.load(x) * 0.5

with MetaTracingRuntime() as runtime:
    worker = runtime.compiling
    worker.prepare()
    x, until = ts.ones(5000), time.monotonic() + 60
    while not worker.is_ready and time.monotonic() < until:
        time.sleep(0.02)
    found, tier = runtime.tiered(halved).call_with_tier(x)
    assert int(tier) == 1 and (found.numpy() == 0.5).all()
    assert "xdsl.ir" not in sys.modules, "this process has loaded a compiler"
    (site,) = runtime.sites()
    assert site.programs[0].level.quick and site.programs[0].compiled.is_native
    worker.close()
    assert (runtime.tiered(halved)(ts.ones((3, 7))).numpy() == 0.5).all()
"""


@native
def test_a_process_that_is_ready_compiles_the_first_program(cache: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FIRST)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment["TESSERA_CACHE_DIR"] = str(cache)
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_new_kernel_has_little_code_at_first_on_a_gpu() -> None:
    """Without warp specialization, in small tiles; kernels of the package, and those with a block, as they are."""
    from tessera.metatracing import Call, TierLevel
    from tessera.metatracing.clients.kernels import KernelContext, KernelProgram
    from tessera.stdlib import flash_attention
    from tessera.tile.calls.settings import Settings

    here = Settings("cuda", "sm_90a", 3, frozenset(), deterministic=False, demanded=True)
    quick = TierLevel(ExecutionTier.TIER1_INTERPRETER, quick=True)
    x = ts.empty((64, 64), ts.f16)

    def compiled(form: Any) -> KernelProgram:
        client = KernelClient(form)
        call = Call((x, x, 2.0), (), KernelContext({}, here))
        assert client.starts_quickly(call)
        made = client.compile(call, quick)
        assert isinstance(made, KernelProgram)
        assert client.find(call, quick) is not None
        return made

    free, fixed = compiled(saxpy), compiled(saxpy.with_schedule(Schedule(block=(32, 32))))
    assert (free.program.schedule.block, fixed.program.schedule.block) == ((64, 16), (32, 32))
    assert free.program.executable is not None
    assert free.program.executable.plan.device is not None
    assert not free.program.executable.plan.device.persistent
    assert not KernelClient(flash_attention).starts_quickly(Call((x, x, x, x, 2.0), (), KernelContext({}, here)))


@native
def test_a_first_program_depends_on_leading_sizes_being_equal() -> None:
    """It has less to compute then. Other arguments get another one, and no other program asks."""
    from tessera.metatracing import TierLevel
    from tessera.metatracing.clients.kernels import KernelProgram

    client = KernelClient(saxpy)
    quick = TierLevel(ExecutionTier.TIER1_INTERPRETER, quick=True)
    x, y, less = (ts.randn(shape, seed=1) for shape in ((2, 3, 70, 16), (2, 3, 70, 16), (2, 1, 70, 16)))
    words = "y.size[0] = x.size[0]", "y.size[1] = x.size[1]"
    shown: list[list[str]] = []
    made: list[KernelProgram] = []
    for other, level in ((y, quick), (less, quick), (y, TierLevel(ExecutionTier.TIER1_INTERPRETER))):
        call = client.call((x, other, 2.0), {})
        assert call is not None
        program = client.compile(call, level)
        assert isinstance(program, KernelProgram)
        assert all(guard.check_function(call.values) for guard in program.guards)
        found = program.bind(call)(x.geometry, other.geometry, 2.0)
        assert np.allclose(found.numpy(), 2 * x.numpy() + other.numpy(), atol=1e-6)
        assert isinstance(client.find(call, level), KernelProgram)
        shown.append([str(guard) for guard in program.guards if str(guard) in words])
        made.append(program)
    assert shown == [[*words], [words[0]], []]
    assert [guard.check_function((x, less, 2.0)) for guard in made[0].guards if str(guard) in words] == [True, False]


@native
def test_background_compilation_reaches_the_third_tier_and_the_next_runtime_starts_there() -> None:
    config = RuntimeConfig(tier2_compilation_threshold_ms=0.01, tier3_specialization_threshold_ms=0.02)
    x, y = ts.randn(5000, seed=1), ts.randn(5000, seed=2)
    with MetaTracingRuntime(config) as runtime:
        run = runtime.tiered(saxpy)
        tiers: set[int] = set()
        for _ in range(4):
            for _ in range(60):
                found, tier = run.call_with_tier(x, y, 2.0)
                tiers.add(int(tier))
                np.testing.assert_allclose(found.numpy(), 2 * x.numpy() + y.numpy(), rtol=1e-6)
            assert runtime.wait_for_compilation(60)
        assert {1, 2} <= tiers
        (site,) = runtime.sites()
        best = max(program.tier for program in site.programs)
    with MetaTracingRuntime(config) as again:
        # Where an A/B test found that nothing is gained, there is nothing to start with.
        assert again.tiered(saxpy).call_with_tier(x, y, 2.0)[1] == best
        assert (again.counts["loads"] >= 1) is (best > 1)


@native
def test_a_damaged_cache_is_no_error(cache: Path) -> None:
    x = ts.ones(5000)
    for _ in range(2):
        run = MetaTracingRuntime(RuntimeConfig(**HOT)).tiered(saxpy)
        for _ in range(40):
            assert (run(x, x, 2.0).numpy() == 3).all()
        for file in (cache / "compiled").iterdir():
            file.write_bytes(file.read_bytes()[:-7])


SEQUENCE = st.lists(
    st.tuples(st.integers(1, 70), st.sampled_from([1, 2, -1]), st.sampled_from([0.5, 2.0, -0.0]), st.integers(1, 8)),
    min_size=1,
    max_size=6,
)
DTYPES = st.sampled_from([ts.f32, ts.f16, ts.bf16])


def play(calls: list[tuple[int, int, float, int]], dtype: Any, run: Any) -> None:
    """Every call gives what the interpreter gives, up to rounding."""
    for size, step, number, times in calls:
        whole = ts.randn((2 * size,), dtype, seed=size)
        x = whole[: size * abs(step) : step] if step > 0 else whole[:size][::-1]
        y = ts.randn(x.shape, dtype, seed=1)
        exact = saxpy.interpreted((x, y, number), {}).numpy().astype(np.float64)
        for _ in range(times):
            assert np.linalg.norm(run(x, y, number).numpy().astype(np.float64) - exact) <= BOUNDS[
                str(dtype)
            ] * np.linalg.norm(exact)


@hypothesis_settings(max_examples=15)
@given(SEQUENCE, DTYPES)
def test_sequences_of_calls(calls: list[tuple[int, int, float, int]], dtype: Any) -> None:
    play(calls, dtype, MetaTracingRuntime(RuntimeConfig(**HOT)).tiered(saxpy))


@pytest.mark.acceptance
@hypothesis_settings(max_examples=1000)
@given(SEQUENCE, DTYPES)
def test_many_sequences_of_calls(calls: list[tuple[int, int, float, int]], dtype: Any) -> None:
    play(calls, dtype, MetaTracingRuntime(RuntimeConfig(**HOT)).tiered(saxpy))
