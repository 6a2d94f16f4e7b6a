"""Knobs: each has a type, a default, a `TESSERA_*` variable and a context manager.

What counts, first to last: `with knob.using(v)` around the code, `knob.set(v)` in this process, the environment,
the default. The environment is read once, when this module is imported; later changes of a variable are not seen.
A knob that changes the code of kernels is also part of the settings in `tile/calls/settings.py`, and so of keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from tessera.device_names import CPU_FAMILIES
from tessera.errors import TesseraError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Knob",
    "Row",
    "backend",
    "cache_dir",
    "cache_size",
    "checks",
    "cpu_level",
    "describe",
    "deterministic",
    "dump_dir",
    "eager_elements",
    "fast_math",
    "full_tracebacks",
    "interpret",
    "logs",
    "no_fallbacks",
    "num_threads",
    "optimization",
    "override_dir",
    "print_buffer",
    "unknown_variables",
    "verify",
]

T = TypeVar("T")


class _Unset(Enum):
    UNSET = "unset"


_UNSET = _Unset.UNSET
_KNOBS: list[Knob[Any]] = []
_PREFIX = "TESSERA_"
_VARIABLES = {name: text for name, text in os.environ.items() if name.startswith(_PREFIX)}
_XDG_CACHE_HOME = os.environ.get("XDG_CACHE_HOME", "")


class Derived:
    """Values that were derived from the knobs of a scope. A change of a knob replaces the object, not its attributes.

    So a thread that derives values while another sets a knob writes them into an object that is not looked at again.
    """

    __slots__ = ("eager_elements", "is_settled", "settings")

    def __init__(self) -> None:
        self.settings: Any = None
        """How kernels run, as `tile.calls.settings` has it; None for the interpreter, and before `is_settled`."""
        self.is_settled = False
        self.eager_elements: int | None = None


_NOT_DERIVED = Derived()


class Scope:
    """The knobs that `using` holds around a piece of code, and the values derived from all knobs there.

    Every call of a kernel or a jitted function asks `scope().quick.settings`: these are `derived` where nothing but
    knobs decides how kernels run. Where a trace or checks do too, `quick` has no settings, and calls ask for them.
    """

    __slots__ = ("__weakref__", "derived", "held", "quick")

    def __init__(self, held: Mapping[str, Any], *, is_quick: bool) -> None:
        self.held = held
        self.derived = Derived()
        self.quick = self.derived if is_quick else _NOT_DERIVED
        _scopes[id(self)] = self

    @property
    def is_quick(self) -> bool:
        return self.quick is not _NOT_DERIVED

    def forget(self) -> None:
        """Has all values derived anew."""
        derived = Derived()
        if self.is_quick:
            self.quick = derived
        self.derived = derived


_scopes: WeakValueDictionary[int, Scope] = WeakValueDictionary()
# A context variable: other threads and tasks do not see what is held here.
_PROCESS = Scope({}, is_quick=True)
_scope: ContextVar[Scope] = ContextVar("knobs", default=_PROCESS)
scope: Callable[[], Scope] = _scope.get
"""The scope of the code that asks. A built-in function: nothing that calls ask is faster."""


@contextmanager
def _entered(inner: Scope) -> Generator[None]:
    token = _scope.set(inner)
    try:
        yield
    finally:
        _scope.reset(token)


def deciding_too() -> AbstractContextManager[None]:
    """For a trace or checks: in the body of the `with` statement, knobs alone do not decide how kernels run."""
    return _entered(Scope(scope().held, is_quick=False))


def _process_changed() -> None:
    for reference in _scopes.valuerefs():  # a list, made at once: other threads may enter scopes meanwhile
        if (found := reference()) is not None:
            found.forget()


class Knob(Generic[T]):
    """One setting. `read` makes a T of a text or checks one; where it fails, the error says what `accepts` says."""

    def __init__(
        self, name: str, read: Callable[[T | str], T], default: Callable[[], T], *, accepts: str, meaning: str
    ) -> None:
        self.name = name
        self.variable = f"{_PREFIX}{name.upper()}"
        self.accepts = accepts
        self.meaning = meaning
        self._read = read
        self._default = default
        self.text = _VARIABLES.get(self.variable, "")
        """The text of its variable, empty where it is not set."""
        self._environment: T | _Unset = _UNSET
        self._process: T | _Unset = _UNSET
        _KNOBS.append(self)

    @property
    def value(self) -> T:
        """The setting here and now; raises TesseraError where the environment held something else than a T."""
        return self._look()[0]

    @property
    def source(self) -> str:
        """Where the value comes from: context, process, environment or default."""
        return self._look()[1]

    def _look(self) -> tuple[T, str]:
        if (held := scope().held.get(self.name, _UNSET)) is not _UNSET:
            return held, "context"
        if self._process is not _UNSET:
            return self._process, "process"
        if self.text:
            if self._environment is _UNSET:
                self._environment = self._checked(self.text, f"the variable {self.variable}")
            return self._environment, "environment"
        return self._default(), "default"

    def set(self, value: T | str) -> None:
        """Holds for the whole process from now on."""
        self._process = self._checked(value, f"the knob {self.name}")
        _process_changed()

    def reset(self) -> None:
        """Takes back what `set` did."""
        self._process = _UNSET
        _process_changed()

    def using(self, value: T | str) -> AbstractContextManager[T]:
        """Holds for the body of a `with` statement, in this thread or task only."""
        return self._holding(self._checked(value, f"the knob {self.name}"))

    @contextmanager
    def _holding(self, value: T) -> Generator[T]:
        around = scope()
        with _entered(Scope({**around.held, self.name: value}, is_quick=around.is_quick)):
            yield value

    def _checked(self, value: T | str, what: str) -> T:
        try:
            return self._read(value)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TesseraError(
                f"{what} expects {self.accepts}, got {value!r}", hint=f"{self.name}: {self.meaning}"
            ) from None

    def __repr__(self) -> str:
        return f"Knob({self.name})"


def _path(value: Path | str) -> Path:
    from pathlib import Path  # with all it loads, a tenth of the time the package takes to import

    return Path(value).expanduser()


def _optional_path(value: Path | str | None) -> Path | None:
    return None if value is None else _path(value)


def _optional_text(value: str | None) -> str | None:
    return None if value is None else value.strip()


_FLAGS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}


def _flag(value: bool | str) -> bool:
    return value if isinstance(value, bool) else _FLAGS[value.strip().lower()]


_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def _size(value: int | str) -> int:
    found = re.fullmatch(r"(\d+)(\.\d+)? *([a-z]*)", str(value).strip().lower())
    if found is None:
        raise ValueError(value)
    unit = _UNITS[found[3]]
    return int(found[1]) * unit + int(float(found[2] or 0) * unit)


LOG_NAMES = ("recompiles", "guards", "autotune", "ir", "cache", "fallbacks", "tiers")
CHECKS = ("bounds", "nan", "unwritten")


def _names(*known: str) -> Callable[[frozenset[str] | str], frozenset[str]]:
    def read(value: frozenset[str] | str) -> frozenset[str]:
        parts = value.split(",") if isinstance(value, str) else value
        names = frozenset(part.strip() for part in parts) - {""}
        if not names <= set(known):
            raise ValueError(value)
        return names

    return read


MOST_THREADS = 4096


def _thread_count(value: int | str) -> int:
    if not re.fullmatch(r"\d+", text := str(value).strip()) or not 1 <= int(text) <= MOST_THREADS:
        raise ValueError(value)
    return int(text)


def usable_processors() -> int:
    """How many processors this process may run on."""
    usable = getattr(os, "sched_getaffinity", None)  # some systems cannot say
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def _count(value: int | str) -> int:
    if not re.fullmatch(r"\d+", text := str(value).strip()):
        raise ValueError(value)
    return int(text)


OPTIMIZATIONS = range(4)


def _optimization(value: int | str) -> int:
    if not re.fullmatch(r"\d", text := str(value).strip()) or int(text) not in OPTIMIZATIONS:
        raise ValueError(value)
    return int(text)


CPU_LEVELS = tuple(level for levels in CPU_FAMILIES.values() for level in levels)


def _optional_cpu_level(value: str | None) -> str | None:
    if value is None:
        return None
    name = value.strip().lower()
    if name not in CPU_LEVELS:
        raise ValueError(value)
    return name


def _default_cache_dir() -> Path:
    from pathlib import Path

    # The XDG rule: a relative path there is invalid and counts as unset.
    base = Path(_XDG_CACHE_HOME)
    return (base if base.is_absolute() else Path.home() / ".cache") / "tessera"


_A_FLAG = "1, true, yes, on, 0, false, no or off"

cache_dir = Knob(
    "cache_dir", _path, _default_cache_dir, accepts="a path", meaning="where compiled programs and tunings are kept"
)
cache_size = Knob(
    "cache_size",
    _size,
    lambda: 2 * 1024**3,
    accepts="a number of bytes, such as 2GiB or 500MB",
    meaning="how much the cache may hold before its oldest entries go",
)
logs = Knob(
    "logs",
    _names(*LOG_NAMES),
    frozenset[str],
    accepts=f"names among {', '.join(LOG_NAMES)}, separated by commas",
    meaning="what to log",
)
dump_dir = Knob("dump_dir", _optional_path, lambda: None, accepts="a path", meaning="write every stage's IR here")
override_dir = Knob(
    "override_dir", _optional_path, lambda: None, accepts="a path", meaning="take a stage's IR from here if present"
)
verify = Knob("verify", _flag, lambda: False, accepts=_A_FLAG, meaning="check IR after every pass")
no_fallbacks = Knob(
    "no_fallbacks", _flag, lambda: False, accepts=_A_FLAG, meaning="make an error of what only runs slowly"
)
full_tracebacks = Knob(
    "full_tracebacks",
    _flag,
    lambda: False,
    accepts=_A_FLAG,
    meaning="show the frames of the package in tracebacks, too",
)
interpret = Knob("interpret", _flag, lambda: False, accepts=_A_FLAG, meaning="run the reference interpreters only")
deterministic = Knob(
    "deterministic", _flag, lambda: True, accepts=_A_FLAG, meaning="same inputs and seeds, same bits, every run"
)
fast_math = Knob(
    "fast_math",
    _flag,
    lambda: False,
    accepts=_A_FLAG,
    meaning="whether jitted functions may round differently to be faster; still the same bits every run",
)
checks = Knob(
    "checks",
    _names(*CHECKS),
    frozenset[str],
    accepts=f"names among {', '.join(CHECKS)}, separated by commas",
    meaning="what kernels check while they run: that accesses start inside arrays, that no NaN is made of numbers, "
    "that outputs are written everywhere (in the interpreter)",
)
backend: Knob[str | None] = Knob(
    "backend", _optional_text, lambda: None, accepts="a name", meaning="what runs kernels: auto, cpu or interpreter"
)
optimization = Knob(
    "optimization",
    _optimization,
    lambda: 3,
    accepts="a number from 0 to 3",
    meaning="how much work compiling for speed may be; 0 compiles fastest",
)
eager_elements = Knob(
    "eager_elements",
    _count,
    lambda: 1 << 14,
    accepts="a number of elements",
    meaning="how many elements make Python's operators on tensors of the CPU compiled programs; 0: always",
)
print_buffer = Knob(
    "print_buffer",
    _size,
    lambda: 4 * 1024**2,
    accepts="a number of bytes, such as 64MiB or 500kB",
    meaning="how much a launch of compiled code may print; the prints beyond are counted",
)
num_threads = Knob(
    "num_threads",
    _thread_count,
    usable_processors,
    accepts=f"a number from 1 to {MOST_THREADS}",
    meaning="how many threads a kernel on the CPU runs on at most; read when the first one runs",
)
cpu_level: Knob[str | None] = Knob(
    "cpu_level",
    _optional_cpu_level,
    lambda: None,
    accepts="amx, avx512, avx2 or base, on AArch64 neon",
    meaning="the instructions that kernels on the CPU may use, where the host has more",
)


def looks_at_stages() -> bool:
    """Whether a knob dumps, replaces or logs stages of a compile: then nothing is taken from the disk."""
    return dump_dir.value is not None or override_dir.value is not None or "ir" in logs.value


class Row(NamedTuple):
    """One knob as `tessera env` shows it."""

    name: str
    variable: str
    accepts: str
    value: str
    source: str
    meaning: str


def describe() -> list[Row]:
    """All knobs with their present values; a variable that cannot be read is shown as it is, and says so."""
    rows: list[Row] = []
    for knob in _KNOBS:
        try:
            value, source = _shown(knob.value), knob.source
        except TesseraError:
            value, source = repr(knob.text), "environment, not understood"
        rows.append(Row(knob.name, knob.variable, knob.accepts, value, source, knob.meaning))
    return rows


def _shown(value: Any) -> str:
    text = ",".join(sorted(value)) if issubclass(type(value), frozenset) else str(value)
    return "none" if text in ("", "None") else text


def unknown_variables() -> list[str]:
    """The TESSERA_* variables that no knob reads: misspelt, or from another version."""
    known = {knob.variable for knob in _KNOBS}
    return sorted(_VARIABLES.keys() - known)


def __dir__() -> list[str]:
    return sorted(__all__)
