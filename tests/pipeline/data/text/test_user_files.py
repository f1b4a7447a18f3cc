from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from pipeline.data.text.corpus import align
from pipeline.data.text.user_files import check_parallel, read_user_files
from pipeline.errors import DataError


def _texts(where: str, *languages: str) -> list[dict[str, str]]:
    corpus = read_user_files("mine", where, ["en", "de"], ["fr"])
    assert corpus.languages == set(languages)
    return [sentence.text for sentence in align(corpus.paragraphs(), sorted(languages), Counter())]


def test_prefix_matches_plain_and_gzipped_sides(tmp_path: Path) -> None:
    (tmp_path / "news: 日本.en").write_text("a b\nc\n", encoding="utf-8")
    (tmp_path / "news: 日本.de.gz").write_bytes(gzip.compress(b"A B\nC\n"))
    expected = [{"en": "a b", "de": "A B"}, {"en": "c", "de": "C"}]
    assert _texts(str(tmp_path / "news: 日本"), "en", "de") == expected


def test_path_may_contain_the_language_anywhere(tmp_path: Path) -> None:
    for language in ("en", "de", "fr"):
        folder = tmp_path / language
        folder.mkdir()
        (folder / "text.txt").write_text(f"{language} 1\n")
    where = str(tmp_path / "{lang}" / "text.txt")
    assert _texts(where, "en", "de", "fr") == [{"en": "en 1", "de": "de 1", "fr": "fr 1"}]


def test_translation_memory_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    unit = '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv></tu>'
    path.write_text(f"<tmx><body>{unit}</body></tmx>")
    assert _texts(str(path), "en", "de") == [{"en": "a", "de": "A"}]
    message = r"no translation unit has text in en and it \(the file has de, en\)"
    with pytest.raises(DataError, match=message):
        read_user_files("mine", str(path), ["en", "it"], [])
    path.write_text("<tmx><body/></tmx>")
    with pytest.raises(DataError, match="no translation unit"):
        read_user_files("mine", str(path), ["en", "de"], [])


