"""The nv dialect as a whole: ops for every GPU, and those for sm_90a."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.targets.cuda.ir import dialect, hopper, hopper_copies, hopper_transpose, hopper_types, wgmma
from tessera.targets.cuda.ir.types import LayoutAttr, SharedType

VERSION = dialect.VERSION
Nv = Dialect(
    "nv",
    [*dialect.OPS, *hopper.OPS, *hopper_copies.OPS, *wgmma.OPS, *hopper_transpose.OPS],
    [LayoutAttr, SharedType, *hopper_types.TYPES],
)
