"""Records what the compiler makes, as digests; and compares with those that are committed.

    python tests/recorder/record.py check                     everything, with those of tests/recorder/digests
    python tests/recorder/record.py check --quick             a sample of each part
    python tests/recorder/record.py check --part library --only attention
    python tests/recorder/record.py write --part library      anew
    python tests/recorder/record.py check --keep FOLDER       also keeps the texts, to compare those of two trees

Every few cases have a process of their own, with an empty cache. `--plant` disables a pass or changes a constant in
these processes, to see that entries differ. Exit status 1: entries differ, are missing or are new.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

HERE = Path(__file__).parent
DIGESTS = HERE / "digests"

Entries = dict[str, dict[str, str]]


class Job(NamedTuple):
    """Some cases of a part."""

    part: str
    cases: tuple[str, ...]


def jobs_of(parts: Sequence[str], only: Sequence[str], *, quick: bool) -> list[Job]:
    from recorded_parts import PARTS

    found: list[Job] = []
    for name in parts:
        part = PARTS[name]
        cases = list(part.quick) if quick else list(part.cases())
        cases = [case for case in cases if not only or any(word in case for word in only)]
        found += [Job(name, tuple(cases[at : at + part.together])) for at in range(0, len(cases), part.together)]
    return found


def recorded(job: Job, keep: Path | None, plant: str | None) -> Entries:
    """The entries of a job, made by a process of its own."""
    from recorded_pins import environment

    with TemporaryDirectory(prefix="tessera-recorder-") as folder:
        found = Path(folder) / "entries.json"  # what examples print goes elsewhere
        asked = {
            "part": job.part,
            "cases": job.cases,
            "keep": None if keep is None else str(keep),
            "plant": plant,
            "found": str(found),
        }
        done = subprocess.run(
            [sys.executable, str(HERE / "record.py"), "worker"],
            input=json.dumps(asked),
            env=environment(str(Path(folder) / "cache")),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"recording {job.part}: {', '.join(job.cases)} failed\n{done.stdout}{done.stderr}")
        return json.loads(found.read_text(encoding="utf-8"))


def worker() -> None:
    """What a process of its own does: reads cases, and writes their entries into a file."""
    from recorded_entries import Recording
    from recorded_parts import PARTS
    from recorded_plants import PLANTS

    asked = json.loads(sys.stdin.read())
    if asked["plant"] is not None:
        PLANTS[asked["plant"]]()
    recording = Recording(None if asked["keep"] is None else Path(asked["keep"]))
    cases = PARTS[asked["part"]].cases()
    for name in asked["cases"]:
        cases[name](recording)
    Path(asked["found"]).write_text(json.dumps(recording.entries), encoding="utf-8")


def read(part: str) -> Entries:
    path = DIGESTS / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(part: str, entries: Mapping[str, Mapping[str, str]]) -> None:
    """One entry a line: differences are read by people."""
    lines = [f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(entries[key])}" for key in sorted(entries)]
    DIGESTS.mkdir(exist_ok=True)
    (DIGESTS / f"{part}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def differences(expected: Entries, found: Entries, *, whole: bool) -> Iterator[str]:
    """What differs, in words; entries that were not recorded count if all were to be."""
    for key in sorted(found):
        if key not in expected:
            yield f"{key}: new"
            continue
        aspects = sorted({*expected[key], *found[key]})
        changed = [one for one in aspects if expected[key].get(one) != found[key].get(one)]
        if changed:
            yield f"{key}: {', '.join(changed)} differ"
    if whole:
        yield from (f"{key}: missing" for key in sorted(expected.keys() - found.keys()))


def main(arguments: Sequence[str] | None = None) -> int:
    from recorded_parts import PARTS
    from recorded_plants import PLANTS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "write", "worker"])
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be given again")
    parser.add_argument("--only", action="append", default=[], help="only cases whose name contains this")
    parser.add_argument("--quick", action="store_true", help="a fixed sample of each part")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="a folder for the texts")
    parser.add_argument("--plant", choices=list(PLANTS), help="a fault to plant")
    asked = parser.parse_args(arguments)
    if asked.command == "worker":
        worker()
        return 0
    parts, whole = asked.part or list(PARTS), not (asked.quick or asked.only)
    if asked.command == "write" and (asked.quick or asked.plant):
        parser.error("digests are written of the tree as it is, all of a part or those that --only names")
    begun = time.monotonic()
    jobs = jobs_of(parts, asked.only, quick=asked.quick)
    count = changed = 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        keeps = [None if asked.keep is None else asked.keep.absolute() / job.part for job in jobs]
        made = zip(jobs, pool.map(recorded, jobs, keeps, [asked.plant] * len(jobs)), strict=True)
        for part, several in groupby(made, key=lambda one: one[0].part):
            entries: Entries = {}
            for _, some in several:
                entries |= some
            expected = read(part)
            lines = list(differences(expected, entries, whole=whole))
            count, changed = count + len(entries), changed + len(lines)
            if asked.command == "write":
                write(part, entries if whole else expected | entries)
            print(f"{part}: {len(entries)} entries, {len(lines)} differ", flush=True)
            for line in lines if asked.command == "check" else ():
                print(f"  {part}: {line}", flush=True)
    print(f"{count} entries in {time.monotonic() - begun:.0f} s, {changed} differ")
    return 1 if changed and asked.command == "check" else 0


if __name__ == "__main__":
    sys.exit(main())
