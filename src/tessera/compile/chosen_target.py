"""The settings of a compile: those of calls here and now, with options such as a target and its instruction set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tessera.compiler.target import target_named, target_with_level
from tessera.errors import CompileError, DeviceError
from tessera.runtime.tensor.pytree import tree_leaves
from tessera.tile.calls.settings import Settings, changed_settings, device_of, settings, settings_on

OPTIONS = ("target", "level", "optimization", "checks")


def settings_for(name: str, values: Iterable[Any], options: Mapping[str, Any]) -> Settings:
    """How a call with such arguments is compiled, with some of it given."""
    found = settings()
    if found is None:
        raise CompileError(
            "kernels run in the interpreter here, which compiles nothing",
            hint="unset the knobs interpret and backend, and checks around the call",
        )
    return changed(settings_on(device_of(name, tree_leaves(list(values))), found), options)


def changed(chosen: Settings, options: Mapping[str, Any]) -> Settings:
    """Settings with the options that are given: `target`, `level`, `optimization`, `checks`."""
    if unknown := sorted(options.keys() - set(OPTIONS)):
        raise CompileError(
            f"a target has no options {', '.join(map(str, unknown))}", hint=f"it has {', '.join(OPTIONS)}"
        )
    changes: dict[str, Any] = {}
    target, level = options.get("target"), options.get("level")
    if target is not None or level is not None:
        machine = target_with_level(str(level)) if target is None else target_named(target)
        level = machine.default_level() if level is None else level
        if level not in machine.levels:
            raise DeviceError(
                f"the target {machine.name} has no instruction set {level!r}",
                hint=f"it has {', '.join(machine.levels)}",
            )
        changes |= {"target": machine.name, "level": level}
    if "optimization" in options:
        changes["optimization"] = options["optimization"]
    if "checks" in options:
        changes["checks"] = frozenset(options["checks"])
    return changed_settings(chosen, **changes) if changes else chosen
