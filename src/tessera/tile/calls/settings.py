"""The settings that machine code of kernels is made for, and where the interpreter is to run instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tessera import knobs
from tessera.compiler.options import CompileOptions
from tessera.compiler.target import Target, is_target, target_named, target_names
from tessera.device_names import HOST, is_host
from tessera.errors import DeviceError
from tessera.interpreters.sanitizers.checks import AROUND, NOTHING
from tessera.runtime.device.device import CPU, Device
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.language.values import CURRENT

AUTO, INTERPRETER = "auto", "interpreter"
ONLY_INTERPRETED = frozenset({"unwritten"})
"""The checks of the knob that machine code does not have."""


@dataclass(frozen=True, eq=False)
class Settings:
    """Target and options of machine code. `demanded`: a kernel that has none is an error. Equal ones are one object.

    `level` is an instruction set of `target`: avx512 of cpu, sm_90a of cuda.
    """

    target: str
    level: str
    optimization: int
    checks: frozenset[str]
    deterministic: bool
    demanded: bool
    fast_math: bool = False
    no_fallbacks: bool = False
    """Code does not depend on it: programs that were compiled without it are asked again what was refused."""

    @property
    def compiler(self) -> Target:
        """The target itself, which says what it does and makes machine code."""
        return target_named(self.target)

    def options(self, **of_kernel: Any) -> CompileOptions:
        """The options of a kernel under these settings."""
        return CompileOptions(self.target, self.level, self.optimization, self.checks, self.deterministic, **of_kernel)


_scope, _around, _tracer = knobs.scope, AROUND.get, CURRENT.get


def settings() -> Settings | None:
    """How kernels run here and now; None in the interpreter: it was asked for, or checks and traces were.

    Every call asks. Knobs say at once that nothing has changed: settings are worked out once in a scope of theirs.
    """
    return _scope().quick.settings or _worked_out()


def _worked_out() -> Settings | None:
    around = _around()
    if (around is not NOTHING and (around.trace is not None or around.checks)) or _tracer() is not None:
        return None
    derived = _scope().derived
    if not derived.is_settled:
        derived.settings = _chosen()
        derived.is_settled = True
    return derived.settings


def _chosen() -> Settings | None:
    backend = knobs.backend.value or AUTO
    if backend not in (AUTO, HOST, INTERPRETER) and not _runs_here(backend):
        known = [name for name in target_names() if _runs_here(name)]
        raise DeviceError(
            f"expected a backend among {', '.join(dict.fromkeys([AUTO, *known, INTERPRETER]))}, got {backend!r}",
            hint=f"set {knobs.backend.variable} to one of them, or leave it unset",
        )
    if knobs.interpret.value or backend == INTERPRETER:
        return None
    demanded = is_host(backend)
    if only_interpreted := sorted(knobs.checks.value & ONLY_INTERPRETED):
        if demanded:
            raise DeviceError(
                f"machine code has no check {', '.join(only_interpreted)}, and {knobs.backend.variable} asks for it",
                hint=f"leave {knobs.backend.variable} unset: the interpreter runs kernels under this check",
            )
        _log_interpreted(only_interpreted)
        return None
    if (reason := target_named(HOST).unavailable()) is not None:
        if demanded:
            raise DeviceError(reason, hint=f"leave {knobs.backend.variable} unset: the interpreter runs them")
        return None
    if backend != AUTO and not demanded:
        return _of_target(backend)
    level, optimization, checks = target_named(HOST).default_level(), knobs.optimization.value, knobs.checks.value
    fast, strict = knobs.fast_math.value, knobs.no_fallbacks.value
    return _interned(HOST, level, optimization, checks, knobs.deterministic.value, demanded, fast, strict)


def _runs_here(name: str) -> bool:
    """Whether a target of this name works on arrays of the host."""
    return is_target(name) and not target_named(name).is_asynchronous


def _of_target(name: str) -> Settings:
    """The settings of a target that was named: it runs all kernels, on arrays of the CPU."""
    level, optimization, checks = target_named(name).default_level(), knobs.optimization.value, knobs.checks.value
    fast, strict = knobs.fast_math.value, knobs.no_fallbacks.value
    return _interned(name, level, optimization, checks, knobs.deterministic.value, True, fast, strict)


def _log_interpreted(checks: Sequence[str]) -> None:
    if "fallbacks" in knobs.logs.value:
        import logging

        words = "everything runs in the interpreter: machine code has no check %s"
        logging.getLogger("tessera.fallbacks").warning(words, ", ".join(checks))


_interned = lru_cache(maxsize=None)(Settings)


def settings_at(optimization: int, chosen: Settings) -> Settings:
    """The same settings, with another amount of work for compiling."""
    return changed_settings(chosen, optimization=optimization)


def settings_of_level(level: str, chosen: Settings) -> Settings:
    """The same settings, for another architecture of the same kind of device."""
    return changed_settings(chosen, level=level)


def changed_settings(chosen: Settings, **changes: Any) -> Settings:
    """The same settings with other values of some fields."""
    return _interned(*(vars(chosen) | changes).values())


def settings_of_gpu(architecture: str) -> Settings:
    """Those of a GPU that need not be there, to look at what would be compiled for it."""
    return _interned("cuda", architecture, 3, frozenset[str](), True, True)


def settings_on(device: Device, chosen: Settings) -> Settings:
    """The same settings for a device: those of the CPU, or of the architecture of a GPU."""
    if device.is_host:
        return chosen
    if not device.is_accelerator:
        raise DeviceError(f"kernels have no machine code on {device}", hint="bring the arrays over first: .cpu()")
    level = target_named(device.kind).level_on(device.index)
    return changed_settings(chosen, target=device.kind, level=level, demanded=True)


def device_of(name: str, given: Iterable[Any]) -> Device:
    """The device on which a kernel's arrays lie; the CPU without any."""
    devices = {value.device: None for value in given if isinstance(value, Tensor)}
    if len(devices) > 1:
        raise DeviceError(
            f"{name}: the arrays lie on {', '.join(map(str, devices))}, and a kernel runs on one device",
            hint="bring them to one first: .cuda() or .cpu()",
        )
    return next(iter(devices), CPU)


def target_of(chosen: Settings) -> tuple[object, ...]:
    """The settings that machine code depends on, as keys have them."""
    of_target = chosen.compiler.identity(chosen.level, chosen.deterministic)
    return (chosen.level, *of_target, chosen.optimization, *sorted(chosen.checks))
