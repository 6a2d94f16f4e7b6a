"""Kernels of the committed results, as the scripts under benchmarks/ make them, without GPUs and without peers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock, patch

from recorded_entries import Recording, code_text, plain_text
from recorded_pins import CPUS, GPUS, Target, compiling_for
from recorded_programs import record_kernel

import tessera as ts
from tessera.targets.cpu.compile import options_for
from tessera.tile.calls.dispatch import Calls

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"
Case = Callable[[Recording], None]


class KernelCall(NamedTuple):
    """A call of a kernel that was noted instead of run."""

    kernel: Any
    args: tuple[Any, ...]
    static: dict[str, Any]


def gpu_rows() -> dict[str, Case]:
    """The kernels that rows of benchmarks/gpu_rows name, with their schedules, for two architectures."""
    from tessera.bench.cuda import declarations, kernel_texts

    given: list[KernelCall] = []

    def noted(kernel: Any, *args: Any, **static: Any) -> str:
        given.append(KernelCall(kernel, args, static))
        return ""

    with patch.object(kernel_texts, kernel_texts.text_for.__name__, noted):
        declarations.load(BENCHMARKS / "gpu_rows")

    def case(name: str, text: Callable[[], str], recording: Recording) -> None:
        given.clear()
        with patch.object(kernel_texts, kernel_texts.text_for.__name__, noted):  # some rows import it late
            written = text()
        if not given:  # a text that is written at the machine's own level
            recording.add(name, code=written)
            return
        for number, (kernel, args, static) in enumerate(given):
            record_kernel(recording, f"{name}, {number}" if number else name, kernel, args, static, GPUS)

    return {name: partial(case, name, text) for name, text in declarations.KERNELS.items()}


def benchmark(name: str) -> Any:
    """A module of benchmarks/."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    return import_module(name)


def cpu_rows() -> dict[str, Case]:
    """The kernels of benchmarks/cpu.py: each case is asked to run ours, and the call is noted. Torch is a stand-in."""
    calls: list[KernelCall] = []

    def noted(self: Calls, /, *args: Any, **static: Any) -> None:
        calls.append(KernelCall(self.kernel, args, static))

    def inputs(shapes: list[tuple[int, ...]], dtype: str) -> list[tuple[Any, Any, Any]]:
        return [(ts.empty(shape, getattr(ts, dtype)), MagicMock(), MagicMock()) for shape in shapes]

    def as_dtype(x: Any, dtype: str) -> tuple[Any, Any, Any]:
        return inputs([x.shape], dtype)[0]

    with patch.object(Calls, Calls.slowly.__name__, noted):
        sys.modules["torch"] = MagicMock()
        module = benchmark("cpu")
        del sys.modules["torch"]
        module.inputs, module.as_dtype = inputs, as_dtype
        found: dict[str, KernelCall] = {}
        for case in (*module.attention_cases(), *module.gemm_cases(), *module.row_cases(), *module.variant_cases()):
            case.ours()
            (found[case.name],) = calls
            calls.clear()

    def record(name: str, one: KernelCall, recording: Recording) -> None:
        record_kernel(recording, name, *one, CPUS)

    return {name: partial(record, name, one) for name, one in found.items()}


def bench() -> dict[str, Case]:
    """The kernels of TesseraBench in tesserabench-cpu.json; the same benchmarks as they are built for GPUs."""
    from tessera.bench import registry
    from tessera.bench.measuring.precision import precision
    from tessera.bench.operator import OperatorBenchmark

    results = json.loads((RESULTS / "tesserabench-cpu.json").read_text(encoding="utf-8"))["results"]
    chosen = {
        (row["benchmark_name"], tuple(sorted(row["problem_size"].items())), key.split("/")[2])
        for key, row in results.items()
        if "/tessera/" in key
    }

    def case(key: str, name: str, size: dict[str, Any], written: str, recording: Recording) -> None:
        found, kind = registry.get(name), precision(written)
        assert isinstance(found, OperatorBenchmark)
        for way, targets in (("tessera", CPUS), ("tessera_cuda", GPUS)):
            made = found.implementations[way].built(found, size, kind)
            assert made.kernel is not None
            inputs = [ts.empty(shape, kind.dtype) for shape in found.shapes(size)]
            if made.output is not None:
                inputs.append(ts.empty(found.output_shape(size), kind.dtype))
            record_kernel(recording, key, made.kernel, inputs, made.keywords or {}, targets)

    made: dict[str, Case] = {}
    for name, size, written in sorted(chosen):
        key = f"{name} {' '.join(f'{one}={value}' for one, value in size)} {written}"
        made[key] = partial(case, key, name, dict(size), written)
    return made


def sweep(device: str, target: Target) -> dict[str, Case]:
    """Every program that benchmarks/specialization_sweep.py measures on a kind of device."""
    module = benchmark("specialization_sweep")
    programs = {state.program: state for state in reversed(list(module.SWEEPS[device].states()))}

    def case(key: str, state: Any, recording: Recording) -> None:
        args, static = state.arguments(ts.empty)
        form = state.form()
        kernel = form.assume("sizes", "strides", "values") if state.assumed else form
        record_kernel(recording, key, kernel, args, static, (target,))

    found: dict[str, Case] = {}
    for state in reversed(programs.values()):
        block = "own block" if state.block is None else "×".join(map(str, state.block))
        words = [state.kernel, "×".join(map(str, state.sizes)), state.dtype, state.layout, block]
        words += [f"{state.warps} warps"] * (state.warps is not None) + ["causal"] * state.causal
        key = " ".join([*words, *["assumed"] * state.assumed])
        found[key] = partial(case, key, state)
    return found


def texts() -> dict[str, Case]:
    """Texts that are written at the machine's own level: those of benchmarks/texts, and portable golden texts."""
    from recorded_parts import test_module

    from tessera.targets import text
    from tessera.targets.cpu.compile import compile_lowered

    portable = test_module("targets/cuda", "test_portable_texts")

    def on_processors(name: str, recording: Recording) -> None:
        module = text.read((BENCHMARKS / "texts" / f"{name}.cpu").read_text(encoding="utf-8"))
        for target in CPUS:
            with compiling_for(target):
                made = compile_lowered(module, name, options_for(target.level))
            code = code_text(made.image.decode(), name)
            recording.add(f"{name}.cpu @ {target}", code=code, layout=plain_text(list(made.layout.first)))

    def on_gpus(name: str, recording: Recording) -> None:
        for target in GPUS:
            made = portable.golden_program(name, target.level)
            launch = [made.threads, made.shared, made.local, [str(size) for size in made.grid], made.block.words]
            recording.add(f"{name}.nv @ {target}", code=code_text(made.ptx, made.name), launch=plain_text(launch))

    found: dict[str, Case] = {f"{name}.cpu": partial(on_processors, name) for name in ("gemm", "attention")}
    return found | {f"{name}.nv": partial(on_gpus, name) for name in portable.TEXTS}
