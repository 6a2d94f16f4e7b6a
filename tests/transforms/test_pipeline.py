"""The compile: stages in order, timed, checked, dumped, overridable; locations survive; the original is untouched."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.passes import ModulePass

from tessera import knobs
from tessera.errors import CompileError, SourceSpan
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.common.locations import location_of
from tessera.ir.graph import dialect as graph
from tessera.ir.structural_hash import structural_hash
from tessera.ir.tile import dialect as tile
from tessera.transforms.core import legality
from tessera.transforms.core.facts import Facts
from tessera.transforms.pipeline import Stage, compile_module, default_stages

SOURCE = resources.files("tessera.cli").joinpath("demo.mlir").read_text(encoding="utf-8")


def located(source: str) -> ModuleOp:
    """A module whose every op has its own line as location."""
    module = text.read(source)
    for line, op in enumerate(module.walk(), start=1):
        op.location = location_of(SourceSpan("model.py", line))
    return module


def test_levels_come_in_order_and_agree() -> None:
    compiled = compile_module(text.read(SOURCE))
    assert list(compiled.levels) == ["graph", "schedule", "tile"]
    assert list(compiled.seconds) == list(default_stages())
    assert all(seconds > 0 for seconds in compiled.seconds.values())
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=shape).astype(np.float32) for shape in ((19, 33), (33, 70), (70,))]
    (expected,) = run_function(text.read(SOURCE), "layer", arguments)
    for written in compiled.levels.values():
        (found,) = run_function(text.read(written), "layer", arguments)
        assert np.array_equal(found, expected)


def test_the_module_given_is_not_touched() -> None:
    module = text.read(SOURCE)
    before = text.write(module)
    compile_module(module, facts=Facts.parse("arg0.size[0] = 4"))
    assert text.write(module) == before


def test_each_level_is_legal_at_its_own_level_only() -> None:
    compiled = compile_module(text.read(SOURCE))
    for level, written in compiled.levels.items():
        legality.check(text.read(written), level)
    for level, other in (("graph", "schedule"), ("schedule", "tile"), ("graph", "tile"), ("schedule", "graph")):
        with pytest.raises(CompileError, match=f"not legal in a function at the {other} level"):
            legality.check(text.read(compiled.levels[level]), other)


def test_locations_survive_every_stage() -> None:
    module = located(SOURCE)
    known = {str(op.location) for op in module.walk()}
    current = module.clone()
    for stage in default_stages().values():
        stage.run.apply(text.new_context(), current)
        for op in current.walk():
            assert op.location != UnknownLoc(), f"{op.name} lost its location"
            assert str(op.location) in known


def test_an_error_in_a_program_points_into_its_source() -> None:
    module = text.read(SOURCE.replace("graph.ew<erf> %scaled", "graph.ew<erf> %scaled"))
    for op in module.walk():
        if isinstance(op, graph.EwOp) and op.fn.data == "erf":
            op.location = location_of(SourceSpan("model.py", 7, 4))
            op.properties["fn"] = graph.Name("and")
    with pytest.raises(CompileError) as caught:
        compile_module(module)
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line, caught.value.span.column) == ("model.py", 7, 4)
    assert "and" in caught.value.message


class _Breaks(ModulePass):
    name = "breaks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, tile.ReturnOp):
                inner.detach()
                inner.erase()


class _Nothing(ModulePass):
    name = "nothing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


def test_a_pass_that_breaks_the_module_is_caught_at_once() -> None:
    with pytest.raises(CompileError, match="not a terminator"):
        compile_module(text.read(SOURCE), stages={"breaks": Stage(_Breaks(), "graph")})


def test_a_lowering_that_leaves_something_behind_is_caught_at_once() -> None:
    with pytest.raises(CompileError, match=r"graph\.call_kernel is not legal in a function at the schedule level"):
        compile_module(text.read(SOURCE), stages={"lower": Stage(_Nothing(), "schedule")})


def test_stages_can_be_replaced_by_files(tmp_path: Path) -> None:
    other = SOURCE.replace("= [0.5]", "= [0.25]")
    module = text.read(other)
    default_stages()["canonicalize"].run.apply(text.new_context(), module)
    (tmp_path / "dce.mlir").write_text(text.write(module), encoding="utf-8")
    plain = compile_module(text.read(SOURCE))
    with knobs.override_dir.using(tmp_path):
        overridden = compile_module(text.read(SOURCE))
    assert overridden.hash == compile_module(text.read(other)).hash
    assert overridden.hash != plain.hash


def test_a_bad_override_says_which_file(tmp_path: Path) -> None:
    (tmp_path / "cse.mlir").write_text("graph.func @f(", encoding="utf-8")
    with knobs.override_dir.using(tmp_path), pytest.raises(CompileError) as caught:
        compile_module(text.read(SOURCE))
    assert caught.value.span is not None
    assert caught.value.span.file == str(tmp_path / "cse.mlir")


def test_every_stage_can_be_dumped(tmp_path: Path) -> None:
    module = located(SOURCE)
    with knobs.dump_dir.using(tmp_path):
        compiled = compile_module(module)
    (folder,) = tmp_path.iterdir()
    assert folder.name == structural_hash(module)[:16]
    files = sorted(path.name for path in folder.iterdir())
    assert files == [f"{number:02d}-{name}.mlir" for number, name in enumerate(default_stages())]
    last = text.read((folder / files[-1]).read_text(encoding="utf-8"))
    assert text.write(last) == compiled.levels["tile"]
    assert "model.py" in (folder / files[0]).read_text(encoding="utf-8")


def test_the_result_carries_versions_that_are_checked() -> None:
    written = text.write(compile_module(text.read(SOURCE)).module)
    assert "tile = 2 : i64" in written
    text.read(written)
    with pytest.raises(CompileError, match="version 99 of the tile dialect"):
        text.read(written.replace("tile = 2", "tile = 99"))


def test_an_op_without_tile_program_is_named() -> None:
    source = """
