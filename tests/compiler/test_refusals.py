"""Ways that are not taken: kernels say which, why, where and what would help; the log and an option say so, too."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refused_kernels import CASES, GEMM, PLAIN, Refused

import tessera as ts
from tessera import Schedule, knobs
from tessera.compiler.artifact import Artifact
from tessera.compiler.attempts import Attempt, Fit, first_that_fits
from tessera.compiler.options import CompileOptions
from tessera.compiler.target import target_named
from tessera.errors import CompileError, FallbackError
from tessera.tile.calls.compiling import source_of
from tessera.tile.calls.program_cache import Kept
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.core.facts import Facts

GOLDEN = Path(__file__).with_name("refusals.txt")


def compiled(case: Refused, spilled: int = 0) -> Artifact:
    """A kernel compiled for sm_90a, where the assembler finds so many bytes of local memory."""
    kernel = case.kernel.with_schedule(Schedule(block=case.block, warps=case.warps))
    instance = (kernel if case.grid is None else kernel[case.grid]).lower(*case.args)
    source = source_of(instance)
    options = CompileOptions("cuda", "sm_90a", warps=source.warps, stages=source.stages)
    count = range(len(instance.paths) + len(instance.outputs))
    lines = {index: case.aligned is None or index in case.aligned for index in count}
    return target_named("cuda").compile(source, options, Facts(), lines, lambda name, code: spilled)


def said(report: CompileReport) -> str:
    """The report, without folders and without the lines of this file."""
    folder = str(Path(__file__).parent)
    lines = [line.replace(f"{folder}/", "") for line in report.lines()]
    return "\n".join(
        line if "test_refusals.py" not in line else f"slower than {line.split(': ', 1)[1]}" for line in lines
    )


def goldens() -> dict[str, str]:
    parts = GOLDEN.read_text(encoding="utf-8").split("\n\n")
    return {head: rest for head, _, rest in (part.strip().partition("\n") for part in parts)}


def test_there_are_at_least_25_refusals() -> None:
    assert len(CASES) >= 25
    assert goldens().keys() == CASES.keys()
    assert all("slower than" in text for text in goldens().values())


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_says_why_it_is_not_compiled_the_fastest_way(name: str) -> None:
    assert said(compiled(CASES[name]).report) == goldens()[name]


def test_retries_after_spills_are_kept() -> None:
    report = compiled(Refused(PLAIN, GEMM), spilled=512).report
    assert report.way.startswith("portable")
    spills = [one for one in report.fallbacks if "512 bytes of a thread's values lie in local memory" in one.reason]
    assert spills[0].way == "as planned"
    assert compiled(Refused(PLAIN, GEMM)).report == CompileReport("warp-specialized, 2 consumers, rings of 4 and 2", [])


def test_reports_survive_the_disk() -> None:
    report = compiled(CASES["exchanged strides"]).report
    assert CompileReport.decoded(report.encoded()) == report
    damaged: list[Any] = [{"way": 3, "refusals": []}, {"way": "x"}, {"way": "x", "refusals": [{"span": None}]}]
    for wrong in damaged:
        with pytest.raises((KeyError, TypeError, ValueError)):
            CompileReport.decoded(wrong)


def test_fallbacks_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    report = compiled(CASES["exchanged strides"]).report
    with knobs.logs.using(frozenset({"fallbacks"})), caplog.at_level(logging.WARNING, "tessera.fallbacks"):
        report.tell("gemm")
    (record,) = caplog.records
    assert "@gemm is compiled portable" in record.message
    assert "do not begin at multiples of 16 bytes" in record.message


def test_fallbacks_are_errors_where_that_is_asked_for() -> None:
    report = compiled(CASES["exchanged strides"]).report
    with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="rows of a loaded operand") as caught:
        report.tell("gemm")
    assert caught.value.span is not None
    assert "stride 1" in (caught.value.hint or "")


def test_what_would_run_in_the_interpreter_is_an_error_where_that_is_asked_for() -> None:
    @ts.kernel
    def stopping(x: Any) -> Any:
        here = ts.tile.load(x)
        ts.tile.breakpoint(here)
        return here

    with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="would run in the interpreter"):
        stopping(ts.ones((3,)))


def test_kernels_explain_their_programs() -> None:
    @ts.kernel
    def doubled(x: Any) -> Any:
        return ts.tile.load(x) * 2.0

    assert repr(doubled.explain()) == "doubled: 0 programs"
    doubled(ts.ones((3,)))
    assert "doubled: 1 programs" in doubled.explain()
    assert "by cpu" in doubled.explain()


def test_the_first_that_fits_is_taken_and_the_nearest_where_none_does() -> None:
    tried: list[int] = []

    def attempt(number: int, fit: Fit) -> Attempt[int]:
        def make() -> int:
            tried.append(number)
            return number

        return Attempt(f"way {number}", make, lambda made: fit)

    report = CompileReport()
    attempts = [attempt(0, Fit("no room")), attempt(1, Fit("tight", 2.0)), attempt(2, Fit()), attempt(3, Fit())]
    assert first_that_fits(attempts, report) == 2
    assert (tried, report.way) == ([0, 1, 2], "way 2")
    assert [one.reason for one in report.refusals] == ["no room", "tight"]
    assert first_that_fits([attempt(4, Fit("tight", 3.0)), attempt(5, Fit("tighter", 2.0))], CompileReport()) == 5
    assert first_that_fits([attempt(6, Fit("no room"))], CompileReport()) is None


def test_errors_refuse_optional_ways_only() -> None:
    def fails() -> int:
        raise CompileError("it has no form", hint="write it otherwise")

    attempts = [Attempt("special", fails), Attempt("never tried", lambda: 1)]
    report = CompileReport()
    assert first_that_fits(attempts, report, is_optional=True) is None
    (refusal,) = report.refusals
    assert (refusal.way, refusal.reason, refusal.hint) == ("special", "it has no form", "write it otherwise")
    assert refusal.span is not None
    assert str(Refusal("way", "why", hint="what helps")) == "way: why (what helps)"
    with pytest.raises(CompileError, match="it has no form"):
        first_that_fits(attempts, CompileReport())


def test_kernels_compiled_before_are_asked_again(tmp_path: Path) -> None:
    @ts.kernel
    def halved(x: Any) -> Any:
        return ts.tile.load(x) * 0.5

    x = ts.ones((3,))
    with knobs.cache_dir.using(tmp_path):
        assert halved(x).tolist() == [0.5] * 3
        (program,) = halved._programs.all()  # pyright: ignore[reportPrivateUsage]
        object.__setattr__(program, "report", compiled(CASES["exchanged strides"]).report)
        assert halved(x).tolist() == [0.5] * 3
        for _ in range(2):
            with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="@halved is compiled portable"):
                halved(x)
        assert halved(x).tolist() == [0.5] * 3


def test_kernels_of_functions_compiled_before_are_asked_again() -> None:
    @ts.jit
    def function(x: Any) -> Any:
        return ts.exp(x) * 7.0

    x = ts.ones((3,))
    function(x)
    (variant,) = function.explain().variants
    ((_, report),) = variant.program.codes.reports()
    report.refuse(compiled(CASES["exchanged strides"]).report.refusals[0])
    with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="rows of a loaded operand"):
        function(x)
    assert function(x).shape == (3,)


def test_programs_that_are_found_tell_what_was_refused_too(tmp_path: Path) -> None:
    @ts.kernel
    def tripled(x: Any) -> Any:
        return ts.tile.load(x) * 3.0

    report = compiled(CASES["exchanged strides"]).report
    x = ts.ones((3,))
    with knobs.cache_dir.using(tmp_path):
        assert tripled(x).tolist() == [3.0] * 3
        (program,) = tripled._programs.all()  # pyright: ignore[reportPrivateUsage]
        kept = Kept("0" * 64)
        slower = replace(program, report=report)  # programs are found while they live
        kept.put(slower, b"")
        assert kept.find({"x": x}) is slower
        with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="@tripled is compiled portable"):
            kept.find({"x": x})
