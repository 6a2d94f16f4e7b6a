"""fast-math: quotients and roots as products of reciprocals, which differ in the last places, by consent only.

Division is correctly rounded; a reciprocal and a product are two roundings, and for many quotients by one divisor a
single reciprocal. Machines have quick instructions for reciprocals and for those of roots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.ir.graph import dialect as graph
from tessera.transforms.core.rewriting import replace


@dataclass(frozen=True)
class FastMath(ModulePass):
    """Rewrites elementwise ops of graphs by cheaper ones that are nearly the same."""

    name = "fast-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in [one for one in op.walk() if isinstance(one, graph.EwOp)]:
            rule = _RULES.get(found.fn.data)
            if rule is not None:
                rule(found)


def _quotient(op: graph.EwOp) -> None:
    """a / b is a · (1 / b); where b is a broadcast or a root, that is done before."""
    dividend, divisor = op.operands_
    before, reciprocal = _reciprocal(divisor)
    product = graph.EwOp("mul", [dividend, reciprocal])
    replace(op, [*before, product], product.results)


def _reciprocal(value: SSAValue) -> tuple[list[Operation], SSAValue]:
    made_by = value.owner
    if isinstance(made_by, graph.BroadcastOp):
        before, inner = _reciprocal(made_by.operand)
        wide = graph.BroadcastOp(inner, made_by.expected_shape())
        return [*before, wide], wide.result
    if isinstance(made_by, graph.EwOp) and made_by.fn.data == "sqrt":
        root = graph.EwOp("rsqrt", list(made_by.operands_))
        return [root], root.result
    plain = graph.EwOp("reciprocal", [value])
    return [plain], plain.result


_RULES: Mapping[str, Callable[[graph.EwOp], None]] = MappingProxyType({"div": _quotient})
