"""Events inside of the programs of traces, for inputs that take most of the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tessera.errors import TesseraError
from tessera.metatracing.clients.kernels import KernelClient, KernelProgram
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import AttentionTrace, InputProfile
from tessera.tiers.reports import ReportingRuntime
from tessera.tiers.sites.specialization_site import SpecializationSite
from tessera.tiers.stand_ins import stand_in

MOST = 4
"""Inputs that are looked into: each may take a second."""


def with_events(runtime: ReportingRuntime, traces: Sequence[AttentionTrace]) -> list[AttentionTrace]:
    """Traces; the last one of each hot input with the events of the program that its site runs for it now."""
    spent: Counter[InputProfile] = Counter()
    for one in traces:
        spent[one.input_profile] += round(1e6 * one.execution_count * one.execution_pattern.execution_time_ms)
    hot = {profile for profile, _ in spent.most_common(MOST)}
    made: list[AttentionTrace] = []
    for one in reversed(traces):
        if one.input_profile in hot:
            hot.remove(one.input_profile)
            made.append(_looked_into(runtime, one))
        else:
            made.append(one)
    return made[::-1]


def _looked_into(runtime: ReportingRuntime, trace: AttentionTrace) -> AttentionTrace:
    arguments = trace.input_profile.arguments
    for site in runtime.sites():
        mine = any(record.arguments == arguments for record in site.ring)
        if site.name == trace.input_profile.site and isinstance(site.client, KernelClient) and mine:
            try:
                memory, compute = _events(site, site.client, trace)
            except TesseraError:  # there is no such program here
                return trace
            pattern = replace(trace.execution_pattern, memory_accesses=memory, compute_events=compute)
            return replace(trace, execution_pattern=pattern)
    return trace


def _events(
    site: SpecializationSite, client: KernelClient, trace: AttentionTrace
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The events of memory, and on a GPU of units that compute."""
    from tessera.metatracing.events.execution import KernelExecution
    from tessera.metatracing.events.host import HostExecution, HostMemoryPatternTracer
    from tessera.metatracing.events.tracers import GPUComputePatternTracer, GPUMemoryPatternTracer

    values = [stand_in(one) if isinstance(one, Meta) else one for one in trace.input_profile.arguments]
    program = next((one for one in site.programs if one.serves(values)), None)
    if program is None or not isinstance(program.compiled, KernelProgram):
        return (), ()
    executable: Any = program.compiled.program.executable
    if executable is not None and executable.plan.device is not None:
        seconds = trace.execution_pattern.execution_time_ms / 1e3
        launch = KernelExecution.launched(executable, values, seconds=seconds or None)
        memory = GPUMemoryPatternTracer().trace_memory_patterns(launch)
        return memory.events, GPUComputePatternTracer().trace_compute_patterns(launch).events
    host = HostExecution.of(client.form(program.level), *values, **site.first.context.static)
    return HostMemoryPatternTracer().trace_memory_patterns(host).events, ()
