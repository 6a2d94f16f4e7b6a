"""The two walks: `linearize` writes tangents behind ops, `transpose` goes back through the linear ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Block, SSAValue
from xdsl.traits import IsTerminator

from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.transforms.derivatives.graph_writer import GraphWriter, Known
from tessera.transforms.derivatives.rules import RULES, Replacements, Tangents, inputs_of, is_differentiable, refused


def linearize(
    block: Block, tangents: Mapping[SSAValue, SSAValue], known: Known, replace: Replacements, into: Block | None = None
) -> dict[SSAValue, SSAValue]:
    """Writes the tangents of what ops of a block compute, from those of values that they use; gives all tangents.

    Known values are written at the end of the block, in front of what ends it, and linear ops at the end of `into`.
    Without that, forwards, tangents stand behind their values in the block itself.
    """
    last = block.last_op
    ops = list(block.ops)
    if last is not None and last.has_trait(IsTerminator):
        ops.pop()
        last.detach()
    else:
        last = None
    found = dict(tangents)
    at = Tangents(GraphWriter(block, known), GraphWriter(into or block, known), replace, found)
    for op in ops:
        given = [found.get(value) for value in inputs_of(op)]
        if all(tangent is None for tangent in given):
            continue
        at.known.location = at.linear.location = op.location
        if at.is_forward:  # a tangent stands behind its value; bodies compute both
            at.known.before = at.linear.before = op if op.regions else op.next_op
        row = RULES.get(type(op))
        if row is None or (row.jvp is None and not row.reason):
            raise refused(op, f"{op.name} has no derivative", "leave it out of what is differentiated")
        if row.jvp is None:
            continue
        results = list(op.results)
        for value, tangent in zip(results, row.jvp(at, op, given), strict=True):
            if tangent is not None and is_differentiable(value):
                found[replace.now(value)] = tangent
    if last is not None:
        block.add_op(last)
    return found


def transpose(
    block: Block, linear: Iterable[SSAValue], cotangents: Iterable[tuple[SSAValue, SSAValue]], w: GraphWriter
) -> dict[SSAValue, SSAValue]:
    """Goes back through a block of linear ops: from the cotangents of some values to those of all that are linear.

    `linear` are the values from outside of the block that depend on tangents; all of the block's results do.
    """
    found: dict[SSAValue, SSAValue] = {}
    outside = set(linear)

    def is_linear(value: SSAValue) -> bool:
        if value in outside:
            return True
        op = value.owner
        return not isinstance(op, Block) and op.parent_block() is block and not isinstance(op, graph.ConstantOp)

    def add(value: SSAValue, cotangent: SSAValue) -> None:
        old = found.get(value)
        made = w.cast(cotangent, graph_type(value).dtype)
        found[value] = made if old is None else w("add", old, made)

    for value, cotangent in cotangents:
        add(value, cotangent)
    for op in reversed(list(block.ops)):
        given = [found.get(value) for value in op.results]
        if all(one is None for one in given):
            continue
        w.location = op.location
        row = RULES.get(type(op))
        if isinstance(op, graph.ConstantOp):
            continue
        assert row is not None
        if row.transpose is None:
            raise refused(op, f"{op.name} has no transpose", "use forward mode, or leave it out")
        for value, cotangent in zip(inputs_of(op), row.transpose(w, op, given, is_linear), strict=True):
            if cotangent is not None:
                add(value, cotangent)
    return found
