"""The nv dialect as a whole: ops for every GPU, and those for sm_90a."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.targets.cuda.ir import dialect, hopper, hopper_copies, hopper_types
from tessera.targets.cuda.ir import hopper_transpose as hopper_turns
from tessera.targets.cuda.ir import wgmma as hopper_products
from tessera.targets.cuda.ir.types import LayoutAttr, SharedType

VERSION = dialect.VERSION
Nv = Dialect(
    "nv",
    [*dialect.OPS, *hopper.OPS, *hopper_copies.OPS, *hopper_products.OPS, *hopper_turns.OPS],
    [LayoutAttr, SharedType, *hopper_types.TYPES],
)
