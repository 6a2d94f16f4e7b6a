"""Result files of GPU benchmarks as tables, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera.bench.cuda.declarations import OURS
from tessera.bench.instruments.ncu import PROFILER_METRICS

_NOTE = (
    "µs: the median of a call, of graphs timed by events, entrants in rounds, the L2 cache written over before each "
    "sample; `queued`: of calls that no graph can hold, started while the GPU was kept busy. `ours is`: so many times "
    "as fast, by pairs of neighbours, with the 95 % interval."
)


def markdown(record: Mapping[str, Any], title: str) -> str:
    """Everything that a record holds, shortened."""
    environment = record["environment"]
    lines = [f"# {title}", "", _measured_on(environment), ""]
    lines += ["| row | entrant | µs | rate | ours is | error | J | |", "|---|---|---:|---:|---:|---:|---:|---|"]
    for row in record["rows"]:
        lines += _row(row)
    bars = [_bar(row["name"], name, one) for row in record["rows"] for name, one in row.get("bars", {}).items()]
    if bars := bars + [_bar(f"mean of {one['name']}", one["peer"], one) for one in record.get("means", ())]:
        lines += ["", "| row | against | bar | reached | |", "|---|---|---:|---:|---|", *bars]
    if ways := [line for row in record["rows"] for line in _ways(row)]:
        lines += ["", "| row | how ours was compiled |", "|---|---|", *ways]
    if profiles := [line for row in record["rows"] for line in _profiles(row)]:
        names = " | ".join(name.replace("_", " ") for name in PROFILER_METRICS)
        lines += ["", f"| row | entrant | {names} | registers |", f"|---|---|{'---:|' * (len(PROFILER_METRICS) + 1)}"]
        lines += profiles
    return "\n".join([*lines, "", _NOTE, ""])


def _measured_on(environment: Mapping[str, Any]) -> str:
    parts = [environment.get(name) for name in ("gpu", "driver", "torch", "date")]
    commit = str(environment.get("commit") or "")[:12]
    names = ("", "driver ", "torch ", "")
    said = [f"{name}{part}" for name, part in zip(names, parts, strict=True) if part]
    return ", ".join([*said, *([f"commit {commit}"] if commit else [])])


def _row(row: Mapping[str, Any]) -> list[str]:
    if "failure" in row:
        return [f"| {row['name']} | | | | | | | {row['failure']} |"]
    lines: list[str] = []
    for index, (name, seen) in enumerate(row["entrants"].items()):
        cells = [row["name"] if index == 0 else "", name]
        if "us" in seen:
            cells += [f"{seen['us']:.2f}", _rate(seen), _faster(row, name), _error(seen), _joules(seen)]
            notes = [] if seen.get("repeatable", True) else ["not the same bits each time"]
            cells.append(", ".join([*notes, *(["queued"] if seen.get("queued") else [])]))
        else:
            cells += ["", "", "", _error(seen), "", str(seen["failure"])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _rate(seen: Mapping[str, Any]) -> str:
    if "tflops" in seen:
        return f"{seen['tflops']:.1f} TFLOP/s"
    return f"{seen['gbps']:.0f} GB/s" if "gbps" in seen else ""


def _faster(row: Mapping[str, Any], name: str) -> str:
    found = row.get("ratios", {}).get(name)
    if name == OURS or found is None:
        return ""
    low, high = found["interval"]
    return f"{found['ratio']:.3f} ({low:.3f}–{high:.3f})"


def _error(seen: Mapping[str, Any]) -> str:
    return "" if seen.get("error") is None else f"{seen['error']:.1e}"


def _joules(seen: Mapping[str, Any]) -> str:
    return "" if seen.get("joules") is None else f"{seen['joules']:.4g}"


def _bar(what: str, against: str, one: Mapping[str, Any]) -> str:
    return f"| {what} | {against} | {one['bar']:g} | {_ratio(one['ratio'])} | {'' if one['held'] else 'missed'} |"


def _ratio(ratio: float | None) -> str:
    return "nothing" if ratio is None else f"{ratio:.3f}"


def _ways(row: Mapping[str, Any]) -> list[str]:
    said = "; ".join(dict.fromkeys(row.get("ways", ())))
    return [f"| {row['name']} | {said.replace('|', '/')} |"] if said else []


def _profiles(row: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, seen in row.get("entrants", {}).items():
        if (profile := seen.get("profile")) is None:
            continue
        figures = [profile.get(metric) for metric in (*PROFILER_METRICS, "registers_per_thread")]
        lines.append(f"| {row['name']} | {name} | {' | '.join(_figure(value) for value in figures)} |")
    return lines


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def missed(rows: Sequence[Mapping[str, Any]], means: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """The bars that were not cleared, in words."""
    bars = [(row["name"], name, one) for row in rows for name, one in row.get("bars", {}).items()]
    bars += [(f"mean of {one['name']}", one["peer"], one) for one in means]
    return [
        f"{what}: {_ratio(one['ratio'])} of {name}, the bar is {one['bar']:g}"
        for what, name, one in bars
        if not one["held"]
    ]


def failed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows without figures, in words."""
    whole = [f"{row['name']}: {row['failure']}" for row in rows if "failure" in row]
    return whole + [
        f"{row['name']}: {name}: {seen['failure']}"
        for row in rows
        for name, seen in row.get("entrants", {}).items()
        if "failure" in seen
    ]
