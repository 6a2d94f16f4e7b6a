"""The imports between the package's modules, as its source says: what the tests of rooms and circles look at."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
SOURCES = sorted(SOURCE.rglob("*.py"))

text_of = cache(Path.read_text)
Graph = Mapping[str, Iterable[str]]


def module_of(path: Path) -> str:
    """The dotted name of a file below `src`."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, with its file."""
    return {module_of(path): path for path in SOURCES}


def _literal_import(node: ast.Call) -> Iterator[str]:
    """The module of `import_module("tessera.x")`."""
    if (
        ast.unparse(node.func).split(".")[-1] == "import_module"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ):
        yield str(node.args[0].value)


def imported(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Every module of the package that a syntax tree imports, with the line: in functions and for types, too."""
    for node in ast.walk(tree):
        names: Iterable[str] = ()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            # `from tessera.ir import text` imports tessera.ir.text; `from tessera import Tensor` the package itself.
            full = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else base for name in full]
        elif isinstance(node, ast.Call):
            names = list(_literal_import(node))
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "tessera")


@cache
def graph() -> dict[str, frozenset[str]]:
    """Which modules each module imports."""
    found: dict[str, frozenset[str]] = {}
    for module, path in modules().items():
        tree = ast.parse(text_of(path))
        names = {name for _, name in imported(tree, module, is_package=path.name == "__init__.py")}
        found[module] = frozenset(name for name in names if name in modules() and name != module)
    return found


def circles(of: Graph) -> list[list[str]]:
    """Modules that import each other, each group sorted (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(start: str) -> None:
        work: list[tuple[str, Iterator[str]]] = [(start, iter(of.get(start, ())))]
        order[start] = lowest[start] = len(order)
        stack.append(start)
        while work:
            module, others = work[-1]
            for other in others:
                if other not in order:
                    order[other] = lowest[other] = len(order)
                    stack.append(other)
                    work.append((other, iter(of.get(other, ()))))
                    break
                if other in stack:
                    lowest[module] = min(lowest[module], order[other])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[module])
                if lowest[module] == order[module]:
                    group = stack[stack.index(module) :]
                    del stack[-len(group) :]
                    if len(group) > 1:
                        found.append(sorted(group))

    for module in of:
        if module not in order:
            visit(module)
    return sorted(found)
