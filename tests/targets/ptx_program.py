"""PTX as text: the instructions of one kernel, its labels, and the classes of its registers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_COMMENT = re.compile(r"//[^\n]*")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)")


class PtxError(Exception):
    """What a program must not do."""


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name in parts, operands as text, and on what it depends."""

    parts: tuple[str, ...]
    operands: tuple[str, ...]
    guard: tuple[str, bool] | None
    text: str


@dataclass
class Program:
    """A kernel, read."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    classes: dict[str, str] = field(default_factory=dict[str, str])
    """The class of each register, by name or by the name in front of its number."""


def read(ptx: str) -> Program:
    """Reads the one kernel of a text. Names that inline code declares get a number of their own."""
    text = _COMMENT.sub("", ptx)
    body = text[text.index("{", text.index(".entry")) + 1 : text.rindex("}")]
    program, scopes, count = Program(), list[dict[str, str]](), 0
    for token in re.findall(r"\s*\{(?=\s*\.reg)|[^;{}]*\{[^{}]*\}[^;]*;|[^;{}]+;|\}|[\w$]+:", body):
        statement = token.strip()
        while (label := re.match(r"([\w$]+):(?!:)\s*", statement)) is not None:
            program.labels[label[1]] = len(program.instructions)
            statement = statement[label.end() :]
        if statement == "{":
            scopes.append({})
            count += 1
        elif statement == "}":
            scopes.pop()
        elif (declared := _REGISTERS.match(statement.rstrip(";"))) is not None:
            for name in declared[2].split(","):
                plain = re.sub(r"<\d+>", "", name.strip())
                if scopes:
                    scopes[-1][plain] = f"{plain}@{count}"
                    plain = f"{plain}@{count}"
                program.classes[plain] = declared[1]
        elif statement.rstrip(";").strip() and not statement.startswith("."):
            program.instructions.append(_instruction(statement.rstrip(";").strip(), scopes))
    return program


def _instruction(statement: str, scopes: Sequence[Mapping[str, str]]) -> Instruction:
    for scope in scopes:
        for name, own in scope.items():
            statement = re.sub(rf"(?<![\w.%$]){re.escape(name)}(?![\w.])", own, statement)
    guard = None
    if (match := re.match(r"@(!?)([\w$%@]+)\s+", statement)) is not None:
        guard = match[2], match[1] == "!"
        statement = statement[match.end() :]
    name, _, rest = statement.partition(" ") if " " in statement else statement.partition("\t")
    name, _, more = name.partition("\t")
    rest = f"{more} {rest}".strip()
    operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)
    return Instruction(tuple(name.split(".")), tuple(operand.strip() for operand in operands), guard, statement)
