"""Reading AArch64's assembly: the class of an instruction, what of memory it touches, and its registers.

The text is LLVM's; the destination comes first, and what an instruction works on follows from its operands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def _patterns(table: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(pattern) for name, pattern in table.items()}


# By their names; the first that fits counts. Those on vectors, those on floats in scalar registers, all others.
_ON_VECTORS = _patterns(
    {
        "vector_dot": r"[su]dot|us?dot|bfdot|bfml|bfmmla|u?s?mmla",
        "vector_fma": r"fml[as]",
        "vector_move": r"(ld|st)\d|ld[np]|ldu?r|st[np]|stu?r|movi|mvni|fmov|mov$",
        "vector_convert": r"[fb]f?cvt|[su]cvtf",
        "vector_shuffle": r"dup|ext$|zip|uzp|trn|tb[lx]|ins|rev|[su]mov",
        "vector_compare": r"f?a?cm",
        "vector_float": r"f",
        "vector_integer": r"",
    }
)
_ON_FLOATS = _patterns({"scalar_fma": r"fn?m(add|sub)", "scalar_float": r""})
_ON_OTHERS = _patterns(
    {
        "atomic": r"ld(add|clr|set|eor|[su]max|[su]min)|swp|cas|ldap?r|ldlar|ldaxp?r|ldxp?r|stl|stxp?r"
        r"|dmb|dsb|isb|clrex",
        "scalar_float": r"f",
        "prefetch": r"prfm|prfum",
        "call": r"blr?$",
        "return": r"ret",
        "branch": r"b$|b\.|br$|cbn?z|tbn?z",
        "compare": r"cmp|cmn|ccm|tst",
        "conditional": r"cs|cinc|cinv|cneg",
        "scalar_move": r"mov|ld|st|adrp?$|mrs|msr",
        "scalar_integer": r"add|adc|sub|sbc|neg|ngc|mul|madd|msub|mneg|[su]m|[su]div|and|orr|orn|eor|eon|bic|mvn"
        r"|ls[lr]|asr|ror|[su]?bf|[su]xt|extr|cl[sz]|r?bit|rev|cnt|abs",
        "other": r"",
    }
)
_VECTOR = re.compile(r"\{?\s*v\d+\.|q\d+$")
_FLOAT = re.compile(r"[bhsd]\d+$")
_ADDRESS = re.compile(r"\[\s*(\w+)")
_NUMBERED = re.compile(r"\b([vqdshb])(\d+)\b")
_GENERAL = re.compile(r"\b[xw](\d+)\b")
_READ_AND_WRITE = re.compile(r"ld(add|clr|set|eor|[su]max|[su]min)|swp|cas")


def operands_of(written: str) -> tuple[str, ...]:
    """Parted at commas that are not inside brackets."""
    return tuple(part.strip() for part in re.split(r",\s*(?![^\[{]*[\]}])", written.strip()))


def class_of(name: str, operands: tuple[str, ...]) -> str:
    """The class of an instruction."""
    if any(map(_VECTOR.match, operands)):
        table = _ON_VECTORS
    elif operands and _FLOAT.match(operands[0]):
        table = _ON_FLOATS
    else:
        table = _ON_OTHERS
    return next(kind for kind, pattern in table.items() if pattern.match(name))


def accesses_of(name: str, operands: tuple[str, ...], frames: tuple[str, ...]) -> list[str]:
    """The memory accesses of an instruction, such as `vector_loads`."""
    address = next((found for operand in operands if (found := _ADDRESS.match(operand)) is not None), None)
    if address is None or name.startswith("prf"):
        return []
    vectors = any(map(_VECTOR.match, operands))
    if any(":lo12:" in operand or ":got_lo12:" in operand for operand in operands):
        kind = "constant"
    elif address[1] in frames:
        kind = "stack_vector" if vectors else "stack_scalar"
    elif re.match(r"ld\dr$", name):
        kind = "broadcast"
    else:
        kind = ("nontemporal_vector" if name in ("ldnp", "stnp") else "vector") if vectors else "scalar"
    if _READ_AND_WRITE.match(name):
        return [f"{kind}_loads", f"{kind}_stores"]
    return [f"{kind}_{'loads' if name.startswith('ld') else 'stores'}"]


def frames_of(text: str) -> tuple[str, ...]:
    """The registers that point into the stack."""
    return ("sp", "x29") if re.search(r"\bx29, sp\b", text) else ("sp",)


def registers(text: str) -> dict[str, Any]:
    """Distinct registers that appear, and the widest vectors among them in bits."""
    named = _NUMBERED.findall(text)
    return {
        "vector_registers": len({number for _, number in named}),
        "vector_bits": 128 if named else 0,
        "tile_registers": 0,
        "mask_registers": 0,
        "general_registers": len(set(_GENERAL.findall(text))),
    }
