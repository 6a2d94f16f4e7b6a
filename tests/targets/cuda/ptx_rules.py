"""What instructions of PTX do, on NumPy arrays with one element per thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tessera.targets.cuda.ptx.reading import Instruction

if TYPE_CHECKING:
    from ptx_machine import Machine

WARP = 32
Array = np.ndarray[Any, Any]


class PtxError(Exception):
    """What a program must not do."""


Rule = Callable[["Machine", Instruction], None]
RULES: dict[str, Rule] = {}
"""By the first part of an instruction's name."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register


def _wide(type_: str) -> int:
    return int(re.sub(r"\D", "", type_))


def _numbers(values: Array, type_: str) -> Array:
    """Values in the width of a type; whole numbers wrap."""
    return values.astype({"s": "i", "u": "u", "b": "u", "f": "f"}[type_[0]] + str(_wide(type_) // 8))


# Numbers


_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@rule("lop3")
def _logic(machine: Machine, op: Instruction) -> None:
    a, b, c = (machine.get(operand, "u32") for operand in op.operands[1:4])
    table, found = int(op.operands[4], 0), np.zeros_like(a)
    for index in range(8):
        if table >> index & 1:
            found |= np.bitwise_and.reduce([x if index >> bit & 1 else ~x for x, bit in ((a, 2), (b, 1), (c, 0))])
    machine.put(op.operands[0], found)


@rule("add", "sub", "mul", "and", "or", "xor", "min", "max", "div", "rem")
def _binary(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    a, b = (machine.get(operand, type_) for operand in op.operands[1:])
    kind = op.parts[0]
    with np.errstate(all="ignore"):
        if type_ == "pred":
            found = _BINARY[kind](a, b)
        elif kind == "mul" and op.parts[1] == "wide":
            double = type_[0] + str(2 * _wide(type_))
            found = _numbers(a, double) * _numbers(b, double)
        elif kind == "mul" and op.parts[1] == "hi":
            found = _numbers((a.astype(object) * b.astype(object)) >> _wide(type_), type_)
        elif kind in ("min", "max"):
            pick = np.minimum if kind == "min" else np.maximum
            found = (pick if "NaN" in op.parts or type_[0] != "f" else getattr(np, f"f{kind}"))(a, b)
            found = np.maximum(found, 0).astype(found.dtype) if "relu" in op.parts else found
        elif kind == "div":
            found = a / b if type_[0] == "f" else np.trunc(a.astype(object) / np.where(b == 0, 1, b)).astype(a.dtype)
            if type_[0] != "f":
                quotient = np.abs(a.astype(np.int64)) // np.maximum(1, np.abs(b.astype(np.int64)))
                found = _numbers(quotient * np.sign(a.astype(np.int64)) * np.sign(b.astype(np.int64)), type_)
        elif kind == "rem":
            found = _numbers(np.fmod(a.astype(np.int64), np.where(b == 0, 1, b).astype(np.int64)), type_)
        else:
            found = _BINARY[kind](a, b)
    machine.put(op.operands[0], found)


@rule("mad", "fma")
def _mad(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    double = type_[0] + str(2 * _wide(type_)) if "wide" in op.parts else type_
    a, b = (machine.get(operand, type_) for operand in op.operands[1:3])
    c = machine.get(op.operands[3], double)
    with np.errstate(all="ignore"):
        if type_ == "f32":
            found = (a.astype(np.float64) * b + c).astype(np.float32)
        else:
            found = _numbers(a, double) * _numbers(b, double) + c
    machine.put(op.operands[0], found)


@rule("neg", "abs", "not", "cvta")
def _unary(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    a = machine.get(op.operands[1], type_)
    functions: dict[str, Callable[[Array], Array]] = {"neg": np.negative, "abs": np.abs, "not": np.invert}
    machine.put(op.operands[0], functions.get(op.parts[0], lambda value: value)(a))


@rule("ex2", "rcp", "sqrt", "rsqrt", "lg2", "tanh")
def _special(machine: Machine, op: Instruction) -> None:
    functions: dict[str, Callable[[Array], Array]] = {
        "ex2": np.exp2,
        "rcp": np.reciprocal,
        "sqrt": np.sqrt,
        "rsqrt": lambda value: 1 / np.sqrt(value),
        "lg2": np.log2,
        "tanh": np.tanh,
    }
    type_ = op.parts[-1]
    with np.errstate(all="ignore"):
        found = functions[op.parts[0]](machine.get(op.operands[1], type_).astype(np.float64))
    machine.put(op.operands[0], _numbers(found, type_))


@rule("shl", "shr")
def _shift(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    a, by = machine.get(op.operands[1], type_), machine.get(op.operands[2], "u32").astype(np.int64)
    wide = _wide(type_)
    by = np.minimum(by, wide)
    if op.parts[0] == "shl":
        found = np.where(by >= wide, 0, a << np.minimum(by, wide - 1).astype(a.dtype))
    else:
        last = a >> np.minimum(by, wide - 1).astype(a.dtype)
        found = np.where(by >= wide, (a < 0) * a.dtype.type(-1) if type_[0] == "s" else 0, last)
    machine.put(op.operands[0], found.astype(a.dtype))


@rule("shf")
def _funnel(machine: Machine, op: Instruction) -> None:
    low, high = (machine.get(operand, "u32").astype(np.uint64) for operand in op.operands[1:3])
    by = machine.get(op.operands[3], "u32").astype(np.uint64)
    by = by % np.uint64(32) if "wrap" in op.parts else np.minimum(by, np.uint64(32))
    both = low | high << np.uint64(32)
    found = both >> by if op.parts[1] == "r" else both << by >> np.uint64(32)
    machine.put(op.operands[0], found.astype(np.uint32))


@rule("bfe")
def _field(machine: Machine, op: Instruction) -> None:
    a = machine.get(op.operands[1], op.parts[-1]).astype(np.uint64)
    first, count = (machine.get(operand, "u32").astype(np.uint64) for operand in op.operands[2:])
    found = (a >> first) & ((np.uint64(1) << count) - np.uint64(1))
    if op.parts[-1][0] != "u":
        raise PtxError("only unsigned fields")
    machine.put(op.operands[0], _numbers(found, op.parts[-1]))


@rule("bfi")
def _insert(machine: Machine, op: Instruction) -> None:
    a, b = (machine.get(operand, op.parts[-1]) for operand in op.operands[1:3])
    first, count = (machine.get(operand, "u32").astype(a.dtype) for operand in op.operands[3:])
    field_ = ((a.dtype.type(1) << count) - a.dtype.type(1)) << first
    machine.put(op.operands[0], (b & ~field_) | ((a << first) & field_))


@rule("prmt")
def _permute(machine: Machine, op: Instruction) -> None:
    a, b, pick = (machine.get(operand, "u32") for operand in op.operands[1:])
    parts = np.stack([(word >> np.uint32(8 * place)) & np.uint32(255) for word in (a, b) for place in range(4)])
    found = np.zeros_like(a)
    for place in range(4):
        which = (pick >> np.uint32(4 * place)) & np.uint32(15)
        value = np.take_along_axis(parts, (which & 7)[None].astype(np.int64), 0)[0]
        value = np.where(which & 8, np.where(value & 128, 255, 0), value).astype(np.uint32)
        found |= value << np.uint32(8 * place)
    machine.put(op.operands[0], found)


_COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@rule("setp")
def _compare(machine: Machine, op: Instruction) -> None:
    type_, name = op.parts[-1], op.parts[1]
    a, b = (machine.get(operand, type_) for operand in op.operands[1:3])
    plain = name[:-1] if name not in _COMPARISONS and name[:-1] in _COMPARISONS else name
    with np.errstate(all="ignore"):
        if name == "nan":
            found = np.isnan(a) | np.isnan(b)
        elif name == "num":
            found = ~(np.isnan(a) | np.isnan(b))
        else:
            found = _COMPARISONS[plain](a, b)
            if type_[0] == "f":
                unordered = np.isnan(a) | np.isnan(b)
                found = found | unordered if name != plain else found & ~unordered
    machine.put(op.operands[0], found)


@rule("selp")
def _select(machine: Machine, op: Instruction) -> None:
    a, b = (machine.get(operand, op.parts[-1]) for operand in op.operands[1:3])
    machine.put(op.operands[0], np.where(machine.get(op.operands[3], "pred"), a, b))


@rule("mov")
def _move(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    to, source = op.operands
    if source.startswith("{"):
        names = [name.strip() for name in source.strip("{}").split(",")]
        part = _wide(type_) // len(names)
        found = np.zeros(machine.threads, f"u{_wide(type_) // 8}")
        for place, name in enumerate(names):
            found |= machine.get(name, f"u{part}").astype(found.dtype) << found.dtype.type(part * place)
        machine.put(to, found)
    elif to.startswith("{"):
        names = [name.strip() for name in to.strip("{}").split(",")]
        part = _wide(type_) // len(names)
        bits = machine.get(source, f"u{_wide(type_)}")
        for place, name in enumerate(names):
            machine.put(name, (bits >> bits.dtype.type(part * place)).astype(f"u{part // 8}"))
    else:
        machine.put(to, machine.get(source, type_))


def _narrow(values: Array, kind: str) -> Array:
    """f32 as the bits of a narrower float, to nearest."""
    with np.errstate(all="ignore"):
        return values.astype(ml_dtypes.bfloat16 if kind.startswith("bf16") else np.float16).view(np.uint16)


@rule("cvt")
def _convert(machine: Machine, op: Instruction) -> None:
    to, source = (part for part in op.parts[1:] if re.fullmatch(r"(b?f|[su])\d+(x2)?", part))
    if to.endswith("x2"):
        high, low = (_narrow(machine.get(operand, "f32"), to) for operand in op.operands[1:])
        machine.put(op.operands[0], high.astype(np.uint32) << np.uint32(16) | low)
        return
    values = machine.get(op.operands[1], "u16" if source in ("bf16", "f16") else source)
    if source in ("bf16", "f16"):
        values = values.view(ml_dtypes.bfloat16 if source == "bf16" else np.float16).astype(np.float32)
    if to in ("bf16", "f16"):
        machine.put(op.operands[0], _narrow(values, to))
        return
    if (to[0] != "f" and source[0] == "f") or (source == "bf16" and to[0] != "f"):
        values = np.trunc(values) if "rzi" in op.parts else np.floor(values) if "rmi" in op.parts else np.rint(values)
    with np.errstate(all="ignore"):
        found = _numbers(values, to)
    # A register may be wider than the type: then signs go on.
    held = machine.held(op.operands[0])
    if to[0] in "su" and held.itemsize > found.dtype.itemsize:
        found = found.astype(f"{'i' if to[0] == 's' else 'u'}{held.itemsize}")
    machine.put(op.operands[0], found)


# Memory


def _vector(op: Instruction) -> tuple[int, str]:
    ways = next((int(part[1:]) for part in op.parts if re.fullmatch(r"v[248]", part)), 1)
    return ways, op.parts[-1]


@rule("ld")
def _load(machine: Machine, op: Instruction) -> None:
    ways, type_ = _vector(op)
    item = _wide(type_) // 8
    name, address = machine.address(op.operands[1])
    if "param" in op.parts:
        address = address if isinstance(address, int) else int(address[0])
        raw = np.tile(machine.params[address : address + ways * item], (machine.threads, 1))
    else:
        assert not isinstance(address, int), name
        raw = np.zeros((machine.threads, ways * item), np.uint8)
        if op.parts[1] == "shared":
            threads = np.flatnonzero(machine.mask)
            places = machine.shared_places(address, ways * item, writes=False, threads=threads)
            machine.note("ld.shared", address, ways * item, WARP // max(1, ways * item // 4))
            raw[machine.mask] = machine.shared.data[places]
        else:
            places = machine.memory.places(address, ways * item, "global memory is read")
            raw[machine.mask] = machine.memory.data[places]
    names = [each.strip() for each in op.operands[0].strip("{}").split(",")]
    for place, register in enumerate(names):
        value = np.ascontiguousarray(raw[:, place * item : (place + 1) * item]).view(f"u{item}")[:, 0]
        if type_[0] == "s":
            value = value.view(f"i{item}").astype(f"i{machine.held(register).itemsize}")
        machine.put(register, value)


@rule("st")
def _store(machine: Machine, op: Instruction) -> None:
    ways, type_ = _vector(op)
    item = _wide(type_) // 8
    _, address = machine.address(op.operands[0])
    assert not isinstance(address, int)
    names = [each.strip() for each in op.operands[1].strip("{}").split(",")]
    values = [machine.get(name, f"u{8 * item}")[machine.mask].astype(f"u{item}") for name in names]
    raw = np.concatenate([value[:, None].view(np.uint8) for value in values], axis=1)
    if op.parts[1] == "shared":
        threads = np.flatnonzero(machine.mask)
        places = machine.shared_places(address, ways * item, writes=True, threads=threads)
        machine.note("st.shared", address, ways * item, WARP // max(1, ways * item // 4))
        machine.shared.data[places] = raw
    else:
        machine.memory.data[machine.memory.places(address, ways * item, "global memory is written")] = raw


@rule("cp")
def _copy(machine: Machine, op: Instruction) -> None:
    if op.parts[:3] == ("cp", "async", "commit_group"):
        machine.commit()
        return
    if op.parts[:3] == ("cp", "async", "wait_group"):
        machine.wait(int(op.operands[0]))
        return
    _, to = machine.address(op.operands[0])
    _, source = machine.address(op.operands[1])
    assert not isinstance(to, int)
    assert not isinstance(source, int)
    width = int(op.operands[2])
    values = np.zeros((len(to), width), np.uint8)
    sizes = np.full(len(to), width)
    if len(op.operands) > 3:
        sizes = machine.get(op.operands[3], "u32")[machine.mask].astype(np.int64)
    if set(np.unique(sizes)) - {0, width}:
        raise PtxError("only whole chunks or none")
    some = sizes > 0
    places = machine.memory.places(source[some], width, "global memory is copied")
    values[some] = machine.memory.data[places]
    machine.note("cp.async", to, width, WARP // max(1, width // 4))
    machine.begin_copy(to, values)


# Warps


def _warps(machine: Machine) -> Array:
    """The numbers of the warps that are here, as whole ones."""
    here: Array = machine.mask.reshape(-1, WARP)
    if (here.any(1) != here.all(1)).any():
        raise PtxError("some threads of a warp are elsewhere")
    return np.flatnonzero(here[:, 0])


def _rows(operand: str) -> list[str]:
    return [name.strip() for name in operand.strip("{}").split(",")]


def _spread(machine: Machine, warps: Array, values: Array) -> Array:
    """Values by warp and lane, as all threads have them."""
    found = np.zeros((machine.threads // WARP, WARP), values.dtype)
    found[warps] = values
    return found.ravel()


@rule("ldmatrix", "stmatrix")
def _matrices(machine: Machine, op: Instruction) -> None:
    warps = _warps(machine)
    loads = op.parts[0] == "ldmatrix"
    registers, where = op.operands if loads else reversed(op.operands)
    names = _rows(registers)
    _, address = machine.address(where)
    assert not isinstance(address, int)
    rows = address.reshape(len(warps), WARP)[:, : 8 * len(names)]
    threads = (warps[:, None] * WARP + np.arange(8 * len(names))).ravel()
    flat = rows.ravel()
    places = machine.shared_places(flat, 16, writes=not loads, threads=threads)
    # Eight rows are one turn.
    machine.note_rows(op.parts[0], flat)
    lane = np.arange(WARP)
    if loads:
        data = machine.shared.data[places].view(np.uint16).reshape(len(warps), len(names), 8, 8)
        for place, name in enumerate(names):
            matrix = data[:, place].transpose(0, 2, 1) if "trans" in op.parts else data[:, place]
            low, high = matrix[:, lane // 4, 2 * (lane % 4)], matrix[:, lane // 4, 2 * (lane % 4) + 1]
            words = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
            machine.put(name, _spread(machine, warps, words))
        return
    data = np.zeros((len(warps), len(names), 8, 8), np.uint16)
    for place, name in enumerate(names):
        words = machine.get(name, "u32").reshape(-1, WARP)[warps]
        matrix = np.zeros((len(warps), 8, 8), np.uint16)
        matrix[:, lane // 4, 2 * (lane % 4)] = words & np.uint32(0xFFFF)
        matrix[:, lane // 4, 2 * (lane % 4) + 1] = words >> np.uint32(16)
        data[:, place] = matrix.transpose(0, 2, 1) if "trans" in op.parts else matrix
    machine.shared.data[places] = data.reshape(len(flat), 8).view(np.uint8)


_ELEMENTS: Mapping[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "s32": np.int32,
}


def _fragment(machine: Machine, operand: str, kind: str, warps: Array) -> Array:
    """The elements of a lane's registers: warp, lane, element."""
    wide = 64 if kind == "f64" else 32
    words = np.stack([machine.get(name, f"u{wide}").reshape(-1, WARP)[warps] for name in _rows(operand)], axis=-1)
    if kind == "tf32":
        words = words & np.uint32(0xFFFFE000)
    return np.ascontiguousarray(words).view(_ELEMENTS[kind])


@rule("mma")
def _product(machine: Machine, op: Instruction) -> None:
    """The tables of the PTX manual, "Matrix fragments for mma", by lane and element of a fragment."""
    warps = _warps(machine)
    shape = next(part for part in op.parts if re.fullmatch(r"m\d+n\d+k\d+", part))
    rows, columns, depth = map(int, re.findall(r"\d+", shape))
    kinds = op.parts[-4:]
    a, b, c = (
        _fragment(machine, operand, kind, warps) for operand, kind in zip(op.operands[1:], kinds[1:], strict=True)
    )
    lane = np.arange(WARP)[:, None]
    group, inside = lane // 4, lane % 4
    side = 1 if kinds[1] in ("tf32", "f64") else 4 // np.dtype(_ELEMENTS[kinds[1]]).itemsize
    i, j, k = [np.arange(int(part.shape[-1]))[None] for part in (a, b, c)]
    word_a, word_b = i // side, j // side
    row_a = group + 8 * (word_a % 2)
    column_a = inside * side + i % side + 4 * side * (word_a // 2)
    row_b = inside * side + j % side + 4 * side * word_b
    column_b = group + 0 * j
    row_c, column_c = group + 8 * (k // 2), 2 * inside + k % 2
    wide = np.float64 if kinds[1][-1].isdigit() and kinds[1] not in ("s8", "u8") else np.int64
    left = np.zeros((len(warps), rows, depth), wide)
    right = np.zeros((len(warps), depth, columns), wide)
    left[:, row_a, column_a] = a.astype(wide)
    right[:, row_b, column_b] = b.astype(wide)
    with np.errstate(all="ignore"):
        total = left @ right
        sums = total[:, row_c, column_c] + c.astype(wide)
        found = sums.astype(_ELEMENTS[kinds[0]])
    words = np.ascontiguousarray(found).view(np.uint64 if kinds[0] == "f64" else np.uint32)
    for place, name in enumerate(_rows(op.operands[0])):
        machine.put(name, _spread(machine, warps, words[..., place]))


@rule("shfl")
def _shuffle(machine: Machine, op: Instruction) -> None:
    _warps(machine)
    value = machine.get(op.operands[1], "b32").reshape(-1, WARP)
    by = machine.get(op.operands[2], "u32").reshape(-1, WARP).astype(np.int64)
    lane = np.arange(WARP)[None]
    down = np.where(lane >= by, lane - by, lane)
    source = lane ^ by if "bfly" in op.parts else down if "up" in op.parts else by % WARP
    machine.put(op.operands[0].split("|")[0], np.take_along_axis(value, source, 1).ravel())


@rule("vote")
def _vote(machine: Machine, op: Instruction) -> None:
    _warps(machine)
    value = machine.get(op.operands[1], "pred").reshape(-1, WARP)
    found = value.any(1) if "any" in op.parts else value.all(1)
    machine.put(op.operands[0], np.repeat(found, WARP))


@rule("griddepcontrol")
def _griddepcontrol(machine: Machine, op: Instruction) -> None:
    """Kernels run one after the other here."""
