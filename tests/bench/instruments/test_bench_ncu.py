"""Profiles by Nsight Compute: reading its table, what it does not know, and that nothing is made up without it.

Tables are written after ncu's form (`--csv --page raw --nvtx`): a header, a line of units, a line for each kernel.
One is a recording.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from tessera.bench.instruments import ncu
from tessera.bench.instruments.ncu import METRICS, PROFILER_METRICS, parse, profile

RANGES = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
AHEAD = ["ID", "Process ID", "Process Name", "Host Name", RANGES, "Kernel Name", "Context", "Stream", "Device", "CC"]
COUNTERS = ["gpu__time_duration.sum", *(metric.counter for metric in METRICS.values())]
UNITS = ["us", "%", "%", "%", "", "%", "register/thread", "Kbyte/block"]


def inside(*names: str) -> str:
    """A cell of nested ranges."""
    return "1  " + "".join(f'"<default domain>:{name}:none:none:none:none:none:none"  ' for name in names)


def table(*kernels: tuple[str, str, list[str]], counters: list[str] = COUNTERS) -> str:
    """What ncu writes for kernels: their ranges, their names, their values."""
    text = io.StringIO()
    rows = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows.writerow([*AHEAD, *counters])
    rows.writerow([*[""] * len(AHEAD), *UNITS[: len(counters)]])
    for number, (ranges, name, values) in enumerate(kernels):
        rows.writerow([str(number), "42", "python", "127.0.0.1", ranges, name, "1", "7", "0", "9.0", *values])
    return (
        "==PROF== Connected to process 42 (/usr/bin/python3.12)\nhello from the program\n"
        '==PROF== Profiling "softmax" - 0: 0%....50%....100% - 3 passes\n'
        "==PROF== Disconnected from process 42\n" + text.getvalue()
    )


OURS = (inside("tessera-bench 0.0"), "softmax", ["62.5", "98.5", "71.25", "0", "31.5", "75", "40", "1.02"])
GEMM = (inside("outer", "tessera-bench 1.0"), "gemm", ["100", "99", "18.6", "92.5", "32", "18.75", "168", "221.18"])
REDUCE = (inside("outer", "tessera-bench 1.0"), "reduce", ["300", "50", "50", "0.5", "16", "100", "32", "0"])
OUTSIDE = ("", "something", ["1,234.5", "1", "1", "1", "1", "1", "1", "1"])


def test_a_kernel_has_its_figures() -> None:
    found = parse(table(OURS, OUTSIDE))
    assert set(found) == {"0.0"}
    made = found["0.0"]
    assert made.kernels == ("softmax",)
    assert made.unavailable == {}
    assert made.figures == {
        "sm_efficiency": 98.5,
        "achieved_occupancy": 71.25,
        "tensor_active": 0.0,
        "warp_execution_efficiency": pytest.approx(100 * 31.5 / 32),
        "theoretical_occupancy": 75.0,
        "registers_per_thread": 40.0,
        "shared_memory_per_block": pytest.approx(1020),
    }


def test_a_recording_of_an_h200_is_read() -> None:
    """Of ncu's own hand; columns about the device were left out of it."""
    found = parse((Path(__file__).parent / "ncu_recording.csv").read_text())
    assert list(found) == ["0.0", "0.1", "1.0", "1.1", "1.2", "2.0", "2.1", "2.2", "3.0", "3.1", "3.2"]
    assert all(set(made.figures) == set(METRICS) and not made.unavailable for made in found.values())
    attention = found["1.0"]
    assert attention.kernels == ("attention",)
    assert attention.figures["sm_efficiency"] == 96.51
    assert attention.figures["achieved_occupancy"] == 12.22
    assert attention.figures["tensor_active"] == 56.4
    assert attention.figures["warp_execution_efficiency"] == pytest.approx(100)
    assert attention.figures["registers_per_thread"] == 255
    assert attention.figures["shared_memory_per_block"] == 82944


