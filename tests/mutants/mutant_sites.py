"""Mutations of functions: the sites of each kind, the shape of a function without names, the source with one applied.

A mutation is addressed by module, function, kind and the number of the site among those of its kind. The fingerprint of
the function leaves out all names, strings, annotations and imports: it stays the same when a function is moved or
renamed, or when the symbols that it uses are, and it changes with everything else.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

Function = ast.FunctionDef | ast.AsyncFunctionDef

SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True)
class Site:
    """A node of a function, and the text that a mutation replaces it with."""

    node: ast.expr | ast.stmt
    text: str


class MutantError(Exception):
    """A mutation that cannot be applied to the source as it is."""


COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = MappingProxyType(
    {
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.Is: ast.IsNot,
        ast.IsNot: ast.Is,
        ast.In: ast.NotIn,
        ast.NotIn: ast.In,
    }
)
ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = MappingProxyType(
    {
        ast.Add: ast.Sub,
        ast.Sub: ast.Add,
        ast.Mult: ast.Add,
        ast.FloorDiv: ast.Mult,
        ast.Div: ast.Mult,
        ast.Mod: ast.FloorDiv,
        ast.LShift: ast.RShift,
        ast.RShift: ast.LShift,
        ast.BitAnd: ast.BitOr,
        ast.BitOr: ast.BitAnd,
    }
)
_SEQUENCES = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)
_TYPE_CHECKS = frozenset({"isinstance", "issubclass", "cast", "isa"})
_UNNAMED = frozenset({"__repr__", "__str__", "__hash__"})
_BUILTINS = frozenset(dir(builtins))


def _compare(node: ast.AST) -> ast.AST | str | None:
    if not isinstance(node, ast.Compare) or type(node.ops[0]) not in COMPARISONS:
        return None
    return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)


def _arithmetic(node: ast.AST) -> ast.AST | str | None:
    if not isinstance(node, ast.BinOp | ast.AugAssign) or type(node.op) not in ARITHMETIC:
        return None
    # Sequences are only put together: with another operator there is no value.
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    if any(isinstance(side, _SEQUENCES) or _is_text(side) for side in sides):
        return None
    other = ARITHMETIC[type(node.op)]()
    if isinstance(node, ast.BinOp):
        return ast.BinOp(node.left, other, node.right)
    return ast.AugAssign(node.target, other, node.value)


def _boolean(node: ast.AST) -> ast.AST | str | None:
    if not isinstance(node, ast.BoolOp):
        return None
    return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _plus_one(node: ast.AST) -> ast.AST | str | None:
    return ast.Constant(node.value + 1) if isinstance(node, ast.Constant) and type(node.value) is int else None


def _minus_one(node: ast.AST) -> ast.AST | str | None:
    """One less than a number; 0 is mostly an index, and the last of what has one element is its first."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
        return ast.Constant(node.value - 1)
    return None


def _flag(node: ast.AST) -> ast.AST | str | None:
    return ast.Constant(not node.value) if isinstance(node, ast.Constant) and type(node.value) is bool else None


def _deleted(node: ast.AST) -> ast.AST | str | None:
    """Statements that are run for their effect; without an assignment to a local nothing would run."""
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        return "pass"
    if isinstance(node, ast.AugAssign):
        return "pass"
    if isinstance(node, ast.Assign) and all(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets):
        return "pass"
    return None


def _loop_control(node: ast.AST) -> ast.AST | str | None:
    if isinstance(node, ast.Continue):
        return "break"
    return "continue" if isinstance(node, ast.Break) else None


def _arguments(node: ast.AST) -> ast.AST | str | None:
    if not isinstance(node, ast.Call) or len(node.args) < 2 or _called(node) in _TYPE_CHECKS | {"max", "min"}:
        return None
    first, second, *others = node.args
    # What is of another kind at first sight stops every program that comes here.
    if any(isinstance(one, (ast.Starred, *_SEQUENCES)) or _is_text(one) for one in (first, second)):
        return None
    if ast.dump(first) == ast.dump(second):
        return None
    return ast.Call(node.func, [second, first, *others], node.keywords)


EXPRESSION_KINDS: Mapping[str, Callable[[ast.AST], ast.AST | str | None]] = MappingProxyType(
    {
        "comparison": _compare,
        "arithmetic": _arithmetic,
        "and-or": _boolean,
        "plus-one": _plus_one,
        "minus-one": _minus_one,
        "flag": _flag,
        "deleted-statement": _deleted,
        "loop-control": _loop_control,
        "swapped-arguments": _arguments,
    }
)
KINDS = (*EXPRESSION_KINDS, "negated-condition", "early-return")


def sites(function: Function, kind: str) -> list[Site]:
    """All sites of a kind in a function, in the order of the syntax tree; functions inside of it have their own."""
    if kind == "negated-condition":
        return [_negated(test) for test in _conditions(function)]
    if kind in ("early-return", "deleted-statement") and function.name == "__init__":
        return []  # an object without its fields is noticed at once
    if kind == "early-return":
        return [Site(statement, "return") for statement in _returnable(function)]
    change = EXPRESSION_KINDS[kind]
    found: list[Site] = []
    for node in _nodes(function):
        changed = change(node)
        if changed is not None and isinstance(node, ast.expr | ast.stmt):
            found.append(Site(node, _written(node, changed)))
    return found


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Every function of a module and its qualified name; methods are `Class.method`, inner functions `outer.inner`."""
    yield from _functions(tree.body, "")


def function_named(tree: ast.Module, name: str) -> Function:
    for qualified, function in functions(tree):
        if qualified == name:
            return function
    raise MutantError(f"there is no function {name}")


def fingerprint(function: Function) -> str:
    """A digest of a function's shape: names, strings, annotations, docstrings and imports do not count."""
    return hashlib.sha256(_shape([function]).encode()).hexdigest()[:16]


