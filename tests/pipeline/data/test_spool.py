from __future__ import annotations

import tracemalloc
from pathlib import Path

from pipeline.data.text.corpus import AlignedSentence, SpooledSentences


def _sentences(n_sentence: int) -> list[AlignedSentence]:
    return [
        AlignedSentence(f"p{number}", {"de": f"Satz\u2028{number}", "en": f"sentence\t{number}"})
        for number in range(n_sentence)
    ]


def test_sentences_come_back_as_often_as_asked(tmp_path: Path) -> None:
    spool = SpooledSentences(tmp_path / "s", ["de", "en"])
    spool.write(_sentences(5))
    assert list(spool) == list(spool) == _sentences(5)
    assert len(spool) == 5


def test_choice_is_seeded_keeps_the_order_and_no_more_than_there_are(tmp_path: Path) -> None:
    spool = SpooledSentences(tmp_path / "s", ["de", "en"])
    chosen = []
    for seed in (0, 0, 1):
        spool.write(_sentences(50))
        spool.choose(10, seed)
        chosen.append([one.page for one in spool])
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(chosen[0]) == len(spool) == 10
    assert chosen[0] == sorted(chosen[0], key=lambda page: int(page[1:]))
    spool.write(_sentences(5))
    spool.choose(10, 0)
    assert len(list(spool)) == len(spool) == 5


def test_a_generator_of_any_length_passes_through_little_memory(tmp_path: Path) -> None:
    spool = SpooledSentences(tmp_path / "s", ["de", "en"])
    one = AlignedSentence("p", {"de": "Satz " * 20, "en": "sentence " * 20})
    tracemalloc.start()
    spool.write(one for _ in range(50_000))
    assert sum(1 for _ in spool) == 50_000
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < (tmp_path / "s").stat().st_size / 20
