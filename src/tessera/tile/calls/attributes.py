"""Objects among a kernel's arguments: their arrays become arguments when the kernel asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.errors import CompileError

if TYPE_CHECKING:
    from tessera.tile.language.tracer import Tracer


class Attributes:
    """An argument that is neither array nor number: its arrays become arguments when the kernel asks for them."""

    def __init__(self, work: Tracer, path: str, held: Any, add: Any) -> None:
        self.__dict__.update(_work=work, _path=path, _held=held, _add=add, _found={})

    def __repr__(self) -> str:
        return f"{self._path}, an object of type {type(self._held).__name__},"

    def __getattr__(self, name: str) -> Any:
        if name not in self._found:
            try:
                value = getattr(self._held, name)
            except AttributeError:
                known = [one for one in dir(self._held) if not one.startswith("_")]
                raise CompileError(
                    f"{self._path} has no attribute {name}",
                    hint=f"it is a {type(self._held).__name__}, which has {', '.join(known[:8]) or 'no attributes'}",
                ) from None
            self._found[name] = self._add(f"{self._path}.{name}", value)
        return self._found[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise CompileError(
            f"{self._path}.{name} is assigned in a kernel", hint="kernels change memory by tile.store only"
        )