graph.func @f(%x: !graph.tensor<[N], f32>) -> (!graph.tensor<[N], bf16, stochastic_round>) {
  %y = graph.ew<cast> %x seed 3 : !graph.tensor<[N], f32> -> !graph.tensor<[N], bf16, stochastic_round>
  graph.return %y : !graph.tensor<[N], bf16, stochastic_round>
}"""
    with pytest.raises(CompileError, match="stochastic rounding by element position has no tile function yet"):
        compile_module(text.read(source))


def test_known_sizes_reach_the_kernels() -> None:
    facts = Facts.parse("arg0.size[0] = 20", "arg0.size[1] = 24", "arg1.size[1] = 70")
    compiled = compile_module(text.read(SOURCE), facts=facts)
    written = text.write(compiled.module)
    assert "tile.func @matmul_K24_M20_N70(" in written
    assert "tile.func @matmul(" not in written
    assert "tile.dim" not in written
    assert compiled.guards == facts
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=shape).astype(np.float32) for shape in ((20, 24), (24, 70), (70,))]
    (expected,) = run_function(text.read(SOURCE), "layer", arguments)
    (found,) = run_function(text.read(written), "layer", arguments)
    assert np.array_equal(found, expected)


def test_a_kernel_called_with_two_sizes_gets_two_copies() -> None:
    source = (
        SOURCE[: SOURCE.index("graph.func")]
        + """
graph.func @twice(%x: !graph.tensor<[8, D], f32>, %y: !graph.tensor<[D, D], f32>) -> (!graph.tensor<[8, D], f32>) {
  %a = graph.call_kernel @matmul(%x, %y)
      : (!graph.tensor<[8, D], f32>, !graph.tensor<[D, D], f32>) -> !graph.tensor<[8, D], f32>
  %b = graph.call_kernel @matmul(%y, %y)
      : (!graph.tensor<[D, D], f32>, !graph.tensor<[D, D], f32>) -> !graph.tensor<[D, D], f32>
  %c = graph.call_kernel @matmul(%a, %b)
      : (!graph.tensor<[8, D], f32>, !graph.tensor<[D, D], f32>) -> !graph.tensor<[8, D], f32>
  graph.return %c : !graph.tensor<[8, D], f32>
}"""
    )
    written = text.write(compile_module(text.read(source)).module)
    assert written.count("tile.func") == 2
    assert written.count("schedule.launch @matmul_M8 ") == 2
    assert written.count("schedule.launch @matmul ") == 1
