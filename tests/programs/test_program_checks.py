"""Safety checks in programs: the first op that makes a NaN is named, with the user's line, on either device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from program_cases import KERNELS, check_close, drawn, expected, program_of, tensor

import tessera as ts
from tessera import knobs
from tessera.errors import DtypeError, ShapeError, TesseraError

V = tensor("N")
SOURCE = f"""{KERNELS}
graph.func @main(%a: {V}, %b: {V}) -> ({V}) {{
  %s = graph.ew<add> %a, %b : {V}, {V} -> {V} loc("model.py":12:4)
  %n = arith.constant 0.000000e+00 : f32
  %h = graph.call_kernel @shift(%s, %n) : ({V}, f32) -> {V}
  %l = graph.ew<log> %h : {V} -> {V} loc("model.py":13:8)
  %m = graph.ew<sub> %l, %l : {V}, {V} -> {V} loc("model.py":14:8)
  %k = graph.call_kernel @shift(%m, %n) : ({V}, f32) -> {V}
  %r = graph.ew<sqrt> %k : {V} -> {V} loc("model.py":15:8)
  graph.return %r : {V}
}}"""


def test_the_first_op_that_makes_a_nan_is_named(device: str) -> None:
    with knobs.checks.using("nan"):
        program = program_of(SOURCE, device)
    good = [ts.full((70,), 2.0), ts.ones(70)]
    given = [value.to(device) for value in good]
    bound = program.bind(given)
    check_close(bound(*given), expected(SOURCE, good))
    bad = good[0].numpy().copy()
    bad[65] = -5.0
    given[0] = ts.asarray(bad).to(device)
    with pytest.raises(DtypeError, match=r"log made NaN of") as raised:
        bound(*given)
    assert raised.value.span is not None
    assert (raised.value.span.file, raised.value.span.line) == ("model.py", 13)
    # The program is as good as before.
    given[0] = good[0].to(device)
    check_close(bound(*given), expected(SOURCE, good))


def test_infinities_less_themselves_are_named(device: str) -> None:
    with knobs.checks.using("nan"):
        program = program_of(SOURCE, device)
    given = [ts.zeros(70).to(device), ts.zeros(70).to(device)]
    with pytest.raises(DtypeError, match=r"sub made NaN of") as raised:
        program.bind(given)(*given)
    assert raised.value.span is not None
    assert raised.value.span.line == 14


def test_nothing_is_said_without_checks(device: str) -> None:
    program = program_of(SOURCE, device)
    given = [ts.full((70,), -2.0).to(device), ts.ones(70).to(device)]
    (result,) = program.bind(given)(*given)
    assert np.isnan(result.cpu().numpy()).all()


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["gather", "scatter", "loop"])
def test_indices_out_of_range_are_named(kind: str, device: str) -> None:
    def function(x: Any, indices: Any) -> Any:
        if kind == "gather":
            return ts.exp(ts.take(x, indices, axis=0))
        if kind == "scatter":
            return x.at[indices].add(1.0)

        def step(total: Any, index: Any) -> Any:
            return total + x[index[None]][0], None

        return ts.scan(step, ts.zeros(x.shape[1:]), indices)[0]

    x = drawn((5, 3)).to(device)
    with knobs.checks.using("bounds"), knobs.backend.using("auto"):
        jitted = ts.jit(function)
        good = jitted(x, ts.asarray([0, -5, 4]).to(device))
        for indices in ([0, 5, 1], [-6, 0, 0]):
            said = r"(gather|scatter): an index is out of range for axis 0 of size 5"
            with pytest.raises(ShapeError, match=said) as raised:
                jitted(x, ts.asarray(indices).to(device))
            assert raised.value.span is not None
            assert raised.value.span.file == __file__
    with knobs.backend.using("auto"):
        check_close([good], [ts.jit(function)(x, ts.asarray([0, -5, 4]).to(device)).cpu().numpy()])
        ts.jit(function)(x, ts.asarray([0, 5, 1]).to(device))  # no check


def test_the_interpreter_names_the_first_op_that_makes_a_nan() -> None:
    @ts.jit
    def function(x: Any) -> Any:
        def step(total: Any, row: Any) -> Any:
            return total + ts.log(row), None

        return ts.scan(step, ts.zeros((2,)), x)[0]

    good, bad = np.ones((3, 2), np.float32), np.array([[1, 1], [1, -3]], np.float32)
    with knobs.interpret.using(True):
        assert np.isnan(function(bad).numpy()).any()
        with knobs.checks.using("nan"):
            assert function(good).tolist() == [0.0, 0.0]
            with pytest.raises(DtypeError, match=r"log made NaN of -3, at \[1\]") as raised:
                function(bad)
    assert raised.value.span is not None
    assert raised.value.span.file == __file__


def summed(x: Any) -> Any:
    return ts.sum(x, axis=0)


def multiplied(x: Any) -> Any:
    return x.mT @ x


def added_up(x: Any) -> Any:
    return ts.cumulative_sum(x, axis=0)


@pytest.mark.parametrize(
    ("values", "said"), [(summed, "sum made NaN"), (multiplied, "matmul made NaN"), (added_up, "sum made NaN")]
)
def test_the_interpreter_excuses_what_was_nan_before(values: Any, said: str) -> None:
    with knobs.interpret.using(True), knobs.checks.using("nan"):
        function = ts.jit(values)
        function(np.array([[np.nan], [1.0]], np.float32))
        with pytest.raises(DtypeError, match=said):
            function(np.array([[np.inf], [-np.inf]], np.float32) if said[0] == "s" else np.array([[np.inf, 0.0]]))


def test_asserts_of_kernels_stop_a_program(device: str) -> None:
    source = f"""
    tile.func @positive(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>)
        outputs 1 shapes [[N], [N]] grid ["(N + 63)//64"] {{
      %column = tile.program_id 0
      %width = arith.constant 64 : index
      %left = arith.muli %column, %width : index
      %loaded = tile.load %x[%left] : !tile.view<1, f32, global> -> tensor<64xf32>
      %zero = arith.constant 0.000000e+00 : f32
      %zeros = tile.full %zero : tensor<64xf32>
      %fine = tile.ew<ge> %loaded, %zeros : tensor<64xf32>, tensor<64xf32> -> tensor<64xi1>
      %first = tile.reduce<and> %fine, 0 : tensor<64xi1> -> tensor<i1>
      tile.assert %first, "a number is negative" : tensor<i1> loc("kernels.py":3:4)
      tile.store %loaded, %y[%left] : tensor<64xf32>, !tile.view<1, f32, global>
      tile.return
    }}
    graph.func @main(%a: {V}) -> ({V}) effects [io] {{
      %b = graph.ew<add> %a, %a : {V}, {V} -> {V}
      %c = graph.call_kernel @positive(%b) : ({V}) -> {V}
      %d = graph.ew<add> %c, %a : {V}, {V} -> {V}
      graph.return %d : {V}
    }}"""
    program = program_of(source, device)
    good, bad = drawn((100,)).to(device), ts.full((100,), -1.0).to(device)
    positive = ts.full((100,), 1.5).to(device)
    bound = program.bind([good])
    with pytest.raises(TesseraError, match="a number is negative"):
        bound(bad)
    check_close(bound(positive), expected(source, [positive]))
