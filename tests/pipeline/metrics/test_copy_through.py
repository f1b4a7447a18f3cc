import numpy as np
import pytest

from pipeline.metrics.copy_through import copy_counts, copy_through_cells, with_copy_through
from pipeline.metrics.sentence_detection import ood_detection_cells


@pytest.mark.parametrize(
    ("source", "output", "copied", "words"),
    [
        ("Click the red button.", "Click the red button!", 4, 4),
        ("Click the red button.", "Klicken Sie auf den roten Knopf.", 0, 4),
        ("open LibreOffice 7", "öffnen Sie LibreOffice 7", 2, 3),
        ("the cat and the dog", "the the the", 2, 5),
        ("The end", "the end", 1, 2),
        ("... -- !", "...", 0, 0),
        ("", "word", 0, 0),
    ],
)
def test_words_in_both_texts_are_counted(source: str, output: str, copied: int, words: int) -> None:
    counts = copy_counts([source], [output])
    assert (counts.copied[0], counts.source_words[0]) == (copied, words)


def test_the_cell_sums_words_and_leaves_out_sentences_without(measured, evaluation):
    decode = measured(
        [0, 0, 0, 0],
        ["a b x y", "a", None, "c"],
        ["r"] * 4,
        sources=["a b c d", "a", "a", "?"],
    ).decode
    (cell,) = copy_through_cells([decode], evaluation)
    assert (cell.column, cell.metric, cell.n) == ("copy_through", "copied_percent", 2)
    assert cell.value == pytest.approx(60)


def test_a_missing_share_has_a_reason(measured, evaluation):
    decode = measured([0], [None], ["r"], sources=["a"]).decode
    (cell,) = copy_through_cells([decode], evaluation)
    assert (cell.value, cell.reason) == (
        None,
        "no sentence has a hypothesis and a word in its source",
    )


def test_copy_through_becomes_a_measure_at_every_setting(measured):
    decode = with_copy_through(
        measured([1, 2, 3], ["a b", "x", None], ["r"] * 3, sources=["a c", "y", "z"]),
        source_is_text=True,
    )
    assert list(decode.grid[0].values) == ["u", "copy_through"]
    np.testing.assert_array_equal(decode.grid[0].values["copy_through"], [0.5, 0, np.nan])


def test_speech_has_no_source_text(measured, evaluation):
    sounds = measured([1, 2, 3], sources=["a.wav", "b.wav", "c.wav"])
    decode = with_copy_through(sounds, source_is_text=False)
    cells = {cell.column: cell for cell in ood_detection_cells([decode], [decode], evaluation)}
    cell = cells["copy_through"]
    assert (cell.value, cell.reason) == (None, "speech has no source text")
    assert cells["u"].value == 50
