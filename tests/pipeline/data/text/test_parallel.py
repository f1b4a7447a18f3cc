from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.data.card import text_subsets
from pipeline.data.text.cleaning import NearDuplicates
from pipeline.data.text.corpus import SpooledSentences
from pipeline.data.text.parallel import ParallelData, make_parallel_data
from pipeline.data.text.sources import shared_languages
from pipeline.errors import DataError
from pipeline.run import settings as config
from pipeline.run.settings import DataConfig, TaskConfig
from tests.composed_settings import composed_settings

SETS = {"held": config.TestSetConfig(kind="held_out", corpus="help", baseline=True)}

# Settings of all cases.
RULES: dict[str, Any] = {
    "min_letter_share": 0.6,
    "max_length_ratio": 2.2,
    "length_allowance_words": 3,
    "train_sentences": None,
    "copies": config.CopiesConfig(0.0, 0.0, 0.0),
    "untranslated": "drop",
}


def _task(target: str) -> TaskConfig:
    return TaskConfig(name="t", source_language="en", target_language=target, test_sets=SETS)


def _make(
    packages: Path, downloads: Path, target: str, jaccard: float = 1, page_limit: int | None = None
) -> ParallelData:
    data = DataConfig(
        source="libreoffice",
        downloads=str(downloads),
        packages=str(packages),
        pin=False,
        min_words=3,
        max_words=12,
        dev_sentences=5,
        test_sentences=7,
        max_sentences_per_page=page_limit,
        **RULES,
        near_duplicate_jaccard=jaccard,
    )
    task = _task(target)
    train = SpooledSentences(downloads / f"{target}.{jaccard}.jsonl", sorted(("en", target)))
    return make_parallel_data(data, task, {"en", target}, 0, train)


def test_every_pair_has_the_same_test_and_dev_sentences(
    help_packages: Path, tmp_path: Path
) -> None:
    german = _make(help_packages, tmp_path, "de")
    french = _make(help_packages, tmp_path, "fr")
    assert (german.test, german.dev) == (french.test, french.dev)
    assert set(german.test[0].text) == {"de", "en", "fr"}
    assert set(next(iter(french.train)).text) == {"en", "fr"}


def test_training_shares_no_page_with_test_and_dev(help_packages: Path, tmp_path: Path) -> None:
    data = _make(help_packages, tmp_path, "de")
    held_out = {sentence.page for sentence in data.test + data.dev}
    assert not held_out & {sentence.page for sentence in data.train}


def test_sentences_over_the_page_limit_are_in_no_set(help_packages: Path, tmp_path: Path) -> None:
    data = _make(help_packages, tmp_path, "de", page_limit=2)
    pages = Counter(sentence.page for sentence in data.test + data.dev)
    assert max(pages.values()) == 2
    assert (len(data.test), len(data.dev)) == (7, 5)
    assert not pages.keys() & {sentence.page for sentence in data.train}
    split = data.counts["split"]
    assert split["held_out_pages"] == len(pages)
    assert split["held_out_over_max_sentences_per_page"] > 0
    assert split["train_dropped_held_out_page"] >= (
        split["held_out_over_max_sentences_per_page"] + len(data.test) + len(data.dev)
    )


def test_near_duplicates_of_held_out_sentences_are_dropped_and_counted(
    help_packages: Path, tmp_path: Path
) -> None:
    loose, strict = (_make(help_packages, tmp_path, "de", jaccard) for jaccard in (1, 0.7))
    for language in ("en", "de"):
        index = NearDuplicates([row.text[language] for row in strict.test + strict.dev], 0.7)
        assert not any(index.has_near(sentence.text[language]) for sentence in strict.train)
    split = strict.counts["split"]
    dropped = [split[f"train_dropped_near_duplicate_{language}"] for language in ("en", "de")]
    assert sum(dropped) == len(loose.train) - len(strict.train) > 0