def test_several_kernels_count_by_their_time() -> None:
    made = parse(table(OURS, GEMM, REDUCE))["1.0"]
    assert made.kernels == ("gemm", "reduce")
    assert made.figures["sm_efficiency"] == pytest.approx((99 * 100 + 50 * 300) / 400)
    assert made.figures["tensor_active"] == pytest.approx((92.5 * 100 + 0.5 * 300) / 400)
    assert made.figures["warp_execution_efficiency"] == pytest.approx((100 * 100 + 50 * 300) / 400)
    assert made.figures["registers_per_thread"] == 168
    assert made.figures["shared_memory_per_block"] == pytest.approx(221180)


def test_figures_that_ncu_does_not_give_are_none_with_the_reason() -> None:
    ranges, name, values = OURS
    made = parse(table((ranges, name, [*values[:3], "n/a", *values[4:]])))["0.0"]
    assert made.all()["tensor_active"] is None
    assert "ncu gave 'n/a'" in made.unavailable["tensor_active"]
    assert made.all()["sm_efficiency"] == 98.5
    without = parse(table((ranges, name, values[:2]), counters=COUNTERS[:2]))["0.0"]
    assert set(without.unavailable) == set(METRICS) - {"sm_efficiency"}


def test_numbers_have_commas() -> None:
    ranges, name, values = OURS
    made = parse(table((ranges, name, ["1,250.00", *values[1:-2], "1,024", "0"])))["0.0"]
    assert made.figures["registers_per_thread"] == 1024


def test_no_table_is_no_profile() -> None:
    assert parse("==ERROR== The application returned an error code (1).") == {}
    assert parse(table()) == {}


def test_the_four_metrics_of_the_specification_are_there() -> None:
    assert PROFILER_METRICS == ("sm_efficiency", "achieved_occupancy", "tensor_active", "warp_execution_efficiency")
    assert set(PROFILER_METRICS) < set(METRICS)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ncu: notes how it was called, and prints `said`; knows no counter that is named in `unknown`."""
    program = tmp_path / "ncu"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "with (here / 'called').open('a') as notes: notes.write(' '.join(sys.argv[1:]) + '\\n')\n"
        "for name in (here / 'unknown').read_text().split():\n"
        "    if name in ' '.join(sys.argv):\n"
        "        sys.exit(f'==ERROR== Failed to find metric {name}')\n"
        "print((here / 'said').read_text())\n"
    )
    program.chmod(0o755)
    (tmp_path / "unknown").write_text("")
    (tmp_path / "said").write_text(table(OURS))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_command_is_run_once_and_clocks_are_left_alone(tool: Path) -> None:
    found = profile(["python3", "work.py"], ["0.0", "0.1"])
    (called,) = (tool / "called").read_text().splitlines()
    assert called.endswith("python3 work.py")
    assert "--clock-control none" in called
    assert "--profile-from-start off" in called
    assert all(metric.counter in called for metric in METRICS.values())
    assert found["0.0"].figures["sm_efficiency"] == 98.5
    assert found["0.1"].figures == {}
    assert "ncu saw no kernel in it" in found["0.1"].unavailable["sm_efficiency"]


def test_counters_that_ncu_does_not_know_are_left_out_and_named(tool: Path) -> None:
    counter = METRICS["tensor_active"].counter
    (tool / "unknown").write_text(counter)
    ranges, name, values = OURS
    (tool / "said").write_text(
        table((ranges, name, [*values[:3], *values[4:]]), counters=[one for one in COUNTERS if one != counter])
    )
    made = profile(["work"], ["0.0"])["0.0"]
    assert len((tool / "called").read_text().splitlines()) == 2
    assert made.unavailable == {"tensor_active": f"{counter}: ncu does not know it"}
    assert made.figures["sm_efficiency"] == 98.5


def test_what_ncu_says_is_the_reason(tool: Path) -> None:
    (tool / "said").write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n")
    made = profile(["work"], ["0.0"])["0.0"]
    assert made.figures == {}
    assert set(made.unavailable) == set(METRICS)
    assert "ERR_NVGPUCTRPERM" in made.unavailable["sm_efficiency"]


def test_without_ncu_every_figure_is_none_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert ncu.missing() == "there is no ncu on the path or in CUDA_HOME: Nsight Compute is not installed"
    made = profile(["work"], ["a"])["a"]
    assert {made.all()[name] for name in METRICS} == {None}
    assert set(made.unavailable.values()) == {ncu.missing()}
