"""What runs log to a real MLflow server, and what its web page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run
from playwright.sync_api import Browser, expect

from pipeline.run.settings import ROOT

from .conftest import Logged

PICTURE = ROOT / "outputs" / "tests" / "mlflow_compare.png"
_WAIT_MS = 60_000


@pytest.fixture
def client(logged: Logged) -> MlflowClient:
    return MlflowClient(logged.uri)


def runs_of(client: MlflowClient, stage: str) -> list[Run]:
    experiment = client.get_experiment_by_name("nmt_ende")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], f"tags.stage = '{stage}'"))


def artifacts(client: MlflowClient, run: Run) -> set[str]:
    return {artifact.path for artifact in client.list_artifacts(run.info.run_id)}


def downloaded(client: MlflowClient, run: Run, name: str) -> str:
    return Path(client.download_artifacts(run.info.run_id, name)).read_text(encoding="utf-8")


def test_points_of_a_swept_range_have_one_parent(client: MlflowClient) -> None:
    points = runs_of(client, "sweep")
    assert {run.data.params["uncertainty.temperature"] for run in points} == {"1", "2"}
    (parent,) = {run.data.tags["mlflow.parentRunId"] for run in points}
    assert {"summary.csv", "summary.md", "summary.svg"} <= artifacts(client, client.get_run(parent))
    assert {run.info.status for run in (*points, client.get_run(parent))} == {"FINISHED"}
    assert len({frozenset(run.data.metrics) for run in points}) == 1


def test_run_has_settings_metrics_and_tags(client: MlflowClient) -> None:
    (run,) = runs_of(client, "metrics")
    assert run.info.run_name.startswith("metrics ")
    assert run.info.run_name.endswith(" laptop")
    assert run.data.params["decode.beam"] == "5"
    assert run.data.metrics
    for tag in ("task", "ensemble", "combination", "git", "data"):
        assert run.data.tags[tag] not in ("", "unknown")
    settings = yaml.safe_load(downloaded(client, run, "settings.yaml"))
    assert settings["decode"]["beam"] == 5


def test_tables_figures_and_report_page_are_artifacts(client: MlflowClient) -> None:
    (metrics,) = runs_of(client, "metrics")
    assert any(name.endswith(".svg") for name in artifacts(client, metrics))
    (tables,) = runs_of(client, "tables")
    names = artifacts(client, tables)
    assert {"results.csv", "all_tables.tex", "claims.md", "index.html"} <= names


def test_test_sets_are_inputs(client: MlflowClient) -> None:
    (run,) = runs_of(client, "metrics")
    inputs = {entry.dataset.name: entry for entry in run.inputs.dataset_inputs}
    assert "nmt_ende help" in inputs
    help_set = inputs["nmt_ende help"]
    assert [(tag.key, tag.value) for tag in help_set.tags] == [
        ("mlflow.data.context", "evaluation")
    ]
    assert json.loads(help_set.dataset.source)["files"] == ["test/help.jsonl"]
    assert len({entry.dataset.digest for entry in inputs.values()}) > 1


def test_members_are_a_registered_model_version(client: MlflowClient) -> None:
    (run,) = runs_of(client, "metrics")
    (version,) = client.search_model_versions("name='nmt_ende ensembles'")
    assert version.run_id == run.info.run_id
    (ensemble,) = json.loads(downloaded(client, run, "ensemble.json"))
    assert [member["name"] for member in ensemble["members"]] == ["seed_1", "seed_2"]


def test_points_of_a_sweep_can_be_compared_side_by_side(chromium: Browser, logged: Logged) -> None:
    """The clicks of the README, in a new browser from MLflow's first page on.

    The screenshot is saved under the name that the README gives.
    """
    expect.set_options(timeout=_WAIT_MS)
    with chromium.new_context(viewport={"width": 1500, "height": 1200}) as context:
        page = context.new_page()
        page.set_default_timeout(_WAIT_MS)
        page.goto(logged.uri)
        page.get_by_role("button", name="Model training", exact=True).click()
        page.get_by_role("link", name="nmt_ende", exact=True).click()
        sweep = page.get_by_role("row").filter(has_text="sweep T=")
        expect(sweep).to_be_visible()  # runs are shown at once
        search = page.get_by_test_id("search-box")
        search.fill('tags.stage = "sweep"')
        search.press("Enter")
        # The sweep and its two points, and no run of another stage.
        expect(page.get_by_text("3 matching runs")).to_be_visible()
        sweep.locator("button").first.click()
        for temperature in (1, 2):
            link = page.get_by_role("link", name=f"T={temperature}", exact=True)
            page.get_by_role("row").filter(has=link).get_by_role("checkbox").first.check()
        page.get_by_role("button", name="Compare", exact=True).click()
        expect(page.get_by_text("Comparing 2 Runs").first).to_be_visible()
        expect(page.get_by_text("uncertainty.temperature", exact=True).first).to_be_visible()
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURE, full_page=True)
        page.go_back()
        page.get_by_test_id("clear-button").click()
        expect(page.get_by_test_id("search-box")).to_have_value("")
        expect(page.get_by_text("3 matching runs")).to_be_hidden()
    assert PICTURE.stat().st_size > 10_000