def test_training_text_near_a_held_out_text_on_either_side_is_dropped(tmp_path: Path) -> None:
    far = [(f"sentence {letter} is far", f"Satz {letter} ist weit weg") for letter in "abcdef"]
    texts = {
        "test": [("This test is held out", "Dieser Test ist reserviert")],
        "dev": [("Developing needs text too", "Entwickeln braucht auch Text")],
        "own": [("Some medical text here", "Ein medizinischer Text hier")],
        "train": [
            *far,
            ("this test is held out", "Etwas ganz anderes steht da"),
            ("Unlike words stand here", "dieser Test ist reserviert"),
            ("Other words stand here", "Entwickeln braucht auch Text"),
            ("More words stand here", "Ein medizinischer Text hier"),
            ("Developing needs text too.", "Entwickeln braucht auch Text."),
        ],
    }
    for name, rows in texts.items():
        for number, language in enumerate(("en", "de")):
            lines = [row[number] for row in rows]
            (tmp_path / f"{name}.{language}").write_text("\n".join([*lines, ""]))
    data = DataConfig(
        source="files",
        corpus="mine",
        downloads=str(tmp_path),
        train=str(tmp_path / "train"),
        dev=str(tmp_path / "dev"),
        test=str(tmp_path / "test"),
        min_words=3,
        max_words=12,
        dev_sentences=5,
        test_sentences=5,
        max_sentences_per_page=None,
        **RULES,
        near_duplicate_jaccard=1,
    )
    own = config.TestSetConfig(kind="files", corpus="own", path=str(tmp_path / "own"))
    task = TaskConfig(
        name="t", source_language="en", target_language="de", test_sets=SETS | {"MED": own}
    )
    train = SpooledSentences(tmp_path / "train.jsonl", ["de", "en"])
    parallel = make_parallel_data(data, task, {"en", "de"}, 0, train)
    assert [(row.text["en"], row.text["de"]) for row in parallel.train] == far
    split = parallel.counts["split"]
    assert split["train_dropped_near_duplicate_en"] == 2
    assert split["train_dropped_near_duplicate_de"] == 3


def _own_text(folder: Path, train: Path, min_words: int) -> DataConfig:
    return DataConfig(
        source="files",
        corpus="mine",
        downloads=str(folder),
        train=str(train),
        min_words=min_words,
        max_words=40,
        dev_sentences=1,
        test_sentences=1,
        max_sentences_per_page=None,
        **RULES,
        near_duplicate_jaccard=1,
    )


