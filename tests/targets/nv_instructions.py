"""What instructions of LLVM's text and of inline PTX do, on one NumPy array of all threads per value."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.types import bf16, f16, f64

if TYPE_CHECKING:
    from nv_machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[["Block"], None]

_TYPES: Mapping[str, Any] = {
    "i1": np.bool_,
    "i8": np.uint8,
    "i16": np.uint16,
    "i32": np.uint32,
    "i64": np.uint64,
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
}
_VECTOR = re.compile(r"<(\d+) x (.+)>$")


@cache
def storage(type_: str) -> tuple[int, Any]:
    """Lanes (0 for a scalar) and NumPy type of an LLVM type; pointers are their addresses."""
    if found := _VECTOR.match(type_):
        return int(found[1]), storage(found[2])[1]
    return (0, np.uint64) if type_.startswith("ptr") else (0, np.dtype(_TYPES[type_]))


def typed_constant(name: str, type_: str) -> Any:
    """A constant as LLVM writes it."""
    lanes, dtype = storage(type_)
    if lanes:
        if name in ("zeroinitializer", "poison", "undef"):
            return np.zeros(lanes, dtype)
        parts = [part.strip().rsplit(" ", 1) for part in name[1:-1].split(",")]
        return np.array([typed_constant(word, element) for element, word in parts], dtype)
    if name in ("poison", "undef", "null", "false"):
        return dtype.type(0) if isinstance(dtype, np.dtype) else dtype(0)
    if name == "true":
        return True
    if name.startswith("0xH") or name.startswith("0xR"):
        return np.array(int(name[3:], 16), np.uint16).view(dtype)[()]
    if name.startswith("0x"):
        return np.dtype(dtype).type(struct.unpack("<d", int(name, 16).to_bytes(8, "little"))[0])
    if np.dtype(dtype).kind == "b":
        return bool(int(name) & 1)
    if np.dtype(dtype).kind == "u":
        return np.dtype(dtype).type(int(name) % (1 << (8 * np.dtype(dtype).itemsize)))
    return np.dtype(dtype).type(float(name))


def signed(value: Array) -> Array:
    """The same bits as two's complement; a bool is 0 or −1."""
    return -value.astype(np.int8) if value.dtype == np.bool_ else value.view(f"i{value.itemsize}")


def again(value: Any, like: Array) -> Array:
    """A signed result as unsigned bits."""
    return np.asarray(value).astype(f"i{like.itemsize}").view(like.dtype)


# LLVM


def _shift(operation: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    def work(a: Array, b: Array) -> Array:
        bits = 8 * a.itemsize
        return np.where(b < bits, operation(a, np.minimum(b, bits - 1).astype(a.dtype)), 0).astype(a.dtype)

    return work


def _divided(a: Array, b: Array) -> Array:
    x, y = signed(a).astype(object), signed(b).astype(object)
    return again(np.array([0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(x, y, strict=True)], object).astype(np.int64), a)


def _rest(a: Array, b: Array) -> Array:
    x, y = signed(a).astype(object), signed(b).astype(object)
    return again(np.array([0 if q == 0 else abs(p) % abs(q) * (-1 if p < 0 else 1) for p, q in zip(x, y, strict=True)], object).astype(np.int64), a)


def _plain(operation: Callable[..., Any]) -> Callable[..., Array]:
    def work(*operands: Array) -> Array:
        return np.asarray(operation(*operands)).astype(operands[0].dtype)

    return work


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a ^ b if a.dtype == np.bool_ else a + b,
    "sub": lambda a, b: a ^ b if a.dtype == np.bool_ else a - b,
    "mul": lambda a, b: a & b if a.dtype == np.bool_ else a * b,
    "udiv": lambda a, b: a // np.maximum(b, 1).astype(a.dtype),
    "urem": lambda a, b: a % np.maximum(b, 1).astype(a.dtype),
    "sdiv": _divided,
    "srem": _rest,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": _shift(np.left_shift),
    "lshr": _shift(np.right_shift),
    "ashr": lambda a, b: again(signed(a) >> np.minimum(b, 8 * a.itemsize - 1).astype(signed(a).dtype), a),
    "fadd": _plain(np.add),
    "fsub": _plain(np.subtract),
    "fmul": _plain(np.multiply),
    "fdiv": _plain(np.divide),
}

