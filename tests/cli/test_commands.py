"""The `tessera` command: what each subcommand prints, and how it fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tessera as ts
from tessera import __version__, knobs
from tessera.cli import demo, demo_machine_code
from tessera.cli.main import cli
from tessera.errors import TesseraError

SPECIFIED = Path(__file__).parents[1] / "kernels" / "specified.py"
ZEROS = "ts.zeros((2, 64, 16), ts.bf16)"
PROGRAM = """
graph.func @f(%x: !graph.tensor<[N], f32>) -> (!graph.tensor<[N], f32>) {
  %y = graph.ew<neg> %x : !graph.tensor<[N], f32> -> !graph.tensor<[N], f32>
  graph.return %y : !graph.tensor<[N], f32>
}
"""


def invoke(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin)


def test_help_lists_the_commands() -> None:
    printed = invoke("--help").output
    assert all(name in printed for name in ("cache", "demo", "env", "inspect", "opt"))
    assert __version__ in invoke("--version").output


def test_the_demo_climbs_the_tiers_and_checks_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(demo.SIZES, "cpu", demo.Size(1, 2, 12, 8, ts.f32))
    result = invoke("demo", "--plain", "--device", "cpu", "--seconds", "2")
    assert result.exit_code == 0, result.output
    assert result.output.count(" ok ") == 6
    assert "WRONG" not in result.output
    assert "tiers over calls" in result.output
    assert re.search(r"\d+ calls, \d+ programs compiled in the background, .*, 0 failures", result.output)

    def wrong(*arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.ones_like(arrays[0])

    monkeypatch.setattr(demo, "_attention", wrong)
    result = invoke("demo", "--plain", "--device", "cpu", "--seconds", "0")
    assert result.exit_code == 1
    assert "WRONG" in result.output


@pytest.mark.acceptance
def test_the_tour_checks_every_level() -> None:
    result = invoke("demo", "--tour", "--plain", "--rows", "19")
    assert result.exit_code == 0
    assert result.output.count(" ok ") == 6
    assert "scores = tile.dot(rows, tile.transpose(keys)) * tile.rsqrt(float(here.d))" in result.output
    assert all(f"{level} IR" in result.output for level in ("graph", "schedule", "tile"))


def test_the_tour_runs_machine_code_and_finds_torch_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_machine_code, "SHAPE", (2, 40, 16))
    monkeypatch.setattr(demo_machine_code, "find_spec", dict[str, None]().get)
    result = invoke("demo", "--tour", "--plain", "--rows", "5")
    assert result.exit_code == 0
    assert re.search(r"2×40×16, as machine code \(\w+, \d+ threads\): \d+\.\d\d ms; the first call", result.output)
    assert "there is no torch here to compare with: pip install torch" in result.output
    assert re.search(r"relative error of the machine code against float64: \S+e-03, at most 4e-03", result.output)
    wrong = demo_machine_code.Timed(np.zeros((2, 40, 16), np.float32), 1.0, 1.0)

    def zeros(*_: object) -> demo_machine_code.Timed:
        return wrong

    monkeypatch.setattr(demo_machine_code, "machine_code", zeros)
    assert invoke("demo", "--tour", "--plain", "--rows", "5").exit_code == 1


def test_env_shows_every_setting() -> None:
    printed = invoke("env").output
    assert "numpy" in printed
    assert all(row.name in printed for row in knobs.describe())


def test_opt_reads_standard_input_and_prints_guards() -> None:
    result = invoke("opt", "-", "-p", "apply-facts", "-f", "arg0.size[0] = 8", stdin=PROGRAM)
    assert "!graph.tensor<[8], f32>" in result.output
    assert "// guard: arg0.size[0] = 8" in result.output


def test_opt_writes_a_file_or_nothing(tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    assert invoke("opt", "-", "--level", "tile", "-o", str(target), stdin=PROGRAM).exit_code == 1
    assert not target.exists()
    assert invoke("opt", "-", "--level", "graph", "-o", str(target), stdin=PROGRAM).exit_code == 0
    assert "graph.ew<neg>" in target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("opt", "missing.mlir"), "cannot read missing.mlir"),
        (("opt", "-", "-p", "polish"), "unknown pass polish"),
        (("opt", "-", "-p", "cse{"), "cannot read the passes"),
        (("opt", "-", "-f", "x > 3"), "cannot read the fact"),
        (("inspect", "missing.py:f"), "cannot read missing.py"),
        (("inspect", f"{SPECIFIED}:nothing"), "it has flash_attention"),
        (("inspect", f"{SPECIFIED}:flash_attention"), "has no annotation"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments, stdin=PROGRAM)
    assert isinstance(result.exception, TesseraError)
    assert message in str(result.exception)


def test_the_program_itself_prints_errors_without_a_traceback() -> None:
    command = [sys.executable, "-c", "from tessera.cli.main import main; main()", "opt", "missing.mlir"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ResourceError: cannot read missing.mlir")
    assert "Traceback" not in done.stderr
    assert "-->" not in done.stderr


def test_inspect_shows_levels_with_source_lines() -> None:
    call = f"{ZEROS}, KVCache({ZEROS}, {ZEROS}), dropout=0.0, causal=True"
    result = invoke("inspect", f"{SPECIFIED}:flash_attention", "--call", call)
    assert result.exit_code == 0
    assert "graph.call_kernel @flash_attention" in result.output
    assert "schedule.launch @flash_attention" in result.output
    assert "// 25: acc, m, l" not in result.output.partition("== tile IR")[0]
    assert "Kb = tile.load(cache.K, nblk, cols=T.d, vector=T.vector)" in result.output.partition("== tile IR")[2]
    assert "guards: arg0.size[2] = 16" in result.output
    assert (
        "schedule: Schedule(block=(64, 64), warps=4, stages=2, vector=4, d=64), not tuned: first of 96 valid"
        in result.output
    )


def test_inspect_shows_the_schedule_that_serves_the_rows() -> None:
    wide = ZEROS.replace(", 16)", ", 80)")
    call = f"{wide}, KVCache({wide}, {wide}), dropout=0.0, causal=True"
    result = invoke("inspect", f"{SPECIFIED}:flash_attention", "--call", call)
    assert "d = 128" in result.output.partition("== schedule IR")[2]
    assert "vector=4, d=128), not tuned: first of 48 valid schedules" in result.output
    assert "UserWarning" not in result.stderr
    assert "not tuned" not in result.stderr


def test_inspect_shows_what_a_kernel_fills_as_a_result(tmp_path: Path) -> None:
    path = tmp_path / "filling.py"
    path.write_text(
        "from tessera import KTile, Out, f32, kernel, tile\n"
        "@kernel\n"
        "def f(x: KTile['N', 'D', f32], y: Out[KTile['N', 'D', f32]]):\n"
        "    tile.store(y, tile.load(x) * 2.0)\n"
    )
    result = invoke("inspect", f"{path}:f", "-s", "D=16")
    assert result.exit_code == 0, result.exception
    assert "graph.func @main(%x: !graph.tensor<[N, 16], f32>) -> (!graph.tensor<[N, 16], f32>)" in result.output
    assert result.output.endswith("schedule: Schedule(block=(64, 64))\n")


TILES = """
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[32], [32]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<32xf32>
  %b = tile.ew<add> %a, %a : tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  tile.store %b, %y[%zero] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.return
}
"""
LOWERED = {"avx2": "tile-to-cpu{level=avx2}", "sm_80": "tile-to-nv{warps=4}"}
EMITTED = {"avx2": ("define i64 @f(", "vaddps"), "sm_80": ("@f(", ".visible .entry f(")}


@pytest.mark.parametrize("machine", LOWERED)
@pytest.mark.parametrize("passes", ["", "its own"])
def test_opt_emits_what_passes_made_and_what_they_left(machine: str, passes: str) -> None:
    given = ("opt", "-", "--target", machine, "-p", passes and LOWERED[machine], "--emit")
    written, assembly = (invoke(*given, emitted, stdin=TILES).output for emitted in ("llvm", "asm"))
    assert EMITTED[machine][0] in written
    assert "define" in written
    assert EMITTED[machine][1] in assembly
    assert "define" not in assembly


@pytest.mark.parametrize("machine", LOWERED)
def test_opt_reads_what_it_emitted(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "f.ll"
    assert invoke("opt", "-", "--target", machine, "--emit", "llvm", "-o", str(path), stdin=TILES).exit_code == 0
    assembly = invoke("opt", str(path), "--target", machine, "--emit", "asm").output
    assert assembly == invoke("opt", "-", "--target", machine, "--emit", "asm", stdin=TILES).output
    refused = invoke("opt", str(path), "--target", machine, "-p", "cse", "--emit", "asm")
    assert "on which no pass runs" in str(refused.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--emit", "asm"), "the module has no kernel to emit"),
        (("--emit", "llvm", "--target", "sm_80"), "the module has no kernel to emit"),
        (("--emit", "asm", "--target", "warp9"), "no target has the instruction set 'warp9'"),
    ],
)
def test_opt_says_why_it_emits_nothing(arguments: tuple[str, ...], message: str) -> None:
    result = invoke("opt", "-", *arguments, stdin=PROGRAM)
    assert isinstance(result.exception, TesseraError)
    assert message in str(result.exception)


def test_opt_emits_for_one_target_only() -> None:
    result = invoke("opt", "-", "-p", "tile-to-cpu", "--emit", "asm", "--target", "sm_80", stdin=TILES)
    assert "expected a nv.func @f, the module has a cpu.func" in str(result.exception)


INSPECTED = """
from typing import Any
import tessera as ts
from tessera import KTile, Out, Schedule, Tensor, bf16, f32, kernel, tile