@pytest.mark.parametrize(
    "first",
    [
        {"it": "x", "es": "y"},
        {},
        {"en": "", "de": ""},
        {"en": "x"},
        {"en": "x", "de": "", "fr": "y"},
    ],
)
def test_first_unit_of_a_translation_memory_decides_nothing(
    tmp_path: Path, first: dict[str, str]
) -> None:
    path = tmp_path / "memory.tmx"
    units = [first, *({"en-US": f"a{n}", "de-DE": f"A{n}"} for n in range(3))]
    content = "".join(
        "<tu>"
        + "".join(f'<tuv lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items())
        + "</tu>"
        for unit in units
    )
    path.write_text(f"<tmx><body>{content}</body></tmx>")
    assert _texts(str(path), "en", "de") == [{"en": f"a{n}", "de": f"A{n}"} for n in range(3)]


def test_language_of_nearly_all_units_is_one_of_the_translation_memory(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    unit = '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv>{}</tu>'
    french = unit.format('<tuv lang="fr-CA"><seg>á</seg></tuv>')
    path.write_text(f"<tmx><body>{unit.format('')}{french * 9}</body></tmx>")
    assert _texts(str(path), "en", "de", "fr") == [{"en": "a", "de": "A", "fr": "á"}] * 9


def test_language_of_few_units_is_none_of_the_translation_memory_and_says_why(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.tmx"
    unit = '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv>{}</tu>'
    french = unit.format('<tuv lang="fr"><seg>á</seg></tuv>')
    only_french = '<tu><tuv lang="fr"><seg>á</seg></tuv></tu>'
    path.write_text(f"<tmx><body>{unit.format('') * 4}{french}{only_french}</body></tmx>")
    corpus = read_user_files("mine", str(path), ["en", "de"], ["es", "fr"])
    assert corpus.languages == {"en", "de"}
    assert corpus.too_rare == {
        "es": "es is in 0 of 5 units with en and de; nine in ten are needed",
        "fr": "fr is in 1 of 5 units with en and de; nine in ten are needed",
    }


@pytest.mark.parametrize("ending", [".en", ".en.gz", ".pt-BR"])
def test_path_of_one_file_is_told_to_leave_out_the_code(tmp_path: Path, ending: str) -> None:
    for code in ("en", "en.gz", "pt-BR"):
        (tmp_path / f"news.{code}").write_text("a\n")
    with pytest.raises(DataError) as refused:
        read_user_files("mine", f"{tmp_path / 'news'}{ending}", ["en", "pt-BR"], [])
    assert str(refused.value) == (
        f"{tmp_path / 'news'}{ending}: the file of one language (found news.en, news.en.gz, "
        f"news.pt-BR). Leave out {ending}, since {tmp_path / 'news'} stands for the files of all "
        "languages."
    )


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("news", "news.en, news.pt_BR"),
        ("news.en", "news.en"),
        ("new{lang}", "news.en, news.pt_BR"),
        ("{lang}/news", "news.en, news.pt_BR"),
        ("nothing", "nothing"),
        ("no folder/news", "nothing"),
    ],
)
def test_missing_side_is_named_with_the_files_that_there_are(
    tmp_path: Path, where: str, found: str
) -> None:
    """Codes are compared as they are: `pt_BR` in the name of a file is not `pt-BR`."""
    for code in ("en", "pt_BR"):
        (tmp_path / f"news.{code}").write_text("a\n")
    message = rf"no text in pt-BR \(found {found}\)\. Provide .*{where}.*"
    with pytest.raises(DataError, match=message.replace("{lang}", "(pt-BR|.lang.)")):
        read_user_files("mine", str(tmp_path / where), ["pt-BR"], [])


def test_case_11_unequal_sides_are_refused_before_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "news.en").write_text("a\nb\n")
    (tmp_path / "news.de").write_text("A\n")
    with pytest.raises(DataError, match=r"got 2 and 1\)\. Line 2 has no counterpart"):
        read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])


@pytest.mark.parametrize(("n_line", "n_page"), [(250, 250), (5000, 1000), (250_000, 2500)])
def test_neighbouring_lines_of_long_files_are_of_one_page(
    tmp_path: Path, n_line: int, n_page: int
) -> None:
    for language in ("en", "de"):
        (tmp_path / f"news.{language}").write_text("x\n" * n_line)
    corpus = read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])
    pages = Counter(paragraph.page for paragraph in corpus.paragraphs())
    assert set(pages.values()) == {n_line // n_page}
    assert len(pages) == n_page
    assert not corpus.has_documents


@pytest.mark.parametrize(
    ("where", "name"),
    [("news", "news.docid"), ("news", "news.docid.gz"), ("{lang}/news.txt", "docid/news.txt")],
)
def test_file_of_documents_names_the_page_of_each_line(
    tmp_path: Path, where: str, name: str
) -> None:
    for side in ("en", "de"):
        path = tmp_path / (where.replace("{lang}", side) if "{" in where else f"{where}.{side}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{side} 1\n{side} 2\n{side} 3\n")
    documents = b"bbc.1\r\nbbc.1 \nno: 2\n"
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(gzip.compress(documents) if name.endswith("gz") else documents)
    corpus = read_user_files("mine", str(tmp_path / where), ["en", "de"], [])
    assert corpus.has_documents
    assert corpus.languages == {"en", "de"}
    assert [row.page for row in corpus.paragraphs()] == ["bbc.1", "bbc.1", "no: 2"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("a\n", r"news\.docid: must name the document of each line of .*news\.en \(got 1 lines"),
        ("a\nb\nc\n", r"\(got 3 lines for 2\)\. Correct the file, or remove it"),
        ("", r"\(got 0 lines for 2\)"),
        ("a\n \n", r"news\.docid, line 2: names no document\. Complete the file"),
    ],
)
def test_file_of_documents_that_does_not_fit_is_refused(
    tmp_path: Path, documents: str, message: str
) -> None:
    for side in ("en", "de"):
        (tmp_path / f"news.{side}").write_text("1\n2\n")
    (tmp_path / "news.docid").write_text(documents)
    with pytest.raises(DataError, match=message):
        read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])


