"""Command lines, environments and search paths for the processes that the package starts.

Nothing is taken from the folder that the user happens to stand in.

`python -m` and `python -c` look for modules in the current folder first, and executables are looked for wherever PATH
says, which may be there, too. A file `selectors.py` or `git` that lies there would be run in their stead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

_DEPENDENCIES = ("tessera", "numpy", "ml_dtypes", "xdsl", "llvmlite")
_FLAGS = {"ignore_environment": "-E", "no_user_site": "-s", "no_site": "-S"}
SAFE_FOLDER = os.path.abspath(os.sep)
"""Where processes stand that read and write no files of the user's by relative names."""


def python(code: str, *arguments: str, runs_users_code: bool = False) -> list[str]:
    """The words that start a Python which runs `code`; modules are found where this process finds them.

    The folders that this process or its script stands in come last there, and only where a user's functions are looked
    for by their names; a compiler does without them.
    """
    path = [*search_path(), *(own_folders() if runs_users_code else ())]
    flags = [word for flag, word in _FLAGS.items() if getattr(sys.flags, flag)]
    # Where a path has bytes that are no text, `ascii` writes them so that Python reads them again.
    return [sys.executable, *flags, "-P", "-c", f"import sys; sys.path[:] = {path!a}; {code}", *arguments]


def environment(**changes: str) -> dict[str, str]:
    """The environment for a Python of ours: what is before its own path is set up is not looked for here either."""
    made = {**os.environ, **changes}
    kept = [path for path in made.pop("PYTHONPATH", "").split(os.pathsep) if _is_chosen(path)]
    return made | ({"PYTHONPATH": os.pathsep.join(kept)} if kept else {})


def _is_chosen(path: str) -> bool:
    return os.path.isabs(path) and os.path.realpath(path) not in _unchosen()


def search_path() -> list[str]:
    """Where modules are found, in this process's order: without the folders that it or its script stands in.

    Those are looked at last where Tessera or something that it needs was imported from there.
    """
    unchosen = _unchosen()
    # The path may have others than text, which Python ignores.
    listed = [path for path in sys.path if type(path) is str and path]
    found = [path for path in listed if os.path.isabs(path) and os.path.realpath(path) not in unchosen]
    home = _root_of("tessera")
    if home is not None and home not in found:
        # Before another Tessera, and otherwise last: nothing that lies beside it is to hide a module of Python's.
        hides = (index for index, path in enumerate(found) if os.path.isdir(os.path.join(path, "tessera")))
        found.insert(next(hides, len(found)), home)
    found += [root for name in _DEPENDENCIES if (root := _root_of(name)) in own_folders()]
    return list(dict.fromkeys(found))


def own_folders() -> list[str]:
    """The folders on the path that were not chosen: the current folder, and that of the script."""
    unchosen, here = _unchosen(), _here()
    found: list[str] = []
    for path in sys.path:
        if type(path) is not str:
            continue
        if os.path.isabs(path):
            found += [path] if os.path.realpath(path) in unchosen else []
        elif here is not None:
            found.append(os.path.normpath(os.path.join(here, path)))
    return list(dict.fromkeys(found))


def _here() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _unchosen() -> set[str]:
    here = _here()
    found: set[str] = set() if here is None else {os.path.realpath(here)}
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(script, str) and os.path.isabs(script) and not sys.flags.safe_path:
        found.add(os.path.realpath(os.path.dirname(script)))
    return found


def _root_of(name: str) -> str | None:
    """The folder that a module, if it is loaded, was found in."""
    spec: ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    folder = os.path.dirname(os.path.abspath(spec.origin))
    return folder if spec.submodule_search_locations is None else os.path.dirname(folder)


def users_modules() -> dict[str, str]:
    """The modules that this process has loaded from the folders that were not chosen, with these folders.

    What was run here may be run by a process of ours; what lies beside it was not asked for.
    """
    own = own_folders()
    if not own:
        return {}
    names = [name for name in list(sys.modules) if "." not in name and name != "__main__"]
    return {name: root for name in names if (root := _root_of(name)) in own}


class _ByName:
    """Finds some modules in some folders, and nothing else there."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [self.folders[name]]) if name in self.folders else None


_by_name = _ByName()


def find_also(modules: Mapping[str, str]) -> None:
    """Has this process find what `users_modules` told in another one. What it has loaded already stays."""
    _by_name.folders.update(modules)
    if _by_name not in sys.meta_path:
        sys.meta_path.append(_by_name)


def executable(name: str) -> str | None:
    """The path of an executable found on PATH, whose relative entries, which mean the current folder, do not count."""
    for folder in os.get_exec_path():
        if os.path.isabs(folder) and is_executable(found := os.path.join(folder, name)):
            return found
    return None


def is_executable(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


@contextmanager
def spawning() -> Generator[None]:
    """While it is open, `multiprocessing` starts its processes without the current folder on their path, too."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before
