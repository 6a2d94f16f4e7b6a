"""Programs written by hand at the cpu level, `texts/*.cpu`: what the emitter makes of the best text we know."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tessera.compiler.launch_plan import ArrayArgument, Plan
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile.types import ViewType
from tessera.runtime.program.executable import Executable
from tessera.targets import text
from tessera.targets.cpu.compile import compile_lowered, options_for
from tessera.targets.cpu.ir import dialect as cpu

TEXTS = Path(__file__).parent / "texts"


@cache
def executable(name: str, level: str | None = None) -> Executable:
    """A text, compiled for a level of the CPU."""
    module = text.read((TEXTS / f"{name}.cpu").read_text(encoding="utf-8"), f"{name}.cpu")
    text.verify(module)
    made = compile_lowered(module, name, options_for(level))
    function = symbol_in(module, name, cpu.FuncOp)
    arguments: list[Any] = []
    for argument, shape, word in zip(function.arguments, function.shapes, made.layout.first, strict=True):
        assert isinstance(argument.type, ViewType)
        arguments.append(ArrayArgument(word, argument.type.dtype, tuple(shape.data), written=True))
    grid = tuple(function.grid.data)
    plan = Plan(name, tuple(arguments), 0, grid, made.layout.grid, made.layout.words, (), ordered=False)
    return Executable(plan, made.image)
