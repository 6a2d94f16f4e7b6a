"""Jitted functions in tiers: with a clock that stands still, they reach the next tier as soon as they are called."""

from __future__ import annotations

import gc
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Tensor, jit, knobs
from tessera.errors import CompileError, ResourceError, ShapeError, TesseraError
from tessera.metatracing import ExecutionTier, ManualClock, MetaTracingRuntime, RuntimeConfig, TierLevel
from tessera.metatracing.clients.function_programs import FunctionProgram
from tessera.metatracing.clients.functions import ProgramClient
from tessera.metatracing.clients.recipes import Recipe

decoder: Any = import_module("decode_model")

EAGER: dict[str, Any] = {
    "background_compilation": False,
    "sample_period": 0,
    "tier2_compilation_threshold_ms": 0.0,
    "tier3_specialization_threshold_ms": 0.0,
    "contest_rounds": 1,
    "candidates": 1,
    "bridge_calls": 1,
}


def eager_runtime(**config: Any) -> MetaTracingRuntime:
    """A runtime whose functions reach the next tier at every call; what takes no time is never too slow."""
    return MetaTracingRuntime(RuntimeConfig(**{**EAGER, **config}), clock=ManualClock())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any) -> Iterator[None]:
    """Nothing of other tests is found."""
    with knobs.cache_dir.using(str(tmp_path)):
        yield


def scaled(x: Any, params: dict[str, Any], rate: float) -> dict[str, Any]:
    """A little of everything: pytrees, a number, a size among the results."""
    return {"y": x * params["w"] * rate + params["b"], "rows": x.shape[0]}


def more(x: Any) -> Any:
    return x + 1.0


def unusual(x: Any, rate: float) -> Any:
    """No other test has such a kernel."""
    return x * 1.8125 * rate + 0.3125


def check(function: Callable[..., Any], rows: int, rate: float, layout: str = "plain") -> None:
    """A call, compared with NumPy."""
    x = ts.arange(rows * 8, dtype=ts.f32).reshape(rows, 8)
    if layout == "every other":
        x = ts.arange(rows * 16, dtype=ts.f32).reshape(rows, 16)[:, ::2]
    params = {"w": ts.full((8,), 3.0), "b": ts.ones((8,))}
    found = function(x, params, rate)
    assert found["rows"] == rows
    np.testing.assert_array_equal(found["y"].numpy(), x.numpy() * np.float32(3) * np.float32(rate) + np.float32(1))


def tiers_reached(runtime: MetaTracingRuntime) -> list[int]:
    stats = runtime.get_runtime_stats()
    return [stats.tier1_executions, stats.tier2_executions, stats.tier3_executions]


def test_a_function_tiers_up_and_explains_itself() -> None:
    runtime = eager_runtime()
    function = jit(tiers=runtime)(scaled)
    for _ in range(12):
        check(function, 4, 2.0)
    first, second, third = tiers_reached(runtime)
    assert first == 1  # the interpreter, as long as nothing is compiled
    assert second >= 1
    assert third >= 6
    assert runtime.counts["aborts"] == 0
    explained = function.explain()
    assert explained.compilations == 1  # one trace serves all tiers
    (third_line,) = [line for line in explained.tiers if "tier 3" in line]
    assert "x.size[0] = 4" in third_line
    assert "rate = 2.0" in third_line
    assert "tier 1" in str(explained)
    # Lengths are open: other rows run a lower tier at once, and get a bridge.
    check(function, 5, 2.0)
    assert runtime.counts["deopts"] == 1
    check(function, 4, 3.0)
    assert runtime.counts.guard_failures == {"x.size[0]": 1, "rate": 1}
    check(function, 4, 2.0)
    assert function.explain().compilations == 1


def test_what_is_not_served_by_a_trace_gets_another() -> None:
    function = jit(tiers=eager_runtime(enable_tier3_specialization=False))(scaled)
    check(function, 4, 2.0)
    check(function, 1, 2.0)  # broadcasting treats 1 otherwise
    reasons = [reason.text for reason in function.explain().reasons]
    assert len(reasons) == 2
    assert "_0_0 >= 2 was taken for granted" in reasons[1]
    check(function, 6, -0.0)
    check(function, 6, 0.0, "every other")
    assert function.explain().compilations == 2


def test_numbers_that_are_none_are_never_assumed() -> None:
    runtime = eager_runtime(enable_tier2_compilation=False)

    @jit(tiers=runtime)
    def times(x: Any, rate: float) -> Any:
        return x * rate

    x = ts.ones((3, 2))
    for rate in (float("nan"), float("nan"), float("nan"), 2.0, 2.0, 2.0, 2.0):
        np.testing.assert_array_equal(times(x, rate).numpy(), np.full((3, 2), np.float32(rate)))


