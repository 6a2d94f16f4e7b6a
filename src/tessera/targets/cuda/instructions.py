"""Elementwise functions that the machine has instructions for: casts of pairs, and quick ones where the program asks.

An op marked `{fast}` may be off by the last bits of f32, takes subnormal numbers as zeros, and costs one instruction.
"""

from __future__ import annotations

from tessera.dialects import tile
from tessera.dtypes.types import NO_POLICY, bf16, f16, f32
from tessera.targets.cuda.assembly import one
from tessera.targets.cuda.emitter import Emitter
from tessera.targets.cuda.thread_tiles import ThreadTile, per_word
from tessera.targets.llvm.text import Value

FAST = "fast"
_QUICK = {
    "exp2": "ex2.approx.ftz.f32",
    "log2": "lg2.approx.ftz.f32",
    "reciprocal": "rcp.approx.ftz.f32",
    "rsqrt": "rsqrt.approx.ftz.f32",
    "tanh": "tanh.approx.f32",
}
_PAIRS = {f16: "cvt.rn.f16x2.f32", bf16: "cvt.rn.bf16x2.f32"}


def emit_instruction(emitter: Emitter, op: tile.EwOp) -> bool:
    """Emits an op by instructions of its own, if there are any."""
    source = emitter.tile(op.operands_[0])
    if source.dtype is not f32:
        return False
    if op.fn.data == "cast":
        return _cast_pairs(emitter, op, source)
    name = _QUICK.get(op.fn.data) if FAST in op.attributes else None
    if name is None:
        return False
    known: dict[Value, Value] = {}
    for value in source.elements():
        if value not in known:
            known[value] = one(emitter.f, f"{name} $0, $1;", "float", value)
    emitter.bind(op.result, [known[value] for value in source.elements()])
    return True


def _cast_pairs(emitter: Emitter, op: tile.EwOp, source: ThreadTile) -> bool:
    result = op.result_dtype
    if result.base not in _PAIRS or result.policy != NO_POLICY or source.count % per_word(result.base):
        return False
    pairs = [(source.element(place), source.element(place + 1)) for place in range(0, source.count, 2)]
    # The instruction puts its first operand into the upper half.
    text = f"{_PAIRS[result.base]} $0, $2, $1;"
    emitter.bind_words(op.result, [one(emitter.f, text, "i32", low, high) for low, high in pairs])
    return True