def _write(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def test_case_11_unequal_counts_name_both_and_the_first_suspicious_line(tmp_path: Path) -> None:
    source = _write(tmp_path / "s", "a b\nc d\nextra\ne f g h i j k l m n\n")
    reference = _write(tmp_path / "r", "A B\nC D\nE F G H I J K L M N\n")
    with pytest.raises(DataError, match=r"got 4 and 3\)\. Line 3 is the first suspicious one"):
        check_parallel({"en": source, "de": reference})


def test_suspicious_line_is_found_in_scripts_without_spaces(tmp_path: Path) -> None:
    english = _write(tmp_path / "e", "The door of the house is open today.\nNo.\n")
    chinese = _write(
        tmp_path / "c", "今天房子的门是开着的。\n今天房子的门和窗户都是开着的因为天气很热。\n不\n"
    )
    with pytest.raises(DataError, match=r"Line 2 is the first suspicious one"):
        check_parallel({"en": english, "zh": chinese})


def test_case_11_without_a_suspicious_line_the_first_extra_line_is_named(tmp_path: Path) -> None:
    source, reference = _write(tmp_path / "s", "a\nb\nc\n"), _write(tmp_path / "r", "A\nB\n")
    with pytest.raises(DataError, match=r"got 3 and 2\)\. Line 3 has no counterpart \('c'\)"):
        check_parallel({"en": source, "de": reference})
    with pytest.raises(DataError, match=r"got 2 and 3\)\. Line 3 has no counterpart \('c'\)"):
        check_parallel({"de": reference, "en": source})


def test_empty_side_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"s: the file is empty"):
        check_parallel({"en": _write(tmp_path / "s", ""), "de": _write(tmp_path / "r", "")})


def test_traces_of_preprocessing_are_undone_or_counted_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    english = ["Don &apos;t use &#91; x &#93; &amp;amp;", "A & B", "He came .", "a@@ b c", "▁a b"]
    _write(tmp_path / "news.en", "\ufeff" + "\n".join([*english, ""]))
    _write(tmp_path / "news.de", "\ufeff" + "A\nB\nC &quot; .\nD\nE\n")
    corpus = read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])
    assert corpus.counts == {
        "texts_escaped_en": 1,
        "texts_tokenised_en": 1,
        "texts_subwords_en": 2,
        "texts_escaped_de": 1,
        "texts_tokenised_de": 1,
        "byte_order_marks_removed": 2,
    }
    rows = [row.sentences for row in corpus.paragraphs()]
    assert rows[0]["en"] == ["Don 't use [ x ] &amp;"]
    assert rows[2]["de"] == ['C " .']
    files = {side: str(tmp_path / f"news.{side}") for side in ("en", "de")}
    assert caplog.messages == [
        f"{files['en']}: 2 of 5 texts have subword markers (@@ or ▁). Join the subwords to words.",
        f"{files['en']}: 1 of 5 texts have a space before a full stop or comma, as tokenised text "
        "has. Detokenise it.",
        f"{files['en']}: Moses' escapes, such as &apos;, are undone in 1 of 5 texts",
        f"{files['de']}: 1 of 5 texts have a space before a full stop or comma, as tokenised text "
        "has. Detokenise it.",
        f"{files['de']}: Moses' escapes, such as &apos;, are undone in 1 of 5 texts",
    ]


def test_escapes_in_a_translation_memory_are_undone(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    unit = '<tuv lang="en"><seg>a &amp;quot;</seg></tuv><tuv lang="de"><seg>A</seg></tuv>'
    path.write_text(f"<tmx><body><tu>{unit}</tu></body></tmx>")
    assert _texts(str(path), "en", "de") == [{"en": 'a "', "de": "A"}]
    assert read_user_files("", str(path), ["en", "de"], []).counts == {"texts_escaped_en": 1}
