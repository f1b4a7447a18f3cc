"""What the head of the page says about the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.report.page.origin import Fact, Origin, comparison, facts, versions

TEXT = {
    "subsets": [
        {"dataset": "LibreOffice help", "subset": "train", "language": "de", "sentences": "20000"},
        {"dataset": "LibreOffice help", "subset": "train", "language": "en", "sentences": "20000"},
        {
            "dataset": "LibreOffice help",
            "subset": "train, copies of the target side (SYNTHETIC)",
            "language": "de",
            "sentences": "400",
        },
    ],
    "packages": {
        "help-de": {"version": "1", "date": "2024-05-01", "sha256": "x"},
        "help-en": {"version": "1", "date": "2025-06-02", "sha256": "y"},
    },
}
SPEECH = {
    "subsets": [
        {"dataset": "commands", "subset": "train", "utterances": "1500", "hours": "0.84"},
    ]
}


def member(name: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "update": 1600, "parameters": 976_386} | changes


def ensembles(folder: Path, *entries: tuple[str, list[dict[str, Any]]]) -> Path:
    content = [{"kind": kind, "name": kind, "members": members} for kind, members in entries]
    (folder / "ensemble.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_facts_are_those_of_the_results_beside_the_papers(tmp_path: Path) -> None:
    decodes = ensembles(
        tmp_path,
        ("random_init", [member("seed_1"), member("seed_2")]),
        ("checkpoint", [member("a"), member("b"), member("c")]),
        ("checkpoint", [member("d"), member("e"), member("f")]),
    )
    assert facts(Origin(descriptions={"nmt_ende": TEXT}), "nmt_ende", decodes, ["x"]) == [
        Fact(
            "Training data",
            "LibreOffice help: 20,000 sentences",
            "WMT'17: 4,500,000 sentences",
        ),
        Fact(
            "Copies in the training data",
            "copies of the target side (SYNTHETIC): 400 sentences",
            "",
        ),
        Fact("Date of the data", "2025-06-02 (newest of 2 packages)", ""),
        Fact("Members", "2 (random initialisations): seed 1, seed 2", "10 transformer-big"),
        Fact("Size of a member", "976,386 parameters", ""),
        Fact("Updates", "1,600", ""),
        Fact("Also decoded", "2 ensembles of 3 members (checkpoints of one training run)", ""),
    ]


def test_facts_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    decodes = ensembles(tmp_path, ("huggingface", [member("a/b", update=None, parameters=None)]))
    shown = facts(Origin(descriptions={"mine": SPEECH}), "mine", decodes, [])
    assert [(fact.name, fact.value, fact.of_paper) for fact in shown] == [
        ("Training data", "commands: 1,500 utterances, 0.84 hours", ""),
        ("Date of the data", "none, since it is from files: commands", ""),
        ("Members", "1 (Hugging Face): a/b", ""),
    ]


def test_the_papers_speech_is_counted_in_utterances(tmp_path: Path) -> None:
    (data, *_) = facts(Origin(descriptions={"asr": SPEECH}), "asr", tmp_path, [])
    assert data.of_paper == "LibriSpeech: 281,200 utterances"


def test_the_date_of_packages_may_not_be_recorded(tmp_path: Path) -> None:
    undated = TEXT | {"packages": {"help-de": {"version": "1", "sha256": "x"}}}
    shown = facts(Origin(descriptions={"mine": undated}), "mine", tmp_path, [])
    assert Fact("Date of the data", "not recorded", "") in shown


def test_decodes_of_another_program_show_the_members_of_their_stores(tmp_path: Path) -> None:
    assert facts(Origin(), "mine", tmp_path, ["a", "b"]) == [Fact("Members", "2: a, b", "")]
    assert facts(Origin(), "mine", tmp_path, []) == []


def test_updates_that_differ_are_a_range(tmp_path: Path) -> None:
    members = [member("a", update=1200), member("b", update=1600)]
    shown = facts(Origin(), "asr", ensembles(tmp_path, ("snapshot", members)), [])
    assert ("Updates", "1,200 to 1,600") in [(fact.name, fact.value) for fact in shown]


def test_one_sentence_compares_the_run_with_the_paper() -> None:
    demo = Origin(descriptions={"nmt_ende": TEXT, "asr": SPEECH})
    text = comparison(demo, ["nmt_ende", "asr"])
    assert text.startswith("The paper trained on 187 to 225 times as many sentences")
    assert "no target" in text
    full = {"subsets": [{"dataset": "WMT", "subset": "train", "sentences": "4000000"}]}
    assert "about as large as the paper's" in comparison(
        Origin(descriptions={"nmt_ende": full}), ["nmt_ende"]
    )
    assert comparison(Origin(), ["mine"]).startswith("The paper has none of these tasks")
    assert "187" not in comparison(Origin(), ["asr"])  # nothing is known of the training data


def test_versions_are_those_that_are_installed() -> None:
    assert versions().startswith("Python 3.")
    assert ", numpy " in versions()
