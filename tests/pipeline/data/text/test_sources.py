from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from pipeline.data.text.cleaning import CleaningRules
from pipeline.data.text.sources import (
    OwnSentences,
    first_sentences,
    own_sentences,
    page_limit,
    read_task_text,
)
from pipeline.data.text.user_files import read_user_files
from pipeline.errors import DataError
from pipeline.run import settings as config
from pipeline.run.settings import CONF, DataConfig, typed

PAIR = ("en", "de")
_LEFT_OUT = "mine: 3 of 5 units are left out, since they lack text in one of de, en"


def _write(prefix: Path, sides: Mapping[str, str]) -> str:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for side, text in sides.items():
        Path(f"{prefix}.{side}").write_text(text)
    return str(prefix)


def test_files_provide_the_pair_and_further_languages(tmp_path: Path) -> None:
    data = DataConfig(
        source="files",
        corpus="mine",
        train=_write(tmp_path / "train", {"en": "a\n", "de": "A\n"}),
        test=_write(tmp_path / "test", {"en": "b\n", "de": "B\n", "fr": "C\n"}),
    )
    text = read_task_text(data, PAIR, {"fr"})
    assert text.train.languages == {"en", "de"}
    assert text.test.languages == {"en", "de", "fr"}
    assert (text.train.name, text.test.name) == ("mine, to train on", "mine")
    assert text.dev is None


def test_text_that_the_test_set_is_held_out_of_has_the_name_of_the_corpus(tmp_path: Path) -> None:
    """The data card showed the test set as a part of 'mine, to train on'."""
    train = _write(tmp_path / "train", {"en": "a\n", "de": "A\n"})
    text = read_task_text(DataConfig(source="files", corpus="mine", train=train), PAIR, set())
    assert (text.main.name, text.test) == ("mine", None)


def test_test_set_of_a_memory_warns_if_most_units_lack_a_language(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv></tu>'
    english = '<tu><tuv lang="en"><seg>a</seg></tuv></tu>'
    for n_english, messages in ((2, []), (3, [_LEFT_OUT])):
        path = tmp_path / "memory.tmx"
        path.write_text(f"<tmx><body>{both * 2}{english * n_english}</body></tmx>")
        counts: Counter[str] = Counter()
        sentences = first_sentences(read_user_files("mine", str(path), [*PAIR], []), 10, counts)
        assert (len(sentences), counts["paragraphs_without_all_languages"]) == (2, n_english)
        assert caplog.messages == messages


def test_sacrebleu_provides_the_test_set_and_files_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    _write(tmp_path / "wmt14" / "wmt14.en-de", {"src": "b\n", "ref": "B\n"})
    data = DataConfig(
        source="sacrebleu",
        corpus="WMT",
        train=_write(tmp_path / "train", {"en": "a\n", "de": "A\n"}),
        test="wmt14",
    )
    text = read_task_text(data, PAIR, {"fr"})
    assert text.test is not None
    assert [paragraph.sentences for paragraph in text.test.paragraphs()] == [
        {"en": ["b"], "de": ["B"]}
    ]
    assert text.test.languages == {"en", "de"}


LANGUAGES = ["en", "de", "fr"]


def _make(
    downloads: Path, packages: Path | None = None, most: int = 5, **settings: Any
) -> OwnSentences | str:
    data = DataConfig(
        downloads=str(downloads),
        packages=None if packages is None else str(packages),
        pin=False,
        test_sentences=most,
        max_sentences_per_page=settings.pop("max_sentences_per_page", None),
        librispeech=settings.pop("librispeech", None),
    )
    languages = settings.pop("languages", LANGUAGES)
    test_set = config.TestSetConfig(corpus="mine", **settings)
    return own_sentences(test_set, data, languages, CleaningRules("en", 3, 12, 0.6, 2.2, 3), 0)


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        ("debian_reference", {}, "Debian Reference"),
        ("spoken", {"librispeech_subset": "test-clean"}, "Fish Fillets NG dialogue"),
    ],
)
def test_sets_of_another_corpus_are_cleaned_and_limited(
    help_packages: Path, tmp_path: Path, kind: str, settings: dict[str, str], name: str
) -> None:
    own = _make(tmp_path, help_packages, kind=kind, **settings)
    assert isinstance(own, OwnSentences)
    assert own.corpus.name == name
    assert len(own.sentences) == own.counts["sentences_in_the_set"] == 5
    assert set(own.sentences[0].text) == {"de", "en", "fr"}
    assert own.counts["kept"] == 24


