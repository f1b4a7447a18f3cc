from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.data.text.cleaning import CleaningRules
from pipeline.data.text.sources import OtherSet, make_other_set
from pipeline.errors import ConfigError
from pipeline.run import settings as config
from pipeline.run.settings import DataConfig

LANGUAGES = ["en", "de", "fr"]


def _make(
    downloads: Path, packages: Path | None = None, most: int = 5, **settings: Any
) -> OtherSet | str:
    data = DataConfig(
        downloads=str(downloads),
        packages=None if packages is None else str(packages),
        pin=False,
        test_sentences=most,
        librispeech=settings.pop("librispeech", None),
    )
    languages = settings.pop("languages", LANGUAGES)
    test_set = config.TestSetConfig(corpus="mine", **settings)
    return make_other_set("X", test_set, data, languages, CleaningRules("en", 3, 12), 0)


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        ("debian_reference", {}, "Debian Reference"),
        ("spoken", {"librispeech_subset": "test-clean"}, "Fish Fillets NG dialogue"),
    ],
)
def test_sets_of_another_corpus_are_cleaned_and_cut(
    help_packages: Path, tmp_path: Path, kind: str, settings: dict[str, str], name: str
) -> None:
    made = _make(tmp_path, help_packages, kind=kind, **settings)
    assert isinstance(made, OtherSet)
    assert made.corpus.name == name
    assert len(made.sentences) == made.counts["sentences_in_the_set"] == 5
    assert set(made.sentences[0].text) == {"de", "en", "fr"}
    assert made.counts["kept"] == 24


def test_spoken_set_without_a_folder_and_without_a_stand_in_is_absent(tmp_path: Path) -> None:
    absent = _make(tmp_path, kind="spoken", librispeech_subset="test-other", stand_in=False)
    assert absent == "data.librispeech names no folder with LibriSpeech's test-other"


def test_transcripts_do_not_serve_another_source_language(tmp_path: Path) -> None:
    absent = _make(
        tmp_path,
        kind="spoken",
        librispeech_subset="test-clean",
        librispeech=str(tmp_path),
        languages=["de", "en"],
    )
    assert absent == "LibriSpeech is English and the task translates from de"


def test_the_users_own_set_is_taken_line_by_line_and_what_is_cut_is_counted(
    tmp_path: Path,
) -> None:
    (tmp_path / "med.en").write_text("a\n\na\nd\n")
    (tmp_path / "med.de").write_text("A\nB\n\nD\n")
    made = _make(tmp_path, most=3, kind="files", path=str(tmp_path / "med"))
    assert isinstance(made, OtherSet)
    assert [(one.text["en"], one.text["de"]) for one in made.sentences] == [
        ("a", "A"),
        ("", "B"),
        ("a", ""),
    ]
    assert made.counts["dropped_over_the_most"] == 1


def test_the_users_own_set_may_lack_references(tmp_path: Path) -> None:
    (tmp_path / "med.en").write_text("a\n")
    made = _make(tmp_path, kind="files", path=str(tmp_path / "med"))
    assert isinstance(made, OtherSet)
    assert [one.text for one in made.sentences] == [{"en": "a"}]


@pytest.mark.parametrize(("kind", "key"), [("files", "path"), ("spoken", "librispeech_subset")])
def test_setting_that_a_kind_needs_is_named(tmp_path: Path, kind: str, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"task\.test_sets\.X\.{key} must be given"):
        _make(tmp_path, kind=kind)
