from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ConfigError, DataError
from pipeline.run.artifacts import Artifact
from pipeline.run.settings import PipelineConfig
from stages.prepare import prepare
from tests.composed_settings import composed_settings
from tests.prepared_rows import read_rows

ROLES = (
    *(
        "help",
        "debian-reference",
        "fish-fillets",
        "permuted",
        "french-source",
        "german-source",
        "typos",
        "truncated",
    ),
    *("german-english", "german-german", "english-english", "french-english"),
)
FILES = {
    "units.model",
    "units.vocab",
    "dev.jsonl",
    "data_card.md",
    *(f"test/{role}.jsonl" for role in ROLES),
    *(f"fairseq/dict.{side}.txt" for side in ("en", "de")),
    *(
        f"fairseq/{split}.en-de.{side}.{kind}"
        for split in ("train", "valid")
        for side in ("en", "de")
        for kind in ("bin", "idx")
    ),
}


def _settings(root: Path, packages: Path, *overrides: str) -> PipelineConfig:
    return composed_settings(
        f"io.root='{root}'",
        f"data.packages='{packages}'",
        "data.test_sentences=8",
        "data.dev_sentences=6",
        "data.train_sentences=null",
        "data.near_duplicate_jaccard=1",
        "data.vocabulary_size=100",
        *overrides,
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Path:
    root = tmp_path_factory.mktemp("out puts: 日本")
    prepare(_settings(root, help_packages))
    return root / "prepare" / "nmt_ende"


def test_case_17_folder_of_any_name_has_all_files(prepared: Path) -> None:
    files = {
        path.relative_to(prepared).as_posix() for path in prepared.rglob("*") if path.is_file()
    }
    assert files == FILES | {"manifest.json"}
    assert [path.name for path in prepared.parent.iterdir()] == ["nmt_ende"]


def test_manifest_has_counts_versions_and_hashes(prepared: Path) -> None:
    manifest = Artifact(prepared, "prepare").description
    Artifact(prepared, "prepare").check()
    assert set(Artifact(prepared, "prepare").names()) == FILES
    assert manifest["packages"]["libreoffice-help-de"]["version"] == "1.0"
    assert manifest["licence"] == "MPL-2.0"
    subsets = {(subset["subset"], subset["language"]) for subset in manifest["subsets"]}
    assert {("train", "en"), ("train", "de"), ("test", "fr")} <= subsets
    counts = manifest["counts"]
    assert counts["clean_train"]["read"] == counts["clean_train"]["kept"] == 81
    split = counts["split"]
    assert (split["test"], split["dev"]) == (8, 6)
    assert split["train"] + split["train_dropped_held_out_page"] == 81
    rows = read_rows(prepared / "test" / "help.jsonl")
    size = counts["test_sets"]["help"]
    assert (size["rows"], size["groups"]) == (8, len({row.group for row in rows}))


def test_sets_share_the_held_out_sentences(prepared: Path) -> None:
    test, flipped, german = (
        read_rows(prepared / "test" / f"{role}.jsonl")
        for role in ("help", "french-source", "german-source")
    )
    assert [row.reference for row in test] == [row.reference for row in flipped]
    assert [row.source for row in german] == [row.reference for row in test]
    for role, sides in {"german-english": (german, test), "english-english": (test, test)}.items():
        forced = read_rows(prepared / "test" / f"{role}.jsonl")
        assert [row.source for row in forced] == [row.source for row in sides[0]]
        assert [row.reference for row in forced] == [row.source for row in sides[1]]
    dev = read_rows(prepared / "dev.jsonl")
    assert not {row.source for row in dev} & {row.source for row in test}


def test_second_run_gives_the_same_bytes(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    prepare(_settings(tmp_path, help_packages))
    for path in (tmp_path / "prepare" / "nmt_ende").rglob("*"):
        if path.is_file():
            name = path.relative_to(tmp_path / "prepare" / "nmt_ende")
            assert path.read_bytes() == (prepared / name).read_bytes(), name


def test_smaller_train_set_leaves_the_test_sets_unchanged(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    prepare(_settings(tmp_path, help_packages, "data.train_sentences=40"))
    folder = tmp_path / "prepare" / "nmt_ende"
    split = Artifact(folder, "prepare").description["counts"]["split"]
    assert split["train"] == 40
    assert split["train_dropped_over_train_sentences"] > 0
    sources = [row.source for row in read_rows(folder / "test" / "help.jsonl")]
    assert sources == [row.source for row in read_rows(prepared / "test" / "help.jsonl")]


def test_empty_train_set_is_refused_and_leaves_no_folder(
    help_packages: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="LibreOffice help: no sentence is left for the train set"):
        prepare(_settings(tmp_path, help_packages, "data.test_sentences=76"))
    assert list((tmp_path / "prepare").iterdir()) == []


def _names(folder: Path, role: str) -> tuple[list[str | None], list[str | None]]:
    """Return the groups and originals of a test set."""
    rows = read_rows(folder / "test" / f"{role}.jsonl")
    return [row.group for row in rows], [row.original for row in rows]


def test_groups_and_originals_are_shared_by_sets_of_the_same_sentences_only(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.en").write_text(f"text {name}\n")
    sets = [
        f"+task.test_sets.{role}={{kind: files, corpus: mine, path: '{tmp_path / name}'}}"
        for role, name in (("ONE", "one"), ("TWO", "two"))
    ]
    prepare(_settings(tmp_path, help_packages, "task=nmt_enfr", *sets))
    french = tmp_path / "prepare" / "nmt_enfr"
    held_out = _names(french, "help")
    for role in (
        "french-source",
        "german-source",
        "german-english",
        "english-english",
        "french-french",
    ):
        assert _names(french, role) == held_out
    for role in ("help", "debian-reference", "fish-fillets", "german-source"):
        assert _names(french, role) == _names(prepared, role)
    apart = [
        held_out,
        *(_names(french, role) for role in ("debian-reference", "fish-fillets", "ONE", "TWO")),
    ]
    for kind in (0, 1):
        names = [set(both[kind]) - {None} for both in apart]
        assert len(set().union(*names)) == sum(map(len, names))
    assert apart[-2:] == [([None], ["mine:0"]), ([None], ["mine (TWO):0"])]


def test_both_language_pairs_share_their_sentences(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    prepare(_settings(tmp_path, help_packages, "task=nmt_enfr"))
    french = tmp_path / "prepare" / "nmt_enfr"
    for file in ("dev", "test/help", "test/debian-reference", "test/fish-fillets"):
        rows = [read_rows(folder / f"{file}.jsonl") for folder in (prepared, french)]
        assert [row.source for row in rows[0]] == [row.source for row in rows[1]]
        assert [row.reference for row in rows[0]] != [row.reference for row in rows[1]]
    flipped = read_rows(prepared / "test" / "french-source.jsonl")
    assert [row.reference for row in read_rows(french / "test" / "help.jsonl")] == [
        row.source for row in flipped
    ]
    assert (french / "test" / "french-french.jsonl").is_file()


def test_third_language_pair_needs_settings_only(help_packages: Path, tmp_path: Path) -> None:
    prepare(
        _settings(
            tmp_path,
            help_packages,
            *("task.name=nmt_defr", "task.source_language=de", "task.target_language=fr"),
        )
    )
    (row, *_) = read_rows(tmp_path / "prepare" / "nmt_defr" / "test" / "help.jsonl")
    assert row.source.startswith(("Öffnen", "Schließen", "Ziehen"))


def test_absent_set_has_a_reason_and_librispeech_provides_it(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    manifest = Artifact(prepared, "prepare").description
    reason = "data.librispeech names no folder with LibriSpeech's test-other"
    assert manifest["absent_sets"] == {"librispeech-test-other": reason}
    for subset in ("test-clean", "test-other"):
        path = tmp_path / "libri" / subset / "1" / "2" / "1-2.trans.txt"
        path.parent.mkdir(parents=True)
        path.write_text(f"1-2-0 HE SPEAKS OF {subset[5:].upper()} THINGS\n")
    settings = _settings(tmp_path, help_packages, f"data.librispeech={tmp_path / 'libri'}")
    prepare(settings)
    folder = tmp_path / "prepare" / "nmt_ende"
    for word in ("clean", "other"):
        name = f"librispeech-test-{word}"
        (row,) = read_rows(folder / "test" / f"{name}.jsonl")
        assert (row.source, row.reference) == (f"he speaks of {word} things", None)
        assert settings.task.test_sets[name].corpus == f"LibriSpeech test-{word}, transcripts"
    assert "LibriSpeech test-other, transcripts" in (folder / "data_card.md").read_text()


def test_cases_10_12_13_15_test_sets_of_the_user_keep_every_line(
    help_packages: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = tmp_path / "mine: 日本"
    lines: dict[str, list[str]] = {"en": [], "de": []}
    for row in range(60):
        lines["en"].append(f"The {row} green doors of house {row} open")
        lines["de"].append(f"Die {row} grünen Türen von Haus {row} öffnen sich")
    unusual = ["a\rb", "", " ", "\t", "-3.5 percent: a, b", "c\u2028d\x85e", "w " * 5000]
    for side, texts in lines.items():
        Path(f"{prefix}.{side}").write_bytes("\n".join([*texts, ""]).encode())
        Path(f"{prefix}.test.{side}").write_bytes(
            "".join(f"{line}\r\n" for line in unusual).encode()
        )
    settings = [
        "data.source=files",
        "data.corpus=my own text",
        f'data.train="{prefix}"',
        f'data.test="{prefix}.test"',
        "data.vocabulary_size=64",
    ]
    prepare(_settings(tmp_path, help_packages, *settings))
    folder = tmp_path / "prepare" / "nmt_ende"
    rows = read_rows(folder / "test" / "my-own-text.jsonl")
    assert [row.source for row in rows] == unusual
    assert [row.reference for row in rows] == unusual
    assert {row.group for row in rows} == {None}  # the documents of the lines are not known
    sizes = Artifact(folder, "prepare").description["counts"]["test_sets"]
    assert sizes["my-own-text"]["groups"] is None
    assert sizes["debian-reference"]["groups"] > 1
    assert rows[1].source_pieces == rows[2].source_pieces == []
    assert len(rows[6].source_pieces) >= 5000
    absent = Artifact(folder, "prepare").description["absent_sets"]
    assert absent["french-source"] == absent["french-english"] == "my own text has no side in fr"
    assert "test set french-source is absent: my own text has no side in fr" in caplog.messages


def test_distorted_sets_keep_originals_and_documents_if_a_sentence_cannot_be_changed(
    help_packages: Path, tmp_path: Path
) -> None:
    texts = {
        "train": [f"the {row} green doors of house {row} open" for row in range(60)],
        # Nothing changes a blank line, no letter of 3.5 is misspelt, and one word is not cut short.
        "test": ["open the green doors", "", "the", "3.5", "green house", "doors of the house"],
    }
    for name, lines in texts.items():
        backwards = [" ".join(line.split()[::-1]) for line in lines]
        for side, text in (("en", lines), ("de", backwards)):
            (tmp_path / f"{name}.{side}").write_text("\n".join([*text, ""]))
    (tmp_path / "test.docid").write_text("a\na\nb\nb\nc\nc\n")
    sources = [f"data.{name}='{tmp_path / name}'" for name in texts]
    user_text = ["data.source=files", "data.corpus=mine", "data.vocabulary_size=64"]
    prepare(_settings(tmp_path, help_packages, *user_text, *sources))
    folder = tmp_path / "prepare" / "nmt_ende" / "test"
    baseline = read_rows(folder / "mine.jsonl")
    assert [row.group for row in baseline] == [f"mine:{page}" for page in "aabbcc"]
    row_of = {row.original: row for row in baseline}
    assert len(row_of) == len(baseline) == 6
    for role in ("permuted", "typos", "truncated"):
        rows = read_rows(folder / f"{role}.jsonl")
        pairs = [(row, row_of[row.original]) for row in rows]
        assert [row.id for row in rows] == list(range(len(rows)))
        assert any(row.id != original.id for row, original in pairs)
        assert [original.id for _, original in pairs] == sorted({row.id for _, row in pairs})
        for row, original in pairs:
            assert row.group == original.group
            assert row.source != original.source
            if role == "permuted":
                assert sorted(row.source_pieces) == sorted(original.source_pieces)
            elif role == "typos":
                assert row.reference == original.reference
            else:
                assert original.source.startswith(row.source)


def test_empty_test_set_is_absent_and_counts_of_the_files_are_kept(
    help_packages: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.en").touch()
    for side in ("en", "de"):
        lines = [f"{side}{row} &apos;{row}" for row in range(60)]  # one word cannot be cut short
        (tmp_path / f"mine.{side}").write_text("\ufeff" + "\n".join(lines))
    sets = [
        f"+task.test_sets.MINE={{kind: files, corpus: mine, path: '{tmp_path / 'empty'}'}}",
        "data.source=files",
        "data.corpus=mine",
        *(f"data.{name}='{tmp_path / 'mine'}'" for name in ("train", "test")),
        *("data.min_words=1", "data.min_letter_share=0", "data.vocabulary_size=64"),
    ]
    for side in ("en", "de"):
        (tmp_path / f"words.{side}").write_text("\n".join(f"{side}{row}" for row in range(8)))
    prepare(_settings(tmp_path, help_packages, *sets, f"data.test='{tmp_path / 'words'}'"))
    description = Artifact(tmp_path / "prepare" / "nmt_ende", "prepare").description
    absent = description["absent_sets"]
    assert absent["MINE"] == f"{tmp_path / 'empty'} has no text"
    assert absent["truncated"] == "none of the 8 sentences of mine can be used for truncated"
    assert {"mine", "debian-reference", "typos"} <= description["counts"]["test_sets"].keys()
    assert description["counts"]["read_train"] == {
        "texts_escaped_en": 60,
        "texts_escaped_de": 60,
        "byte_order_marks_removed": 2,
    }


def test_settings_of_user_text_must_agree(help_packages: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.train: must be set if data\.source is files"):
        _settings(tmp_path, help_packages, "data.source=files")
    with pytest.raises(ConfigError, match=r"data\.corpus: must name the corpus of"):
        _settings(tmp_path, help_packages, "data.source=files", "data.train=x")
    with pytest.raises(ConfigError, match=r"data\.test: must be null if data\.source is libre"):
        _settings(tmp_path, help_packages, "data.test=x")
    with pytest.raises(
        ConfigError, match=r"german-english\.regimes: must be a list with search, teacher_forc"
    ):
        _settings(tmp_path, help_packages, "task.test_sets.german-english.regimes=[beam]")


def _wmt(cache: Path, pair: str, n_line: int) -> None:
    for ending, language in zip(("src", "ref"), pair.split("-"), strict=True):
        path = cache / "wmt14" / f"wmt14.{pair}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{pair} {language} line {row} here\n" for row in range(n_line)))


def test_missing_language_comes_from_the_test_set_of_another_pair(
    help_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU", str(tmp_path / "cache"))
    for side in ("en", "de"):
        lines = [f"{side} house {row} opens green doors" for row in range(60)]
        (tmp_path / f"train.{side}").write_text("\n".join([*lines, ""]))
    _wmt(tmp_path / "cache", "en-de", 5)
    overrides = (
        *("data.source=sacrebleu", "data.corpus=wmt14", "data.test=wmt14"),
        *(f"data.train='{tmp_path / 'train'}'", "data.vocabulary_size=64"),
    )
    prepare(_settings(tmp_path, help_packages, *overrides))
    folder = tmp_path / "prepare" / "nmt_ende"
    absent = Artifact(folder, "prepare").description["absent_sets"]
    assert set(absent) == {"french-source", "french-english", "librispeech-test-other"}
    fetch = "run sacrebleu -t wmt14 -l en-fr --echo src ref"
    assert absent["french-source"] == f"sacrebleu's cache holds no wmt14 of en-fr: {fetch}"

    _wmt(tmp_path / "cache", "en-fr", 3)
    prepare(_settings(tmp_path, help_packages, *overrides))
    assert set(Artifact(folder, "prepare").description["absent_sets"]) == {"librispeech-test-other"}
    flipped, forced, german = (
        read_rows(folder / "test" / f"{role}.jsonl")
        for role in ("french-source", "french-english", "german-source")
    )
    assert [row.source for row in flipped] == [f"en-fr fr line {row} here" for row in range(3)]
    assert [row.reference for row in flipped] == [None] * 3  # no German is known for them
    assert [row.reference for row in forced] == [f"en-fr en line {row} here" for row in range(3)]
    assert german[0].source == "en-de de line 0 here"
    originals = [row.original for row in flipped]
    assert originals == [row.original for row in forced]
    assert originals == [f"sacrebleu wmt14 en-fr:{row}" for row in range(3)]
    assert german[0].original == "sacrebleu wmt14 en-de:0"
