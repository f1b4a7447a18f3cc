from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.report.cells import CellIndex
from pipeline.report.dataset_tables import dataset_tables
from pipeline.report.formats import latex, markdown

TEXT = {
    "dataset": "LibreOffice help",
    "subset": "train",
    "language": "de",
    "sentences": "20088",
    "words_a_sentence": "7.5",
    "domain": "software help",
}
SPEECH = {
    "dataset": "prompts_fr",
    "subset": "C-FR",
    "hours": "0.36",
    "utterances": "499",
    "words_an_utterance": "no transcripts",
    "distinct_texts": "no transcripts",
    "groups": "499",
    "domain": "telephone",
}

LABELLED = Cell("nmt_ende", "help", "-", "-", "beam", value=1.0, task_label="EN-DE")
SPOKEN = SPEECH | {"dataset": "commands (SYNTHETIC)", "domain": "SYNTHETIC: read aloud"}
INDEX = CellIndex(pd.DataFrame([asdict(LABELLED)]))


def test_a_row_says_once_that_its_data_is_synthetic() -> None:
    (table,) = dataset_tables({"asr": {"subsets": [SPOKEN, SPEECH]}}, INDEX)
    assert [row.labels[1:] for row in table.rows] == [
        ("commands (SYNTHETIC)", "C-FR", "read aloud"),
        ("prompts_fr", "C-FR", "telephone"),
    ]


def test_one_row_per_subset_and_language() -> None:
    text, speech = dataset_tables(
        {
            "nmt_ende": {"subsets": [TEXT, TEXT | {"language": "en"}]},
            "asr": {"subsets": [SPEECH]},
        },
        INDEX,
    )
    assert (text.label, speech.label) == ("apn-tab:nmt", "apn-tab:asr")
    assert text.rows[0].labels == ("EN-DE", "LibreOffice help", "train", "de", "software help")
    columns = [
        [(cell.cell.column, cell.cell.value) for cell in row.cells if cell] for row in text.rows
    ]
    assert columns == [
        [("sentences_de", 20088), ("words_a_sentence_de", 7.5)],
        [("sentences_en", 20088), ("words_a_sentence_en", 7.5)],
    ]
    lines = markdown(text, beside_paper=True).splitlines()
    row = [value.strip() for value in lines[4].strip("|").split("|")]
    assert row == ["EN-DE", "LibreOffice help", "train", "de", "software help", "20,088", "7.5"]
    explanation = "As in Table 7 of the paper. In results.csv: `apn-tab:nmt`.\n"
    assert explanation in markdown(text, beside_paper=True)


def test_speech_without_transcripts_has_a_reason() -> None:
    (speech,) = dataset_tables({"asr": {"subsets": [SPEECH]}}, INDEX)
    words = speech.cells[2].cell
    assert (words.value, words.reason) == (None, "no transcripts")
    text = latex(speech, beside_paper=True)
    numbers = r"0.36 & 499 & --$^{a}$ & --$^{a}$ & 499"
    assert rf"asr & prompts\_fr & C-FR & telephone & {numbers} \\" in text
    assert "Each cell: ours.}" in text


@pytest.mark.parametrize("rows", [[TEXT | {"unit": "word"}, {"dataset": "a"}], [{}]])
def test_a_subset_that_fits_no_table_is_refused(rows: list[dict[str, str]]) -> None:
    with pytest.raises(DataError, match="manifest of nmt_ende: a subset must have the entries"):
        dataset_tables({"nmt_ende": {"subsets": rows}}, INDEX)


def test_a_manifest_without_subsets_has_no_table() -> None:
    assert dataset_tables({"nmt_ende": {"counts": {}}}, INDEX) == []