_INTEGER_TESTS: dict[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "ult": np.less,
    "ule": np.less_equal,
    "ugt": np.greater,
    "uge": np.greater_equal,
    "slt": lambda a, b: signed(a) < signed(b),
    "sle": lambda a, b: signed(a) <= signed(b),
    "sgt": lambda a, b: signed(a) > signed(b),
    "sge": lambda a, b: signed(a) >= signed(b),
}
_FLOAT_TESTS: dict[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _float_test(predicate: str, a: Array, b: Array) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("uno", "ord"):
        return unordered if predicate == "uno" else ~unordered
    found = _FLOAT_TESTS[predicate[1:]](a, b)
    return (found | unordered) if predicate[0] == "u" else (found & ~unordered)


def _to_integer(value: Array, dtype: Any, is_signed: bool) -> Array:
    wide = np.nan_to_num(value.astype(np.float64), nan=0.0)
    bits = 8 * dtype.itemsize
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    whole = [min(max(int(number), low), high) if np.isfinite(number) else (high if number > 0 else low) for number in wide.reshape(-1)]
    return np.array([number % (1 << bits) for number in whole], np.uint64).astype(dtype).reshape(value.shape)


def _of_signed(value: Array, dtype: Any) -> Array:
    return np.array([np.dtype(dtype).type(int(number)) for number in signed(value).reshape(-1)]).astype(dtype)


def convert(opcode: str, value: Array, target: str) -> Array:
    lanes, dtype = storage(target)
    dtype = np.dtype(dtype)
    match opcode:
        case "zext" | "trunc" | "inttoptr" | "ptrtoint":
            return (value & 1).astype(np.bool_) if dtype == np.bool_ else value.astype(dtype)
        case "sext":
            return signed(value).astype(f"i{dtype.itemsize}").view(dtype)
        case "bitcast":
            flat = np.ascontiguousarray(value).view(dtype)
            return flat.reshape(len(value), lanes) if lanes else flat.reshape(len(value))
        case "fptosi" | "fptoui":
            return _to_integer(value, dtype, opcode == "fptosi")
        case "sitofp":
            return _of_signed(value, dtype)
        case _:
            return value.astype(dtype)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a·b + c; the product is exact in the wider format."""
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    found = a.astype(wide) * b.astype(wide) + c.astype(wide)
    return found.astype(a.dtype)


def _extreme(largest: bool, propagates: bool) -> Callable[[Array, Array], Array]:
    def work(a: Array, b: Array) -> Array:
        first = (a > b) | ((a == b) & ~np.signbit(a)) if largest else (a < b) | ((a == b) & np.signbit(a))
        found = np.where(first, a, b)
        found = np.where(np.isnan(a), a if propagates else b, found)
        return np.where(np.isnan(b), b if propagates else a, found).astype(a.dtype)

    return work


def _saturated(sign: int) -> Callable[[Array, Array], Array]:
    def work(a: Array, b: Array) -> Array:
        found = signed(a).astype(object) + sign * signed(b).astype(object)
        bits = 8 * a.itemsize
        return again(np.clip(found, -(1 << (bits - 1)), (1 << (bits - 1)) - 1).astype(np.int64), a)

    return work


def _saturated_unsigned(sign: int) -> Callable[[Array, Array], Array]:
    def work(a: Array, b: Array) -> Array:
        found = a.astype(object) + sign * b.astype(object)
        return np.clip(found, 0, (1 << (8 * a.itemsize)) - 1).astype(np.uint64).astype(a.dtype)

    return work


def _leading_zeros(value: Array, _: Array) -> Array:
    bits = 8 * value.itemsize
    return np.array([bits - int(word).bit_length() for word in value], value.dtype)


INTRINSICS: dict[str, Callable[..., Array]] = {
    "fma": fma,
    "fabs": _plain(np.abs),
    "sqrt": _plain(np.sqrt),
    "floor": _plain(np.floor),
    "ceil": _plain(np.ceil),
    "rint": _plain(np.rint),
    "roundeven": _plain(np.rint),
    "trunc": _plain(np.trunc),
    "copysign": _plain(np.copysign),
    "maximum": _extreme(True, True),
    "minimum": _extreme(False, True),
    "maxnum": _extreme(True, False),
    "minnum": _extreme(False, False),
    "umin": np.minimum,
    "umax": np.maximum,
    "smin": lambda a, b: again(np.minimum(signed(a), signed(b)), a),
    "smax": lambda a, b: again(np.maximum(signed(a), signed(b)), a),
    "sadd.sat": _saturated(1),
    "ssub.sat": _saturated(-1),
    "uadd.sat": _saturated_unsigned(1),
    "usub.sat": _saturated_unsigned(-1),
    "ctlz": _leading_zeros,
    "abs": lambda a, _: again(np.abs(signed(a)), a),
}


# Reading LLVM's text

_ASSIGN = re.compile(r"(%\S+) = (.*)$")
_ASM = re.compile(r'call (.+?) asm (?:sideeffect )?"(.*?)", "(.*?)"\((.*)\) (?:convergent )?nounwind')
_CALL = re.compile(r"call (?:[a-z]+ )*?([^ ]+|<[^>]*>|ptr addrspace\(\d\)) @(\S+?)\((.*)\)")


def _split(text: str) -> list[str]:
    """At commas outside of brackets."""
    found, depth, current = list[str](), 0, ""
    for letter in text:
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += letter
    return [*found, current.strip()] if current.strip() else found


def _operand(text: str) -> tuple[str, str]:
    """(type, name) of `i32 %x` or `<4 x float> %y`."""
    text = text.strip()
    if text.startswith("<"):
        end = text.index(">") + 1
        return text[:end], text[end:].strip()
    if text.startswith("ptr addrspace"):
        end = text.index(")") + 1
        return text[:end], text[end:].strip()
    type_, _, name = text.partition(" ")
    return type_, name.strip()


def _space(type_: str) -> str:
    return {"ptr addrspace(3)": "shared"}.get(type_, "global")


def instruction(line: str) -> Step:
    """One instruction that is not a jump."""
    found = _ASSIGN.match(line)
    result, text = (found[1], found[2]) if found else (None, line)
    if given := _ASM.search(text):
        return _assembly(result, given[1], given[2], given[4])
    opcode = text.split(" ", 1)[0]
    rest = text[len(opcode) :].strip()
    if opcode == "store":
        return _store(rest)
    if opcode == "call" and result is None:
        raise AssertionError(f"a call without a result: {line}")
    assert result is not None, line
    if opcode in ("cmpxchg", "atomicrmw"):
        return _atomic_step(result, opcode, rest)
    work = _reader(opcode, rest, text)

    def step(block: Block) -> None:
        block.set(result, work(block))

    return step


def _atomic_step(result: str, opcode: str, rest: str) -> Step:
    work = _atomic(opcode, rest)

    def step(block: Block) -> None:
        olds, wons = work(block)
        block.set(result, olds)
        block.set(f"{result}.0", olds)
        block.set(f"{result}.1", wons)

    return step


def _reader(opcode: str, rest: str, text: str) -> Callable[[Block], Array]:
    rest = re.sub(r"^(?:nsw|nuw|contract|fast|nnan|exact|disjoint|nneg|inbounds) ", "", rest)
    if opcode in BINARY:
        (type_, a), b = _operand(_split(rest)[0]), _split(rest)[1]
        return lambda block: BINARY[opcode](block.value(a, type_), block.value(b, type_))
    match opcode:
        case "icmp" | "fcmp":
            predicate, operands = rest.split(" ", 1)
            (type_, a), b = _operand(_split(operands)[0]), _split(operands)[1]
            if opcode == "icmp":
                return lambda block: np.asarray(
                    _INTEGER_TESTS[predicate](block.value(a, type_), block.value(b, type_)), np.bool_
                )
            return lambda block: _float_test(predicate, block.value(a, type_), block.value(b, type_))
        case "select":
            (_, condition), (type_, a), (_, b) = map(_operand, _split(rest))
            return lambda block: np.where(block.value(condition, "i1"), block.value(a, type_), block.value(b, type_))
        case "fneg":
            type_, a = _operand(rest)
            return lambda block: -block.value(a, type_)
        case "getelementptr":
            _, pointer, by = _split(rest)
            (space, base), (type_, offset) = _operand(pointer), _operand(by)
            return lambda block: block.value(base, space) + signed(block.value(offset, type_)).astype(np.int64).view(np.uint64)
        case "load":
            return _load(rest)
        case "extractelement":
            (type_, a), (_, place) = map(_operand, _split(rest))
            return lambda block: block.value(a, type_)[:, int(place)].copy()
        case "insertelement":
            (type_, a), (element, value), (_, place) = map(_operand, _split(rest))
            return lambda block: _inserted(block.value(a, type_), block.value(value, element), int(place))
        case "extractvalue":
            aggregate, place = rest.rsplit(",", 1)
            name = aggregate.rsplit(" ", 1)[1]
            return lambda block: block.values[f"{name}.{int(place)}"]
        case "call":
            return _call(text)
        case _:
            return _conversion(opcode, rest)


def _inserted(vector: Array, value: Array, place: int) -> Array:
    made = vector.copy()
    made[:, place] = value
    return made


def _conversion(opcode: str, rest: str) -> Callable[[Block], Array]:
    given, _, target = rest.rpartition(" to ")
    type_, name = _operand(given)
    if name == "@shared":
        return lambda block: np.zeros(block.threads, np.uint32)
    return lambda block: convert(opcode, block.value(name, type_), target)


def _load(rest: str) -> Callable[[Block], Array]:
    type_, pointer, *_ = _split(rest)
    space, name = _operand(pointer)
    lanes, dtype = storage(type_)
    size = max(1, lanes) * np.dtype(dtype).itemsize

    def work(block: Block) -> Array:
        found = block.load(_space(space), block.value(name, space), size, block.mask)
        made = np.ascontiguousarray(found).view(dtype)
        return made.reshape(block.threads, lanes) if lanes else made.reshape(block.threads)

    return work


def _store(rest: str) -> Step:
    given, pointer, *_ = _split(rest)
    (type_, value), (space, name) = _operand(given), _operand(pointer)

    def step(block: Block) -> None:
        stored = np.ascontiguousarray(block.value(value, type_))
        raw = stored.view(np.uint8).reshape(block.threads, -1)
        block.store(_space(space), block.value(name, space), raw, block.mask)

    return step


_RMW: dict[str, Callable[[Array, Array], Array]] = {
    "add": BINARY["add"],
    "and": BINARY["and"],
    "or": BINARY["or"],
    "xor": BINARY["xor"],
    "fadd": BINARY["fadd"],
    "umin": INTRINSICS["umin"],
    "umax": INTRINSICS["umax"],
    "min": INTRINSICS["smin"],
    "max": INTRINSICS["smax"],
    "xchg": lambda a, b: b,
}


def _atomic(opcode: str, rest: str) -> Callable[[Block], tuple[Array, Array]]:
    """One thread after the other; what each found, and whether it wrote."""
    parts = _split(rest)
    kind = ""
    if opcode == "atomicrmw":
        kind, parts[0] = parts[0].split(" ", 1)
    (space, name), (type_, first) = _operand(parts[0]), _operand(parts[1])
    first = first.split(" ")[0]
    second = _operand(parts[2])[1].split(" ")[0] if opcode == "cmpxchg" else first
    dtype = np.dtype(storage(type_)[1])

    def work(block: Block) -> tuple[Array, Array]:
        addresses, a, b = block.value(name, space), block.value(first, type_), block.value(second, type_)
        olds, wons = block.blank(type_), np.ones(block.threads, np.bool_)
        for thread in np.flatnonzero(block.mask):
            only = np.arange(block.threads) == thread
            old = block.load(_space(space), addresses, dtype.itemsize, only).view(dtype).reshape(-1)
            if opcode == "cmpxchg":
                wons[thread] = old[thread] == a[thread]
                new = b if wons[thread] else old
            else:
                new = _RMW[kind](old, a)
            raw = np.ascontiguousarray(new).view(np.uint8).reshape(block.threads, -1)
            block.store(_space(space), addresses, raw, only)
            olds[thread] = old[thread]
        return olds, wons

    return work


def _call(text: str) -> Callable[[Block], Array]:
    found = _CALL.search(text)
    assert found, text
    name, operands = found[2], [_operand(operand) for operand in _split(found[3])]
    if name.startswith("llvm.nvvm.read.ptx.sreg."):
        register = name.removeprefix("llvm.nvvm.read.ptx.sreg.")
        return lambda block: _special(block, register)
    base = name.removeprefix("llvm.").rsplit(".", 1)[0]
    work = INTRINSICS[base]
    return lambda block: np.asarray(work(*(block.value(value, type_) for type_, value in operands)))


def _special(block: Block, register: str) -> Array:
    numbers = np.arange(block.threads, dtype=np.uint32)
    return {
        "tid.x": numbers,
        "ctaid.x": np.full(block.threads, block.number, np.uint32),
        "laneid": numbers % 32,
        "ntid.x": np.full(block.threads, block.threads, np.uint32),
    }[register]


# Inline PTX


def _assembly(result: str | None, returns: str, text: str, arguments: str) -> Step:
    given = [_operand(argument) for argument in _split(arguments)]
    types = _split(returns.strip("{} ")) if returns.startswith("{") else [] if returns == "void" else [returns]
    program = ptx(text.replace("\\0A", " ").replace("\\09", " "))

    def step(block: Block) -> None:
        registers: dict[str, Any] = {f"${place}": block.blank(type_) for place, type_ in enumerate(types)}
        for place, (type_, name) in enumerate(given):
            registers[f"${len(types) + place}"] = block.value(name, type_)
        for statement in program:
            statement(block, registers)
        if result is None:
            return
        if len(types) == 1:
            block.set(result, registers["$0"])
        else:
            for place in range(len(types)):
                block.set(f"{result}.{place}", registers[f"${place}"])

    return step


Statement = Callable[["Block", dict[str, Any]], None]
_STATEMENT = re.compile(r"(?:@(!?)([$%\w]+)\s+)?([\w.:]+)\s*(.*)$")


def ptx(text: str) -> list[Statement]:
    found: list[Statement] = []
    for part in re.sub(r"\$\$", "$", text).split(";"):
        stripped = part.strip()
        while stripped[:1] in ("{", "}"):
            stripped = stripped[1:].strip()
        if stripped and not stripped.startswith(".reg"):
            found.append(_statement(stripped))
    return found


_BITS = {"8": np.uint8, "16": np.uint16, "32": np.uint32, "64": np.uint64}


def _ptx_type(name: str) -> Any:
    kind, bits = name[0], name[1:]
    return np.dtype({"f": {"32": np.float32, "64": np.float64, "16": np.float16}}.get(kind, _BITS)[bits])


def read_as(block: Block, registers: Mapping[str, Any], name: str, dtype: Any) -> Array:
    """An operand of an instruction, its bits taken as a type."""
    dtype = np.dtype(dtype)
    negative = name.startswith("-$")
    found = registers.get(name.removeprefix("-")) if negative or name in registers else None
    if found is None:
        if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}", name):
            return np.full(block.threads, int(name[2:], 16), np.uint32).view(np.float32)
        bits = int(name, 0) % (1 << (8 * dtype.itemsize))
        return np.full(block.threads, bits, f"u{dtype.itemsize}").view(dtype)
    found = np.ascontiguousarray(found)
    if found.dtype == np.bool_ or dtype == np.bool_:
        return found
    if found.itemsize != dtype.itemsize:
        assert found.dtype.kind == "u" and dtype.kind in "ui"
        found = found.astype(f"u{dtype.itemsize}")
    return -found.view(dtype) if negative else found.view(dtype)


def write_to(registers: dict[str, Any], name: str, value: Array, where: Array) -> None:
    """A result, in the form that its register has."""
    kept = registers.get(name)
    if kept is None:
        registers[name] = value.copy()
        return
    raw = np.ascontiguousarray(value)
    if kept.dtype != np.bool_ and raw.dtype != np.bool_:
        raw = raw.astype(f"u{kept.itemsize}") if raw.itemsize != kept.itemsize else raw
        raw = raw.view(kept.dtype)
    made = kept.copy()
    made[where] = raw[where]
    registers[name] = made


def _statement(text: str) -> Statement:
    found = _STATEMENT.match(text)
    assert found, text
    inverted, predicate, opcode, rest = found[1] == "!", found[2], found[3], found[4]
    operands = _split(rest)
    name, *modifiers = opcode.split(".")
    rule = PTX[name]

    def run(block: Block, registers: dict[str, Any]) -> None:
        where = block.mask
        if predicate:
            test = registers[predicate]
            where = where & (~test if inverted else test)
        rule(block, registers, modifiers, operands, where)

    return run


Rule = Callable[["Block", dict[str, Any], Sequence[str], Sequence[str], Array], None]
PTX: dict[str, Rule] = {}


def defines(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        PTX.update(dict.fromkeys(names, rule))
        return rule

    return register


def _names(operand: str) -> list[str]:
    return _split(operand.strip("{} "))


@defines("mov")
def _mov(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    target, source = operands
    dtype = _ptx_type(modifiers[-1])
    if source.startswith("{"):
        parts = [read_as(block, registers, part, f"u{dtype.itemsize // len(_names(source))}") for part in _names(source)]
        joined = np.stack(parts, 1).view(f"u{dtype.itemsize}").reshape(-1)
        write_to(registers, target, joined, where)
    elif target.startswith("{"):
        names = _names(target)
        halves = read_as(block, registers, source, f"u{dtype.itemsize}").reshape(-1, 1).view(f"u{dtype.itemsize // len(names)}")
        for place, name in enumerate(names):
            write_to(registers, name, halves[:, place], where)
    else:
        write_to(registers, target, read_as(block, registers, source, f"u{dtype.itemsize}"), where)


_ADDRESS = re.compile(r"\[\s*([$%\w]+)\s*(?:\+\s*(-?\w+))?\s*\]")


def _address(block: Block, registers: Mapping[str, Any], operand: str) -> Array:
    found = _ADDRESS.match(operand)
    assert found, operand
    return registers[found[1]].astype(np.uint64) + np.uint64(int(found[2] or "0", 0) % (1 << 64))


def _width(modifiers: Sequence[str]) -> tuple[int, Any]:
    count = next((int(each[1:]) for each in modifiers if re.fullmatch(r"v\d", each)), 1)
    return count, _ptx_type(modifiers[-1])


@defines("ld")
def _ld(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    count, dtype = _width(modifiers)
    space = "shared" if "shared" in modifiers else "global"
    found = block.load(space, _address(block, registers, operands[1]), count * dtype.itemsize, where)
    parts = np.ascontiguousarray(found).view(f"u{dtype.itemsize}").reshape(block.threads, count)
    names = _names(operands[0])
    for place, name in enumerate(names):
        write_to(registers, name, parts[:, place], where)


@defines("st")
def _st(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    count, dtype = _width(modifiers)
    parts = [registers[name] for name in _names(operands[1])]
    assert len(parts) == count
    raw = np.stack([np.ascontiguousarray(part).view(f"u{part.itemsize}").astype(f"u{dtype.itemsize}") for part in parts], 1)
    space = "shared" if "shared" in modifiers else "global"
    block.store(space, _address(block, registers, operands[0]), raw.view(np.uint8).reshape(block.threads, -1), where)


@defines("shfl")
def _shfl(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    block.whole_warps("a shuffle")
    target, source, by = operands[:3]
    value = read_as(block, registers, source, np.uint32)
    lanes, step = np.arange(block.threads), read_as(block, registers, by, np.uint32).astype(int)
    inside = lanes % 32
    picked = {"bfly": inside ^ step, "idx": step % 32, "down": inside + step, "up": inside - step}[modifiers[1]]
    picked = np.where((picked >= 0) & (picked < 32), picked, inside)
    write_to(registers, target, value[lanes - inside + picked], where)


@defines("bar")
def _bar(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    assert modifiers[0] == "warp", "barriers of the block are cut out of the text"
    block.whole_warps("a barrier of the warp")
    block.warp_barrier()


@defines("setp")
def _setp(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    predicate, type_ = modifiers
    dtype = _ptx_type(type_)
    a, b = (read_as(block, registers, name, dtype) for name in operands[1:])
    sign = "s" if type_[0] == "s" else "u"
    plain = predicate if predicate in ("eq", "ne") else sign + predicate
    write_to(registers, operands[0], np.asarray(_INTEGER_TESTS[plain](a, b), np.bool_), where)


def _works_on(operation: Callable[..., Any]) -> Rule:
    """A function of floats, in the type of its last modifier."""

    def rule(
        block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array
    ) -> None:
        dtype = _ptx_type(modifiers[-1])
        values = [read_as(block, registers, name, dtype) for name in operands[1:]]
        found = np.asarray(operation(*values)).astype(dtype)
        if "ftz" in modifiers:
            found = np.where(np.abs(found) < 2.0**-126, np.copysign(0, found), found).astype(dtype)
        if "sat" in modifiers:
            found = np.where(found > 0, np.minimum(found, 1), 0).astype(dtype)
        write_to(registers, operands[0], found, where)

    return rule


def _wide(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: operation(*(value.astype(np.float64) for value in values))


PTX["ex2"] = _works_on(_wide(np.exp2))
PTX["lg2"] = _works_on(_wide(np.log2))
PTX["rcp"] = _works_on(_wide(lambda x: 1 / x))
PTX["rsqrt"] = _works_on(_wide(lambda x: 1 / np.sqrt(x)))
PTX["sqrt"] = _works_on(_wide(np.sqrt))
PTX["tanh"] = _works_on(_wide(np.tanh))


def _float_arithmetic(name: str) -> Rule:
    def rule(
        block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array
    ) -> None:
        if modifiers[-1] in ("f16x2", "bf16x2"):
            halves = [read_as(block, registers, each, np.uint32).view(_NARROW[modifiers[-1]][0]) for each in operands[1:]]
            a, b, c = (half.astype(np.longdouble) for half in halves)
            packed = cast((a * b + c).astype(np.float64), f64, _HALVES[modifiers[-1]]).view(np.uint32)
            write_to(registers, operands[0], packed, where)
            return
        dtype = _ptx_type(modifiers[-1])
        if dtype.kind == "u":
            values = [read_as(block, registers, each, dtype) for each in operands[1:]]
            assert name == "sub" and modifiers == ["sat", "s32"], (name, modifiers)
            write_to(registers, operands[0], _saturated(-1)(*values), where)
            return
        values = [read_as(block, registers, each, dtype) for each in operands[1:]]
        wide = [value.astype(np.float64) for value in values]
        found = {
            "mul": lambda a, b: a * b,
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "div": lambda a, b: a / b,
            "fma": lambda a, b, c: a * b + c,
        }[name](*wide)
        if "rm" in modifiers:
            near = found.astype(dtype)
            found = np.where(near.astype(np.float64) > found, np.nextafter(near, dtype.type(-np.inf)), near)
        found = found.astype(dtype)
        if "sat" in modifiers:
            found = np.where(found > 0, np.minimum(found, 1), 0).astype(dtype)
        write_to(registers, operands[0], found, where)

    return rule


for _name in ("mul", "add", "sub", "fma", "div"):
    PTX[_name] = _float_arithmetic(_name)


_HALVES = {"f16x2": f16, "bf16x2": bf16}
_NARROW: Mapping[str, tuple[Any, Any]] = {
    "f16x2": (np.float16, np.uint16),
    "bf16x2": (ml_dtypes.bfloat16, np.uint16),
    "e4m3x2": (ml_dtypes.float8_e4m3fn, np.uint8),
    "e5m2x2": (ml_dtypes.float8_e5m2, np.uint8),
}


@defines("cvt")
def _cvt(block: Block, registers: dict[str, Any], modifiers: Sequence[str], operands: Sequence[str], where: Array) -> None:
    *how, target, source = modifiers
    if source in ("e4m3x2", "e5m2x2"):
        narrow, code = _NARROW[source]
        pair = read_as(block, registers, operands[1], np.uint16).reshape(-1, 1).view(np.uint8).view(narrow)
        wide = pair.astype(np.float16).view(np.uint32).reshape(-1)
        write_to(registers, operands[0], wide, where)
        return
    if "rzi" in how:
        value = read_as(block, registers, operands[1], _ptx_type(source))
        write_to(registers, operands[0], _to_integer(value, _ptx_type(target), target[0] == "s"), where)
        return
    narrow, code = _NARROW[target]
    high, low = (read_as(block, registers, name, np.float32) for name in operands[1:])
    limit = float(ml_dtypes.finfo(narrow).max)

    def one(value: Array) -> Array:
        if "satfinite" in how:
            value = np.where(np.isnan(value), value, np.clip(value, -limit, limit)).astype(np.float32)
        return value.astype(narrow).view(code)

    pair = np.stack([one(low), one(high)], 1)
    write_to(registers, operands[0], np.ascontiguousarray(pair).view(f"u{2 * pair.itemsize}").reshape(-1), where)
