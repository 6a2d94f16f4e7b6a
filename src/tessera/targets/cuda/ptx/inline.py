"""Inline PTX: instructions that LLVM has no words for, with constraints that follow from the types of values."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.targets.llvm.text import Function, Value

_LETTERS = {"i1": "b", "i16": "h", "i32": "r", "i64": "l", "ptr": "l", "float": "f", "double": "d"}


def letter(type_: str) -> str:
    """The register class of a value; pointers of all spaces are 64 bits wide here."""
    return _LETTERS["ptr" if type_.startswith("ptr") else type_]


def asm(
    f: Function,
    text: str,
    *,
    returns: Sequence[str] = (),
    arguments: Sequence[Value] = (),
    effects: bool = False,
    convergent: bool = False,
    tied: int = 0,
    early: bool = False,
) -> list[Value]:
    """Instructions with results `$0`, `$1`, … and arguments numbered behind them.

    The first `tied` arguments share the registers of the first results. With `early`, results are written before all
    arguments are read. Without `effects` equal ones are merged, and unused ones left out. `convergent` ones must be
    reached by all threads of a warp together.
    """
    constraints = [f"={'&' if early else ''}{letter(type_)}" for type_ in returns]
    constraints += [str(index) for index in range(tied)]
    constraints += [letter(argument.type) for argument in arguments[tied:]]
    if effects:
        constraints.append("~{memory}")
    type_ = "void" if not returns else returns[0] if len(returns) == 1 else f"{{ {', '.join(returns)} }}"
    marks = " ".join([*(["convergent"] if convergent else []), "nounwind", *([] if effects else ["memory(none)"])])
    quoted = text.replace("\n", "\\0A")
    given = ", ".join(map(str, arguments))
    call = f'call {type_} asm {"sideeffect " if effects else ""}"{quoted}", "{",".join(constraints)}"({given}) {marks}'
    if not returns:
        f.do(call)
        return []
    found = f.op(type_, call)
    if len(returns) == 1:
        return [found]
    return [f.op(each, f"extractvalue {type_} {found.name}, {index}") for index, each in enumerate(returns)]


def predicated(f: Function, text: str, arguments: Sequence[Value], condition: Value | None) -> tuple[str, list[Value]]:
    """An instruction and its arguments, done without a branch only where a condition holds; None is always."""
    if condition is None:
        return text, list(arguments)
    guarded = f"{{ .reg .pred p; setp.ne.b32 p, ${len(arguments)}, 0; @p {text} }}"
    return guarded, [*arguments, f.convert("zext", condition, "i32")]


def one(f: Function, text: str, returns: str, *arguments: Value) -> Value:
    """A pure instruction with one result."""
    return asm(f, text, returns=[returns], arguments=arguments)[0]


def shuffle(f: Function, value: Value, across: int) -> Value:
    """The value of the lane whose number differs in the bits of `across`; 32-bit values."""
    return asm(
        f,
        f"shfl.sync.bfly.b32 $0, $1, {across}, 31, -1;",
        returns=[value.type],
        arguments=[value],
        effects=True,
        convergent=True,
    )[0]


def shuffle_from(f: Function, value: Value, lane: Value) -> Value:
    """The value of the lane of a number, modulo 32; 32-bit values."""
    return asm(
        f,
        "shfl.sync.idx.b32 $0, $1, $2, 31, -1;",
        returns=[value.type],
        arguments=[value, lane],
        effects=True,
        convergent=True,
    )[0]


def shuffle_up(f: Function, value: Value, below: int) -> Value:
    """The value of the lane that is so many lanes below; that of the lane itself where there is none. 32 bits."""
    return asm(
        f,
        f"shfl.sync.up.b32 $0, $1, {below}, 0, -1;",
        returns=[value.type],
        arguments=[value],
        effects=True,
        convergent=True,
    )[0]


def barrier(f: Function) -> None:
    """All threads of the block wait for each other, and see each other's memory."""
    asm(f, "bar.sync 0;", effects=True, convergent=True)
