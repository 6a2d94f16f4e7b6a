"""Reading assembly: which instructions a kernel has, what of memory they touch, and which registers they use.

The text is LLVM's: for x86-64 in AT&T's order, the destination comes last; that of AArch64 is in `arm_instructions`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tessera.targets.cpu import arm_instructions

# Classes of instructions, by their names; the first that fits counts.
CLASSES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "amx": r"tdp|tile|ldtilecfg|sttilecfg",
        "vector_dot": r"v?p?dp(bf16|bus|wss|bss|bsu|buu)",
        "vector_fma": r"vfn?m(add|sub|addsub|subadd)\d*p[sdh]$",
        "scalar_fma": r"vfn?m(add|sub)\d*s[sdh]$",
        "gather_scatter": r"vp?(gather|scatter)",
        "vector_convert": r"v?cvt",
        "vector_shuffle": r"v?(perm|shuf|unpck|blend|insert|extract|broadcast|align|pal|movshdup|movsldup|movddup)"
        r"|v?p(perm|shuf|unpck|blend|insr|extr|broadcast|align|ack)|v?(movhlps|movlhps|compress|expand)",
        "vector_compare": r"v?cmp\w*p[sdh]$|vp?test|v?pcmp",
        "vector_float": r"v?(add|sub|mul|div|max|min|sqrt|rcp|rsqrt|scalef|reduce|range|rndscale|round|getexp|getmant"
        r"|fixupimm|and|andn|or|xor|hadd)\w*p[sdh]$",
        "vector_move": r"v?mov(u|a)p[sdh]$|v?mov(dq[ua]|nt)|vpmovm|vpmov\w+2m",
        "scalar_float": r"v?\w+s[sdh]$(?<!abs)|v?u?comis|v?(ld|st)mxcsr",
        "vector_integer": r"vp|p(add|sub|mul|max|min|and|or|xor|s[lr]l|sra|abs|madd)",
        "mask": r"k(mov|and|or|xor|not|shift|unpck|test|add)",
        "atomic": r"lock|xchg|cmpxchg|xadd|[lm]fence|sfence",
        "branch": r"j\w+$|loop",
        "call": r"call",
        "return": r"ret",
        "compare": r"(cmp|test|bt)[bwlq]?$",
        "conditional": r"cmov|set",
        "scalar_move": r"mov|v?mov[dqw]$|push|pop|lea|cltq|cqto|cltd|cwtl|xlat|bswap",
        "scalar_integer": r"add|sub|adc|sbb|i?mul|i?div|inc|dec|neg|not|and|or|xor|s[ha][lr]|ro[lr]"
        r"|bls|bz|bs|tzcnt|lzcnt|popcnt|pext|pdep",
        "prefetch": r"prefetch",
        "other": r"",
    }.items()
}

_FUNCTION = re.compile(r'^"?([A-Za-z_$][\w.$]*)"?:')
_MEMORY = re.compile(r"(?:%\w+:)?[-+\w.$@]*\((%?\w*)[^)]*\)")
_REGISTER = re.compile(r"%([xyz]mm|tmm|k)(\d+)")
_GENERAL = re.compile(r"%(r\d+|r?[abcd][xhl]|e?[abcd]x|r?[sd]il?|e[sd]i|[sd]il?|[re]?bpl?)[dwb]?\b")
# Ops that have a memory operand last and only read it, or have it as an address only.
_READS_LAST = re.compile(r"(cmp|test|bt)[bwlq]?$|(i?div|i?mul|push|ldmxcsr|vldmxcsr|ldtilecfg|prefetch)")
_ONLY_WRITES = re.compile(r"v?mov|set|pop|v|tilestored|sttilecfg|cvt|[a-z]*extr|k?mov")
_ADDRESS_ONLY = re.compile(r"lea|nop|prefetch|j|call")
_ARM_VECTOR = re.compile(r"\{?\s*v\d+\.|q\d+$")
_WIDTHS = {"zmm": 512, "ymm": 256, "xmm": 128}


@dataclass(frozen=True)
class Instruction:
    """One line: its name, with `lock` as a name of its own in front, and its operands."""

    name: str
    operands: tuple[str, ...]
    locked: bool = False
    arm: bool = False
    """Whether it is one of AArch64."""

    @property
    def kind(self) -> str:
        if self.arm:
            return arm_instructions.class_of(self.name, self.operands)
        return "atomic" if self.locked else class_of(self.name)


def functions_of(assembly: str) -> dict[str, list[Instruction]]:
    """The instructions of each function; data and directives are left out."""
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] | None = None
    arm = "%" not in assembly  # the mark of registers in AT&T's syntax
    for line in assembly.splitlines():
        written = line.partition("//" if arm else "#")[0].rstrip()
        if (label := _FUNCTION.match(written)) is not None:
            current = found.setdefault(label[1], [])
        elif written.startswith((".Lfunc_end", "\t.section", "\t.data", "\t.bss")):
            current = None
        elif current is not None and written.startswith("\t") and not written.lstrip().startswith("."):
            current.append(_arm_instruction(written) if arm else _instruction(written))
    return {name: body for name, body in found.items() if body}


def _instruction(written: str) -> Instruction:
    words = written.split(maxsplit=1)
    locked = words[0] in ("lock", "rep")
    if locked and len(words) > 1:
        words = words[1].split(maxsplit=1)
    return Instruction(words[0], _operands(words[1]) if len(words) > 1 else (), locked)


def _arm_instruction(written: str) -> Instruction:
    name, *rest = written.split(maxsplit=1)
    return Instruction(name, arm_instructions.operands_of(rest[0]) if rest else (), arm=True)


def _operands(written: str) -> tuple[str, ...]:
    """Parted at commas that are not inside brackets."""
    parts = re.split(r",\s*(?![^(]*\))", written.strip())
    return tuple(part.strip() for part in parts)


@cache
def class_of(name: str) -> str:
    """The class of an instruction."""
    return next(kind for kind, pattern in CLASSES.items() if pattern.match(name))


def mix(body: list[Instruction]) -> dict[str, int]:
    """How many instructions of each class, the most frequent first."""
    return dict(Counter(one.kind for one in body).most_common())


def memory_accesses(body: list[Instruction]) -> dict[str, int]:
    """How many instructions touch memory, by direction and kind; one that reads and writes back counts as both.

    `constant` loads come from beside the code. `stack` accesses are what did not fit into registers, and locals.
    """
    counts: Counter[str] = Counter()
    if body and body[0].arm:
        pointers = arm_instructions.frames_of(_operands_in(body))
        for one in body:
            counts["prefetches"] += one.name.startswith("prf")
            counts.update(arm_instructions.accesses_of(one.name, one.operands, pointers))
        return dict((+counts).most_common())
    frames = ("%rsp", "%rbp") if _has_frame_pointer(body) else ("%rsp",)
    for one in body:
        if one.name.startswith("prefetch"):
            counts["prefetches"] += 1
        in_memory = [index for index, operand in enumerate(one.operands) if _MEMORY.match(operand)]
        if not in_memory or _ADDRESS_ONLY.match(one.name):
            continue
        base = _MEMORY.match(one.operands[in_memory[0]])
        assert base is not None
        kind = _kind_of_access(one, base[1], frames)
        for direction in _directions(one, in_memory[0]):
            counts[f"{kind}_{direction}"] += 1
    return dict(counts.most_common())


def spilled_bytes(body: list[Instruction]) -> int:
    """Bytes of the stack that vectors are stored to: what did not fit into registers.

    On AArch64 the halves of vectors that callers want back are saved as scalars, and are none of these.
    """
    slots: dict[str, int] = {}
    arm = bool(body) and body[0].arm
    frames = arm_instructions.frames_of(_operands_in(body)) if arm else ("%rsp", "%rbp")
    if not arm and not _has_frame_pointer(body):
        frames = ("%rsp",)
    for one in body:
        if arm:
            stored = "stack_vector_stores" in arm_instructions.accesses_of(one.name, one.operands, frames)
            slot = next((operand for operand in one.operands if operand.startswith("[")), "")
            wide = 16 * sum(bool(_ARM_VECTOR.match(operand)) for operand in one.operands)
        else:
            found = _MEMORY.match(one.operands[-1]) if one.operands else None
            written = found is not None and not _ADDRESS_ONLY.match(one.name)
            kept = _REGISTER.search(" ".join(one.operands))
            stored = bool(
                written
                and found
                and found[1] in frames
                and kept
                and "stores" in _directions(one, len(one.operands) - 1)
            )
            slot, wide = one.operands[-1] if one.operands else "", _WIDTHS.get(kept[1], 8) // 8 if kept else 0
        if stored:
            slots[slot] = max(slots.get(slot, 0), wide)
    return sum(slots.values())


def _has_frame_pointer(body: list[Instruction]) -> bool:
    return any(one.name == "movq" and one.operands == ("%rsp", "%rbp") for one in body)


def _directions(one: Instruction, index: int) -> tuple[str, ...]:
    if index != len(one.operands) - 1 or _READS_LAST.match(one.name):
        return ("loads",)
    if _ONLY_WRITES.match(one.name) and not one.locked:
        return ("stores",)
    return ("loads", "stores")


def _kind_of_access(one: Instruction, base: str, frames: tuple[str, ...]) -> str:
    if base == "%rip":
        return "constant"
    if base in frames:
        return "stack_vector" if _REGISTER.search(" ".join(one.operands)) else "stack_scalar"
    if one.name.startswith(("tileload", "tilestore")):
        return "tile"
    if "gather" in one.name or "scatter" in one.name:
        return "gather" if "gather" in one.name else "scatter"
    if "broadcast" in one.name or any("{1to" in operand for operand in one.operands):
        return "broadcast"
    if "movnt" in one.name:
        return "nontemporal_vector"
    if one.kind in ("scalar_float", "scalar_fma") or not _REGISTER.search(" ".join(one.operands)):
        return "scalar"
    return "masked_vector" if any("{%k" in operand for operand in one.operands) else "vector"


def registers(body: list[Instruction]) -> dict[str, Any]:
    """Distinct registers that appear, and the widest vectors among them in bits."""
    text = _operands_in(body)
    if body and body[0].arm:
        return arm_instructions.registers(text)
    named = set(_REGISTER.findall(text))
    vectors = {number for kind, number in named if kind in _WIDTHS}
    return {
        "vector_registers": len(vectors),
        "vector_bits": max((_WIDTHS[kind] for kind, _ in named if kind in _WIDTHS), default=0),
        "tile_registers": sum(kind == "tmm" for kind, _ in named),
        "mask_registers": sum(kind == "k" for kind, _ in named),
        "general_registers": len({_whole(found) for found in _GENERAL.findall(text)}),
    }


def _operands_in(body: list[Instruction]) -> str:
    return "\n".join(", ".join(one.operands) for one in body)


def _whole(name: str) -> str:
    """The register that a part such as %eax or %al belongs to."""
    if name[0] == "r" and name[1].isdigit():
        return name
    letters = name.removeprefix("r").removeprefix("e")
    return letters[:2].rstrip("xhl") if letters[0] in "abcd" and letters[:2] != "bp" else letters[:2]