def has_logic(function: Function) -> bool:
    """Whether a function does more than hand something on."""
    if function.name in _UNNAMED:
        return False
    statements = [node for node in _nodes(function) if isinstance(node, ast.stmt) and not _is_docstring(node)]
    return len(statements) >= 3


def path_of(module: str, source: Path = SOURCE) -> Path:
    """The file of a module by its dotted name."""
    path = source.joinpath(*module.split("."))
    found = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not found.is_file():
        raise MutantError(f"there is no module {module}")
    return found


def replaced(source: str, site: Site) -> str:
    """The source with a site's text instead of its node."""
    node = site.node
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = source.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    behind = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    result = (before + site.text.encode() + behind).decode()
    try:
        ast.parse(result)
    except SyntaxError as error:
        raise MutantError(f"the mutated source is no Python: {error}") from error
    return result


def lines_around(source: str, site: Site) -> tuple[str, str]:
    """The lines of a site as they are and as they become, each as one, for readers."""
    assert site.node.end_lineno is not None
    before, after = source.splitlines(), replaced(source, site).splitlines()
    first, last = site.node.lineno - 1, site.node.end_lineno
    return _joined(before[first:last]), _joined(after[first : last + len(after) - len(before)])


def _joined(lines: Iterable[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _functions(body: Iterable[ast.AST], outer: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{outer}{node.name}.")
        elif isinstance(node, Function):
            yield f"{outer}{node.name}", node
            yield from _functions(node.body, f"{outer}{node.name}.")
        else:
            yield from _functions(ast.iter_child_nodes(node), outer)


def _nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body in order, without errors, checks, annotations and inner functions."""
    for statement in function.body:
        yield from _walk(statement)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    # Inside of f-strings, Python 3.11 does not know where a node is.
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.ClassDef | Function):
        return
    if isinstance(node, ast.If) and all(isinstance(inner, ast.Raise) for inner in node.body):
        children: Iterable[ast.AST] = node.orelse  # what refuses a program is not what rewrites it
    elif isinstance(node, ast.AnnAssign):
        yield node
        children = [] if node.value is None else [node.value]
    elif isinstance(node, ast.Call):
        yield node
        children = [node.func, *_worth_changing(node)]
    else:
        yield node
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from _walk(child)


def _worth_changing(call: ast.Call) -> list[ast.AST]:
    """Arguments of a call without types, and without `strict=True`, which only checks."""
    if _called(call) in _TYPE_CHECKS:
        return [*(call.args[1:] if _called(call) == "cast" else call.args[:1])]
    return [*call.args, *(keyword for keyword in call.keywords if keyword.arg != "strict")]


def _conditions(function: Function) -> Iterator[ast.expr]:
    """Conditions of branches, loops and comprehensions; a comparison alone is a site of its own kind."""
    for node in _nodes(function):
        tests: list[ast.expr] = []
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            tests = [node.test]
        elif isinstance(node, ast.comprehension):
            tests = node.ifs
        for test in tests:
            if not isinstance(test, ast.Compare | ast.Constant):
                yield test


def _negated(test: ast.expr) -> Site:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return Site(test, f"({ast.unparse(test.operand)})")
    return Site(test, f"(not ({ast.unparse(test)}))")


def _returnable(function: Function) -> Iterator[ast.stmt]:
    """Statements of a function without a result in front of which it could end."""
    if not (isinstance(function.returns, ast.Constant) and function.returns.value is None):
        return
    for statement in function.body:
        if not _is_docstring(statement) and not isinstance(
            statement, ast.Return | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.ClassDef | Function
        ):
            yield statement


def _written(node: ast.expr | ast.stmt, changed: ast.AST | str) -> str:
    if isinstance(changed, str):
        return changed
    text = ast.unparse(ast.fix_missing_locations(changed))
    return text if isinstance(node, ast.stmt | ast.Constant | ast.Call) else f"({text})"


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


_FORGOTTEN = frozenset(
    {"annotation", "returns", "type_comment", "type_params", "ctx", "kind", "name", "id", "attr", "arg", "asname"}
)


def _shape(value: object) -> str:
    """A node's text without names: each name, however many dots it has, is the same, and so is each string."""
    if isinstance(value, list):
        parts = [_shape(one) for one in cast("list[object]", value) if not _is_docstring(one)]
        return f"[{','.join(part for part in parts if part)}]"
    if isinstance(value, ast.Import | ast.ImportFrom):
        return ""
    if isinstance(value, ast.Name):
        return value.id if value.id in _BUILTINS else "N"
    if isinstance(value, ast.Attribute):
        inner = _shape(value.value)
        return "N" if inner == "N" else f"A({inner})"
    if isinstance(value, ast.JoinedStr):
        return f"S({','.join(_shape(one.value) for one in value.values if isinstance(one, ast.FormattedValue))})"
    if _is_text(value):
        return "S"
    if isinstance(value, ast.Constant):
        return repr(value.value)
    if isinstance(value, ast.AST):
        inner = ",".join(_shape(field) for name, field in ast.iter_fields(value) if name not in _FORGOTTEN)
        return f"{type(value).__name__}({inner})"
    return "" if isinstance(value, str) else repr(value)
