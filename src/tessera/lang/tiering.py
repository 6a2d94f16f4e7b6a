"""How jitted functions get their tiers: the engine is a layer above, and registers here when the package loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tessera.errors import TesseraError

if TYPE_CHECKING:
    from tessera.tile.identity.pickling import Named


class Tiers(Protocol):
    """A jitted function that runs in tiers."""

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Makes a call."""
        ...

    def explain(self) -> Iterator[str]:
        """Lines that say which program runs at which tier, behind which guards."""
        ...


Maker = Callable[["Named", Any], Tiers]
_makers: list[Maker] = []


def provide(maker: Maker) -> None:
    """From now on, this makes the tiers of functions: of the function, and of `"auto"` or a runtime."""
    _makers[:] = [maker]


def wanted_tiers(given: Any) -> Any:
    """The `tiers` of a function, checked; None where it has none."""
    if given is None or given == "off":
        return None
    if given != "auto" and not hasattr(given, "tiered"):
        raise TesseraError(
            f"jit: tiers are 'auto', 'off' or a runtime, got {given!r}",
            hint="give a tessera.metatracing.MetaTracingRuntime for settings of your own",
        )
    return given


def tiers_of(jitted: Named, wanted: Any) -> Tiers:
    """The tiers of a function."""
    if not _makers:
        raise TesseraError("tiers are not loaded", hint="import tessera, not only parts of it")
    return _makers[0](jitted, wanted)
