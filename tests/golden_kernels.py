"""Golden texts: kernels for sm_90a written by hand at the nv level, which passes are to find.

A text is written for one element type of 16 bits; the other one replaces it word for word.
"""

from __future__ import annotations

import re
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tessera.compiler.options import CompileOptions
from tessera.errors import CompileError
from tessera.targets import text
from tessera.targets.cuda.compile import CompiledPtx, compile_lowered
from tessera.targets.cuda.ir import dialect as nv

FOLDER = Path(__file__).parent / "goldens"
ELEMENTS = ("f16", "bf16")
_ELEMENT = re.compile(r"(?<![a-wyz_])b?f16\b")
"""An element type by itself, or behind sizes: `64x80xf16`."""


def names() -> list[str]:
    """The texts there are."""
    return sorted(path.stem for path in FOLDER.glob("*.nv"))


def source(name: str, element: str) -> str:
    """A text for one element type."""
    if name not in names() or element not in ELEMENTS:
        raise CompileError(
            f"there is no golden text {name!r} for {element}",
            hint=f"texts: {', '.join(names())}; element types: {', '.join(ELEMENTS)}",
        )
    return _ELEMENT.sub(element, (FOLDER / f"{name}.nv").read_text(encoding="utf-8"))


def module(name: str, element: str) -> ModuleOp:
    """A text, read and verified."""
    return text.read(source(name, element), f"{name}.nv")


def function_of(found: ModuleOp) -> nv.FuncOp:
    """The one kernel of a text."""
    (function,) = (op for op in found.ops if isinstance(op, nv.FuncOp))
    return function


def compiled(name: str, element: str) -> CompiledPtx:
    """A text as PTX."""
    found = module(name, element)
    return compile_lowered(found, function_of(found).sym_name.data, CompileOptions("cuda", "sm_90a"))
