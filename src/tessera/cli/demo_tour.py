"""`tessera demo --tour`: an attention kernel and a small model at each of their levels, run and checked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

import tessera as ts
from tessera.cli import demo_machine_code
from tessera.cli.inspect import beside_source
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
from tessera.stdlib import typed_attention
from tessera.tile.calls.levels import lower_through
from tessera.tile.calls.settings import settings
from tessera.transforms.core.facts import Facts
from tessera.transforms.pipeline import compile_module

Array = np.ndarray[Any, np.dtype[Any]]
# Relative error in norm against float64.
_BOUNDS = {"bf16": 4e-3, "f32": 2e-6}


class TourRow(NamedTuple):
    """One check: what ran, as which program, how far it was from float64, and how far it may be."""

    what: str
    program: str
    error: float
    bound: float


def tour(console: Console, rows: int, plain: bool) -> bool:
    """Shows attention from Python to Tile IR, runs it and a small model at every level, and as machine code.

    Says whether all of it was right.
    """
    q, k, v = (ts.randn((2, rows, 16), ts.bf16, seed=seed) for seed in range(3))
    instance = typed_attention.lower(q, k, v, causal=True)
    compiled = lower_through(instance, instance.schedule)
    for level, written in compiled.levels.items():
        # The kernel is the same at every level: show it once, beside its source, where it belongs.
        shown = beside_source(text.write(compiled.module, locations=True)) if level == "tile" else _host(written)
        console.rule(f"{level} IR", align="left")
        console.print(shown if plain else Syntax(shown, "llvm", background_color="default"), soft_wrap=True)
    console.print(f"schedule: {instance.schedule}; guards: {', '.join(map(str, instance.guards))}\n")

    table = Table("what", "program", "relative error against float64", "at most", "")
    found = [*_attention_rows(q, k, v), *_model_rows(rows)]
    for row in found:
        verdict = "ok" if row.error <= row.bound else "WRONG"
        table.add_row(row.what, row.program, f"{row.error:.1e}", f"{row.bound:.0e}", verdict)
    console.print(table)
    console.print("attention ran under checks for races, bounds, padding, uninitialised reads, NaNs and overflow\n")
    return all(row.error <= row.bound for row in found) and _machine_code_is_right(console)


def _machine_code_is_right(console: Console) -> bool:
    if settings() is None:
        console.print("kernels run in the interpreter here: there is no machine code to time")
        return True
    q, k, v = demo_machine_code.inputs()
    found = demo_machine_code.machine_code(q, k, v)
    exact = _attention(*(tensor.numpy().astype(np.float64) for tensor in (q, k, v)), causal=True)
    error = _error(found.result, exact)
    for line in demo_machine_code.report_lines(found, q, k, v):
        console.print(line, soft_wrap=True)
    console.print(f"relative error of the machine code against float64: {error:.1e}, at most {_BOUNDS['bf16']:.0e}")
    return error <= _BOUNDS["bf16"]


def _attention_rows(q: ts.Tensor, k: ts.Tensor, v: ts.Tensor) -> Iterator[TourRow]:
    for causal in (False, True):
        with checking(Checks.all()):
            found, _ = typed_attention(q, k, v, causal=causal)
        exact = _attention(*(tensor.numpy().astype(np.float64) for tensor in (q, k, v)), causal=causal)
        program = structural_hash(typed_attention.lower(q, k, v, causal=causal).module)[:12]
        yield TourRow(
            f"attention, {'causal' if causal else 'full'}", program, _error(found.numpy(), exact), _BOUNDS["bf16"]
        )


def _model_rows(rows: int) -> Iterator[TourRow]:
    """gelu(x·w + b): a tile kernel and a fused epilogue, at each level and with its sizes known."""
    module = text.read(resources.files("tessera.cli").joinpath("demo.mlir").read_text(encoding="utf-8"), "demo.mlir")
    programs = {name: text.read(written) for name, written in compile_module(module).levels.items()}
    facts = Facts.parse(f"arg0.size[0] = {rows}", "arg0.size[1] = 40", "arg1.size[1] = 70")
    programs["tile, sizes known"] = compile_module(module, facts=facts).module
    arguments = [ts.randn(shape, seed=seed).numpy() for seed, shape in enumerate(((rows, 40), (40, 70), (70,)))]
    exact = _layer(*(array.astype(np.float64) for array in arguments))
    for name, program in programs.items():
        (found,) = run_function(program, "layer", arguments)
        yield TourRow(f"gelu(x·w + b), {name}", structural_hash(program)[:12], _error(found, exact), _BOUNDS["f32"])


def _error(found: Array, exact: Array) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact))


def _attention(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[1], scores.shape[2], dtype=np.bool_), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def _layer(x: Array, w: Array, b: Array) -> Array:
    y = x @ w + b
    return 0.5 * y * (1.0 + np.vectorize(math.erf)(y * math.sqrt(0.5)))


def _host(written: str) -> str:
    start = written.index("  graph.func")
    return f"builtin.module {{\n  // tile.func @{typed_attention.__name__}: see the tile level\n" + written[start:]