def test_error_of_an_empty_set_names_the_rule_that_dropped_most(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mine.en").write_text("".join(f"Sentence {n} of mine\n" for n in range(20)))
    (tmp_path / "mine.de").write_text("Satz " * 30 + "\n" + "Das ist mein Satz\n" * 19)
    data = _own_text(tmp_path, tmp_path / "mine", min_words=5)
    task = _task("de")
    train = SpooledSentences(tmp_path / "train.jsonl", ["de", "en"])
    rule = r"the rule word_count dropped 20 of 20 sentences \(words of .* data\.min_words=5 to"
    with pytest.raises(DataError, match=f"no sentence is left for the test set: {rule}"):
        make_parallel_data(data, task, {"en", "de"}, 0, train)
    assert sum("20 of 20 sentences were dropped" in message for message in caplog.messages) == 1


def test_units_of_a_memory_that_lack_a_language_of_the_task_are_counted_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Half the English units are British, and the task asks for American English."""
    path = tmp_path / "memory.tmx"
    unit = (
        '<tu><tuv lang="en-{}"><seg>This is text {}</seg></tuv>'
        '<tuv lang="de"><seg>Das ist Satz {}</seg></tuv></tu>'
    )
    for n_american in (18, 1):
        units = (unit.format("US" if n < n_american else "GB", n, n) for n in range(40))
        path.write_text(f"<tmx><body>{''.join(units)}</body></tmx>")
        data = _own_text(tmp_path, path, min_words=3)
        task = TaskConfig(
            name="t", source_language="en_US", target_language="de", test_sets=dict(SETS)
        )
        train = SpooledSentences(tmp_path / "train.jsonl", ["de", "en_US"])
        if n_american == 1:
            with pytest.raises(DataError, match="the rule all_languages dropped 39 of 40 sent"):
                make_parallel_data(data, task, {"en_US", "de"}, 0, train)
        else:
            parallel = make_parallel_data(data, task, {"en_US", "de"}, 0, train)
            assert parallel.counts["align_train"] == {
                "paragraphs_read": 40,
                "paragraphs_without_all_languages": 22,
                "paragraphs_with_unequal_sentence_counts": 0,
                "sentences": 18,
            }
    warnings = [message for message in caplog.messages if "were dropped" in message]
    assert len(warnings) == 2
    assert "the rule all_languages dropped 22 of 40 sentences" in warnings[0]
    assert "'de: Das ist Satz 18 / en_US: (no text)'" in warnings[0]


def test_kept_untranslated_pairs_are_trained_on_and_change_no_held_out_set(tmp_path: Path) -> None:
    """Some are on held-out pages, and one is near a held-out sentence."""
    translated = [
        (f"the word {a} of line {b} here", f"das Wort {a} der Zeile {b} hier")
        for a in "abcdef"
        for b in "abcdef"
    ]
    names = [(f"Apache {name} Foundation Licence",) * 2 for name in ("Uno", "Due", "Tre")]
    pairs = [*translated[:20], *names[:2], *translated[20:], *names[1:]]
    for side, language in enumerate(("en", "de")):
        (tmp_path / f"mine.{language}").write_text("".join(f"{row[side]}\n" for row in pairs))
    data = {}
    for choice in ("drop", "keep"):
        settings = replace(_own_text(tmp_path, tmp_path / "mine", 3), untranslated=choice)
        train = SpooledSentences(tmp_path / f"{choice}.jsonl", ["de", "en"])
        data[choice] = make_parallel_data(settings, _task("de"), {"en", "de"}, 0, train)
    drop, keep = data["drop"], data["keep"]
    assert (drop.test, drop.dev) == (keep.test, keep.dev)
    natural = [row for row in keep.train if row.text["en"] == row.text["de"]]
    assert [row.text["en"] for row in natural] == [name for name, _ in names]
    assert [row for row in keep.train if row not in natural] == list(drop.train)
    assert keep.counts["split"]["train_untranslated"] == 3
    assert "train_untranslated" not in drop.counts["split"]
    assert drop.counts["clean_train"]["dropped_untranslated"] == 4


_NO_DIGITS = str.maketrans("0123456789", "ghijklmnop")


def _peak_bytes(folder: Path, n_line: int) -> int:
    prefix = folder / f"long{n_line}"
    for language in ("en", "de"):
        with Path(f"{prefix}.{language}").open("w", encoding="utf-8") as file:
            for number in range(n_line):
                names = f"{number // 100:x} {number % 100:x}".translate(_NO_DIGITS)
                file.write(f"{language}a {names} " + f"{language}word " * 30 + "\n")
    data = DataConfig(
        source="files",
        corpus="mine",
        downloads=str(folder),
        train=str(prefix),
        min_words=3,
        max_words=40,
        dev_sentences=5,
        test_sentences=7,
        max_sentences_per_page=None,
        **RULES,
        near_duplicate_jaccard=0.99,
    )
    task = _task("de")
    train = SpooledSentences(folder / "train.jsonl", ["de", "en"])
    tracemalloc.start()
    parallel = make_parallel_data(data, task, {"en", "de"}, 0, train)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(parallel.train) > 0.9 * n_line
    return peak_bytes


@pytest.mark.slow
def test_memory_grows_by_one_hash_per_line_and_not_by_the_text(tmp_path: Path) -> None:
    _peak_bytes(tmp_path, 200)  # imports and compiles once
    short, long = _peak_bytes(tmp_path, 1000), _peak_bytes(tmp_path, 4000)
    bytes_a_pair = 2 * 30 * 7
    assert (long - short) / 3000 < bytes_a_pair / 4


def test_no_sentence_is_held_out_for_a_test_set_that_the_task_does_not_have(tmp_path: Path) -> None:
    for language in ("en", "es"):
        lines = (f"{language} story number {number} of many here\n" for number in range(60))
        (tmp_path / f"train.{language}").write_text("".join(lines))
        (tmp_path / f"news.{language}").write_text(f"{language} other words in the news\n")
    news = config.TestSetConfig(
        kind="files", corpus="news", path=str(tmp_path / "news"), baseline=True
    )
    sizes = {}
    for name, sets in {"news alone": {"news": news}, "held out": {"news": news, **SETS}}.items():
        settings = composed_settings(
            *("data.source=files", "data.corpus=stories", f"data.train={tmp_path / 'train'}"),
            *("data.dev_sentences=5", "data.test_sentences=10", "data.near_duplicate_jaccard=1"),
        )
        task = TaskConfig(name="t", source_language="en", target_language="es", test_sets=sets)
        train = SpooledSentences(tmp_path / f"{name}.jsonl", ["en", "es"])
        parallel = make_parallel_data(settings.data, task, {"en", "es"}, 0, train)
        sizes[name] = (len(parallel.test), len(parallel.train))
        assert [subset.name for subset in text_subsets(parallel)].count("test") == bool(
            parallel.test
        )
    assert sizes["news alone"][0] == 0
    assert sizes["held out"][0] > 0
    assert sum(sizes["news alone"]) >= sum(sizes["held out"])


@pytest.mark.parametrize(
    ("pair", "languages"),
    [
        (("en", "de"), {"de", "en", "fr"}),
        (("fr", "de"), {"de", "en", "fr"}),
        (("en", "es"), {"en", "es"}),
    ],
)
def test_only_pairs_of_the_paper_share_languages(
    pair: tuple[str, str], languages: set[str]
) -> None:
    assert shared_languages(pair) == languages
