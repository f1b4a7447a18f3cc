"""Synthetic copies in the training data of a whole prepared task."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.run.artifacts import Artifact
from stages.prepare import prepare
from tests.composed_settings import composed_settings
from tests.prepared_rows import read_rows

_CHANGED = {"data_card.md", "manifest.json"} | {
    f"fairseq/train.en-de.{side}.{kind}" for side in ("en", "de") for kind in ("bin", "idx")
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> tuple[Path, Path]:
    """Make the task without copies, and with them."""
    folders = []
    for shares in ((0, 0), (0.1, 0.2)):
        root = tmp_path_factory.mktemp("prepared")
        config = composed_settings(
            *(f"io.root='{root}'", f"data.packages='{help_packages}'", "data.vocabulary_size=100"),
            *("data.test_sentences=8", "data.dev_sentences=6", "data.near_duplicate_jaccard=1"),
            *(f"data.copies.source={shares[0]}", f"data.copies.target={shares[1]}"),
            "data.copies.third=0",
        )
        prepare(config)
        folders.append(root / "prepare" / "nmt_ende")
    return folders[0], folders[1]


def _training_text(folder: Path) -> list[tuple[str, str]]:
    """Source and target of each training sentence, in subwords."""
    load = import_fairseq("fairseq.data.data_utils").load_indexed_dataset
    sides = []
    for language in ("en", "de"):
        dictionary = load_dictionary(folder / "fairseq" / f"dict.{language}.txt")
        sentences = load(str(folder / "fairseq" / f"train.en-de.{language}"), dictionary)
        sides.append([dictionary.string(tokens) for tokens in sentences])
    return list(zip(*sides, strict=True))


def test_copies_follow_the_training_sentences_that_stay_as_they_are(
    prepared: tuple[Path, Path],
) -> None:
    before, after = map(_training_text, prepared)
    n_train = len(before)
    assert after[:n_train] == before
    n_source, n_target = round(0.1 * n_train), round(0.2 * n_train)
    copies = after[n_train:]
    assert len(copies) == n_source + n_target
    assert all(source == target for source, target in copies)
    sources, targets = ([row[side] for row in before] for side in (0, 1))
    assert {source for source, _ in copies[:n_source]} <= {*sources}
    assert {target for _, target in copies[n_source:]} <= {*targets}
    assert not any("<unk>" in source for source, _ in copies)


def test_subwords_and_every_other_set_are_the_same_bytes(prepared: tuple[Path, Path]) -> None:
    files = [{p.relative_to(folder) for p in folder.rglob("*.*")} for folder in prepared]
    assert files[0] == files[1]
    different = {
        file.as_posix()
        for file in files[0]
        if (prepared[0] / file).read_bytes() != (prepared[1] / file).read_bytes()
    }
    assert different == _CHANGED


def test_no_held_out_sentence_is_copied(prepared: tuple[Path, Path]) -> None:
    held_out = {
        " ".join(subwords)
        for path in (prepared[1] / "dev.jsonl", *(prepared[1] / "test").glob("*.jsonl"))
        for row in read_rows(path)
        for subwords in (row.source_pieces, row.reference_pieces)
        if subwords
    }
    assert not held_out & {text for row in _training_text(prepared[1]) for text in row}


def test_manifest_and_card_count_copies_apart_from_sentences(prepared: tuple[Path, Path]) -> None:
    before, after = (Artifact(folder, "prepare").description for folder in prepared)
    n_train = before["counts"]["split"]["train"]
    copies = {
        "synthetic_copies_of_source": round(0.1 * n_train),
        "synthetic_copies_of_target": round(0.2 * n_train),
    }
    assert after["counts"]["split"] == before["counts"]["split"] | copies
    sizes = {row["subset"]: row["sentences"] for row in after["subsets"]}
    assert sizes["train"] == str(n_train)
    for kind in ("source", "target"):
        expected = str(copies[f"synthetic_copies_of_{kind}"])
        assert sizes[f"train, copies of the {kind} side (SYNTHETIC)"] == expected
    cards = [(folder / "data_card.md").read_text() for folder in prepared]
    assert ["Copies are SYNTHETIC noise" in card for card in cards] == [False, True]
