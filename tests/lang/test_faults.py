"""Faults of the compiler: what Python raises in there becomes an error with a report, or runs in the interpreter."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

import tessera as ts
from tessera import internal_errors, kernel, knobs, tile
from tessera.errors import CompileError, InternalError, TesseraError, TesseraWarning
from tessera.ir.graph import dialect as graph
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule

PROBLEMS: list[Exception] = [
    KeyError("lost"),
    ValueError("Attempting to delete SSA value"),
    SyntaxError("invalid syntax"),
    OverflowError("too large"),
    AssertionError(),
    AttributeError("no attribute 'result'"),
    IndexError("list index out of range"),
    RecursionError("maximum recursion depth exceeded"),
    VerifyException("operands do not fit"),
    PassFailedException("gave up"),
]


def failing(problem: Exception) -> Callable[[GraphToSchedule, Context, ModuleOp], None]:
    def apply(self: GraphToSchedule, ctx: Context, op: ModuleOp) -> None:
        raise problem

    return apply


@kernel
def twice(x: Any) -> Any:
    return tile.load(x) * 2.0


def doubled(x: Any) -> Any:
    return x * 2.0 + 1.0


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path) -> Any:
    with knobs.cache_dir.using(tmp_path):  # nothing that was compiled before is found, and reports come here
        yield


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_a_function_runs_in_the_interpreter_and_says_so(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(GraphToSchedule, "apply", failing(problem))
    function = ts.jit(doubled)
    with pytest.warns(TesseraWarning, match="runs in the interpreter, slowly.*the compiler failed in the pass") as said:
        assert function(ts.asarray([1.0, 2.0])).tolist() == [3.0, 5.0]
    assert function(ts.asarray([1.0, 3.0])).tolist() == [3.0, 7.0]
    assert len(said) == 1
    assert said[0].filename == __file__
    assert function.explain().fallbacks == 1
    assert "graph-to-schedule" in str(function.explain())
    (report,) = (tmp_path / "reports").iterdir()
    written = report.read_text()
    for part in ("stage: the pass graph-to-schedule", type(problem).__name__, "xdsl: ", "graph.func @main", "mul"):
        assert part in written
    assert str(Path(__file__).parent) not in written
    assert str(Path.home()) not in written


def test_who_demands_machine_code_gets_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphToSchedule, "apply", failing(KeyError("lost")))
    with knobs.backend.using("cpu"), pytest.raises(CompileError, match="KeyError: 'lost'") as raised:
        ts.jit(doubled)(ts.ones(3))
    error = raised.value
    assert isinstance(error, InternalError)
    assert error.stage == "the pass graph-to-schedule"
    assert error.report_path is not None
    assert Path(error.report_path).read_text() == error.report
    assert isinstance(error.__cause__, KeyError)
    assert error.span is not None
    assert error.span.file == __file__
    assert error.hint is not None
    assert error.report_path in error.hint
    assert "TESSERA_BACKEND=interpreter" in error.hint
    assert pickle.loads(pickle.dumps(error)).report == error.report


def test_an_operator_runs_in_the_interpreter_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphToSchedule, "apply", failing(ValueError("broken")))
    x = ts.randn((3, 11), seed=5)
    with pytest.warns(TesseraWarning, match="softplus runs in the interpreter"):
        found = ts.softplus(x)
    assert found.shape == x.shape


def test_what_writes_calls_may_fail_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessera.programs.call_codegen import Writer

    def write(self: Writer) -> Any:
        raise SyntaxError("invalid syntax")

    monkeypatch.setattr(Writer, "write", write)
    with pytest.warns(TesseraWarning, match="the compiler failed in binding: SyntaxError"):
        assert ts.jit(doubled)(ts.asarray([1.0])).tolist() == [3.0]


def test_what_writes_machine_code_may_fail_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessera.targets.cpu import compile as cpu

    def emit_kernel(*given: Any, **options: Any) -> Any:
        raise OverflowError("int too large")

    def fresh(x: Any) -> Any:
        """No other test has compiled it."""
        return x * 4.0 - 1.0

    monkeypatch.setattr(cpu, "emit_kernel", emit_kernel)
    with pytest.warns(TesseraWarning, match="failed in machine code for .*: OverflowError"):
        assert ts.jit(fresh)(ts.asarray([1.0])).tolist() == [3.0]


def test_a_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users of kernels want machine code: a fault is an error, and nothing runs a thousand times slower instead."""
    from tessera.targets.cpu import compile as cpu

    def emit_kernel(*given: Any, **options: Any) -> Any:
        raise KeyError("lost")

    monkeypatch.setattr(cpu, "emit_kernel", emit_kernel)
    with pytest.raises(InternalError, match=r"@twice: the compiler failed in machine code for .*: KeyError") as raised:
        twice(ts.ones(7))
    assert "tile.func @twice" in raised.value.report
    monkeypatch.undo()
    assert twice(ts.ones(7)).tolist() == [2.0] * 7  # nothing is left of it


def test_errors_of_a_users_code_pass_unchanged() -> None:
    class OwnError(Exception):
        pass

    def wrong(x: Any, error: Any) -> Any:
        raise error("mine")

    for error in (KeyError, ValueError, IndexError, AssertionError, ZeroDivisionError, OwnError):
        with pytest.raises(error, match="mine") as raised:
            ts.jit(wrong, static_argnames="error")(ts.ones(2), error=error)
        assert not isinstance(raised.value, TesseraError)
    with pytest.raises(KeyError):
        ts.jit(lambda *x: {"size": 2}[str(x)])(ts.ones(2))


def test_a_report_needs_no_place_to_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = tmp_path / "file"
    full.write_text("not a folder")
    with knobs.cache_dir.using(full), pytest.raises(InternalError) as raised, internal_errors.boundary("it", "a stage"):
        raise KeyError("lost")
    assert raised.value.report_path is None
    assert "its `report`" in str(raised.value.hint)
    assert "stage: a stage" in raised.value.report


def test_reports_do_not_pile_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(internal_errors, "_MOST_REPORTS", 3)
    for number in range(6):
        for _ in range(2):
            with pytest.raises(InternalError), internal_errors.boundary(f"it {number}", "a stage", lambda: "text"):
                raise ValueError(number)
    assert len(list((tmp_path / "reports").iterdir())) == 3


def test_errors_of_ours_and_warnings_pass() -> None:
    for given in (TesseraError("known"), TesseraWarning("told"), MemoryError()):
        with pytest.raises(type(given)) as raised, internal_errors.boundary("it", "a stage"):
            raise given
        assert raised.value is given


def test_text_that_cannot_be_written_is_no_second_fault() -> None:
    def text() -> str:
        raise AttributeError("half of it is gone")

    with pytest.raises(InternalError) as raised, internal_errors.boundary("it", "a stage", text):
        raise KeyError("lost")
    assert "it cannot be written: AttributeError" in raised.value.report


def test_a_pass_that_makes_invalid_ir_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessera.transforms.core.canonicalize import Canonicalize

    def apply(self: Canonicalize, ctx: Context, op: ModuleOp) -> None:
        for one in op.walk():
            if one.name == "graph.ew":
                one.properties["fn"] = graph.Name("and")  # not of floats

    monkeypatch.setattr(Canonicalize, "apply", apply)
    with pytest.warns(TesseraWarning, match="the compiler failed in the pass .*: CompileError: graph.ew"):
        assert ts.jit(doubled)(ts.asarray([1.0])).tolist() == [3.0]
