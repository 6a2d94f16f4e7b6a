"""`tessera demo`: a small program at each of its levels, run at each of them, and checked."""

from __future__ import annotations

import math
import sys
from importlib import resources

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

import tessera as ts
from tessera.dialects import text
from tessera.dialects.structural_hash import structural_hash
from tessera.interpreters.graph import run_function
from tessera.transforms.facts import Facts
from tessera.transforms.pipeline import compile_module

_BOUND = 2e-6


@click.command()
@click.option("--rows", default=50, help="Rows of the input.")
@click.option("--plain", is_flag=True, help="No colours and no boxes.")
def demo(rows: int, plain: bool) -> None:
    """Compiles gelu(x·w + b) from graph to tiles, runs every level, and compares with float64."""
    console = Console(no_color=plain, highlight=not plain)
    source = resources.files("tessera.cli").joinpath("demo.mlir").read_text(encoding="utf-8")
    module = text.read(source, "demo.mlir")
    compiled = compile_module(module)
    for level, written in compiled.levels.items():
        # The product's kernel is the same at every level: show it once, where it belongs.
        shown = written if level == "tile" else _without_kernel(written)
        console.rule(f"{level} IR", align="left")
        console.print(shown if plain else Syntax(shown, "llvm", background_color="default"), soft_wrap=True)

    x, w, b = ts.randn((rows, 40), seed=1), ts.randn((40, 70), seed=2), ts.randn((70,), seed=3)
    arguments = [tensor.numpy() for tensor in (x, w, b)]
    exact = _layer(*(array.astype(np.float64) for array in arguments))
    facts = Facts.parse(f"arg0.size[0] = {rows}", "arg0.size[1] = 40", "arg1.size[1] = 70", "arg2.size[0] = 70")
    specialised = compile_module(module, facts=facts)

    table = Table("level", "hash", "relative error against float64", "")
    worst = 0.0
    programs = {name: text.read(written) for name, written in compiled.levels.items()}
    programs["tile, sizes known"] = specialised.module
    for name, program in programs.items():
        (result,) = run_function(program, "layer", arguments)
        error = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
        worst = max(worst, error)
        table.add_row(name, structural_hash(program)[:12], f"{error:.1e}", "ok" if error <= _BOUND else "WRONG")
    console.print(table)
    console.print("guards of the specialised program: " + ", ".join(map(str, specialised.guards)))
    console.print("stages: " + ", ".join(f"{name} {1e3 * s:.1f} ms" for name, s in compiled.seconds.items()))
    if worst > _BOUND:
        console.print(f"[red]a level is wrong by {worst:.1e}, more than {_BOUND:.0e}")
        sys.exit(1)


def _layer(x: NDArray[np.float64], w: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    y = x @ w + b
    return 0.5 * y * (1.0 + np.vectorize(math.erf)(y * math.sqrt(0.5)))


def _without_kernel(written: str) -> str:
    start = written.index("  graph.func")
    return "builtin.module {\n  // tile.func @matmul: see the tile level\n" + written[start:]
