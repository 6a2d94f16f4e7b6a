"""Emitted code as data: the instructions of a kernel's PTX, cut into blocks that are run as wholes."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tessera.cached_property import cached_property
from tessera.errors import CompileError

_COMMENT = re.compile(r"//[^\n]*")
_TOKEN = re.compile(r"\s*\{(?=\s*\.reg)|[^;{}]*\{[^{}]*\}[^;]*;|[^;{}]+;|\}|[\w$]+:(?!:)")
_LABEL = re.compile(r"([\w$]+):(?!:)\s*")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)")
_GUARD = re.compile(r"@(!?)([\w$%@]+)\s+")
_OPERANDS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_NAMES = re.compile(r"%[a-z]+\d+|[\w$]+@\d+")
NO_RESULT = frozenset(
    {"st", "bra", "ret", "exit", "bar", "barrier", "red", "cp", "stmatrix", "fence", "membar", "mbarrier", "prefetch"}
    | {"setmaxnreg", "trap", "discard", "griddepcontrol", "nanosleep", "pragma"}
)
"""Instructions without a result in a register; of `mbarrier` tests and waits have one."""


def names_in(operand: str) -> list[str]:
    """The registers that an operand names."""
    return _NAMES.findall(operand)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in parts, operands as text, and the predicate that it depends on."""

    parts: tuple[str, ...]
    operands: tuple[str, ...]
    guard: tuple[str, bool] | None
    text: str

    @property
    def kind(self) -> str:
        return self.parts[0]

    @property
    def results(self) -> tuple[str, ...]:
        """The registers that it writes."""
        tests = self.kind == "mbarrier" and self.parts[1] in ("try_wait", "test_wait")
        if (self.kind in NO_RESULT and not tests) or not self.operands:
            return ()
        return tuple(names_in(self.operands[0]))

    @property
    def sources(self) -> tuple[str, ...]:
        """The registers that it reads, without its guard."""
        first = 1 if self.results else 0
        return tuple(name for operand in self.operands[first:] for name in names_in(operand))


@dataclass
class Code:
    """A kernel's instructions, where labels stand among them, and the classes of registers."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    classes: dict[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """Runs of instructions that nothing jumps into or out of."""
        starts = {0, len(self.instructions), *self.labels.values()}
        starts |= {at + 1 for at, one in enumerate(self.instructions) if one.kind in ("bra", "ret", "exit")}
        cuts = sorted(starts)
        return tuple(range(low, high) for low, high in itertools.pairwise(cuts))

    def needed(self, wanted: Iterable[str]) -> frozenset[int]:
        """The instructions that registers come from, by whatever way."""
        writers: dict[str, list[int]] = defaultdict(list)
        for at, one in enumerate(self.instructions):
            for name in one.results:
                writers[name].append(at)
        found: set[int] = set()
        open_ = list(dict.fromkeys(wanted))
        seen = set(open_)
        while open_:
            for at in writers[open_.pop()]:
                if at in found:
                    continue
                found.add(at)
                one = self.instructions[at]
                guards = () if one.guard is None else (one.guard[0],)
                fresh = [name for name in (*one.sources, *guards) if name not in seen]
                seen.update(fresh)
                open_ += fresh
        return frozenset(found)

    def width(self, register: str) -> int:
        """The bits of a register; 1 of a predicate."""
        known = self.classes.get(register) or self.classes.get(register.rstrip("0123456789"), "b64")
        return 1 if known == "pred" else int(known[1:])


@lru_cache(maxsize=64)
def read(ptx: str) -> Code:
    """Reads the one kernel of a text. Names that inline code declares get a number of their own."""
    text = _COMMENT.sub("", ptx)
    try:
        body = text[text.index("{", text.index(".entry")) + 1 : text.rindex("}")]
    except ValueError:
        raise CompileError(
            "expected PTX with an .entry, got text without one", hint="hand over a kernel's PTX"
        ) from None
    code, scopes, count = Code(), list[dict[str, str]](), 0
    for token in _TOKEN.findall(body):
        statement = token.strip()
        while (label := _LABEL.match(statement)) is not None:
            code.labels[label[1]] = len(code.instructions)
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
                code.classes[plain] = declared[1]
        elif statement.rstrip(";").strip() and not statement.startswith("."):
            code.instructions.append(_instruction(statement.rstrip(";").strip(), scopes))
    return code


def _instruction(statement: str, scopes: Sequence[Mapping[str, str]]) -> Instruction:
    for scope in scopes:
        for name, own in scope.items():
            statement = re.sub(rf"(?<![\w.%$]){re.escape(name)}(?![\w.])", own, statement)
    guard = None
    if (match := _GUARD.match(statement)) is not None:
        guard = match[2], match[1] == "!"
        statement = statement[match.end() :]
    name, *rest = statement.split(None, 1)
    operands = _OPERANDS.findall(rest[0]) if rest else []
    return Instruction(tuple(name.split(".")), tuple(one.strip() for one in operands), guard, statement)
