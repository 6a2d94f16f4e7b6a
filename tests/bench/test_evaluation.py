"""The page of the performance evaluation: it says what the result files say."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def evaluation() -> Any:
    spec = spec_from_file_location("evaluation", ROOT / "benchmarks" / "evaluation.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.acceptance
def test_the_page_and_its_plots_are_those_that_the_script_writes(evaluation: Any) -> None:
    text, plots = evaluation.written()
    assert evaluation.PAGE.read_text(encoding="utf-8") == text, "run python benchmarks/evaluation.py"
    assert {path.stem for path in evaluation.PLOTS.glob("*.svg")} == set(plots)
    for name, drawn in plots.items():
        assert (evaluation.PLOTS / f"{name}.svg").read_text(encoding="utf-8") == drawn
        ET.fromstring(drawn)
        assert f"(plots/{name}.svg)" in text


def test_figures_are_taken_from_the_files(evaluation: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "name": "agents attention 1×2 f16",
        "ratios": {"cudnn": {"ratio": 1.2345, "interval": [1.2, 1.3]}},
        "bars": {"cudnn": {"bar": 1.3, "ratio": 1.2345, "held": False}},
    }
    means = [{"name": "agents attention f16", "peer": "cudnn", "bar": 1.15, "ratio": 1.2365, "held": True}]
    record = {"environment": {"gpu": "made up", "date": "today"}, "means": means, "rows": [row]}
    (tmp_path / "h200-agents.json").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(evaluation, "RESULTS", tmp_path)
    text, plots = evaluation.written()
    assert "| agents attention f16 | cudnn | 1.236 | 1.15 | held |" in text
    assert "0 of 1 bars on single rows were held. Missed:\n\n- agents attention 1×2 f16: 1.234 of cudnn, 1.3" in text
    assert "made up, today" in text
    assert ">1.23</text>" in plots["attention-h200"]
    assert set(plots) == {"attention-h200"}
    ET.fromstring(plots["attention-h200"])
