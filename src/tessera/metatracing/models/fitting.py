"""Fits of running times: positive coefficients for amounts of work, by least squares of logarithms, with intervals.

A time is a part that is always there and a norm of the times of work: seconds = c₀·x₀ + (Σ (cⱼ·xⱼ)^p)^(1/p). With p = 1
everything adds up, with a large p only the busiest counts, as on a roofline. Errors are relative, so logarithms are
compared. Intervals are as wide as the errors on rows that a fit had not seen: nothing is assumed of their spread.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera.errors import TesseraError

Array = NDArray[np.float64]
POWERS = (1.0, 1.5, 2.5, 5.0)
FOLDS = 8
_ROUNDS = 60
_PULL = 0.02
"""How strongly coefficients are drawn to where they began: those that the rows say nothing about stay there."""
LEAST_ROWS = 8


@dataclass(frozen=True)
class Fitted:
    """Coefficients of named amounts, and the errors of rows that were left out: logarithms of predicted over measured.

    The first amount is the part that is always there.
    """

    names: tuple[str, ...]
    logs: tuple[float, ...]
    power: float
    errors: tuple[float, ...]

    def seconds(self, amounts: Mapping[str, float]) -> float:
        """The predicted time."""
        row = np.array([[amounts[name] for name in self.names]])
        return float(_predicted(row, np.array(self.logs), self.power)[0])

    def parts(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """The time of each amount alone."""
        return {name: float(np.exp(log)) * amounts[name] for name, log in zip(self.names, self.logs, strict=True)}

    def spread(self, share: float = 0.95) -> float:
        """A factor: so large a part of the times is within it, both ways; that of rows which a fit had not seen."""
        if not self.errors:
            return float("inf")
        sorted_ = np.sort(np.abs(self.errors))
        rank = min(len(sorted_), int(np.ceil(share * (len(sorted_) + 1))))
        return float(np.exp(sorted_[rank - 1]))

    def interval(self, seconds: float, share: float = 0.95) -> tuple[float, float]:
        factor = self.spread(share)
        return seconds / factor, seconds * factor

    @property
    def median_error(self) -> float:
        """The relative error of the middle one among rows that were left out."""
        return float(np.median(np.abs(np.expm1(-np.array(self.errors))))) if self.errors else float("inf")

    def written(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def read(found: Mapping[str, Any]) -> Fitted:
        """The fit that `written` wrote; KeyError, TypeError or ValueError for anything else."""
        return Fitted(
            tuple(map(str, found["names"])),
            tuple(map(float, found["logs"])),
            float(found["power"]),
            tuple(map(float, found["errors"])),
        )


def fit(
    rows: Sequence[Mapping[str, float]],
    seconds: Sequence[float],
    start: Mapping[str, float],
    groups: Sequence[Hashable] | None = None,
) -> Fitted:
    """The coefficients with the least squares of errors; `start` names the amounts and about how long each takes.

    Rows of one group are left out together, when it is found out how far off predictions are: configurations that were
    never seen, not further runs of those that were.
    """
    names = tuple(start)
    if len(rows) < LEAST_ROWS:
        raise TesseraError(
            f"a model of {len(names)} coefficients is fitted to at least {LEAST_ROWS} measured rows, got {len(rows)}",
            hint="measure more configurations",
        )
    amounts = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    logs = np.log(np.asarray(seconds, dtype=np.float64))
    begin = np.log(np.array([start[name] for name in names]))
    labels = list(range(len(rows))) if groups is None else list(groups)
    chosen = list(dict.fromkeys(labels))
    np.random.default_rng(0).shuffle(chosen)  # pyright: ignore[reportArgumentType]
    fold_of = {label: index % FOLDS for index, label in enumerate(chosen)}
    folds = np.array([fold_of[label] for label in labels])
    best: tuple[float, float, Array] | None = None
    for power in POWERS:
        errors = _left_out(amounts, logs, begin, power, folds)
        score = float(np.mean(np.abs(errors)))
        if best is None or score < best[0]:
            best = score, power, errors
    assert best is not None
    _, power, errors = best
    found = _solved(amounts, logs, begin, power)
    return Fitted(names, tuple(map(float, found)), power, tuple(float(one) for one in errors))


def _left_out(amounts: Array, logs: Array, begin: Array, power: float, folds: NDArray[np.int64]) -> Array:
    """The errors of every row by a fit to the other folds."""
    errors = np.zeros(len(logs))
    for fold in np.unique(folds):
        out = folds == fold
        if out.all():
            return np.log(_predicted(amounts, _solved(amounts, logs, begin, power), power)) - logs
        found = _solved(amounts[~out], logs[~out], begin, power)
        errors[out] = np.log(_predicted(amounts[out], found, power)) - logs[out]
    return errors


def _predicted(amounts: Array, coefficients: Array, power: float) -> Array:
    each = amounts * np.exp(coefficients)
    return each[:, 0] + (each[:, 1:] ** power).sum(axis=1) ** (1 / power)


def _solved(amounts: Array, logs: Array, begin: Array, power: float) -> Array:
    """The coefficients by Levenberg and Marquardt; outliers count less."""
    found: Array = begin.copy()
    damping = 1.0
    error = _error(amounts, logs, found, begin, power)
    for _ in range(_ROUNDS):
        each = amounts * np.exp(found)
        powered = each[:, 1:] ** power
        total = powered.sum(axis=1)
        whole = each[:, 0] + total ** (1 / power)
        slopes = np.empty_like(each)
        slopes[:, 0] = each[:, 0] / whole
        inner = np.where(total > 0, total, 1.0) ** (1 / power - 1)
        slopes[:, 1:] = powered * inner[:, None] / whole[:, None]
        residual = np.log(whole) - logs
        weights: Array = 1 / np.maximum(1.0, np.abs(residual) / 0.3)
        weighted: Array = (slopes * weights[:, None]).T
        normal: Array = weighted @ slopes + _PULL * np.eye(len(begin))
        gradient: Array = weighted @ residual + _PULL * (found - begin)
        step: Any = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
        tried: Array = found + np.clip(step, -2.0, 2.0)
        now = _error(amounts, logs, tried, begin, power)
        if now < error:
            done = error - now < 1e-9 * error
            found, error, damping = tried, now, max(1e-6, damping / 3)
            if done:
                break
        else:
            damping *= 4
            if damping > 1e9:
                break
    return found


def _error(amounts: Array, logs: Array, found: Array, begin: Array, power: float) -> float:
    residual = np.abs(np.log(_predicted(amounts, found, power)) - logs)
    huber = np.where(residual < 0.3, 0.5 * residual**2, 0.3 * residual - 0.045)
    return float(huber.sum() + 0.5 * _PULL * ((found - begin) ** 2).sum())
