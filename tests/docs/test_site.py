"""The site builds offline without warnings, and its pages agree with the code."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from dataclasses import fields, is_dataclass
from html import unescape
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml

from pipeline.run.settings import ROOT, PipelineConfig
from pipeline.store.schema import ATTRIBUTES, CONSTANTS, DATASETS
from pipeline.uncertainty.measures_of_sequences import SEQUENCE_MEASURES
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES
from stages.__main__ import STAGES
from tests.docs.pages import PAGES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    external = re.compile(r'(?:src="|<link[^>]*href="|url\(["\']?)(?:https?:)?//[^"\')]*')
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert not external.findall(path.read_text(encoding="utf-8")), path


def _keys(schema: type, prefix: str = "") -> list[str]:
    hints = get_type_hints(schema)
    keys = []
    for field in fields(schema):
        key = f"{prefix}{field.name}"
        nested = is_dataclass(hints[field.name])
        keys += _keys(hints[field.name], f"{key}.") if nested else [key]
    return keys


def test_settings_page_explains_every_setting(site: Path) -> None:
    text = (site / "settings.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r"<tr>\s*<td><code>([\w.]+)</code></td>(.*?)</tr>", text, re.DOTALL))
    keys = _keys(PipelineConfig)
    assert set(keys) <= set(rows)
    assert [key for key in keys if rows[key].rstrip().endswith("<td></td>")] == []


def test_settings_page_shows_every_option(site: Path) -> None:
    text = (site / "settings.html").read_text(encoding="utf-8")
    for path in (ROOT / "conf").glob("*/**/*.yaml"):
        names = path.relative_to(ROOT / "conf").with_suffix("").parts
        shown = ["/".join(names[:n]) + "=" + "/".join(names[n:]) for n in range(1, len(names))]
        assert any(f"<code>{option}</code>" in text for option in shown), shown


def test_commands_page_has_every_stage(site: Path) -> None:
    text = (site / "commands.html").read_text(encoding="utf-8")
    for stage in STAGES:
        assert f"python -m stages.{stage}" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_store_page_has_the_datasets_and_attributes_of_the_schema() -> None:
    text = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(/\S+)` \| (.*?) \| (\w+) \|", text, re.MULTILINE)
    assert rows == [
        (name, ", ".join(dataset.axes), dataset.dtype) for name, dataset in DATASETS.items()
    ]
    attributes = text.partition("## Root attributes")[2]
    named = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\|(.*?)\|", attributes, re.MULTILINE)))
    assert sorted(named) == sorted({*ATTRIBUTES, *CONSTANTS})


def test_measures_page_has_every_measure_with_its_formula(site: Path) -> None:
    text = unescape((site / "measures.html").read_text(encoding="utf-8"))
    rows = re.findall(r"<tr>\s*<td><code>(\w+)</code></td>\s*<td><code>(.*?)</code></td>", text)
    measures = (*TOKEN_MEASURES.values(), *SEQUENCE_MEASURES.values())
    assert sorted(rows) == sorted((measure.name, measure.formula) for measure in measures)


def test_diagram_of_imports_is_current() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
    message = "The diagram is outdated. Run python docs/architecture.py."
    assert drawing["PICTURE"].read_text(encoding="utf-8") == drawing["picture"](), message


def test_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (cited["title"], cited["version"]) == (project["name"], project["version"])
    assert cited["license"] == project["license"]
