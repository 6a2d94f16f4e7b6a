"""Robustness: edge cases, many threads and shapes in a process of their own, memory over many calls, and faults.

That process is `under_stress`; it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tessera import subprocesses
from tessera.bench.validation.framework import relative
from tessera.bench.validation.subjects import BOUNDS, synchronize
from tessera.device_names import is_host
from tessera.dtypes.types import f16, f32
from tessera.metatracing import AttentionParams, MetaTracingRuntime, RuntimeConfig
from tessera.metatracing.reference import ReferenceFlashAttention, picked
from tessera.runtime.tensor.creation import empty
from tessera.runtime.tensor.random import randn
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import facts_of
from tessera.tiers.sites.request import Request, RequestCompiler

LEAK_MB = 8.0
"""Megabytes that the second half of many calls may add."""
_EARLY_TIER_UP: dict[str, Any] = {
    "persist": False,
    "background_compilation": False,
    "tier2_compilation_threshold_ms": 0.001,
    "tier3_specialization_threshold_ms": 0.002,
    "candidates": 1,
    "contest_rounds": 1,
}
_WIDTH = 16
_THREADS = 4
_PATIENCE_SECONDS = 600.0
Arrays = tuple[Tensor, Tensor, Tensor, Tensor]
_LENGTHS = (1, 7, 16, 33, 64, 65)


@dataclass
class RobustnessValidation:
    """The outcome. A crash is a process that ended, or an error that should not have been raised."""

    stress_test_passed: bool = False
    memory_leak_test_passed: bool = False
    edge_case_test_passed: bool = False
    faults_passed: bool = False
    crash_count: int = 0
    memory_growth_mb: float | None = None
    memory_mb: float | None = None
    guard_accuracy: float | None = None
    told: list[str] = field(default_factory=list)
    """Descriptions of the failures."""


def run_robustness_tests(device: str, *, quick: bool) -> RobustnessValidation:
    """All of them."""
    found = RobustnessValidation()
    code = f"from {__name__} import under_stress; under_stress({2_000 if quick else 20_000}, {device!r})"
    stressed = subprocess.Popen(
        subprocesses.python(code),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=subprocesses.environment(),
    )
    try:
        try_edge_cases(device, found)
        said, complained = stressed.communicate(timeout=_PATIENCE_SECONDS)
    finally:
        stressed.kill()
        stressed.wait()
    judge_stress(stressed.returncode, said, complained, found)
    _faults(device, found, quick=quick)
    return found


# Edge cases


def _drawn(shape: tuple[int, ...], device: str, seed: int, scale: float = 1.0) -> Tensor:
    dtype = f32 if is_host(device) else f16
    made = randn(shape, dtype, seed=seed)
    made.numpy()[...] = (scale * made.numpy()).astype(made.numpy().dtype)
    return made.to(device)


def wrong(runtime: MetaTracingRuntime, arrays: Arrays, params: AttentionParams) -> float:
    """The error of a call as a part of what it may be."""
    q, k, v, o = arrays
    runtime.execute_flash_attention(q, k, v, o, params)
    synchronize(str(o.device))
    exact = ReferenceFlashAttention().compute(q, k, v, params)
    return relative(picked(o), exact) / BOUNDS[str(o.dtype)] if o.size else 0.0


def _case(q: tuple[int, ...], k: tuple[int, ...], device: str, scale: float = 1.0) -> Arrays:
    made = (_drawn(q, device, 1, scale), _drawn(k, device, 2, scale), _drawn(k, device, 3))
    return (*made, empty(q, made[0].dtype, device=device))


def _edge_cases(device: str) -> dict[str, tuple[Arrays, AttentionParams]]:
    causal, plain = AttentionParams(is_causal=True), AttentionParams()
    q, k, v, o = _case((1, 37, 2, _WIDTH), (1, 37, 2, _WIDTH), device)
    return {
        "one row": (_case((1, 2, 1, _WIDTH), (1, 2, 1, _WIDTH), device), causal),
        "odd lengths": (_case((2, 3, 37, _WIDTH), (2, 3, 37, _WIDTH), device), causal),
        "more keys than queries": (_case((1, 2, 5, _WIDTH), (1, 2, 129, _WIDTH), device), plain),
        "more queries than keys": (_case((1, 2, 129, _WIDTH), (1, 2, 5, _WIDTH), device), plain),
        "large scores": (_case((1, 2, 33, _WIDTH), (1, 2, 33, _WIDTH), device, 30.0), plain),
        "another scale": (_case((1, 2, 16, _WIDTH), (1, 2, 16, _WIDTH), device), AttentionParams(True, 0.5)),
        "heads inside of rows": ((q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), o.transpose(1, 2)), causal),
        "no heads": (_case((1, 0, 16, _WIDTH), (1, 0, 16, _WIDTH), device), causal),
    }


def try_edge_cases(device: str, found: RobustnessValidation) -> None:
    """Sizes, scales and strides that are seldom."""
    runtime = MetaTracingRuntime(RuntimeConfig(**_EARLY_TIER_UP))
    found.edge_case_test_passed = True
    for name, (arrays, params) in _edge_cases(device).items():
        # Large scores are decided by single differences: what their inputs are rounded by is multiplied.
        limit = 40.0 if name == "large scores" else 1.0
        try:
            away = max(wrong(runtime, arrays, params) for _ in range(3))
        except Exception as error:
            found.crash_count += 1
            away = float("nan")
            found.told.append(f"{name}: {type(error).__name__}: {error}")
        if not away <= limit:
            found.edge_case_test_passed = False
            found.told.append(f"{name}: off by {away:.1f} times what is allowed")


# Stress and memory, in another process


def judge_stress(status: int, output: str, complained: str, found: RobustnessValidation) -> None:
    """The output of a process with many threads and changing lengths, and how it ended."""
    if status != 0:
        found.crash_count += 1
        found.told.append(f"the process under stress ended with {status}: {complained.strip()[-300:]}")
        return
    said: dict[str, Any] = json.loads(output.splitlines()[-1])
    found.crash_count += len(said["errors"])
    found.told += said["errors"][:5]
    found.stress_test_passed = not said["errors"] and said["wrong"] == 0
    found.memory_growth_mb, found.memory_mb = said["growth_mb"], said["used_mb"]
    found.memory_leak_test_passed = said["growth_mb"] <= LEAK_MB
    found.guard_accuracy = said["guard_accuracy"]


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def stress(calls: int, device: str) -> dict[str, Any]:
    """Threads that call attention with changing lengths; a part of the results is checked."""
    empty((1,), f32, device=device)  # what a driver needs is not ours
    before = _resident_mb()
    runtime = MetaTracingRuntime(RuntimeConfig(**_EARLY_TIER_UP))
    errors: list[str] = []
    wrongs = [0]
    cases = [
        (_case((1, 2, length, _WIDTH), (1, 2, length, _WIDTH), device), AttentionParams(is_causal=True))
        for length in _LENGTHS
    ]
    for arrays, params in cases:
        for _ in range(12):
            wrong(runtime, arrays, params)

    def work(seed: int, count: int) -> None:
        chooser = random.Random(seed)
        for index in range(count):
            arrays, params = chooser.choice(cases)
            own = (arrays[0], arrays[1], arrays[2], empty(arrays[3].shape, arrays[3].dtype, device=device))
            try:
                if index % 16 == 0:
                    wrongs[0] += not wrong(runtime, own, params) <= 1.0
                else:
                    runtime.execute_flash_attention(*own, params)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")

    def half() -> None:
        threads = [threading.Thread(target=work, args=(seed, calls // 2 // _THREADS)) for seed in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        synchronize(device)

    half()
    between = _resident_mb()
    half()
    after = _resident_mb()
    return {
        "errors": errors,
        "wrong": wrongs[0],
        "growth_mb": round(after - between, 2),
        "used_mb": round(after - before, 2),
        "guard_accuracy": _guard_accuracy(runtime, cases),
    }


def _guard_accuracy(runtime: MetaTracingRuntime, cases: Sequence[tuple[Arrays, AttentionParams]]) -> float:
    """The part of all answers of guards that are right: they hold for what they were made for, and only that."""
    right = asked = 0
    for site in runtime.sites():
        for arrays, params in cases:
            values = (*arrays, params.scale(arrays[0].shape[-1]))
            described = tuple(one.meta if isinstance(one, Tensor) else one for one in values)
            facts = facts_of(site.client.paths, described)
            # What is asked of pointers is no fact of metas.
            guards = [one for program in site.programs for one in program.compiled.guards if one.word in facts]
            asked += len(guards)
            right += sum(bool(one.check_function(values)) == (facts[one.word] == one.params) for one in guards)
    return right / asked if asked else 1.0


# Faults


class _Failing(RequestCompiler):
    """Nothing can be compiled."""

    def submit(self, *requests: Request) -> None:
        for one in requests:
            for level in one.levels:
                one.site.aborted(level, "this was made to fail")
            one.site.compiled(one, [])


def _faults(device: str, found: RobustnessValidation, *, quick: bool) -> None:
    faults: dict[str, Callable[[str], float]] = {"compiling fails": _compiling_fails, "a damaged cache": _damaged_cache}
    if not quick:
        faults["a killed worker"] = _killed_worker
    found.faults_passed = True
    for name, inject in faults.items():
        try:
            away = inject(device)
        except Exception as error:
            found.crash_count += 1
            away = float("nan")
            found.told.append(f"{name}: {type(error).__name__}: {error}")
        if not away <= 1.0:
            found.faults_passed = False
            found.told.append(f"{name}: the result is off by {away:.1f} times what is allowed")


def _calls(runtime: MetaTracingRuntime, device: str, length: int) -> float:
    arrays = _case((1, 2, length, _WIDTH), (1, 2, length, _WIDTH), device)
    return max(wrong(runtime, arrays, AttentionParams(is_causal=True)) for _ in range(20))


def _compiling_fails(device: str) -> float:
    return _calls(MetaTracingRuntime(RuntimeConfig(**_EARLY_TIER_UP), compiling=_Failing()), device, 24)


def _damaged_cache(device: str) -> float:
    from tessera import knobs

    with tempfile.TemporaryDirectory() as folder, knobs.cache_dir.using(Path(folder)):
        first = _calls(MetaTracingRuntime(RuntimeConfig(**{**_EARLY_TIER_UP, "persist": True})), device, 40)
        for path in Path(folder).rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2] + b"damage")
        return max(first, _calls(MetaTracingRuntime(RuntimeConfig(**{**_EARLY_TIER_UP, "persist": True})), device, 40))


def _killed_worker(device: str) -> float:
    config = replace(RuntimeConfig(**_EARLY_TIER_UP), background_compilation=True)
    with MetaTracingRuntime(config) as runtime:
        compiling: Any = runtime.compiling
        away = _calls(runtime, device, 48)
        pid = compiling.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        away = max(away, _calls(runtime, device, 56))
        runtime.wait_for_compilation()
        return max(away, _calls(runtime, device, 56))


def under_stress(calls: int, device: str) -> None:
    """The body of the other process."""
    sys.stdout.write(json.dumps(stress(calls, device)) + "\n")
