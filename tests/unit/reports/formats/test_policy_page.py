"""The page of policies on a running system."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from sample_policies import BOTH

from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from reports.data.policy_runs import ElasticSystem
from reports.formats.policy_page import render_page

SCENARIO = """\
name: tiny
title: Policies & <loads>
kind: elasticity
systems: [harmonicio/stream]
grid: {message_size: [1 kB], cpu_cost: [50 ms]}
elasticity:
  load: [{time: 10 s, rate: 30 /s}]
  policies: [ds2, fixed]
  duty: 20 %
settings:
  fixed: {parallelism: {system: 2}}
"""


def render(folder: Path, *systems: ElasticSystem) -> str:
    """Return the page of a run of the scenario."""
    file = folder / "tiny.yaml"
    file.write_text(SCENARIO)
    return render_page(parse_scenario(read_document(file)), systems)


def test_the_page_shows_policies_and_escapes_texts(tmp_path: Path) -> None:
    """A reason cannot become markup, and throttled workers are called so."""
    page = render(tmp_path, BOTH)
    assert "Policies &amp; &lt;loads&gt;" in page
    assert "&lt;b&gt;because&lt;/b&gt;" in page
    assert "<b>because" not in page
    assert page.count("<svg") == 1
    assert "they burnt 20% of the cost" in page


def test_a_run_without_an_interval_is_not_finished(tmp_path: Path) -> None:
    """It was ended before the first policy had one."""
    assert "This run is not finished." in render(tmp_path)