def test_structures_static_values_and_types_have_sites_of_their_own() -> None:
    runtime = eager_runtime(enable_tier2_compilation=False, enable_tier3_specialization=False)

    @jit(tiers=runtime)
    def total(x: Any, *, axis: int = 0) -> Any:
        given: list[Any] = ts.tree_leaves(x)
        return ts.sum(given[0] if len(given) == 1 else given[0] + given[1], axis=axis)

    x = ts.ones((3, 2))
    for _ in range(2):
        assert total(x).numpy().tolist() == [3.0, 3.0]
        assert total(x, axis=1).numpy().tolist() == [2.0, 2.0, 2.0]
        assert total((x, x)).numpy().tolist() == [6.0, 6.0]
        assert total(x.to(ts.i32)).numpy().tolist() == [3, 3]
        assert total(np.ones((3, 2), np.float32)).numpy().tolist() == [3.0, 3.0]
        assert total(ts.ones((2, 2, 2))).shape == (2, 2)
    assert len(runtime.sites()) == 5
    with pytest.raises(TesseraError, match="takes"):
        total(x, x, x)
    with pytest.raises(ShapeError):
        total((x, ts.ones((4, 2))))


def test_captured_arrays_are_arguments_and_captured_objects_are_watched() -> None:
    runtime = eager_runtime(enable_tier2_compilation=False)
    held: dict[str, Any] = {"w": ts.ones((4,)), "factor": 2.0}

    @jit(tiers=runtime)
    def product(x: Any) -> Any:
        return x * held["w"] * held["factor"]

    x = ts.ones((3, 4))
    for _ in range(4):
        assert product(x).numpy().tolist() == [[2.0] * 4] * 3
    held["w"][:] = 5.0  # written into: the same program
    assert product(x).numpy()[0, 0] == 10.0
    assert runtime.counts["invalidations"] == 0
    held["w"] = ts.full((4,), 7.0)  # replaced
    assert product(x).numpy()[0, 0] == 14.0
    held["factor"] = 1.0
    assert product(x).numpy()[0, 0] == 7.0
    assert runtime.counts["invalidations"] == 2
    assert len(runtime.sites()) == 1


def test_effects_happen_once_at_every_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = eager_runtime(enable_tier2_compilation=False)
    count = ts.State(np.zeros((), np.float32))

    @jit(tiers=runtime)
    def counted(x: Any) -> Any:
        count.write(count.read() + 1.0)
        return x + count.read()

    found = [float(counted(ts.zeros((3,))).numpy()[0]) for _ in range(12)]
    assert found == [float(number) for number in range(1, 13)]
    assert tiers_reached(runtime)[2] > 0

    # What fails on its way is not made again by another tier: half of it may have happened.
    (site,) = runtime.sites()
    best = site.programs[0]
    assert int(best.tier) == 3

    def fail(*_: Any) -> Any:
        raise ResourceError("no memory")

    for entry in site.entries:
        monkeypatch.setattr(entry, "run", fail)
    with pytest.raises(ResourceError):
        counted(ts.zeros((3,)))
    assert float(np.asarray(count.read())) == 12.0


def test_inside_of_other_functions_it_is_part_of_them() -> None:
    runtime = eager_runtime()
    inner = jit(tiers=runtime)(more)

    @jit
    def outer(x: Any) -> Any:
        return inner(x) * 2.0

    assert outer(ts.ones((3,))).numpy().tolist() == [4.0] * 3
    assert runtime.sites() == []


def test_arguments_are_given_away_at_every_tier() -> None:
    function = jit(tiers=eager_runtime(enable_tier2_compilation=False), donate_argnums=0)(more)
    for _ in range(4):
        x = ts.ones((4,))
        assert function(x).numpy().tolist() == [2.0] * 4
        with pytest.raises(TesseraError):
            x.numpy()


def test_what_cannot_be_compiled_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = eager_runtime()
    function = jit(tiers=runtime)(scaled)

    def refuse(*_: Any) -> Any:
        raise CompileError("there is no way")

    monkeypatch.setattr(Recipe, "program", refuse)
    for _ in range(5):
        check(function, 4, 2.0)
    assert tiers_reached(runtime) == [5, 0, 0]
    assert runtime.counts["aborts"] == 3  # Tier 2, and Tier 3 with all facts and with numbers alone


def test_another_runtime_starts_where_one_has_ended() -> None:
    for which, loads in (("first", 0), ("second", 2)):
        runtime = eager_runtime()
        function = jit(tiers=runtime)(scaled)
        for _ in range(10):
            check(function, 4, 2.0)
        assert runtime.counts["loads"] == loads, which
    assert tiers_reached(runtime) == [0, 0, 10]
    assert runtime.counts["compiles"] == 0


SECOND = """
import sys
import numpy as np
import tessera as ts
from test_tiered_functions import eager_runtime, tiers_reached, unusual
runtime = eager_runtime()
function = ts.jit(tiers=runtime)(unusual)
x = ts.asarray(np.ones((4, 8), np.float32))
for _ in range(5):
    assert function(x, 2.0).numpy().tolist() == [[3.9375] * 8] * 4
assert tiers_reached(runtime) == [0, 0, 5], tiers_reached(runtime)
assert function.explain().found == 1
assert "xdsl.ir" not in sys.modules, [one for one in sys.modules if "xdsl" in one][:9]  # nothing was traced
"""


