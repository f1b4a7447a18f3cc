"""What a person does in MLflow's UI to compare the points of a sweep, in headless Chromium.

The picture of it is kept under the name that the README gives.
"""

from __future__ import annotations

import re

import pytest
from mlflow import MlflowClient
from playwright.sync_api import Browser, expect

from pipeline.config import ROOT

from .conftest import Logged

PICTURE = ROOT / "outputs" / "tests" / "mlflow_compare.png"
_WAIT_MS = 60_000


@pytest.fixture(autouse=True)
def patience() -> None:
    expect.set_options(timeout=_WAIT_MS)


def test_the_points_of_a_sweep_are_compared_side_by_side(chromium: Browser, logged: Logged) -> None:
    experiment = MlflowClient(logged.uri).get_experiment_by_name("nmt_ende")
    assert experiment is not None
    with chromium.new_context(viewport={"width": 1500, "height": 1200}) as context:
        page = context.new_page()
        page.set_default_timeout(_WAIT_MS)
        page.goto(f"{logged.uri}/#/experiments/{experiment.experiment_id}/runs")
        search = page.get_by_test_id("search-box")
        search.fill('tags.stage = "sweep"')
        search.press("Enter")
        # The parent, which is shown with its points, and no run of another stage.
        expect(page.get_by_text("3 matching runs")).to_be_visible()
        page.get_by_role("row").filter(has_text="sweep ").locator("button").first.click()
        for temperature in (1, 2):
            name = re.compile(rf"^uncertainty\.temperature={temperature} ")
            link = page.get_by_role("link", name=name)
            page.get_by_role("row").filter(has=link).get_by_role("checkbox").first.check()
        page.get_by_role("button", name="Compare", exact=True).click()
        expect(page.get_by_text("Comparing 2 Runs").first).to_be_visible()
        expect(page.get_by_text("uncertainty.temperature", exact=True).first).to_be_visible()
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURE, full_page=True)
    assert PICTURE.stat().st_size > 10_000
