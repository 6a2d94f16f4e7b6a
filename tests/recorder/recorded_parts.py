"""The parts of the recording: each is a number of cases by name, which are independent of each other."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import recorded_documents
import recorded_results
import recorded_tiers
from recorded_entries import Recording, without_paths
from recorded_pins import CPUS, GPUS, OTHERS, TARGETS, Target
from recorded_programs import record_kernel, record_model

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
Case = Callable[[Recording], None]


class Part(NamedTuple):
    """Cases by name; `quick` are those that every commit is checked with; a process takes `together` of them."""

    cases: Callable[[], Mapping[str, Case]]
    quick: tuple[str, ...]
    together: int


@cache
def test_module(folder: str, name: str) -> Any:
    """A module of the tests; it and the modules that it imports are found as pytest finds them."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    for path in map(str, (TESTS / folder, *(ROOT / one for one in options["pythonpath"]))):
        if path not in sys.path:
            sys.path.append(path)
    return import_module(name)


# The tests' kernels


def library() -> dict[str, Case]:
    """The kernels of tests/kernels/library.py, as tests/targets/cuda/test_cuda_kernel_texts.py calls them."""
    texts = test_module("targets/cuda", "test_cuda_kernel_texts")
    names = {dtype.name: dtype for dtype in texts.DTYPES}

    def case(name: str, dtype: Any, recording: Recording) -> None:
        kernel, args, static = texts.CASES[name](texts.Arrays(dtype))
        targets = (*TARGETS, *OTHERS) if dtype.name == "bf16" else TARGETS
        record_kernel(recording, f"{name} {dtype}", kernel, args, static, targets)

    return {f"{name} {short}": partial(case, name, dtype) for name in texts.CASES for short, dtype in names.items()}


# Models


def block() -> dict[str, Case]:
    """The transformer block, as the tests and benchmarks/block.py call it."""
    model = test_module("lang", "transformer_block")
    import tessera as ts

    def case(dtype: Any, sizes: Mapping[str, int], targets: tuple[Target, ...], recording: Recording) -> None:
        given = model.arguments(dtype, **sizes)
        shown = " ".join(f"{name} {size}" for name, size in sizes.items())
        record_model(recording, f"{dtype} {shown}", model.transformer_block, given, {"heads": sizes["heads"]}, targets)

    small = {"batch": 2, "length": 24, "past": 8, "width": 32, "heads": 4}
    large = {"batch": 1, "length": 256, "past": 0, "width": 512, "heads": 8}
    gpu = {"batch": 4, "length": 2048, "past": 0, "width": 1024, "heads": 8}
    found: dict[str, Case] = {}
    for name, dtype, sizes, targets in (
        ("f32 small", ts.f32, small, TARGETS),
        ("bf16 small", ts.bf16, small, TARGETS),
        ("f32 large", ts.f32, large, CPUS),
        ("bf16 large", ts.bf16, large, CPUS),
        ("bf16 as on a GPU", ts.bf16, gpu, GPUS),
    ):
        found[f"{name} @ trace"] = partial(case, dtype, sizes, ())
        found |= {f"{name} @ {target}": partial(case, dtype, sizes, (target,)) for target in targets}
    return found


# Texts of errors


def messages() -> dict[str, Case]:
    """Every mistake of tests/messages and what is said of it."""
    texts = test_module("messages", "test_messages")

    def case(mistake: Path, recording: Recording) -> None:
        recording.add(f"{mistake.parent.name}/{mistake.stem}", text=without_paths(texts.message_of(mistake)))

    return {f"{mistake.parent.name}/{mistake.stem}": partial(case, mistake) for mistake in texts.MISTAKES}


PARTS: Mapping[str, Part] = {
    "gpu_rows": Part(recorded_results.gpu_rows, ("softmax 16384×4096 bf16", "gemm bf16"), 12),
    "cpu_rows": Part(recorded_results.cpu_rows, ("softmax 4096x1024 f32",), 20),
    "bench": Part(recorded_results.bench, ("rmsnorm cols=1024 rows=1024 bf16",), 13),
    "sweep_gpu": Part(partial(recorded_results.sweep, "cuda", GPUS[0]), ("softmax 16384×512 f32 rows own block",), 40),
    "sweep_cpu": Part(partial(recorded_results.sweep, "cpu", CPUS[-1]), ("softmax 1000×1000 f32 rows own block",), 40),
    "texts": Part(recorded_results.texts, ("gemm.cpu",), 10),
    "library": Part(library, ("softmax bf16", "attention f16"), 4),
    "block": Part(block, ("f32 small @ trace", "f32 small @ avx512", "bf16 small @ sm_90a"), 4),
    "documents": Part(recorded_documents.documents, ("programs",), 4),
    "messages": Part(messages, ("kernels/racy_store", "models/head_split"), 80),
    "tiers": Part(recorded_tiers.tiers, ("replay usual", "blocks"), 15),
}
