"""The parts of the recording: each is a number of cases by name, which are independent of each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

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
    """A module of the tests, which lies beside them."""
    path = str(TESTS / folder)
    if path not in sys.path:
        sys.path.append(path)
    return import_module(name)


# Kernels of the committed results


def gpu_rows() -> dict[str, Case]:
    """The kernels that rows of benchmarks/gpu_rows name, with their schedules, for two architectures."""
    from tessera.bench.cuda import declarations, kernel_texts

    given: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def noted(kernel: Any, *args: Any, **static: Any) -> str:
        given.append((kernel, args, static))
        return ""

    kernel_texts.text_for = noted
    declarations.load(ROOT / "benchmarks" / "gpu_rows")

    def case(name: str, text: Callable[[], str], recording: Recording) -> None:
        given.clear()
        written = text()
        if not given:  # a text that is written at the machine's own level
            recording.add(name, code=written)
            return
        ((kernel, args, static),) = given
        record_kernel(recording, name, kernel, args, static, GPUS)

    return {name: partial(case, name, text) for name, text in declarations.KERNELS.items()}


# The tests' kernels


def library() -> dict[str, Case]:
    """The kernels of tests/kernels/library.py, as tests/targets/test_cuda_kernel_texts.py calls them."""
    texts = test_module("targets", "test_cuda_kernel_texts")
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
    return {
        "f32 small": partial(case, ts.f32, small, TARGETS),
        "bf16 small": partial(case, ts.bf16, small, TARGETS),
        "f32 large": partial(case, ts.f32, large, CPUS),
        "bf16 large": partial(case, ts.bf16, large, CPUS),
        "bf16 as on a GPU": partial(case, ts.bf16, gpu, GPUS),
    }


# Texts of errors


def messages() -> dict[str, Case]:
    """Every mistake of tests/messages and what is said of it."""
    texts = test_module("messages", "test_messages")

    def case(mistake: Path, recording: Recording) -> None:
        recording.add(f"{mistake.parent.name}/{mistake.stem}", text=without_paths(texts.message_of(mistake)))

    return {f"{mistake.parent.name}/{mistake.stem}": partial(case, mistake) for mistake in texts.MISTAKES}


PARTS: Mapping[str, Part] = {
    "gpu_rows": Part(gpu_rows, ("softmax 16384×4096 bf16", "gemm bf16"), 12),
    "library": Part(library, ("attention bf16", "softmax f32"), 4),
    "block": Part(block, ("f32 small",), 1),
    "messages": Part(messages, ("kernels/racy_store", "models/head_split"), 80),
}
