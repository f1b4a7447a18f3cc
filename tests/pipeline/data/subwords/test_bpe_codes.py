from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.subwords import MosesBpeModel
from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq

MERGES = ["t h", "th e</w>", "d o", "do o", "r s</w>", "k n", "&a p", "&ap os", "o s", "e r</w>"]
CODES = "\n".join(["#version: 0.2", *MERGES, ""])
FAST_CODES = "".join(f"{merge} {100 - index}\n" for index, merge in enumerate(MERGES))
TEXTS = [
    "The doors, the doors; the well-known doors!",
    "C'est l'heure : 3,5 % (d'accord) «bon».",
    'a < b & c | [d] "e" 100%',
    "Mr. Know e.g. U.S. 3.5 ... end.",
]


def written(path: Path, codes: str | bytes) -> Path:
    path.write_bytes(codes.encode() if isinstance(codes, str) else codes)
    return path


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("codes: 日本") / "bpecodes", CODES)


def test_tokens_are_those_of_moses_and_subwords_have_continuation_marks(codes: Path) -> None:
    units = MosesBpeModel(codes, "en")
    subwords = units.subwords("the well-known doors, d'or")
    assert " ".join(subwords[:5]) == "the w@@ e@@ l@@ l"
    assert " ".join(subwords[5:13]) == "@@@ -@@ @ kn@@ o@@ w@@ n doo@@"
    assert " ".join(subwords[13:15]) == "rs ,"
    assert units.text(subwords) == "the well-known doors, d'or"


def test_codes_of_fastbpe_have_counts(codes: Path, tmp_path: Path) -> None:
    fast = MosesBpeModel(written(tmp_path / "fast", FAST_CODES), "en")
    units = MosesBpeModel(codes, "en")
    assert [fast.subwords(text) for text in TEXTS] == [units.subwords(text) for text in TEXTS]


def test_codes_of_version_0_1_have_a_separate_end_of_word(tmp_path: Path) -> None:
    old = "t h\nth e\nthe </w>\n"
    for name, codes in (("unmarked", old), ("marked", f"#version: 0.1\n{old}")):
        assert MosesBpeModel(written(tmp_path / name, codes), "en").subwords("the then") == [
            "the",
            "the@@",
            "n",
        ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_subwords_and_texts_equal_those_of_fairseq(codes: Path, language: str) -> None:
    """fairseq does not close the file of codes, which gives the warning."""
    encoders = "fairseq.data.encoders"
    moses = import_fairseq(f"{encoders}.moses_tokenizer")
    bpe = import_fairseq(f"{encoders}.subword_nmt_bpe")
    tokeniser = moses.MosesTokenizer(
        moses.MosesTokenizerConfig(source_lang=language, target_lang=language)
    )
    cutter = bpe.SubwordNMTBPE(bpe.SubwordNMTBPEConfig(bpe_codes=str(codes)))
    units = MosesBpeModel(codes, language)
    for text in TEXTS:
        subwords = units.subwords(text)
        assert subwords == cutter.encode(tokeniser.encode(text)).split(" ")
        for some in (subwords, subwords[:-3], list(reversed(subwords))):
            assert units.text(some) == tokeniser.decode(cutter.decode(" ".join(some)))


@given(st.text())
def test_any_text_gives_subwords_that_a_dictionary_can_hold(codes: Path, text: str) -> None:
    units = MosesBpeModel(codes, "en")
    subwords = units.subwords(text)
    assert all(subword and not set(subword) & set(" \n\r\t") for subword in subwords)
    assert bool(subwords) or not text.strip() or not text.isprintable()
    assert isinstance(units.text(subwords), str)


def test_blank_text_has_no_subwords(codes: Path) -> None:
    units = MosesBpeModel(codes, "en")
    assert [units.subwords(blank) for blank in ("", " ", "\t", "\u2028")] == [[]] * 4
    assert units.text([]) == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("#version: 0.3\na b\n", r"line 1: BPE codes must be of version 0\.1 or 0\.2 \(got 0\.3\)"),
        ("#version: 0.2\na b\na b c\n", r"line 3: a BPE code must be two symbols \(got 'a b c'"),
        ("a b 5\na b\n", r"line 2: a BPE code must be two symbols and their count \(got 'a b'"),
        ("a b 5\na b c\n", r"line 2: a BPE code must be two symbols and their count \(got 'a b c'"),
        ("", r"line 1: a BPE code must be two symbols \(got ''"),
        ("a b\n\nc d\n", r"line 2: a BPE code must be two symbols \(got ''"),
        ("a  b\n", r"line 1: a BPE code must be two symbols \(got 'a  b'"),
        (b"\xff\xfe\n", r"codes: BPE codes must be UTF-8"),
        (b"\x0a\x05\x0a\x01a", r"line 1: a BPE code must be two symbols \(got ''"),
    ],
)
def test_invalid_codes_are_named(content: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words) as error:
        MosesBpeModel(written(tmp_path / "codes", content), "en")
    assert "\n" not in str(error.value)
