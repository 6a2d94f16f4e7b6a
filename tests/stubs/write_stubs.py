"""Writes the stubs that type checkers read, from the registry of operators: `python tests/stubs/write_stubs.py`.

Operators load when they are first used, and are tensors' methods without being written in their class. The stubs say so
to tools that read sources: what operators take, and that they give tensors. `test_stubs.py` fails where they are old.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import tessera as ts
from tessera.dtypes import types
from tessera.dtypes.types import STANDARD_NAMES, DType
from tessera.lang.operator_registry import ALIASES, METHODS, OPERATORS, operator_named

PACKAGE = Path(ts.__file__).parent
HEAD = "Written by tests/stubs/write_stubs.py from the registry of operators; not to be changed by hand."
LONGEST = 120
# Names of annotations that are no classes; any other one that is none is taken from where it is used.
_OF_PYTHON = ("Literal", "Sequence")
_BOOL = re.compile(r"\bbool\b")

# The arguments that operators take for tensors: those of other libraries, too.
ARRAY = '''class SupportsDLPack(Protocol):
    """An array of another library: NumPy, torch, JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

Array: TypeAlias = Tensor | Traced | SupportsDLPack | bool | int | float
'''


class Imports:
    """The imports of a stub: names by module."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = defaultdict(set)
        self._known: dict[str, Any] = {}
        self._homes: dict[str, str] = {}

    def take(self, module: str, name: str, as_: str | None = None) -> None:
        self.names[module].add(name if as_ is None else f"{name} as {as_}")

    def of_annotation(self, text: str, module: str) -> None:
        """What an annotation of a module's function names."""
        scope = vars(import_module(module))
        for name in {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}:
            if name in ("Array", "Tensor", "Any") or name not in scope:
                continue
            value = scope[name]
            assert self._known.setdefault(name, value) == value, f"{name} means two things"
            home = getattr(value, "__module__", None) if isinstance(value, type) or name in _OF_PYTHON else None
            self.take(self._homes.setdefault(name, home or module), name)

    def text(self) -> Iterator[str]:
        for module in sorted(self.names, key=lambda one: (one.startswith((".", "tessera")), one)):
            names = sorted(self.names[module])
            line = f"from {module} import {', '.join(names)}"
            if len(line) <= LONGEST:
                yield line
            else:
                yield f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def annotation_text(annotation: Any) -> str:
    return "" if annotation is inspect.Parameter.empty else str(annotation)


def parameter_text(one: inspect.Parameter, imports: Imports, module: str) -> str:
    """A parameter as stubs have it."""
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    written = annotation_text(one.annotation)
    if written:
        imports.of_annotation(written, module)
    said = f"{stars}{one.name}" + (f": {written}" if written else "")
    if one.default is one.empty:
        return said
    plain = one.default is None or type(one.default) in (bool, int, float, str)
    return f"{said} = {one.default!r}" if plain else f"{said} = ..."


def signature_text(
    signature: inspect.Signature, imports: Imports, module: str, *, method: bool = False
) -> tuple[list[str], str]:
    """The parameters and the result of a function, or of a method, whose first parameter is the tensor."""
    parameters = list(signature.parameters.values())
    found = ["self"] if method else []
    rest = parameters[1:] if method else parameters
    last = max((index for index, one in enumerate(rest) if one.kind is one.POSITIONAL_ONLY), default=None)
    starred = False
    for index, one in enumerate(rest):
        starred = starred or one.kind is one.VAR_POSITIONAL
        if one.kind is one.KEYWORD_ONLY and not starred:
            found.append("*")
            starred = True
        found.append(parameter_text(one, imports, module))
        if index == last:
            found.append("/")
    result = annotation_text(signature.return_annotation)
    if result:
        imports.of_annotation(result, module)
    return found, result


def definition(name: str, parameters: Iterable[str], result: str, said: str, indent: str = "") -> str:
    listed = list(parameters)
    line = f"{indent}def {name}({', '.join(listed)}) -> {result}:"
    if len(line) > LONGEST:
        inner = "".join(f"{indent}    {one},\n" for one in listed)
        line = f"{indent}def {name}(\n{inner}{indent}) -> {result}:"
    return f'{line}\n{indent}    """{said}"""\n'


def said_of(value: Any) -> str:
    """The first paragraph of a docstring, as one line."""
    first = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return first.replace("\\", "\\\\") + (" " if first.endswith('"') else "")


def is_operator(value: Any) -> bool:
    return hasattr(value, "eager")


def operators_stub() -> str:
    """The stub of the namespace of operators."""
    imports = Imports()
    imports.names["typing"] |= {"Any", "Protocol", "TypeAlias"}
    imports.take("tessera.lang.tracing.values", "Traced")
    imports.take("tessera.runtime.tensor.tensor", "Tensor")
    definitions: list[str] = []
    for name, module in OPERATORS.items():
        value = operator_named(name)
        if not is_operator(value):
            imports.take(module, name, name)
            continue
        parameters, result = signature_text(inspect.signature(value), imports, module)
        # In this namespace `bool` is the element type.
        plain = [_BOOL.sub("builtins.bool", one) for one in parameters]
        definitions.append(definition(name, plain, _BOOL.sub("builtins.bool", result), said_of(value)))
    for name in STANDARD_NAMES:
        imports.take(types.__name__, name_of(STANDARD_NAMES[name]), name)
    aliases = [f"{name} = {known}" for name, known in sorted(ALIASES.items()) if known in OPERATORS]
    head = f'"""The operators. {HEAD}"""'
    imported, array = ["import builtins", *imports.text()], _BOOL.sub("builtins.bool", ARRAY)
    listed = "".join(f'    "{name}",\n' for name in dir(ts.ops))
    rest = ["__array_api_version__: str", f"__all__ = [\n{listed}]", ""]
    return "\n".join([head, "", *imported, "", array, *rest, *definitions, *aliases, ""])


def methods_stub() -> str:
    """The stub of the class with the methods of tensors that operators are."""
    imports = Imports()
    imports.names["typing"] |= {"Any", "Protocol", "TypeAlias"}
    imports.take("tessera.lang.tracing.values", "Traced")
    imports.take("tessera.lang.operators.updates", "At")
    imports.take("tessera.runtime.tensor.tensor", "Sizes")
    imports.take("tessera.runtime.tensor.tensor", "Tensor")
    own = own_methods()
    definitions: list[str] = []

    def define(name: str, known: str) -> None:
        value = inspect.unwrap(own[known]) if known in own else operator_named(known)
        module = value.__module__
        parameters, result = signature_text(inspect.signature(value), imports, module, method=True)
        definitions.append(definition(name, parameters, result, said_of(value), "    "))

    for name in METHODS:
        if name not in own:
            define(name, name)
    definitions.append(
        definition("t", ["self"], "Tensor", "The transpose of a matrix; itself with fewer axes.", "    ")
    )
    said = "The same elements in another shape, never copied."
    definitions.append(definition("view", ["self", "*shape: Sizes"], "Tensor", said, "    "))
    at = definition("at", ["self"], "At", "`x.at[key].set(values)` and its like give an updated tensor.", "    ")
    definitions.append(f"    @property\n{at}")
    for name, known in sorted(ALIASES.items()):
        if (known in METHODS or known in own) and name not in own:
            define(name, known)
    head = f'"""The methods of tensors that operators are. {HEAD}"""'
    first = 'class OperatorMethods:\n    """The methods of tensors that operators are."""\n'
    return "\n".join([head, "", *imports.text(), "", ARRAY, first, *definitions]).rstrip() + "\n"


def own_methods() -> Mapping[str, Any]:
    """The methods that the class of tensors defines itself."""
    return {name: value for name, value in vars(ts.Tensor).items() if inspect.isfunction(value)}


def name_of(dtype: DType) -> str:
    """The name of an element type in the module that defines it."""
    return next(name for name, value in vars(types).items() if value is dtype)


def package_stub() -> str:
    """The stub of the package."""
    imports, rest = Imports(), list[str]()
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in reversed(list(ast.walk(tree)))  # of several, the first counts: it is for types
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy: Mapping[str, str] = vars(ts)["_LAZY"]
    modules: tuple[str, ...] = vars(ts)["_MODULES"]
    for name in sorted({*dir(ts), *ALIASES}):
        known = ALIASES.get(name, name)
        if name in modules:
            parent, _, leaf = lazy[name].rpartition(".")
            imports.take("." if parent == "tessera" else parent, leaf, name)
        elif known in OPERATORS:
            imports.take("tessera.lang.operators", known, name)
        elif known in lazy:
            imports.take(lazy[known], known, name)
        elif isinstance(value := getattr(ts, known), DType):
            imports.take(types.__name__, name_of(value), name)
        elif known in homes:
            module, original = homes[known]
            imports.take(module, original, name)
        else:
            assert isinstance(value, str), name
            rest.append(f"{name}: str")
    listed = "".join(f'    "{name}",\n' for name in sorted({*vars(ts)["__all__"], *ALIASES}))
    said = str(ts.__doc__).partition("\n")[0]
    return "\n".join([f'"""{said} {HEAD}"""', "", *imports.text(), "", *rest, f"__all__ = [\n{listed}]", ""])


STUBS = {
    "__init__.pyi": package_stub,
    "lang/operators/__init__.pyi": operators_stub,
    "runtime/tensor/operator_methods.pyi": methods_stub,
}


def tidied(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text)


def main() -> None:
    for path, write in STUBS.items():
        (PACKAGE / path).write_text(tidied(write()), encoding="utf-8")


if __name__ == "__main__":
    main()
