"""Branches, loops and effects of programs, against the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from program_cases import KERNELS, check, check_close, drawn, expected, program_of, tensor

import tessera as ts
from tessera.interpreters.core.machine import Machine, run_ranks

V, S, F = tensor("N"), tensor(""), tensor("", "i1")
M = tensor("T, N")

FIBONACCI = f"""
graph.func @main(%a: {V}, %b: {V}, %n: {S}, %c: {V}) -> ({V}, {V}, {S}, {V}) {{
  %r:4 = graph.while (%a, %b, %n, %c) if {{
  ^bb0(%x: {V}, %y: {V}, %k: {S}, %z: {V}):
    %zero = graph.constant {S} = [0.0]
    %t = graph.ew<gt> %k, %zero : {S}, {S} -> {F}
    graph.yield %t : {F}
  }} do {{
  ^bb0(%x: {V}, %y: {V}, %k: {S}, %z: {V}):
    %one = graph.constant {S} = [1.0]
    %e = graph.ew<add> %x, %z : {V}, {V} -> {V}
    %s = graph.ew<add> %e, %y : {V}, {V} -> {V}
    %m = graph.ew<sub> %k, %one : {S}, {S} -> {S}
    graph.yield %y, %s, %m, %z : {V}, {V}, {S}, {V}
  }} : ({V}, {V}, {S}, {V}) -> ({V}, {V}, {S}, {V})
  graph.return %r#0, %r#1, %r#2, %r#3 : {V}, {V}, {S}, {V}
}}"""

BRANCH = f"""{KERNELS}
graph.func @main(%a: {V}, %f: {F}) -> ({V}) {{
  %n = arith.constant 1.500000e+00 : f32
  %d = graph.call_kernel @shift(%a, %n) : ({V}, f32) -> {V}
  %r = graph.cond %f then {{
    %t = graph.call_kernel @shift(%d, %n) : ({V}, f32) -> {V}
    %s = graph.ew<add> %a, %t : {V}, {V} -> {V}
    graph.yield %s : {V}
  }} else {{
    graph.yield %a : {V}
  }} : {F} -> ({V})
  %q = graph.ew<mul> %r, %d : {V}, {V} -> {V}
  graph.return %q : {V}
}}"""

SCAN = f"""{KERNELS}
graph.func @main(%a: {V}, %xs: {M}) -> ({V}, {M}, {M}, {M}) {{
  %r:4 = graph.scan <[T]>REVERSE from (%a) over (%xs) do {{
  ^bb0(%c: {V}, %x: {V}):
    %n = arith.constant 1.500000e+00 : f32
    %w = graph.call_kernel @shift(%x, %n) : ({V}, f32) -> {V}
    %s = graph.ew<add> %c, %w : {V}, {V} -> {V}
    %e = graph.ew<mul> %x, %w : {V}, {V} -> {V}
    graph.yield %s, %e, %s, %x : {V}, {V}, {V}, {V}
  }} : ({V}), ({M}) -> ({V}, {M}, {M}, {M})
  graph.return %r#0, %r#1, %r#2, %r#3 : {V}, {M}, {M}, {M}
}}"""

NESTED = f"""
graph.func @main(%a: {V}, %xs: {M}, %f: {F}) -> ({V}) {{
  %r = graph.scan <[T]> from (%a) over (%xs) do {{
  ^bb0(%c: {V}, %x: {V}):
    %k = graph.constant {S} = [2.0]
    %w:2 = graph.while (%c, %k) if {{
    ^bb0(%y: {V}, %j: {S}):
      %zero = graph.constant {S} = [0.0]
      %t = graph.ew<gt> %j, %zero : {S}, {S} -> {F}
      graph.yield %t : {F}
    }} do {{
    ^bb0(%y: {V}, %j: {S}):
      %one = graph.constant {S} = [1.0]
      %n = graph.ew<sub> %j, %one : {S}, {S} -> {S}
      %z = graph.cond %f then {{
        %s = graph.ew<add> %y, %x : {V}, {V} -> {V}
        graph.yield %s : {V}
      }} else {{
        graph.yield %y : {V}
      }} : {F} -> ({V})
      graph.yield %z, %n : {V}, {S}
    }} : ({V}, {S}) -> ({V}, {S})
    graph.yield %w#0 : {V}
  }} : ({V}), ({M}) -> ({V})
  graph.return %r : {V}
}}"""


def flag(value: bool) -> ts.Tensor:
    return ts.asarray(np.bool_(value))


@pytest.mark.parametrize("trips", [0, 1, 2, 7])
def test_loops_carry_values_on(trips: int, device: str) -> None:
    # Whole numbers, so that sums are exact; the last is carried on as it is, and its strides are not plain.
    values = [ts.ones(7), ts.asarray(np.arange(7, dtype=np.float32)), ts.asarray(np.float32(trips)), ts.ones(14)[::2]]
    check(FIBONACCI, values, device)


@pytest.mark.parametrize("chosen", [True, False])
def test_branches(chosen: bool, device: str) -> None:
    check(BRANCH, [drawn((9,)), flag(chosen)], device)
    check(BRANCH, [drawn((18,))[::-2], flag(chosen)], device)


@pytest.mark.quick
@pytest.mark.parametrize("reverse", ["", " reverse"])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_scans_go_along_arrays(reverse: str, length: int, device: str) -> None:
    source = SCAN.replace("REVERSE", reverse)
    check(source, [drawn((5,)), drawn((length, 5), seed=1)], device)
    check(source, [drawn((8,)), drawn((8, 2 * length), seed=1).T[::2]], device)


@pytest.mark.parametrize("chosen", [True, False])
def test_loops_in_loops(chosen: bool, device: str) -> None:
    check(NESTED, [drawn((6,)), drawn((3, 6), seed=1), flag(chosen)], device)


def test_random_numbers_are_those_of_the_interpreter(device: str) -> None:
    kind = tensor("N")
    source = f"""
    graph.func @main(%a: {kind}) -> ({kind}, {kind}) effects [random] {{
      %u = graph.random<uniform> : {kind}
      %n = graph.random<normal> : {kind}
      %s = graph.ew<add> %a, %u : {kind}, {kind} -> {kind}
      graph.return %s, %n : {kind}, {kind}
    }}"""
    ours, theirs = Machine(seed=5), Machine(seed=5)
    program = program_of(source, device, world=lambda: ours)
    given = [drawn((33,)).to(device)]
    bound = program.bind(given)
    first = bound(*given)
    check_close(first, expected(source, given, theirs))
    second = bound(*given)
    check_close(second, expected(source, given, theirs))
    assert not np.array_equal(first[1].cpu().numpy(), second[1].cpu().numpy())


def test_slots_outlive_calls(device: str) -> None:
    kind = tensor("4")
    source = f"""
    graph.state @total : {kind}
    graph.func @main(%a: {kind}) -> ({kind}) effects ["state(total)"] {{
      %t = graph.state_read @total : {kind}
      %s = graph.ew<add> %t, %a : {kind}, {kind} -> {kind}
      graph.state_write @total, %s : {kind}
      graph.return %t : {kind}
    }}"""
    program = program_of(source, device)
    given = [ts.ones(4).to(device)]
    bound = program.bind(given)
    assert [bound(*given)[0].cpu().tolist()[0] for _ in range(3)] == [0.0, 1.0, 2.0]


def test_arrays_are_printed_in_order(device: str) -> None:
    kind = tensor("2")
    source = f"""
    graph.func @main(%a: {kind}) -> ({kind}) effects [io] {{
      graph.print "before", %a : {kind}
      %s = graph.ew<add> %a, %a : {kind}, {kind} -> {kind}
      graph.print "after", %s : {kind}
      graph.return %s : {kind}
    }}"""
    said: list[str] = []
    machine = Machine(write=said.append)
    given = [ts.ones(4)[::2].to(device)]
    program_of(source, device, world=lambda: machine).bind(given)(*given)
    assert said == ["before [1. 1.]\n", "after [2. 2.]\n"]


def test_ranks_meet_in_a_collective() -> None:
    kind = tensor("3")
    source = f"""
    graph.func @main(%a: {kind}) -> ({kind}) effects ["collective(data)"] {{
      %s = graph.all_reduce<sum> %a over "data" : {kind} -> {kind}
      graph.return %s : {kind}
    }}"""

    def rank(number: int, machine: Machine) -> list[float]:
        given = [ts.full((3,), float(number + 1))]
        return program_of(source, world=lambda: machine).bind(given)(*given)[0].tolist()

    assert run_ranks(2, "data", rank) == [[3.0] * 3] * 2