@kernel(schedule=Schedule(block=(128, 128, 64)))
def gemm(a: KTile["M", "K", bf16], b: KTile["K", "N", bf16], c: Out[KTile["M", "N", bf16]]):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        right = tile.load(b, at=(k, col), shape=(here.k, here.n)) * tile.cast(tile.max(acc, axis=0)[None, :], bf16)
        acc = tile.dot(tile.load(a, at=(row, k), shape=(here.m, here.k)), right, acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))

gemm = gemm[(4, 4)]

@ts.jit
def running(x: Tensor["N", "D", f32], w: Tensor["D", "D", f32]) -> Any:
    return ts.cumulative_sum(ts.exp(x), axis=0) @ w

@ts.jit
def bare(x):
    return x + 1.0

class Layer:
    @ts.jit
    def forward(self, x):
        return x * 2.0

layer = Layer()
"""


@pytest.fixture(name="inspected")
def inspected_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "inspected.py"
    path.write_text(INSPECTED, encoding="utf-8")
    return path


def test_inspect_shows_what_a_target_refused(inspected: Path) -> None:
    printed = invoke("inspect", f"{inspected}:gemm", "--call", GEMM, "--target", "sm_90a").output
    assert "== tile IR" in printed
    assert "@gemm: compiled: portable" in printed
    assert re.search(rf"@gemm: slower than {inspected}:12:\d+: warp-specialized", printed)
    assert "makes a value that all rows share" in printed
    on_cpu = invoke("inspect", f"{inspected}:gemm", "--call", GEMM, "--target", "avx2").output
    assert on_cpu.endswith("@gemm: compiled: for avx2\n")
    assert "compiled" not in invoke("inspect", f"{inspected}:gemm", "--call", GEMM).output


GEMM = "ts.zeros((512, 512), ts.bf16), ts.zeros((512, 512), ts.bf16), ts.zeros((512, 512), ts.bf16)"
BELOW = {"machine": ("cpu.func @", "nv.func @"), "llvm": ("define i64 @", "llvm.nvvm"), "asm": (".text", ".version")}


@pytest.mark.quick(4)
@pytest.mark.parametrize("level", BELOW)
@pytest.mark.parametrize(("machine", "number"), [("avx2", 0), ("sm_80", 1)])
@pytest.mark.parametrize("name", ["gemm", "running"])
def test_inspect_shows_levels_below_tiles(inspected: Path, level: str, machine: str, number: int, name: str) -> None:
    call = ("--call", GEMM) if name == "gemm" else ()
    printed = invoke("inspect", f"{inspected}:{name}", *call, "--level", level, "--target", machine).output
    assert f"== {level} of @{'gemm' if name == 'gemm' else 'main_0'} for {machine}" in printed
    assert BELOW[level][number] in printed
    assert "== tile IR" not in printed


def test_inspect_takes_jitted_functions(inspected: Path) -> None:
    printed = invoke("inspect", f"{inspected}:running", "-s", "D=16", "--target", "sm_90a").output
    assert "graph.cumulate" in printed.partition("== schedule IR")[0]
    assert "@main: compiled: as 3 kernels" in printed
    assert re.search(rf"@main: slower than {inspected}:20:\d+: one kernel of exp and cumulate", printed)
    assert "@main_2: compiled: portable" in printed
    assert "@main: slower than" in invoke("inspect", f"{inspected}:running").output
    called = invoke("inspect", f"{inspected}:bare", "--call", "ts.ones((3,))")
    assert "@main_0: compiled: for " in called.output
    method = invoke("inspect", f"{inspected}:layer.forward", "--call", "ts.ones((3,))")
    assert "return x * 2.0" in method.output
    assert "@main_0: compiled: for " in method.output
    assert "argument x of bare has no annotation" in str(invoke("inspect", f"{inspected}:bare").exception)


def test_the_demo_says_plainly_what_is_faster() -> None:
    assert demo.speed(1.5) == "1.50 times as fast"
    assert demo.speed(0.5) == "takes 2.00 times as long"
    assert demo.speed(1.01) == demo.speed(0.99) == "as fast, within 2 %"
