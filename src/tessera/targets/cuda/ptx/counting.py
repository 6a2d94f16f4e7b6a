"""Counts of PTX: classes of instructions, and what of memory they touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tessera.targets.cuda.ptx.reading import Instruction

SPACES = ("global", "shared", "local", "param", "const")
"""Memory by the names of PTX; what names none is `generic`."""
_CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("bar", "barrier", "mbarrier", "fence", "membar", "griddepcontrol"), "barrier"),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call", "trap"), "branch"),
    **dict.fromkeys(("ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh"), "special_function"),
    **dict.fromkeys(("shfl", "vote", "match", "activemask", "redux"), "warp"),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp"), "compare"),
    **dict.fromkeys(("mov", "prmt", "cvta", "mapa", "isspacep"), "move"),
    **dict.fromkeys(("atom", "red"), "atomic"),
    **dict.fromkeys(("prefetch", "prefetchu", "discard"), "prefetch"),
    **dict.fromkeys(("setmaxnreg", "nanosleep", "pragma", "elect"), "control"),
    "cvt": "convert",
    "mma": "matrix",
    "ldmatrix": "matrix_load",
    "stmatrix": "matrix_store",
}
_WAITS = ("commit_group", "wait_group", "wait_all", "fence", "mbarrier")


def class_of(one: Instruction) -> str:
    """The class of an instruction: matrix, global_load, async_copy, barrier, float, and so on."""
    kind, rest = one.kind, one.parts[1:]
    if kind == "wgmma":
        return "matrix" if rest[0] == "mma_async" else "matrix_wait"
    if kind == "cp":
        return "copy_wait" if any(part in _WAITS for part in rest[1:3]) else "async_copy"
    if kind in ("ld", "ldu", "st"):
        return f"{space_of(one)}_{'store' if kind == 'st' else 'load'}"
    if kind in _CLASSES:
        return _CLASSES[kind]
    if kind in ("fma", "mad"):
        return "float_fma" if _is_float(one) else "integer"
    return "float" if _is_float(one) else "integer"


def space_of(one: Instruction) -> str:
    """The memory that a load or a store touches."""
    named = (part.partition("::")[0] for part in one.parts[1:])
    return next((part for part in named if part in SPACES), "generic")


def _is_float(one: Instruction) -> bool:
    return any(part.startswith(("f16", "f32", "f64", "bf16")) for part in one.parts[1:])


def mix(body: Sequence[Instruction]) -> dict[str, int]:
    """How many instructions of each class, the most frequent first."""
    return dict(Counter(map(class_of, body)).most_common())


def memory_accesses(body: Sequence[Instruction]) -> dict[str, int]:
    """How many instructions touch memory, by space and direction; copies go from one space to another."""
    found: Counter[str] = Counter()
    for one in body:
        kind = class_of(one)
        if kind.endswith(("_load", "_store")):
            found[f"{kind}s"] += 1
        elif kind == "atomic":
            found[f"{space_of(one)}_atomics"] += 1
        elif kind == "async_copy":
            found["bulk_copies" if "bulk" in one.parts else "async_copies"] += 1
        elif kind == "prefetch":
            found["prefetches"] += 1
    return dict(found.most_common())


def barriers(body: Sequence[Instruction]) -> dict[str, int]:
    """Instructions by which threads wait for each other, by their names: of a block, an mbarrier, memory."""
    found = Counter(".".join(one.parts[:2]) for one in body if class_of(one) == "barrier")
    return dict(found.most_common())
