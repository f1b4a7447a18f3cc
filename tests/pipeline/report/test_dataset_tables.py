from __future__ import annotations

import pytest

from pipeline.errors import DataError
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
    "domain": "telephone",
}


def test_a_row_a_set_and_language_in_the_papers_layout() -> None:
    text, speech = dataset_tables(
        {
            "nmt_ende": {"subsets": [TEXT, TEXT | {"language": "en"}]},
            "asr": {"subsets": [SPEECH]},
        }
    )
    assert (text.label, speech.label) == ("apn-tab:nmt", "apn-tab:asr")
    assert text.rows[0].labels == ("EN-DE", "LibreOffice help", "train", "de", "software help")
    columns = [[(one.cell.column, one.cell.value) for one in row.cells if one] for row in text.rows]
    assert columns == [
        [("sentences_de", 20088), ("words_a_sentence_de", 7.5)],
        [("sentences_en", 20088), ("words_a_sentence_en", 7.5)],
    ]
    assert "| EN-DE | LibreOffice help | train | de | software help | 20088 | 7.5 |" in markdown(
        text, beside_paper=True
    )
    assert "`apn-tab:nmt`. Ours.\n" in markdown(text, beside_paper=True)


def test_speech_without_transcripts_says_so() -> None:
    (speech,) = dataset_tables({"asr": {"subsets": [SPEECH]}})
    words = speech.cells[2].cell
    assert (words.value, words.reason) == (None, "no transcripts")
    text = latex([speech], beside_paper=True)
    assert r"ASR & prompts\_fr & C-FR & telephone & 0.36 & 499 & --$^{a}$ \\" in text
    assert "Each cell: ours.}" in text


@pytest.mark.parametrize("rows", [[TEXT | {"unit": "word"}, {"dataset": "a"}], [{}]])
def test_a_row_of_neither_form_is_refused(rows: list[dict[str, str]]) -> None:
    with pytest.raises(DataError, match="every row of subsets in the manifest of nmt_ende must"):
        dataset_tables({"nmt_ende": {"subsets": rows}})


def test_a_family_that_was_not_prepared_has_no_table() -> None:
    assert dataset_tables({"nmt_ende": {"counts": {}}}) == []
