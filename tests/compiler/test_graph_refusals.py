"""Fusions that graphs refuse: programs say which, why, where and what would help, if a value goes through memory."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from refused_graphs import CASES, FUSED, RefusedGraph

import tessera as ts
from tessera import knobs
from tessera.errors import CompileError, FallbackError
from tessera.lang import jit as lang_jit
from tessera.programs import Program, compile_graph
from tessera.tile.calls.settings import settings_of_gpu
from tessera.transforms.core.compile_report import CompileReport

GOLDEN = Path(__file__).with_name("graph_refusals.txt")


def compiled(case: RefusedGraph) -> Program:
    lowered = ts.jit(case.function).lower(*case.args)
    if not case.on_gpu:
        return lowered.program
    return compile_graph(lowered.program.codes.graph_module, settings_of_gpu("sm_90a"))


def said(report: CompileReport) -> str:
    folder = str(Path(__file__).parent)
    return "\n".join(line.replace(f"{folder}/", "") for line in report.lines())


def goldens() -> dict[str, str]:
    parts = GOLDEN.read_text(encoding="utf-8").split("\n\n")
    return {head: rest for head, _, rest in (part.strip().partition("\n") for part in parts)}


def test_every_case_has_its_words_and_reasons_differ() -> None:
    assert goldens().keys() == CASES.keys()
    lines = {line.split(": ", 3)[-1] for text in goldens().values() for line in text.splitlines()[1:]}
    assert len(lines) >= 14
    assert sum("slower than" in text for text in goldens().values()) >= 8


@pytest.mark.parametrize("name", CASES)
def test_a_function_says_what_is_no_one_kernel(name: str) -> None:
    assert said(compiled(CASES[name]).report) == goldens()[name]


@pytest.mark.parametrize("name", FUSED)
def test_nothing_is_said_where_nothing_was_refused(name: str) -> None:
    assert compiled(FUSED[name]).report.refusals == []


def test_functions_explain_what_was_refused() -> None:
    running = ts.jit(CASES["a running sum"].function)
    running(*CASES["a running sum"].args)
    explained = str(running.explain())
    assert "@main: compiled: as 3 kernels" in explained
    assert "slower than" in explained
    assert "refused_graphs.py:" in explained


def test_refusals_are_logged_once_for_a_program(caplog: pytest.LogCaptureFixture) -> None:
    with knobs.logs.using(frozenset({"fallbacks"})), caplog.at_level(logging.WARNING, "tessera.fallbacks"):
        running = ts.jit(CASES["many arrays"].function)
        for _ in range(3):
            running(*CASES["many arrays"].args)
        normed = ts.jit(CASES["an operand that is computed"].function)
        normed(*CASES["an operand that is computed"].args)
    (record,) = caplog.records
    assert "@main is compiled as 2 kernels: " in record.message
    assert "a kernel reads at most 16 arrays" in record.message


def test_only_what_is_slower_is_an_error() -> None:
    with knobs.no_fallbacks.using(True):
        normed = ts.jit(CASES["an operand that is computed"].function)
        normed(*CASES["an operand that is computed"].args)
        running = ts.jit(CASES["a running sum"].function)
        with pytest.raises(FallbackError, match="goes along its axis in order") as caught:
            running(*CASES["a running sum"].args)
    assert caught.value.span is not None
    assert caught.value.span.file.endswith("refused_graphs.py")
    assert "@kernel" in (caught.value.hint or "")
    assert running(*CASES["a running sum"].args).shape == (64, 32)


def test_functions_without_machine_code_are_errors_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*_: object) -> Program:
        raise CompileError("it has no form", hint="write it otherwise")

    monkeypatch.setattr(lang_jit, "_compiled", refused)
    case = FUSED["softmax"]
    function = ts.jit(case.function)
    with knobs.cache_dir.using(tmp_path):
        with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="in the interpreter: it has no form"):
            function(*case.args)
        assert function(*case.args).shape == (64, 32)
    assert function.explain().fallbacks == 1


def test_programs_from_the_disk_know_what_was_refused(tmp_path: Path) -> None:
    case = CASES["a product and its transpose"]
    with knobs.cache_dir.using(tmp_path):
        first, again = ts.jit(case.function), ts.jit(case.function)
        first(*case.args)
        again(*case.args)
        (made,), (found,) = first.explain().variants, again.explain().variants
        assert found.found
        assert made.program.report.refusals
        assert found.program.report == made.program.report


def test_programs_compiled_before_are_asked_again(tmp_path: Path) -> None:
    case = CASES["a running sum"]
    running: Any = ts.jit(case.function)
    with knobs.cache_dir.using(tmp_path):
        expected = running(*case.args).tolist()
        with knobs.no_fallbacks.using(True):
            for _ in range(2):
                with pytest.raises(FallbackError, match="goes along its axis in order"):
                    running(*case.args)
        assert running(*case.args).tolist() == expected
        assert running.explain().fallbacks == 0
