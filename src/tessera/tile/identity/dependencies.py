"""The values that functions depend on outside of themselves: a walk over all that their code can reach.

It follows what code reads (`code_reads`): names of modules and closures, attributes of modules and classes, defaults,
functions behind methods, decorators, partial calls and properties, what containers and objects hold. Everything that
can be another the next time is noted with what it was: `Held`. What cannot be looked at again, and may change all the
same, is told by `unwatched`. Code of libraries is not followed: of the standard one, and of packages that are
installed, unless a root belongs to that package. What users' code reads of them is looked at like everything else.
"""

from __future__ import annotations

import builtins
import functools
import importlib.machinery
import importlib.util
import operator
import os
import sys
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.identity.code_reads import CodeReads, Outer, reads_of
from tessera.tile.identity.static_keys import AS_THEY_ARE
from tessera.tile.language.kernel_code import is_kernel_module


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()
"""Instead of a value, where there is none."""

MOST_BYTES = 1 << 16
"""Elements of a NumPy array are compared up to this size, unless the array as a whole is an argument of the program."""
_MOST_BYTES_OF_ARGUMENTS = 1 << 10

_NUMBERS_AND_TEXTS: frozenset[Any] = frozenset(
    {float, complex, range, slice, np.dtype, np.ufunc, types.CodeType, types.CellType, types.NotImplementedType}
)
_ATOMS = (AS_THEY_ARE | _NUMBERS_AND_TEXTS) - {types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type}
_DICT: Any = dict  # as they are, whatever classes made of them do
_ORDERED: Any = OrderedDict
_LIST: Any = list
_SET: Any = set
_CACHED: Any = type(functools.lru_cache(maxsize=1)(abs))
_LOOKUPS = (operator.attrgetter, operator.methodcaller)
_BOUND_IN_C = (types.BuiltinFunctionType, types.MethodWrapperType)
_WRAPPERS = (staticmethod, classmethod, property)
_WITHIN = ("__func__", "fget", "func", "args", "keywords", "__wrapped__", "dispatcher")
_INSTALLED = ("site-packages", "dist-packages")
ASKS_THE_WORLD = frozenset(
    {"time", "random", "secrets", "uuid", "datetime", "socket", "subprocess", "tempfile", "io", "_io", "_random"}
)
"""Libraries whose answers are others the next time, and no value of Python's tells it."""
NO_DEPENDENCY = frozenset(
    [
        *("__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__annotations__", "__slots__"),
        *("__match_args__", "__parameters__", "__orig_bases__", "__abstractmethods__"),
        *("__dataclass_fields__", "__dataclass_params__", "__classdictcell__", "__classcell__"),
        # Of Python 3.13 and later.
        *("__static_attributes__", "__firstlineno__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    ]
)
"""Attributes of classes that no code depends on."""


class Held(NamedTuple):
    """Something that has values, and which it had: `kind` says how it has them (see `now`)."""

    kind: str
    label: str
    holder: Any
    keys: tuple[Any, ...]
    values: tuple[Any, ...]

    def now(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The present keys and values."""
        keys, values = _READ[self.kind](self.holder, self.keys)
        return keys, values[: len(self.values)] if self.kind == "start" else values

    def named(self, index: int) -> str:
        """The name of a value, for reports."""
        key = self.keys[index] if index < len(self.keys) else ""
        joined = f"[{key!r}]" if self.kind in ("dict", "keys") else f".{key}" if self.label else f"{key}"
        return self.label if key == "" else f"{self.label}{joined}"


def _names(scope: dict[str, Any], keys: tuple[Any, ...]) -> Any:
    return keys, tuple([scope.get(name, _builtin(name)) for name in keys])


def _builtin(name: str) -> Any:
    return builtins.__dict__.get(name, MISSING)


def _of_keys(held: Mapping[Any, Any], keys: tuple[Any, ...]) -> Any:
    return keys, tuple([held.get(key, MISSING) for key in keys])


def _of_class(held: type, keys: tuple[Any, ...]) -> Any:
    mapping = vars(held)
    return keys, (*[mapping.get(key, MISSING) for key in keys], len(mapping))


def _of_cell(cell: types.CellType, keys: tuple[Any, ...]) -> Any:
    try:
        return keys, (cell.cell_contents,)
    except ValueError:
        return keys, (MISSING,)


def _of_function(function: types.FunctionType, keys: tuple[Any, ...]) -> Any:
    return keys, (function.__code__, function.__defaults__, function.__kwdefaults__)


def _of_type(held: Any, keys: tuple[Any, ...]) -> Any:
    return keys, (cast("type[Any]", type(held)),)


def _of_slots(held: Callable[[], Any], keys: tuple[Any, ...]) -> Any:
    owner = held()
    return keys, tuple([getattr(owner, name, MISSING) for name in keys])


_READ: dict[str, Callable[[Any, tuple[Any, ...]], tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "names": _names,
    "keys": _of_keys,
    "module": lambda held, keys: _of_keys(held.__dict__, keys),
    "attributes": lambda held, _: (tuple(held), tuple(held.values())),
    "dict": lambda held, _: (tuple(_DICT.keys(held)), tuple(_DICT.values(held))),
    "list": lambda held, _: ((), tuple(_LIST.__iter__(held))),
    "start": lambda held, _: ((), tuple(_LIST.__iter__(held))),
    "set": lambda held, _: ((), tuple(_SET.__iter__(held))),
    "class": _of_class,
    "cell": _of_cell,
    "function": _of_function,
    "slots": _of_slots,
    "type": _of_type,
    "asked": lambda held, keys: (keys, held()),
}


class Dependencies:
    """The values that functions and objects depend on. `lifted` are the ids of arrays that are arguments."""

    def __init__(self, roots: Iterable[Any], lifted: Collection[int] = ()) -> None:
        self._lifted = lifted
        self._packages: set[str] = set()
        """Installed packages whose code is followed."""
        self._seen: dict[int, Any] = {}
        self._queue: deque[tuple[str, Any]] = deque()
        self._held: dict[tuple[str, int], Held] = {}
        self._part: dict[tuple[str, int], tuple[str, Any, dict[Any, Any]]] = {}
        """Holders of which only some keys are read: those keys, with their values."""
        self._modules: dict[int, tuple[str, types.ModuleType]] = {}
        self._classes: dict[int, tuple[str, type]] = {}
        self._reads = CodeReads()
        self.chains: list[tuple[dict[str, Any], str, types.ModuleType, str]] = []
        """Attributes of modules as code of a scope writes them: the scope, the text, and what it stands for."""
        self.unwatched: dict[str, str] = {}
        """Values that may change unnoticed: their names, with a description of each."""
        self._owners: set[int] = set()
        """Objects whose methods are looked at: they are not kept."""
        for root in roots:
            self._queue.append(("", root))
            self._packages.add(package_of(root))
            self._owners.add(id(getattr(root, "__self__", None)))
        self._walk()

    @property
    def stores(self) -> Collection[str]:
        """Names that the code may change."""
        return self._reads.stores

    def held(self) -> list[Held]:
        """All that was found, in the order in which it was found."""
        found = list(self._held.values())
        for (kind, _), (label, holder, values) in self._part.items():
            extra = (len(holder.__dict__),) if kind == "class" else ()
            found.append(Held(kind, label, holder, tuple(values), (*values.values(), *extra)))
        return found

    # The walk

    def _walk(self) -> None:
        done = -1
        while self._queue:
            while self._queue:
                self._visit(*self._queue.popleft())
            reads = self._reads
            count = len(reads.attributes) + len(reads.words) + len(self._modules) + len(self._classes) + reads.by_name
            if count == done:
                break
            done = count
            for label, module in list(self._modules.values()):
                self._some_of_module(label, module)
            for label, kind in list(self._classes.values()):
                self._some_of_class(label, kind)

    def _push(self, label: str, *values: Any) -> None:
        self._queue += [(label, value) for value in values]

    def _hold(self, kind: str, label: str, holder: Any, keys: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        self._held[kind, id(holder)] = Held(kind, label, holder, keys, values)

    def _hold_part(self, kind: str, label: str, holder: Any, key: Any, value: Any) -> None:
        self._part.setdefault((kind, id(holder)), (label, holder, {}))[2][key] = value

    def _visit(self, label: str, value: Any) -> None:
        kind = cast("type[Any]", type(value))
        if kind in _ATOMS or id(value) in self._seen or isinstance(value, Tensor | np.generic):
            return
        self._seen[id(value)] = value
        if kind is types.FunctionType:
            self._function(label, value)
        elif isinstance(value, types.ModuleType):
            self._modules[id(value)] = (label, value)
        elif isinstance(value, type):
            self._class(label, value)
        elif kind is types.MethodType:
            self._push(label, value.__func__, value.__self__)
        elif isinstance(value, _BOUND_IN_C):
            self._built_in(label, value)
        elif isinstance(value, np.ndarray):
            self._array(label, cast("np.ndarray[Any, Any]", value))
        elif kind.__module__.partition(".")[0] == "tessera":
            self._push(label, *[getattr(value, name, None) for name in ("__wrapped__", "__func__", "__self__")])
        else:
            if not self._container(label, value) and not self._wrapper(label, value) and not self._is_users(value):
                self._note(label, value)
            if self._is_users(value):
                self._object(label, value)

    def _container(self, label: str, value: Any) -> bool:
        """Containers of Python's own, and of users' classes that are made of them."""
        if isinstance(value, tuple | frozenset):
            self._push(label, *cast("tuple[Any, ...]", value))
        elif isinstance(value, OrderedDict):  # it has an order of its own
            self._ask(label, value, lambda: tuple([part for item in _ORDERED.items(value) for part in item]))
            self._push(label, *_ORDERED.values(value))
        elif isinstance(value, dict):
            self._hold("dict", label, value, tuple(_DICT.keys(value)), tuple(_DICT.values(value)))
            for key, one in _DICT.items(value):
                self._push(f"{label}[{key!r}]" if isinstance(key, str | int) else label, one)
        elif isinstance(value, list):
            items = tuple[Any, ...](_LIST.__iter__(value))
            self._hold("list", label, value, (), items)
            self._push(f"{label}[…]", *items)
        elif isinstance(value, set):
            self._hold("set", label, value, (), tuple(_SET.__iter__(value)))
            self._push(label, *cast("set[Any]", value))
        elif self._is_users(value):  # a container of a user's own making: it is code and attributes
            return False
        elif isinstance(value, Mapping):
            held = cast("Mapping[Any, Any]", value)
            self._ask(label, value, lambda: tuple([part for item in held.items() for part in item]))
            self._push(label, *held.values())
        elif isinstance(value, Sequence | AbstractSet) and not isinstance(value, memoryview):
            items = cast("Sequence[Any]", value)
            self._ask(label, value, lambda: tuple(items))
            self._push(label, *items)
        else:
            return False
        return True

    def _wrapper(self, label: str, value: Any) -> bool:
        """Follows an object that stands for others: decorated function, partial call, reference, context variable."""
        if isinstance(value, functools.partial):
            given = cast("functools.partial[Any]", value)
            self._push(label, given.func, given.args, given.keywords, vars(given))
        elif isinstance(value, _WRAPPERS):
            self._push(label, *[getattr(cast("Any", value), name, None) for name in _WITHIN])
        elif isinstance(value, _CACHED):
            self._ask(label, value, lambda: (value.cache_info().misses, value.cache_info().currsize))
            self._push(label, value.__wrapped__, vars(value))
        elif isinstance(value, ContextVar):
            variable = cast("ContextVar[Any]", value)
            self._ask(label, value, lambda: (variable.get(MISSING),))
            self._push(label, variable.get(MISSING))
        elif isinstance(value, weakref.ReferenceType):
            reference = cast("weakref.ReferenceType[Any]", value)
            self._ask(label, value, lambda: (reference(),))
            self._push(label, reference())
        elif isinstance(value, threading.local):
            self._ask(label, value, lambda: tuple([part for item in vars(value).items() for part in item]))
            self._push(label, *vars(value).values())
        elif isinstance(value, _LOOKUPS):
            for one in cast("tuple[Any, ...]", value.__reduce__()[1]):
                self._reads.attributes.update(one.split(".") if isinstance(one, str) else ())
        elif type(value).__module__ == "functools":  # properties that keep what they gave, methods by class, and more
            self._push(label, *[getattr(value, name, None) for name in _WITHIN])
        elif value is MISSING or isinstance(value, operator.itemgetter):
            pass
        else:
            return False
        return True

    def _ask(self, label: str, value: Any, ask: Callable[[], tuple[Any, ...]]) -> None:
        self._held["asked", id(value)] = Held("asked", label, ask, (), ask())

    def _note(self, label: str, value: Any) -> None:
        """Notes an object of a library that is no container: numbers and the like stay as they are, others may not."""
        kind = cast("type[Any]", type(value))
        if kind.__module__.partition(".")[0] in ("numpy", "ml_dtypes") and kind.__module__ != "numpy.random._generator":
            return
        if kind.__hash__ is not None and kind.__eq__ is not object.__eq__:
            return  # it compares by value, and has a hash: dates, paths, fractions
        self.unwatched.setdefault(label or kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}")

    def _built_in(self, label: str, value: Any) -> None:
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            if value is open or value is input or getattr(value, "__module__", None) in ASKS_THE_WORLD:
                self.unwatched.setdefault(label, f"{value.__module__}.{value.__qualname__}")
        elif type(owner).__module__ in ASKS_THE_WORLD:
            self.unwatched.setdefault(label, f"{type(owner).__module__}.{value.__name__}")
        else:
            self._push(label, owner)

    def _array(self, label: str, array: np.ndarray[Any, Any]) -> None:
        if isinstance(array.base, np.ndarray | None) and array.dtype.hasobject:
            self._ask(label, array, lambda: (array.shape, *array.flat))
        elif array.nbytes <= (_MOST_BYTES_OF_ARGUMENTS if id(array) in self._lifted else MOST_BYTES):
            self._ask(label, array, lambda: (array.shape, array.dtype.str, *_contents(array)))
        elif id(array) not in self._lifted:
            self.unwatched.setdefault(label, f"elements of a NumPy array of {array.nbytes >> 10} KiB")

    # Functions

    def _function(self, label: str, function: types.FunctionType) -> None:
        label = label or function.__name__
        if not self._follows(module_of(function)):
            self._library_function(label, function)
            return
        self._hold("function", label, function, (), _of_function(function, ())[1])
        self._push(label, *(function.__defaults__ or ()), function.__kwdefaults__)
        if function.__dict__:
            self._push(label, function.__dict__)
        reads, scope = reads_of(function.__code__), function.__globals__
        self._add(reads)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, outer in reads.outer.items():
            if not name.isidentifier():
                # Tools that rewrite code, test runners say, use names that no program can write and none can change.
                continue
            if (cell := cells.get(name)) is not None:
                _, (value,) = _of_cell(cell, ())
                self._hold("cell", name, cell, (), (value,))
                self._name(None, outer, value)
            else:
                value = scope.get(name, _builtin(name))
                self._hold_part("names", "", scope, name, value)
                if value is not MISSING:
                    self._name(scope, outer, value)
        if reads.by_scope:
            for name in reads.words & scope.keys() - reads.outer.keys():
                self._hold_part("names", "", scope, name, scope[name])
                self._push(name, scope[name])
        for name, level in reads.imports:
            self._imported(name, level, scope)

    def _add(self, reads: CodeReads) -> None:
        mine = self._reads
        mine.attributes |= reads.attributes
        mine.words |= reads.words
        mine.stores |= reads.stores
        mine.by_name = mine.by_name or reads.by_name

    def _name(self, scope: dict[str, Any] | None, outer: Outer, value: Any) -> None:
        """A value under a name; of a module, the attributes that are read of it there."""
        if not isinstance(value, types.ModuleType):
            self._push(outer.name, value)
            return
        if outer.escapes:
            self._push(outer.name, value)
        for chain in outer.chains:
            self._chain(scope, outer.name, value, chain)

    def _chain(self, scope: dict[str, Any] | None, text: str, module: types.ModuleType, chain: Sequence[str]) -> None:
        for index, name in enumerate(chain):
            if _is_ours(module):
                return
            value = vars(module).get(name, MISSING)
            self._module_part(text, module, name, value)
            text = f"{text}.{name}"
            if scope is not None and value is not MISSING:
                self.chains.append((scope, text, module, name))
            if not isinstance(value, types.ModuleType):
                self._push(text, value)
                return
            if index == len(chain) - 1:
                self._push(text, value)
            module = value

    def _module_part(self, label: str, module: types.ModuleType, name: str, value: Any) -> None:
        self._hold_part("module", label, module, name, value)
        if value is MISSING and (asked := vars(module).get("__getattr__")) is not None:
            self._hold_part("module", label, module, "__getattr__", asked)
            self._push(f"{label}.__getattr__", asked)

    def _imported(self, name: str, level: int, scope: dict[str, Any]) -> None:
        """A module that a function imports when it runs."""
        if level:
            package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
            try:
                name = importlib.util.resolve_name("." * level + name, package)
            except ImportError:
                return
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            found = sys.modules.get(whole := ".".join(parts[:count]))
            self._hold_part("keys", "sys.modules", sys.modules, whole, MISSING if found is None else found)
            if found is not None:
                self._push(whole, found)

    def _library_function(self, label: str, function: types.FunctionType) -> None:
        """Follows functions that a library made of others': it has them in its closure, or says what it wraps."""
        if function is os.getenv:
            self._push("os.environ", os.environ)
        if function.__module__ in ASKS_THE_WORLD:
            self.unwatched.setdefault(label, f"{function.__module__}.{function.__qualname__}")
        elif is_kernel_module(module_of(function)):
            self.unwatched.setdefault(label, f"code of the installed package {package_of(function)}")
        inner = [value for cell in function.__closure__ or () for value in _of_cell(cell, ())[1]]
        if function.__globals__.get("__name__", "").partition(".")[0] == "tessera":
            inner = [value for value in inner if callable(value)]
        else:
            inner += function.__dict__.values()
        self._push(label, *inner, function.__dict__.get("__wrapped__"))

    # Modules, classes and objects

    def _some_of_module(self, label: str, module: types.ModuleType) -> None:
        """Follows a module that goes elsewhere as a value: the attributes that some code may ask of it."""
        if _is_ours(module):
            return
        reads, mapping = self._reads, vars(module)
        is_users_own = self._follows(module.__name__)
        if is_users_own and reads.by_name:
            names: Iterable[str] = [name for name in mapping if not name.startswith("__")]
        else:
            names = sorted((reads.attributes | reads.words) & mapping.keys())
        for name in names:
            value = mapping[name]
            if is_users_own or not callable(value) or value is os.getenv:
                self._hold_part("module", label, module, name, value)
                self._push(f"{label}.{name}", value)

    def _class(self, label: str, kind: type) -> None:
        for one in kind.__mro__:
            if self._follows(one.__module__):
                self._seen[id(one)] = one
                self._classes[id(one)] = (label if one is kind and label else one.__name__, one)
        if self._follows(type(kind).__module__):
            self._push(label, type(kind))

    def _some_of_class(self, label: str, kind: type) -> None:
        """Follows a class: attributes that code asks for by name, and methods that Python calls by itself."""
        reads = self._reads
        self._part.setdefault(("class", id(kind)), (label, kind, {}))  # what it gets is noticed even if it has nothing
        for name, value in list(vars(kind).items()):
            is_special = name.startswith("__") and name.endswith("__") and name not in NO_DEPENDENCY
            if (
                is_special
                or name in reads.attributes
                or name in reads.words
                or (reads.by_name and name not in NO_DEPENDENCY)
            ):
                self._hold_part("class", label, kind, name, value)
                self._push(f"{label}.{name}", value)

    def _object(self, label: str, value: Any) -> None:
        """An object of a user's class, or a namespace."""
        label = label or type(value).__name__
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            held = cast("dict[str, Any]", attributes)
            self._hold("attributes", label, held, tuple(held), tuple(held.values()))
            for name, one in list(held.items()):
                self._push(f"{label}.{name}", one)
        if names := tuple(self._slots(cast("type[Any]", type(value)))):
            self._hold("slots", label, _reference(value), names, _of_slots(lambda: value, names)[1])
            for name in names:
                self._push(f"{label}.{name}", getattr(value, name, None))
        kind = cast("type[Any]", type(value))
        if self._follows(kind.__module__):
            self._push(kind.__name__, kind)
            if id(value) not in self._owners:
                self._hold("type", label, value, (), (kind,))

    def _slots(self, kind: type) -> Iterator[str]:
        for one in kind.__mro__:
            if self._follows(one.__module__):
                for name, value in vars(one).items():
                    if isinstance(value, types.MemberDescriptorType):
                        yield name

    def _follows(self, module: object) -> bool:
        """Whether code of a module is followed."""
        if not isinstance(module, str) or not is_kernel_module(module):
            return False
        return module.partition(".")[0] in self._packages or not is_installed(module)

    def _is_users(self, value: Any) -> bool:
        """Whether an object is of a class that a user wrote; or a namespace that holds theirs."""
        kind = cast("type[Any]", type(value))
        return kind is types.SimpleNamespace or kind.__module__ == "argparse" or self._follows(kind.__module__)


def _contents(array: np.ndarray[Any, Any]) -> tuple[bytes, bytes | None]:
    """The bytes of an array, and those of the mask, where it has one."""
    mask = getattr(array, "mask", None)
    return np.ndarray.tobytes(array), None if mask is None else np.asarray(mask).tobytes()


def _reference(value: Any) -> Callable[[], Any]:
    """A function that gives an object again, without keeping it alive where that can be: its methods go with it."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _is_ours(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] == "tessera"


def is_users_function(function: types.FunctionType) -> bool:
    """Whether code may be a user's, whatever module a decorator says it is of."""
    return is_kernel_module(module_of(function))


def module_of(function: types.FunctionType) -> str:
    """The module in which a function is written."""
    written_in = function.__globals__.get("__name__")
    found: object = written_in if isinstance(written_in, str) else function.__module__
    return found if isinstance(found, str) else ""


def package_of(value: Any) -> str:
    """The outermost package of what a function, a method, a class or an object is."""
    function = getattr(value, "__func__", value)
    found = module_of(function) if isinstance(function, types.FunctionType) else getattr(function, "__module__", "")
    return found.partition(".")[0] if isinstance(found, str) else ""


@functools.lru_cache(maxsize=1024)
def is_installed(module: str) -> bool:
    """Whether a module belongs to an installed package, or is no Python code; one that is edited in place is not."""
    found = sys.modules.get(module) or sys.modules.get(module.partition(".")[0])
    file = getattr(found, "__file__", None)
    if not isinstance(file, str):
        return found is not None and isinstance(getattr(found, "__spec__", None), importlib.machinery.ModuleSpec)
    return not file.endswith((".py", ".pyc")) or any(part in _INSTALLED for part in Path(file).parts)
