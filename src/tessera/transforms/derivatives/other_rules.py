"""Ops whose results are constants to derivatives, and those that have none yet."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tessera.ir.graph.control import YieldOp
from tessera.ir.graph.effects import AllReduceOp, PrintOp, RandomOp, StateOp, StateReadOp, StateWriteOp
from tessera.ir.graph.functions import CallKernelOp, CallOp, FuncOp, ReturnOp
from tessera.transforms.derivatives.rules import AnyJvp, Tangent, Tangents, constant, is_differentiable, refused, rule


def _refusing(what: str, hint: str) -> AnyJvp:
    """Refuses an op that gives floats which are used."""

    def jvp(_: Tangents, op: Operation, __: Sequence[Tangent]) -> Sequence[Tangent]:
        if any(is_differentiable(value) and value.first_use is not None for value in op.results):
            raise refused(op, what, hint)
        return [None] * len(op.results)

    return jvp


for kind, why in (
    (RandomOp, "random numbers do not depend on values"),
    (StateReadOp, "a state is a constant while a function runs"),
    (StateWriteOp, "it gives nothing"),
    (PrintOp, "it gives nothing"),
    (StateOp, "it declares"),
    (FuncOp, "functions are called, and are inlined in what is traced"),
    (ReturnOp, "it ends a function"),
    (YieldOp, "it ends a body"),
):
    constant(kind, why)

rule(
    CallKernelOp,
    _refusing(
        "a kernel is differentiated, and kernels have no derivatives yet",
        "put it into a function with ts.custom_vjp, or compute the same with operators",
    ),
)
rule(
    CallOp,
    _refusing("a call of a function in a graph has no derivative", "call it where it is traced: its body is inlined"),
)
rule(
    AllReduceOp,
    _refusing(
        "a sum over ranks is differentiated, and collectives have no derivatives yet",
        "take gradients of what each rank computes, and reduce them",
    ),
)
