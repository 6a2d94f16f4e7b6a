"""Checks that every knob and every name of a log or a check changes something, and that a test shows what."""

from __future__ import annotations

import ast
import logging
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tessera as ts
from tessera import jit, kernel, knobs, tile
from tessera.targets.cpu.lower.legalize import legalize_stages
from tessera.tile.language.schedule import space
from tessera.transforms import pipeline
from tessera.transforms.core import legality, stages

ROOT = Path(__file__).parents[1]
HERE = "tests/test_knob_effects.py"
NATIVE = "tests/kernels/native/test_native.py"
# What it is, and the test that shows what it changes.
EFFECTS = {
    "cache_dir": "tests/runtime/cache/test_compile_cache.py::test_the_settings_choose_the_store",
    "cache_size": "tests/runtime/cache/test_compile_cache.py::test_the_settings_choose_the_store",
    "logs": f"{HERE}::test_the_log_ir_has_every_stage_of_functions_and_the_tiles_of_kernels",
    "dump_dir": f"{HERE}::test_kernels_are_dumped_too_whether_or_not_they_are_on_the_disk",
    "override_dir": "tests/transforms/test_pipeline.py::test_stages_can_be_replaced_by_files",
    "verify": f"{HERE}::test_with_verify_a_wrong_pass_is_found_where_it_is",
    "no_fallbacks": "tests/compiler/test_refusals.py::test_fallbacks_are_errors_where_that_is_asked_for",
    "full_tracebacks": "tests/lang/test_tracebacks.py::test_the_knob_shows_all_frames",
    "interpret": f"{NATIVE}::test_machine_code_gives_what_the_interpreter_gives",
    "deterministic": f"{NATIVE}::test_sums_in_memory_are_the_same_every_time_unless_they_need_not_be",
    "fast_math": "tests/lang/tracing/test_effects.py::test_results_are_the_same_bits_unless_fast_math_is_allowed",
    "checks": "tests/kernels/native/test_native_checks.py::test_accesses_out_of_bounds_are_caught",
    "backend": f"{NATIVE}::test_the_interpreter_runs_where_it_is_asked_for",
    "print_buffer": "tests/kernels/native/test_native_prints.py::test_the_buffer_is_that_of_the_call",
    "optimization": "tests/kernels/calls/test_native_cache.py::test_the_next_process_needs_no_compiler",
    "eager_elements": "tests/lang/operators/test_eager_operators.py::test_every_size_does_where_it_is_asked_for",
    "num_threads": "tests/runtime/native/test_pool.py::test_the_knob_says_how_many",
    "cpu_level": "tests/kernels/calls/test_native_cache.py::test_the_next_process_needs_no_compiler",
}
LOGS = {
    "recompiles": "tests/lang/test_jit.py::test_many_sizes_need_few_programs",
    "guards": "tests/metatracing/tiers/test_tiers.py::test_logs_tell_of_tiers",
    "autotune": f"{HERE}::test_the_log_autotune_tells_what_was_taken",
    "ir": f"{HERE}::test_the_log_ir_has_every_stage_of_functions_and_the_tiles_of_kernels",
    "cache": "tests/kernels/calls/test_native_cache.py::test_objects_that_mean_nothing_elsewhere_are_not_kept",
    "fallbacks": f"{NATIVE}::test_what_has_no_machine_code_is_interpreted",
    "tiers": "tests/metatracing/tiers/test_tiers.py::test_logs_tell_of_tiers",
}
CHECKS = {
    "bounds": "tests/kernels/native/test_native_checks.py::test_accesses_out_of_bounds_are_caught",
    "nan": "tests/kernels/native/test_native_checks.py::test_accesses_out_of_bounds_are_caught",
    "unwritten": "tests/kernels/language/test_grids.py::test_the_knob_runs_kernels_in_the_interpreter",
}


@kernel
def tripled(x: Any) -> Any:
    return tile.load(x) * 3.0


@cache
def text_of(test: str) -> str:
    """The source of a test."""
    file, _, name = test.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    (found,) = [ast.get_source_segment(text, node) for node in functions if node.name == name]
    return found or ""