def test_another_process_starts_there_without_tracing(tmp_path: Path) -> None:
    # What other tests have compiled is in this process, and not in this folder.
    function, x = jit(tiers=eager_runtime())(unusual), ts.ones((4, 8))
    for _ in range(10):
        assert function(x, 2.0).numpy().tolist() == [[3.9375] * 8] * 4
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    ran = subprocess.run([sys.executable, "-c", SECOND], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_another_process_compiles(caplog: pytest.LogCaptureFixture) -> None:
    with (
        knobs.logs.using("tiers,recompiles"),
        caplog.at_level(logging.WARNING),
        eager_runtime(background_compilation=True, enable_tier2_compilation=False) as runtime,
    ):
        function = jit(tiers=runtime)(scaled)
        check(function, 4, 2.0)
        assert runtime.wait_for_compilation(120)
        for _ in range(6):
            check(function, 4, 2.0)
        assert runtime.counts["aborts"] == 0, caplog.text
        assert tiers_reached(runtime)[2] >= 3
    assert re.search(r"scaled: \d programs were compiled by another process", caplog.text)


def test_a_function_that_is_gone_leaves_nothing() -> None:
    runtime = eager_runtime(enable_tier2_compilation=False, enable_tier3_specialization=False)
    function = jit(tiers=runtime)(scaled)
    check(function, 4, 2.0)
    assert len(runtime.sites()) == 1
    del function
    gc.collect()
    assert runtime.sites() == []


def test_the_interpreter_runs_all_where_it_was_asked_for() -> None:
    runtime = eager_runtime()
    function = jit(tiers=runtime)(scaled)
    with knobs.interpret.using(True):
        for _ in range(4):
            check(function, 4, 2.0)
    assert tiers_reached(runtime) == [4, 0, 0]
    for _ in range(4):
        check(function, 4, 2.0)
    assert tiers_reached(runtime)[2] > 0


def test_threads() -> None:
    runtime = eager_runtime()
    function = jit(tiers=runtime)(scaled)
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(20):
                check(function, int(random.integers(1, 3)), float(random.integers(0, 2)))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_tiers_are_auto_off_or_a_runtime() -> None:
    with pytest.raises(TesseraError, match="'auto', 'off' or a runtime"):
        jit(tiers="always")(scaled)
    assert jit(tiers="off")(scaled).explain().tiers == ()

    class Other:
        tiered = None

    with pytest.raises(TesseraError, match="MetaTracingRuntime, got Other"):
        jit(tiers=Other())(scaled)(ts.ones((2, 2)), {}, 1.0)


@pytest.mark.acceptance
def test_a_decoder_takes_steps_in_tiers() -> None:
    runtime = eager_runtime(enable_tier2_compilation=False)
    x, position, layers, cache = decoder.arguments(ts.f32, layers=1, width=16, heads=2, length=8)
    step, given = jit(tiers=runtime)(decoder.decode_step), (x, position, cache)
    for _ in range(6):
        given = step(given[0], given[1], layers, given[2])
    exact = decoder.in_float64(x.numpy().astype(np.float64), layers, 6, 2)
    assert np.linalg.norm(given[0].numpy() - exact) / np.linalg.norm(exact) < 1e-5
    assert tiers_reached(runtime)[2] > 0


@pytest.mark.gpu
@pytest.mark.alone
def test_a_decoder_tiers_up_on_a_gpu_and_its_launches_become_a_graph() -> None:
    runtime = eager_runtime()
    sizes = {"layers": 2, "width": 64, "heads": 4, "length": 16}
    x, position, layers, cache = ts.tree_map(Tensor.cuda, decoder.arguments(ts.f32, **sizes))
    step, plain = jit(tiers=runtime)(decoder.decode_step), jit(decoder.decode_step)
    given, wanted = (x, position, cache), (x, position, cache)
    for _ in range(12):
        given = step(given[0], given[1], layers, given[2])
        wanted = plain(wanted[0], wanted[1], layers, wanted[2])
        found, expected = (one[0].cpu().numpy() for one in (given, wanted))
        assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 1e-5
    assert int(given[1].cpu().numpy()) == 12
    assert runtime.counts["aborts"] == 0
    (site,) = runtime.sites()
    best = site.programs[0].compiled
    assert isinstance(best, FunctionProgram)
    assert int(site.programs[0].tier) == 3
    assert best.recorded > 10


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_number_that_is_known_is_part_of_the_program(device: str) -> None:
    function = jit(scaled)
    x, params = ts.ones((4, 8)).to(device), {"w": ts.full((8,), 3.0).to(device), "b": ts.ones((8,)).to(device)}
    client = ProgramClient(function, function.parameters.call(function.parameters.bind((x, params, 2.0), {})))
    call = client.call((x, params["b"], params["w"], 2.0), {})
    assert call is not None
    program = client.compile(call, TierLevel(ExecutionTier.TIER3_SPECIALIZED, ("rate", "x.size[0]")))
    assert [str(guard) for guard in program.guards if guard.is_about_a_number] == ["rate = 2.0"]
    run = program.bind(call)
    # Its argument is not read: the guard is checked before.
    for rate in (2.0, 7.0):
        assert run(x, params["b"], params["w"], rate)["y"].cpu().numpy().tolist() == [[7.0] * 8] * 4
