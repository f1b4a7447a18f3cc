from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.data.subwords import CODES_FILE, MODEL_FILE, detokeniser, read_subword_model
from pipeline.data.task_subwords import learn_subwords, task_subwords
from pipeline.data.text.corpus import AlignedSentence, SpooledSentences
from pipeline.errors import ConfigError, DataError
from pipeline.run.settings import DataConfig, UnitsConfig

PAIR = ("en", "de")
TEXTS = [
    f"The {word} door's lamp opens {word} times." for word in ("red", "green", "old", "well-lit")
]
Given = Callable[..., DataConfig]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Return settings of an imported subword model, with a model file and dictionaries."""
    folder = tmp_path / "mine: 日本"
    folder.mkdir()
    model = learn_subwords(TEXTS, 60)
    model.write(folder / "spm.model", folder / "spm.vocab")
    (folder / "bpecodes").write_text("#version: 0.2\nt h\nth e</w>\n")
    for language in PAIR:
        lines = "".join(f"{subword} 1\n" for subword in (*model.vocabulary(), f"only_{language}"))
        (folder / f"dict.{language}.txt").write_text(lines, encoding="utf-8")

    def settings(**changes: str | None) -> DataConfig:
        files = {
            "sentencepiece": "spm.model",
            "source_dictionary": "dict.en.txt",
            "target_dictionary": "dict.de.txt",
        } | changes
        paths = {key: None if name is None else str(folder / name) for key, name in files.items()}
        return DataConfig(units=UnitsConfig(name="imported", **paths))  # type: ignore[arg-type]

    return settings


@pytest.fixture
def train(tmp_path: Path) -> SpooledSentences:
    return SpooledSentences(tmp_path / "train.jsonl", sorted(PAIR))


def test_sentencepiece_model_takes_untokenised_text(
    given: Given, train: SpooledSentences, tmp_path: Path
) -> None:
    units = task_subwords(given(), PAIR, train)
    by_language = units.models(["en", "de", "fr"])
    for language, subword_model in by_language.items():
        for text in TEXTS:
            assert subword_model.text(subword_model.subwords(text)) == text, language
    units.write(tmp_path)
    assert {path.name for path in tmp_path.glob("units*")} == {MODEL_FILE}
    kept = read_subword_model(tmp_path / MODEL_FILE, "de")
    assert kept.subwords(TEXTS[0]) == by_language["de"].subwords(TEXTS[0])


def test_bpe_codes_are_stored_with_the_dictionary_of_each_side(
    given: Given, train: SpooledSentences, tmp_path: Path
) -> None:
    settings = given(codes="bpecodes", sentencepiece=None)
    units = task_subwords(settings, PAIR, train)
    subwords = units.models(["en"])["en"].subwords(TEXTS[0])
    assert subwords[:1] == ["T@@"]
    units.write(tmp_path)
    assert {path.name for path in tmp_path.glob("units*")} == {CODES_FILE}
    assert read_subword_model(tmp_path / CODES_FILE, "en").subwords(TEXTS[0]) == subwords
    assert detokeniser(tmp_path / CODES_FILE, "en")(subwords) == TEXTS[0]
    for language, key in zip(PAIR, ("source_dictionary", "target_dictionary"), strict=True):
        kept = tmp_path / "fairseq" / f"dict.{language}.txt"
        assert kept.read_bytes() == Path(getattr(settings.units, key)).read_bytes()
    assert {"only_en", "<unk>"} < {*units.source_vocabulary()}
    assert "only_de" not in units.source_vocabulary()


def test_learnt_subword_model_is_joint(train: SpooledSentences, tmp_path: Path) -> None:
    train.write(AlignedSentence("a", {"en": text, "de": text.upper()}) for text in TEXTS)
    data = DataConfig(vocabulary_size=80, units=UnitsConfig(name="learnt"))
    units = task_subwords(data, PAIR, train)
    units.write(tmp_path)
    by_language = units.models(PAIR)
    assert by_language["en"] is by_language["de"]
    files = [tmp_path / "fairseq" / f"dict.{language}.txt" for language in PAIR]
    assert files[0].read_bytes() == files[1].read_bytes()
    n_subword = sum(
        len(units.models(PAIR)["en"].subwords(text)) for t in TEXTS for text in (t, t.upper())
    )
    counts = [int(line.split(" ")[1]) for line in files[0].read_text("utf-8").splitlines()]
    assert sum(counts) == n_subword


def test_models_with_their_own_tokenizer_need_no_subwords(
    train: SpooledSentences, tmp_path: Path
) -> None:
    units = task_subwords(DataConfig(units=UnitsConfig(name="own")), PAIR, train)
    units.write(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["fairseq", "README"]
    model = units.models(PAIR)["de"]
    assert model.subwords(" a  b\n") == ["a", "b"]
    assert model.text(["b", "a"]) == "b a"
    assert units.source_vocabulary() is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sentencepiece": "gone"}, r"data\.units\.sentencepiece: no such file \(.*gone\)"),
        ({"codes": "gone"}, r"data\.units\.codes: no such file \(.*gone\)"),
        ({"target_dictionary": "gone"}, r"data\.units\.target_dictionary: no such file"),
    ],
)
def test_missing_file_is_named(
    given: Given, train: SpooledSentences, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        task_subwords(given(**changes), PAIR, train)


def test_files_in_another_format_are_named(
    given: Given, train: SpooledSentences, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"dict\.en\.txt: not a sentencepiece model "):
        task_subwords(given(sentencepiece="dict.en.txt"), PAIR, train).models(PAIR)
    with pytest.raises(DataError, match=r"spm\.model.* BPE code"):
        task_subwords(given(sentencepiece=None, codes="spm.model"), PAIR, train).models(PAIR)
    with pytest.raises(DataError, match=r"bpecodes: not a fairseq dictionary"):
        task_subwords(given(target_dictionary="bpecodes"), PAIR, train).write(tmp_path)