def test_a_test_shows_what_each_knob_changes() -> None:
    defined = {row.name: row.variable for row in knobs.describe()}
    assert set(EFFECTS) == set(defined)
    silent = [
        name
        for name, test in EFFECTS.items()
        if f"knobs.{name}" not in text_of(test) and defined[name] not in text_of(test)
    ]
    assert silent == []


@pytest.mark.parametrize(("names", "shown"), [(knobs.LOG_NAMES, LOGS), (knobs.CHECKS, CHECKS)])
def test_a_test_shows_what_each_name_changes(names: tuple[str, ...], shown: dict[str, str]) -> None:
    assert set(names) == set(shown)
    assert [name for name, test in shown.items() if f'"{name}"' not in text_of(test)] == []


def test_every_knob_has_a_reader() -> None:
    sources = [path for path in (ROOT / "src").rglob("*.py") if path.name != "knobs.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    through_knobs = {"dump_dir", "override_dir"}  # `looks_at_stages`, beside others
    assert [name for name in EFFECTS if f"knobs.{name}" not in text and name not in through_knobs] == []
    assert [name for name in knobs.LOG_NAMES if f'"{name}"' not in text] == []


def test_the_log_ir_has_every_stage_of_functions_and_the_tiles_of_kernels(caplog: pytest.LogCaptureFixture) -> None:
    @jit
    def doubled(x: Any) -> Any:
        return x + x

    x = ts.ones((4,))
    with caplog.at_level(logging.WARNING, "tessera.ir"):
        doubled(x)
        assert caplog.records == []
        with knobs.logs.using("ir"):
            doubled.lower(ts.ones((4, 3)))
            tripled(x)
    texts = [record.getMessage() for record in caplog.records]
    shown = [text.partition("after ")[2].partition(":")[0] for text in texts]
    assert set(pipeline.default_stages()) & set(shown)
    assert "graph.func" in texts[0]
    stages = ["kernel", *legalize_stages("avx2"), "tile-to-cpu", "emit", "asm"]
    assert shown[-len(stages) :] == stages
    assert "tile.load" in texts[-len(stages)]


def test_kernels_are_dumped_too_whether_or_not_they_are_on_the_disk(tmp_path: Path) -> None:
    def made() -> Any:
        @kernel
        def quadrupled(x: Any) -> Any:
            return tile.load(x) * 4.0

        return quadrupled

    x = ts.ones((5,))
    assert made()(x).tolist() == [4.0] * 5  # now it is on the disk
    with knobs.dump_dir.using(tmp_path):
        assert made()(x).tolist() == [4.0] * 5
    shown = sorted(tmp_path.rglob("*"))[1:]
    stages = ["kernel", *legalize_stages("avx2"), "tile-to-cpu"]
    expected = [f"{number:02}-{name}.mlir" for number, name in enumerate(stages)]
    assert [path.name for path in shown] == [*expected, f"{len(stages):02}-emit.ll", f"{len(stages) + 1:02}-asm.s"]
    assert "tile.load" in shown[0].read_text(encoding="utf-8")


def test_with_verify_a_wrong_pass_is_found_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are verified at their ends in any case; with the knob, behind each pass."""

    def lower(factor: float) -> None:
        def times(x: Any) -> Any:
            return x * factor

        jit(times).lower(ts.ones((3,)))

    asked: list[str] = []
    check = stages.legality.check

    def noted(module: Any, level: legality.Level) -> None:
        asked.append(level.name)
        check(module, level)

    monkeypatch.setattr(stages.legality, "check", noted)
    with knobs.verify.using(False):
        lower(2.5)
    plain = len(asked)
    with knobs.verify.using(True):
        lower(3.5)
    assert len(asked) - plain > plain


def test_the_log_autotune_tells_what_was_taken(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tessera.autotune"), knobs.logs.using("autotune"):
        kernel.autotune(space=space().block(m=[16, 32]))(tripled.function)
    (record,) = caplog.records
    assert "taking the first of 2 valid schedules" in record.getMessage()
