"""How well A/B tests choose: what was taken for attention on a CPU, against the best of all that ever competed.

    taskset -c 0,1 python benchmarks/contests.py --only x64 --runtimes 7

For each configuration several new runtimes climb, each with A/B tests of its own. Then everything that competed in any
of them is interleaved, and the program that each runtime came to is compared with the fastest: by the median of rounds,
since machines change their speed. What it is behind includes what was not asked to compete in its own runtime.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np
import tiers

from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.tiers.client import TierLevel
from tessera.tiers.sites.ab_test import ABTest, Contender
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.programs import InstalledProgram

LONGEST_SECONDS = 30.0
AB_TESTS = 2  # of Tier 2 and of Tier 3


def climbed(problem: tiers.Problem, rounds: int) -> tuple[InstalledProgram, list[tuple[SiteEntry, ABTest]]]:
    """What a new runtime takes for a problem, and the A/B tests that led to it."""
    quickly: dict[str, Any] = {**tiers.SOON, "contest_rounds": rounds}
    runtime = MetaTracingRuntime(RuntimeConfig(**quickly))
    runtime.execute_flash_attention(*problem.arrays, problem.params)
    (site,) = runtime.sites()
    held: dict[ABTest, SiteEntry] = {}
    until = time.perf_counter() + LONGEST_SECONDS
    while time.perf_counter() < until and (len(held) < AB_TESTS or site.is_working):
        runtime.execute_flash_attention(*problem.arrays, problem.params)
        held |= {ab_test: entry for entry, ab_test, _ in site.candidates.ab_tests}
    if len(held) < AB_TESTS or site.is_working:
        raise SystemExit(f"{problem.name}: its A/B tests were not over after {LONGEST_SECONDS} s")
    return site.programs[0], [(entry, ab_test) for ab_test, entry in held.items()]


def call_of(problem: tiers.Problem, entry: SiteEntry, one: Contender) -> Callable[[], Any]:
    values = (*problem.arrays, problem.scale)
    given = entry.site.given(values) if one.program.compiled.is_native else values
    return lambda: one.run(*given)


def interleaved_shares(
    calls: Mapping[TierLevel, Callable[[], Any]], seconds: float
) -> tuple[dict[TierLevel, float], dict[TierLevel, float]]:
    """What calls take, in parts of a round of all of them: in every other round, and in the others."""
    rounds: list[dict[TierLevel, int]] = []
    levels, random, until = list(calls), np.random.default_rng(0), time.perf_counter() + seconds
    for call in calls.values():
        call()
    while len(rounds) < 10 or time.perf_counter() < until:
        took = dict.fromkeys(levels, 0)
        for index in random.permutation(len(levels)):
            began = time.perf_counter_ns()
            calls[levels[index]]()
            took[levels[index]] = time.perf_counter_ns() - began
        rounds.append(took)

    def typical(some: Sequence[Mapping[TierLevel, int]]) -> dict[TierLevel, float]:
        return {level: median(took[level] / sum(took.values()) for took in some) for level in levels}

    return typical(rounds[::2]), typical(rounds[1::2])


def summary(name: str, behind: Sequence[float], started: Sequence[int]) -> str:
    ordered = sorted(behind)
    return (
        f"{name:28} {100 * fmean(behind):5.2f} % behind the best, nine of ten at most "
        f"{100 * ordered[(9 * len(ordered) - 1) // 10]:.2f} %, all {100 * ordered[-1]:.2f} %; "
        f"{fmean(started):.0f} rounds"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="how well A/B tests choose")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--runtimes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=RuntimeConfig.contest_rounds)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="of timing all that competed, for each configuration"
    )
    options = parser.parse_args()
    behind: list[float] = []
    started: list[int] = []
    for config in tiers.configurations("cpu", options.only):
        problem = tiers.Problem.of(config, "cpu")
        climbs = [climbed(problem, options.rounds) for _ in range(options.runtimes)]
        calls = {
            one.program.level: call_of(problem, entry, one)
            for _, held in climbs
            for entry, ab_test in held
            for one in ab_test.contenders
        }
        # The program that seems the fastest in some rounds was lucky in these, but not in others.
        some, others = interleaved_shares(calls, options.seconds)
        best = min(some, key=lambda level: some[level])
        found = [others[program.level] / others[best] - 1 for program, _ in climbs]
        here = [sum(one.rounds_started for _, ab_test in held for one in ab_test.contenders) for _, held in climbs]
        print(summary(problem.name, found, here), flush=True)
        behind += found
        started += here
    print(summary("all", behind, started))


if __name__ == "__main__":
    main()
