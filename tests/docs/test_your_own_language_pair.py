"""Follow docs/your_own_language_pair.md from small files to tables, for several pairs of languages.

The sentences of a language are all combinations of a few phrases. Without a network, nothing can be
downloaded.
"""

from __future__ import annotations

import csv
import itertools
import random
from pathlib import Path

import pytest
import yaml

from pipeline.run.settings import ROOT
from tests.docs.pages import SHELL, blocks, split
from tests.docs.runs import OFFLINE, run_python

PAGE = ROOT / "docs" / "your_own_language_pair.md"
# In addition to what the page composes: sizes of the fault tests, and nothing that takes time.
TINY = (
    "experiment=fault",
    "tracking=off",
    "data.vocabulary_size=100",
    "data.near_duplicate_jaccard=1",
    "ensemble.seeds=[1]",
    "train.validate_quality_sentences=0",
    "decode.parts_per_job=100",
    "decode.max_length_offset=6",
    "uncertainty.beam=[1,2]",
    "uncertainty.temperature=1",
    "metrics.resamples=10",
    "~report.figures",
)
# Table -> test sets of the page that it shows. PRR may lack a value, since a model that has learnt
# nothing has the same error in every sentence.
TABLES = {
    "beyond:performance": {"stories", "other"},
    "beyond:sentence-error-detection": {"stories", "other"},
    "beyond:ood-detection": {"shuffled", "other"},
    "beyond:calibration": {"stories"},
}
# Subjects, verbs and objects that translate each other.
PHRASES = {
    "en": ("The teacher, A neighbour, Our doctor", "opens, sells, paints", "the door, a table"),
    "es": ("El profesor, Un vecino, Nuestra médica", "abre, vende, pinta", "la puerta, una mesa"),
    "de": ("Der Lehrer, Ein Nachbar, Unsere Ärztin", "öffnet, verkauft, malt", "das Tor, ein Bett"),
    "no": ("Læreren, En nabo, Vår lege", "åpner, selger, maler", "døra, et bord"),
    "pt-BR": ("O professor, Um vizinho, Nossa médica", "abre, vende, pinta", "a porta, uma mesa"),
}


def _sentences(language: str) -> list[str]:
    subjects, verbs, objects = (phrases.split(", ") for phrases in PHRASES[language])
    numbers = map(str, range(2, 9))
    texts = [
        f"{subject} {verb} {thing} {number}."
        for subject, verb, thing, number in itertools.product(subjects, verbs, objects, numbers)
    ]
    random.Random(0).shuffle(texts)
    return texts


def _write_text(folder: Path, languages: tuple[str, str]) -> None:
    for language in languages:
        lines = [f"{text}\n" for text in _sentences(language)]
        for name, part in (("train", lines[:-8]), ("other", lines[-8:])):
            path = folder / "text" / f"{name}.{language}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(part), encoding="utf-8", newline="\n")


def _follow(folder: Path, source: str, target: str, *stages: str) -> None:
    """Run the commands of the page for these stages, with the codes of the languages replaced."""
    _write_text(folder, (source, target))
    for block in blocks(PAGE):
        if block.title:
            text = block.text.replace("_language: en", f'_language: "{source}"')
            path = folder / block.title
            path.parent.mkdir(parents=True)
            path.write_text(text.replace("_language: es", f'_language: "{target}"'), "utf-8")
        elif block.language in SHELL:
            for words in split(block.text):
                stage = words[2].removeprefix("stages.")
                if stage not in stages:
                    continue
                tiny = TINY if stage == "compose" else ()
                run_python([*words[1:], *tiny], folder, **OFFLINE)


@pytest.mark.parametrize(("source", "target"), [("en", "es"), ("de", "en")])
def test_page_leads_from_files_to_tables(tmp_path: Path, source: str, target: str) -> None:
    stages = ("prepare", "train", "decode", "uncertainty", "metrics", "tables")
    _follow(tmp_path, source, target, "compose", *stages)
    outputs = tmp_path / "outputs"
    assert not list((outputs / "downloads").rglob("*.deb"))
    with (outputs / "metrics" / "en_es" / "cells.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for cell in csv.DictReader(file) if cell["value"]]
    (block,) = (block for block in blocks(PAGE) if block.title)
    names = {*yaml.safe_load(block.text)["task"]["test_sets"]}
    evaluated = {
        metric: {cell["test_set"] for cell in cells if cell["metric"] == metric}
        for metric in ("bleu", "nll", "roc_auc")
    }
    assert evaluated["bleu"] == {"stories", "other"}
    assert evaluated["nll"] == {"stories"}
    assert evaluated["roc_auc"] == names - {"stories"}
    with (outputs / "tables" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["value"] or row["metric"] == "prr"]
    for table, shown in TABLES.items():
        assert shown <= {row["test_set_name"] for row in rows if row["table"] == table}, table
    assert (outputs / "tables" / "claims.csv").is_file()
    page = (outputs / "report" / "index.html").read_text(encoding="utf-8")
    assert "Stories, EN-ES" in page


def test_codes_that_yaml_or_file_names_make_difficult(tmp_path: Path) -> None:
    _follow(tmp_path, "no", "pt-BR", "compose", "prepare")
    prepared = tmp_path / "outputs" / "prepare" / "en_es" / "fairseq"
    assert {path.name for path in prepared.glob("dict.*")} == {"dict.no.txt", "dict.pt-BR.txt"}