def test_drawn_sets_have_a_limit_per_page_if_pages_are_documents(
    help_packages: Path, tmp_path: Path
) -> None:
    drawn = {"kind": "spoken", "librispeech_subset": "test-clean"}
    own = _make(tmp_path, help_packages, 50, max_sentences_per_page=3, **drawn)
    assert isinstance(own, OwnSentences)
    n_page = len({sentence.page for sentence in own.sentences})
    assert len(own.sentences) == 3 * n_page
    assert own.counts["dropped_over_max_sentences_per_page"] == 24 - len(own.sentences)
    data = DataConfig(max_sentences_per_page=3)
    assert page_limit(data, own.corpus) == 3
    assert page_limit(data, replace(own.corpus, has_documents=False)) is None


def test_spoken_set_without_folder_and_stand_in_is_absent(tmp_path: Path) -> None:
    absent = _make(tmp_path, kind="spoken", librispeech_subset="test-other", stand_in=False)
    assert absent == "data.librispeech names no folder with LibriSpeech's test-other"


def test_transcripts_in_another_language_are_not_used(tmp_path: Path) -> None:
    absent = _make(
        tmp_path,
        kind="spoken",
        librispeech_subset="test-clean",
        librispeech=str(tmp_path),
        languages=["de", "en"],
    )
    assert absent == "LibriSpeech is English and the task translates from de"


def test_user_test_set_keeps_every_line_and_counts_the_omitted_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "med.en").write_text("a\n\na\nd\n")
    (tmp_path / "med.de").write_text("A\nB\n\nD\n")
    own = _make(tmp_path, most=3, kind="files", path=str(tmp_path / "med"))
    assert isinstance(own, OwnSentences)
    assert [(sentence.text["en"], sentence.text["de"]) for sentence in own.sentences] == [
        ("a", "A"),
        ("", "B"),
        ("a", ""),
    ]
    assert own.counts["dropped_over_the_most"] == 1


@pytest.mark.parametrize(
    "files",
    [{"med.en": ""}, {"med.en": "", "med.de": ""}, {"med.tmx": "<tmx><body/></tmx>"}],
)
def test_empty_user_test_set_is_absent(tmp_path: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    where = str(tmp_path / "med") + ".tmx" * ("med.tmx" in files)
    assert _make(tmp_path, kind="files", path=where) == f"{where} has no text"


@pytest.mark.parametrize(
    "files", [{"med.en": "", "med.de": "A\n"}, {"med.en": "a\n", "med.de": ""}, {}]
)
def test_user_test_set_with_one_empty_or_missing_side_is_refused(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=r"the file is empty|no text in en"):
        _make(tmp_path, kind="files", path=str(tmp_path / "med"))


def test_user_test_set_may_lack_references(tmp_path: Path) -> None:
    (tmp_path / "med.en").write_text("a\n")
    own = _make(tmp_path, kind="files", path=str(tmp_path / "med"))
    assert isinstance(own, OwnSentences)
    assert [sentence.text for sentence in own.sentences] == [{"en": "a"}]


def _write_khresmoi(folder: Path) -> None:
    for part, count in (("dev", 2), ("test", 3)):
        for language in ("en", "de"):
            lines = [f"{language} {part} {index}." for index in range(count)]
            path = folder / f"khresmoi-summary-{part}.{language}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_khresmoi_keeps_every_line(tmp_path: Path) -> None:
    _write_khresmoi(tmp_path)
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        settings = typed(compose("pipeline", [f"data.khresmoi={tmp_path}"]))
    test_set = settings.task.test_sets["khresmoi"]
    assert test_set.corpus == "Khresmoi-Summary, dev and test"
    rules = CleaningRules("en", 3, 12, 0.6, 2.2, 3)
    own = own_sentences(test_set, settings.data, ["en", "de", "fr"], rules, 0)
    assert not isinstance(own, str)
    assert [sentence.text for sentence in own.sentences] == [
        {"en": f"en {part} {index}.", "de": f"de {part} {index}."}
        for part, count in (("dev", 2), ("test", 3))
        for index in range(count)
    ]
    (tmp_path / "khresmoi-summary-test.de").unlink()
    with pytest.raises(DataError, match=r"khresmoi-summary-test\.de: no such file"):
        own_sentences(test_set, settings.data, ["en", "de", "fr"], rules, 0)
