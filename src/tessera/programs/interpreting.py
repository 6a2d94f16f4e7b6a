"""Programs in the interpreter: graph functions as functions of tensors and numbers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tessera import knobs
from tessera.internal_errors import boundary
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import aligned
from tessera.runtime.tensor.tensor import Tensor


def interpreted(
    module: ModuleOp, name: str, world: Callable[[], Machine], otherwise: Device
) -> Callable[..., tuple[Tensor, ...]]:
    """A function of tensors and numbers that runs a graph function in the interpreter; results lie where tensors do."""
    types = symbol_in(module, name, graph.FuncOp).function_type.outputs

    def run(*values: Any) -> tuple[Tensor, ...]:
        device = next((value.device for value in values if isinstance(value, Tensor)), otherwise)
        given = [value.cpu().numpy() if isinstance(value, Tensor) else value for value in values]
        names = knobs.checks.value
        wanted = Checks(nonfinite="nan" if "nan" in names else False, unwritten="unwritten" in names)
        with (
            boundary(f"@{name}", "the interpreter", partial(text.write, module)),
            checking(wanted) if wanted else nullcontext(),
        ):
            found = run_function(module, name, given, machine=world())
        made: list[Tensor] = []
        for array, type_ in zip(found, types, strict=True):
            assert isinstance(type_, GraphTensorType)
            made.append(Tensor.wrap(aligned(np.array(array)), type_.dtype).to(device))
        return tuple(made)

    return run
