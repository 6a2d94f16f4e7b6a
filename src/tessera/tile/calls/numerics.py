"""Claims about a kernel's numerics that `tessera.verify` checks (`Numerics`), and the report for one program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Limits = tuple[float, float]


def limits_text(limits: Limits) -> str:
    """Limits as their user wrote them."""
    return f"[{limits[0]:g}, {limits[1]:g}]"


@dataclass(frozen=True)
class Numerics:
    """The promises: about the arithmetic, about the numbers that are stored, and about those that come in.

    `inputs` has limits by name; those of the name None hold for every float without limits of its own.
    """

    stable: bool
    bounded: Limits | None
    inputs: Mapping[str | None, Limits]

    def __str__(self) -> str:
        parts = ["stable"] if self.stable else []
        parts += [f"bounded to {limits_text(self.bounded)}"] if self.bounded is not None else []
        return " and ".join(parts)

    @property
    def wanted(self) -> dict[str, Any]:
        """The promises as checks of the interpreter."""
        found: dict[str, Any] = {} if self.bounded is None else {"bounded": self.bounded}
        return found | ({"nonfinite": "all", "underflow": True, "overflow": True} if self.stable else {})

    def limits_of(self, path: str, *, is_float: bool) -> Limits | None:
        """The limits that are promised for an argument."""
        return self.inputs.get(path, self.inputs.get(None) if is_float else None)


class Claim(NamedTuple):
    """One promise about one program: the check it is, what it says, and its proof by intervals if there is one."""

    check: str
    words: str
    proof: str | None

    def __str__(self) -> str:
        return f"{self.words}: {'checked at run time' if self.proof is None else f'proven, {self.proof}'}"


@dataclass(frozen=True)
class Report:
    """How the promises stand for one program of a kernel."""

    claims: tuple[Claim, ...]

    @property
    def proven(self) -> frozenset[str]:
        return frozenset(claim.check for claim in self.claims if claim.proof is not None)

    @property
    def checked(self) -> frozenset[str]:
        """The promises that are left to the interpreter."""
        return frozenset(claim.check for claim in self.claims if claim.proof is None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.claims))
