"""`FunctionPass`: a pass that rewrites one function after another; `function_pass`: one made of a rewrite."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tessera.ir.tile import dialect as tile


class FunctionPass(ModulePass):
    """A pass over all functions of one kind in a module: tile functions, unless it names others."""

    kind: ClassVar[type[Operation]] = tile.FuncOp

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [one for one in op.body.block.ops if isinstance(one, self.kind)]:
            self.rewrite(function, ctx)

    @abstractmethod
    def rewrite(self, function: Any, ctx: Context) -> None:
        """Rewrites one function in place."""


def function_pass(name: str, rewrite: Callable[..., object], kind: type[Operation] = tile.FuncOp) -> type[FunctionPass]:
    """The pass without options that rewrites each function of a kind."""

    def run(_: FunctionPass, function: Any, ctx: Context) -> None:
        rewrite(function)

    title = "".join(part.capitalize() for part in name.split("-"))
    body = {"name": name, "kind": kind, "rewrite": run, "__doc__": rewrite.__doc__, "__module__": rewrite.__module__}
    return dataclass(frozen=True)(type(title, (FunctionPass,), body))
