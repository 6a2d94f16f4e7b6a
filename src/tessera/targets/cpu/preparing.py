"""What happens to a tile function before nests are looked for: checks, and rewrites that make all of it plain."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tessera.dialects import tile
from tessera.dialects.locations import span_of
from tessera.dialects.tile_types import tile_type
from tessera.errors import CompileError
from tessera.transforms.multiples import single_multiples
from tessera.transforms.scaled_maxima import scale_maxima
from tessera.transforms.thin_products import spread_thin_products
from tessera.transforms.wide_sums import widen_sums


def prepare(function: tile.FuncOp) -> frozenset[SSAValue]:
    """Rewrites a function; gives the multiples that may be rounded together with a sum."""
    _check(function)
    multiples = single_multiples(function)
    widen_sums(function)
    spread_thin_products(function)
    scale_maxima(function)
    return multiples


def _check(function: tile.FuncOp) -> None:
    """Refuses what has no machine code, before anything is written."""
    for op in function.body.walk():
        for value in (*op.results, *op.operands):
            if isinstance(value.type, TensorType) and len(tile_type(value).get_shape()) > 2:
                raise CompileError(
                    f"{op.name} works on {tile_type(value)}: tiles on CPUs have at most two axes",
                    span=span_of(op.location),
                    hint="fold two axes into one, or run it in the interpreter: TESSERA_INTERPRET=1",
                )
        if isinstance(op, tile.AnyOp):
            raise CompileError(
                f"{op.name} has no machine code for CPUs",
                span=span_of(op.location),
                hint="lazy-maxima writes it for GPUs: leave that pass out",
            )
        if isinstance(op, tile.DebugPrintOp):
            raise CompileError(
                "a kernel that prints or stops runs in the interpreter only",
                span=span_of(op.location),
                hint="TESSERA_INTERPRET=1 sends every kernel there",
            )
