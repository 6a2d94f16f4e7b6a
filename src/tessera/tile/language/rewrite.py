"""Rewrites a kernel's source so that loops and branches over tiles build the program; the rest stays Python.

Only `for` and `if` statements, conditional expressions, calls, and in-place masks are touched. The new code is compiled
under the original file name with the original positions, so that errors and debuggers show the user's own lines.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import os
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from tessera.errors import CompileError, SourceSpan
from tessera.shapes.sources import source_lines
from tessera.tile.language.call_chain import PART
from tessera.tile.language.kernel_code import is_as_written

_RUNTIME = "__tessera__"
_MADE = "__rewritten__"
LEFT, SKIPPED, FIRST = "__left_{}__", "__skipped_{}__", "__first_{}__"
# Statements of the spec that change their first argument: tiles are values, so the name is bound anew.
IN_PLACE = frozenset({"mask_causal"})
NodeT = TypeVar("NodeT", bound=ast.AST)
# They look at the frame that calls them by name.
_FRAME_READERS = frozenset({"super", "locals", "globals", "vars"})
_OWN_SCOPE = (ast.stmt, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rewrite(function: FunctionType, runtime: ModuleType) -> FunctionType:
    """The function with tile loops and branches rewritten as calls of the module `runtime`."""
    made = _rewritten(function, function.__code__, runtime)
    if made is not function:  # they may be others than when it was made
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


@lru_cache(maxsize=1024)
def _rewritten(function: FunctionType, code: CodeType, runtime: ModuleType) -> FunctionType:
    # Functions defined in a kernel were rewritten with it; generators run by steps, which parts of them cannot.
    if _RUNTIME in code.co_freevars or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return function
    if _is_edited(code):
        return _as_it_is(function, code)
    tree = _parse_lambda(code) if code.co_name == "<lambda>" else _parse(function)
    if tree is None:
        return function
    free = code.co_freevars
    rewriter = _Rewriter(code.co_filename)
    # A factory whose parameters are the captured names makes them free variables of the new code again.
    if isinstance(tree, ast.Lambda):
        tree.body = rewriter.visit(tree.body)
        body: list[ast.stmt] = [ast.Return(tree)]
    else:
        tree.body = rewriter.statements(tree.body)
        tree.name = _MADE  # under its own name, a function that calls itself would see this one
        body = [tree, ast.Return(ast.Name(tree.name, ast.Load()))]
    factory = ast.copy_location(_define("__factory__", [_RUNTIME, *free], body), tree)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    made_code = compile(module, code.co_filename, "exec", dont_inherit=True)
    inner = _code_named(
        _code_named(made_code, "__factory__"), code.co_name if isinstance(tree, ast.Lambda) else _MADE
    ).replace(co_name=code.co_name, co_qualname=code.co_qualname)
    cells = dict(zip(free, function.__closure__ or (), strict=True)) | {_RUNTIME: CellType(runtime)}
    return FunctionType(
        inner, function.__globals__, function.__name__, None, tuple(cells[name] for name in inner.co_freevars)
    )


def _is_edited(code: CodeType) -> bool:
    """Whether the file of a function has another one by now, or another text on its lines."""
    return os.path.exists(code.co_filename) and not is_as_written(code)


def _as_it_is(function: FunctionType, code: CodeType) -> FunctionType:
    """A function whose source is gone: it is what Python runs. Loops and branches over tiles refuse to be run so."""
    if IN_PLACE.isdisjoint(code.co_names):
        return function
    raise CompileError(
        f"{function.__name__} is not as it is in its file any more, and statements that change a tile need its source",
        hint="reload the module that it is taken from, and use what that has now",
    )


def _parse(function: FunctionType) -> ast.FunctionDef | None:
    """The definition of a function with positions of its file; None where it is not a plain one."""
    try:
        # Of the code: a decorated function is its wrapper.
        lines, first = source_lines(function.__code__)
    except (OSError, TypeError):
        raise CompileError(
            f"the source of {function.__name__} cannot be read",
            hint="kernels and their helpers must be defined in a file",
        ) from None
    source = "".join(lines)
    indent = len(source) - len(source.lstrip(" \t"))
    tree = ast.parse(textwrap.dedent(source)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return None
    ast.increment_lineno(tree, first - 1)
    for node in ast.walk(tree) if indent else ():
        for name in ("col_offset", "end_col_offset"):
            if hasattr(node, name) and getattr(node, name) is not None:
                setattr(node, name, getattr(node, name) + indent)
    tree.decorator_list = []
    tree.returns = None
    _without_values(tree.args)
    return tree


def _parse_lambda(code: CodeType) -> ast.Lambda | None:
    """The expression of a lambda: the smallest whose body holds all its instructions. None where there is no source."""
    spans = [span for span in code.co_positions() if None not in span and span[2:] != (0, 0)]
    starts = [(line, column) for line, _, column, _ in spans]
    ends = [(line, column) for _, line, _, column in spans]
    linecache.checkcache(code.co_filename)
    try:
        module = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    best: ast.Lambda | None = None
    for node in ast.walk(module):
        if not isinstance(node, ast.Lambda) or not spans:
            continue
        body = node.body
        # Inner nodes come later in the walk, so that the last one that fits is the smallest.
        if (body.lineno, body.col_offset) <= min(starts) and max(ends) <= (body.end_lineno, body.end_col_offset):
            best = node
    if best is not None:
        _without_values(best.args)
    return best


def _without_values(arguments: ast.arguments) -> None:
    """Defaults and annotations are the original function's; evaluating them again could differ."""
    named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    for argument in named:
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [_constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if value is None else _constant(None) for value in arguments.kw_defaults]


