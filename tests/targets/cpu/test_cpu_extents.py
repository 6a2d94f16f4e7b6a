"""What the CPU's lowering knows of offsets and sizes, and which facts become guards by it."""

from __future__ import annotations

from xdsl.dialects import arith, scf

from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.lower.extents import Extents, Span
from tessera.targets.cpu.lower.in_bounds import is_inside
from tessera.transforms.core.facts import Fact, FactKind, Facts, Recorder

PROGRAM = """
tile.func @f(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[M, 96], []] grid ["(M + 31)//32", 3] {
  %zero = arith.constant 0 : index
  %step = arith.constant 32 : index
  %stop = arith.constant 70 : index
  %a = tile.program_id 0
  %b = tile.program_id 1
  %row = arith.muli %a, %step : index
  %col = arith.muli %b, %step : index
  scf.for %k = %zero to %stop step %step {
    %both = arith.addi %row, %k : index
    %less = arith.subi %k, %step : index
    %top = arith.minsi %less, %n : index
  }
  %tile = tile.load %x[%row, %col] : !tile.view<2, f32, global> -> tensor<32x32xf32>
  %free = tile.load %x[%n, %col] : !tile.view<2, f32, global> -> tensor<32x32xf32>
  tile.return
}
"""
ROWS, COLS = (Fact(FactKind.STRIDE, f"arg0.stride[{axis}]", stride) for axis, stride in ((0, 96), (1, 1)))


def extents(*facts: Fact) -> tuple[tile.FuncOp, Extents, Recorder]:
    function = symbol_in(text.read(PROGRAM), "f", tile.FuncOp)
    recorder = Recorder(Facts(facts))
    return function, Extents(function, recorder), recorder


def size(rows: int) -> Fact:
    return Fact(FactKind.SIZE, "arg0.size[0]", rows)


def named(function: tile.FuncOp, found: Extents) -> dict[str | None, tuple[float, float]]:
    kinds = arith.MuliOp | arith.AddiOp | arith.SubiOp | arith.MinSIOp | tile.ProgramIdOp
    spans = {op.results[0].name_hint: found.span(op.results[0]) for op in function.body.walk() if isinstance(op, kinds)}
    (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
    spans["k"] = found.span(loop.body.block.args[0])
    return {name: (span.low, span.high) for name, span in spans.items()}


def test_without_facts_only_what_the_function_says() -> None:
    function, found, recorder = extents()
    infinite = float("inf")
    assert named(function, found) == {
        "a": (0, infinite),
        "b": (0, 2),
        "row": (0, infinite),
        "col": (0, 64),
        "k": (0, 64),
        "both": (0, infinite),
        "less": (-32, 32),
        "top": (-infinite, 32),
    }
    assert found.size(function.arguments[0], 1) == Span(96, 96)
    assert not recorder.guards


def test_a_size_bounds_the_grid() -> None:
    function, found, _ = extents(size(100))
    spans = named(function, found)
    assert spans["a"] == (0, 3)
    assert spans["row"] == (0, 96)
    assert spans["both"] == (0, 160)


def loads(function: tile.FuncOp) -> list[tile.LoadOp]:
    return [op for op in function.body.walk() if isinstance(op, tile.LoadOp)]


def test_facts_that_prove_an_access_become_guards() -> None:
    function, found, recorder = extents(size(96), ROWS, COLS)
    assert [is_inside(found, op) for op in loads(function)] == [True, False]
    assert set(recorder.guards) == {size(96), COLS}


def test_facts_that_prove_nothing_do_not() -> None:
    for facts in (
        (size(97), ROWS, COLS),
        (size(96), ROWS),
        (ROWS, COLS),
        (size(96), Fact(FactKind.STRIDE, COLS.subject, 2)),
    ):
        function, found, recorder = extents(*facts)
        assert [is_inside(found, op) for op in loads(function)] == [False, False]
        assert not recorder.guards
