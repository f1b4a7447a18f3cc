from __future__ import annotations

from pathlib import Path

from pipeline.config import DataConfig
from pipeline.data.near_duplicates import near_duplicates
from pipeline.data.parallel import ParallelData, make_parallel_data


def _make(packages: Path, downloads: Path, target: str, jaccard: float = 1) -> ParallelData:
    data = DataConfig(
        source="libreoffice",
        downloads=str(downloads),
        packages=str(packages),
        pin=False,
        min_words=3,
        max_words=12,
        dev_sentences=5,
        test_sentences=7,
        near_duplicate_jaccard=jaccard,
    )
    return make_parallel_data(data, ("en", target), {"en", target}, seed=0)


def test_every_pair_has_the_same_test_and_dev_sentences(
    help_packages: Path, tmp_path: Path
) -> None:
    german = _make(help_packages, tmp_path, "de")
    french = _make(help_packages, tmp_path, "fr")
    assert (german.test, german.dev) == (french.test, french.dev)
    assert set(german.test[0].text) == {"de", "en", "fr"}
    assert set(french.train[0].text) == {"en", "fr"}


def test_training_shares_no_page_with_test_and_dev(help_packages: Path, tmp_path: Path) -> None:
    made = _make(help_packages, tmp_path, "de")
    held_out = {sentence.page for sentence in made.test + made.dev}
    assert not held_out & {sentence.page for sentence in made.train}


def test_what_is_nearly_held_out_is_dropped_from_training_and_counted(
    help_packages: Path, tmp_path: Path
) -> None:
    loose, strict = (_make(help_packages, tmp_path, "de", jaccard) for jaccard in (1, 0.7))
    held_out = [sentence.text["en"] for sentence in strict.test + strict.dev]
    assert not any(near_duplicates([one.text["en"] for one in strict.train], held_out, 0.7))
    dropped = strict.counts["split"]["train_dropped_near_duplicate"]
    assert dropped == len(loose.train) - len(strict.train) > 0