def _code_named(code: CodeType, name: str) -> CodeType:
    return next(item for item in code.co_consts if isinstance(item, CodeType) and item.co_name == name)


def _define(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """A function definition; parsed, because what one consists of differs between versions of Python."""
    made = ast.parse(f"def {name}({', '.join(parameters)}): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    for node in ast.walk(made):
        for attribute in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            if hasattr(node, attribute):
                delattr(node, attribute)
    made.body = body
    return made


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            done += result if isinstance(result, list) else [result]
        return done

    def _refuse(self, node: ast.AST, message: str, hint: str) -> CompileError:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        linecache.checkcache(self.file)
        span = SourceSpan(
            self.file, line, column, getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        )
        return CompileError(message, span=span, hint=hint)

    def _runtime(self, name: str, node: ast.AST) -> ast.expr:
        made = _at_location(ast.Attribute(ast.Name(_RUNTIME, ast.Load()), name, ast.Load()), node)
        # On the line where the call starts: Python gives a call of an attribute the attribute's last line.
        made.end_lineno, made.end_col_offset = made.lineno, made.col_offset
        return made

    def _function(
        self, parameters: list[str], names: list[str], body: list[ast.stmt], node: ast.AST
    ) -> ast.FunctionDef:
        """`def __part_n__(parameters): body; return (names)`."""
        self.count += 1
        values = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        made = _define(PART.format(self.count), parameters, [*body, ast.Return(values)])
        return _at_location(made, node)

    def _assign(self, names: list[str], value: ast.expr, node: ast.AST) -> ast.stmt:
        if not names:
            return _at_location(ast.Expr(value), node)
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        return _at_location(ast.Assign([target], value), node)

    def _names(self, names: list[str]) -> ast.expr:
        return ast.Tuple([_constant(name) for name in names], ast.Load())

    def _scope(self) -> ast.expr:
        return ast.Call(ast.Name("locals", ast.Load()), [], [])

    def visit_For(self, node: ast.For) -> Any:
        of_tiles = _is_tile_range(node.iter)
        iterable: ast.expr = self.visit(node.iter)
        if not of_tiles:
            node.iter = iterable
            node.body = self.statements(node.body)
            node.orelse = self.statements(node.orelse)
            return node
        for inner in _leaving(node.body):
            if isinstance(inner, ast.Return):
                raise self._refuse(
                    inner,
                    "return inside a tile loop: a kernel has one end",
                    "leave the loop with break, and return the result at the end",
                )
        if node.orelse:
            raise self._refuse(node.orelse[0], "else on a tile loop", "put the statements after the loop")
        if not isinstance(node.target, ast.Name):
            raise self._refuse(node.target, "a tile loop has one plain variable", "write `for i in tile.range(...)`")
        before, plain, left = self._without_jumps(node.body, node)
        names = [name for name in _assigned(plain) if name != node.target.id]
        body = self._function([node.target.id, *names], names, self.statements(plain), node)
        arguments = [iterable, ast.Name(body.name, ast.Load()), self._names(names), self._scope(), _constant(left)]
        run = _at_location(ast.Call(self._runtime("loop", node.iter), arguments, []), node.iter)
        return [*before, body, self._assign(names, run, node)]

    def _without_jumps(self, body: list[ast.stmt], node: ast.AST) -> tuple[list[ast.stmt], list[ast.stmt], str | None]:
        """A loop's body with flags in place of `break` and `continue`: what comes before the loop, the body, and the
        name of the flag that ends the loop, if something does."""
        self.count += 1
        left, skipped = LEFT.format(self.count), SKIPPED.format(self.count)
        jumps = [one for one in _leaving(body) if isinstance(one, ast.Break | ast.Continue)]
        if not jumps:
            return [], body, None
        flags = {ast.Break: left, ast.Continue: skipped}
        used = [name for kind, name in flags.items() if any(isinstance(one, kind) for one in jumps)]

        def put(name: str, value: bool, source: ast.AST) -> ast.stmt:
            return _at_location(ast.Assign([ast.Name(name, ast.Store())], _constant(value)), source)

        def without(statements: list[ast.stmt]) -> list[ast.stmt]:
            done: list[ast.stmt] = []
            for number, statement in enumerate(statements):
                if isinstance(statement, ast.Break | ast.Continue):
                    return [*done, put(flags[type(statement)], True, statement)]
                done.append(statement)
                if not any(one in jumps for one in _leaving([statement])):
                    continue
                if not isinstance(statement, ast.If):
                    word = type(statement).__name__.lower()
                    raise self._refuse(statement, f"a tile loop is left inside of {word}", "leave it inside of an if")
                statement.body, statement.orelse = without(statement.body), without(statement.orelse)
                rest = without(statements[number + 1 :])
                if rest:
                    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in used]
                    gone = values[0] if len(values) == 1 else ast.BoolOp(ast.Or(), values)
                    done.append(_at_location(ast.If(ast.UnaryOp(ast.Not(), gone), rest, []), statement))
                return done
            return done

        made = without(body)
        first = [put(skipped, False, node)] if skipped in used else []
        return [put(name, False, node) for name in used], [*first, *made], left if left in used else None

    def visit_If(self, node: ast.If) -> Any:
        condition: ast.expr = self.visit(node.test)
        leaving = next(_leaving([*node.body, *node.orelse]), None)
        if leaving is not None:
            word = type(leaving).__name__.lower()
            instead = "assign the result in both branches and return it once, at the end"
            if word in ("break", "continue"):
                instead = "loop over tile.range, or begin a while with a condition of the program: these may be left"
            node.test = self._static(condition, word, instead)
            node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
            return node
        names = list(dict.fromkeys([*_assigned(node.body), *_assigned(node.orelse)]))
        then = self._function(names, names, self.statements(node.body), node)
        otherwise = self._function(names, names, self.statements(node.orelse), node)
        parts = [ast.Name(then.name, ast.Load()), ast.Name(otherwise.name, ast.Load())]
        arguments = [condition, *parts, self._names(names), self._scope()]
        run = _at_location(ast.Call(self._runtime("branch", node.test), arguments, []), node.test)
        return [then, otherwise, self._assign(names, run, node)]

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
            return node  # a name bound here would be lost in a lambda
        nothing = _define("nothing", [], []).args
        first, *rest = (self.visit(value) for value in node.values)
        later = [_at_location(ast.Lambda(nothing, value), value) for value in rest]
        name = "every" if isinstance(node.op, ast.And) else "some"
        return _at_location(ast.Call(self._runtime(name, node), [first, *later], []), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return _at_location(ast.Call(self._runtime("negated", node), [node.operand], []), node)

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        if node.value is not None:
            node.value = _at_location(ast.Call(self._runtime("returned", node.value), [node.value], []), node.value)
        return node

    def visit_While(self, node: ast.While) -> Any:
        """Where the first condition is known now, it is Python's loop, else one of the program."""
        if node.orelse or any(isinstance(inner, ast.Return) for inner in _leaving(node.body)):
            condition: ast.expr = self.visit(node.test)
            instead = "leave the loop with break, return the result at the end, and have no else on the loop"
            node.test = self._static(condition, "while", instead)
            node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
            return node
        again = copy.deepcopy(node)
        before, plain, left = self._without_jumps(node.body, node)
        names = _assigned(plain)
        body = self._function(names, names, self.statements(plain), node)
        test = self._function(names, [], [], node)
        test.body = [_at_location(ast.Return(self.visit(node.test)), node.test)]
        first = FIRST.format(self.count)
        # What the condition is at first decides which loop it is; Python's goes on with that value.
        held = _at_location(
            ast.Assign([ast.Name(first, ast.Store())], ast.List([self.visit(copy.deepcopy(again.test))], ast.Load())),
            node.test,
        )
        pop = ast.Call(ast.Attribute(ast.Name(first, ast.Load()), "pop", ast.Load()), [], [])
        current = _at_location(ast.IfExp(ast.Name(first, ast.Load()), pop, self.visit(again.test)), node.test)
        again.test = self._static(
            current, "while", "begin the loop with a condition of the program: it is a loop of Python now"
        )
        again.body = self.statements(again.body)
        parts = [ast.Name(test.name, ast.Load()), ast.Name(body.name, ast.Load())]
        arguments = [ast.Name(first, ast.Load()), *parts, self._names(names), self._scope(), _constant(left)]
        run = _at_location(ast.Call(self._runtime("repeat", node.test), arguments, []), node.test)
        chosen = ast.Call(self._runtime("is_of_program", node.test), [ast.Name(first, ast.Load())], [])
        ours = [*before, test, body, self._assign(names, run, node)]
        return [held, _at_location(ast.If(chosen, ours, [again]), node)]

    def _static(self, condition: ast.expr, word: str, instead: str) -> ast.expr:
        arguments = [condition, _constant(word), _constant(instead)]
        return _at_location(ast.Call(self._runtime("static", condition), arguments, []), condition)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        nothing = _define("nothing", [], []).args
        parts = [_at_location(ast.Lambda(nothing, self.visit(side)), side) for side in (node.body, node.orelse)]
        return _at_location(ast.Call(self._runtime("choose", node), [self.visit(node.test), *parts], []), node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name | ast.Attribute) and getattr(node.func, "id", "") not in _FRAME_READERS:
            node.func = _at_location(ast.Call(self._runtime("call", node), [node.func], []), node.func)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        value = node.value
        changed: ast.Name | None = None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _in_place(value):
            if not value.args or not isinstance(value.args[0], ast.Name):
                raise self._refuse(
                    value,
                    f"{value.func.attr} as a statement changes its first argument, which must be a variable",
                    f"write x = tile.{value.func.attr}(x, ...)",
                )
            changed = ast.Name(value.args[0].id, ast.Store())
        self.generic_visit(node)
        return node if changed is None else _at_location(ast.Assign([changed], node.value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
            node.body = self.statements(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node


def _at_location(node: NodeT, source: ast.AST) -> NodeT:
    """A new node, and what is new inside it, at the position of `source`."""
    if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
        ast.copy_location(node, source)
    for inner in ast.iter_child_nodes(node):
        if not hasattr(inner, "lineno"):
            _at_location(inner, source)
    return node


def _is_tile_range(node: ast.expr) -> bool:
    """`tile.range…(...)`, however the module is called: decided by name, checked when it runs."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.attr.startswith("range")
    )


def _in_place(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IN_PLACE


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, nested ones too, without those of functions defined in it."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _own_statements(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from _own_statements(part.body)


def _leaving(body: list[ast.stmt], *, in_loop: bool = False) -> Iterator[ast.stmt]:
    """The statements of a body that reach outside it: returns, jumps of loops around it, and names of outer scopes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.Return | ast.Global | ast.Nonlocal | ast.Delete):
            yield statement
        if isinstance(statement, ast.Break | ast.Continue) and not in_loop:
            yield statement
        inside = in_loop or isinstance(statement, ast.For | ast.While)
        yield from _leaving(getattr(statement, "body", []), in_loop=inside)
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from _leaving(part.body, in_loop=in_loop)
        for name in ("orelse", "finalbody"):
            yield from _leaving(getattr(statement, name, []), in_loop=in_loop)


def _assigned(body: list[ast.stmt]) -> list[str]:
    """The names that a body binds, in order of appearance."""
    found: dict[str, None] = {}
    for statement in _own_statements(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[statement.name] = None
            continue
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name.partition(".")[0]): None for alias in statement.names}
        value = statement.value if isinstance(statement, ast.Expr) else None
        if _in_place(value) and isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Name):
            found[value.args[0].id] = None
        for node in _expressions(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
    return list(found)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of one statement, without nested statements, lambdas and comprehensions."""
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop(0)
        yield node
        queue += [child for child in ast.iter_child_nodes(node) if not isinstance(child, _OWN_SCOPE)]
