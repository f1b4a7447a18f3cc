from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from pipeline.data.text.tmx import iterate_translation_units, languages_in
from pipeline.errors import DataError

_HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><body>'
_UNIT = """<tu><tuv xml:lang="EN-us"><seg>Use <bpt i="1">&lt;b></bpt>the
  door<ept i="1">&lt;/b></ept> &amp; go</seg></tuv><prop>no</prop>
  <tuv lang="de"><seg>Nimm <hi>die Tür</hi></seg></tuv>
  <tuv xml:lang="fr"><seg>Prends</seg></tuv></tu>"""
_END = "</body></tmx>"


def _units(path: Path, content: str | bytes) -> list[dict[str, str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(iterate_translation_units(path, {"en", "de"}))


def test_units_are_read_in_the_requested_languages(tmp_path: Path) -> None:
    expected = [{"en": "Use the door & go", "de": "Nimm die Tür"}]
    assert _units(tmp_path / "a.tmx", _HEAD + _UNIT + _END) == expected
    zipped = gzip.compress((_HEAD + _UNIT + _END).encode())
    assert _units(tmp_path / "a.tmx.gz", zipped) == expected
    assert _units(tmp_path / "a.tmx", (_HEAD + _END)) == []


def _unit(**texts: str) -> str:
    """A unit of language -> content of the segment; `__` in a keyword is a hyphen."""
    variants = "".join(
        f'<tuv xml:lang="{language.replace("__", "-")}"><seg>{text}</seg></tuv>'
        for language, text in texts.items()
    )
    return f"<tu>{variants}</tu>"


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ({"en", "pt-BR"}, [{"en": "a", "pt-BR": "B"}, {"en": "c"}, {"en": "e", "pt-BR": "F"}]),
        ({"en", "pt_br"}, [{"en": "a", "pt_br": "B"}, {"en": "c"}, {"en": "e", "pt_br": "F"}]),
        # An exact match comes first, then the first region.
        ({"pt"}, [{"pt": "P"}, {"pt": "D"}, {"pt": "F"}]),
        ({"pt", "pt-BR"}, [{"pt": "P", "pt-BR": "B"}, {"pt": "D"}, {"pt-BR": "F"}]),
        ({"en-GB"}, [{}, {}, {}]),
    ],
)
def test_codes_with_a_region_match(
    tmp_path: Path, languages: set[str], expected: list[dict[str, str]]
) -> None:
    units = [
        _unit(en="a", pt__BR="B", pt="P"),
        _unit(en="c", pt__PT="D"),
        _unit(en__US="e", PT__br="F"),
    ]
    (tmp_path / "a.tmx").write_text(_HEAD + "".join(units) + _END)
    assert list(iterate_translation_units(tmp_path / "a.tmx", languages)) == expected
    assert languages_in(tmp_path / "a.tmx") == ["en", "en-us", "pt", "pt-br", "pt-pt"]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("Press<ph/>then<ph x='1'/><ph>code</ph>wait", "Press then wait"),
        ("Press <ph/> now", "Press now"),
        ("Press <ph/>.", "Press ."),
        ("Press<ph/>, then wait<ph/>", "Press, then wait"),
        ("un<bpt i='1'/>do<ept i='1'/>", "undo"),
        ("हिन्दी<ut/>यह", "हिन्दी यह"),
    ],
)
def test_placeholder_between_words_does_not_join_them(
    tmp_path: Path, segment: str, text: str
) -> None:
    assert _units(tmp_path / "a.tmx", _HEAD + _unit(en=segment) + _END) == [{"en": text}]


def test_control_character_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tmx, line 4: control character U\+0092"):
        _units(tmp_path / "a.tmx", _HEAD + "\n" + _unit(en="It\x92s") + _END)


def test_empty_text_is_none(tmp_path: Path) -> None:
    unit = '<tu><tuv lang="en"><seg> </seg></tuv><tuv lang="en"><seg>a</seg></tuv>'
    content = _HEAD + unit + '<tuv lang="de"><seg/></tuv></tu>' + _END
    assert _units(tmp_path / "a.tmx", content) == [{"en": "a"}]


def test_entities_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><tmx><body/></tmx>'
    with pytest.raises(DataError, match=r"a\.tmx, line 1: the file declares an entity \('a'\)"):
        _units(tmp_path / "a.tmx", bomb)
    outside = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/hostname">]><tmx><body/></tmx>'
    with pytest.raises(DataError, match="the file declares an entity"):
        _units(tmp_path / "a.tmx", outside)
    elsewhere = _HEAD + "<tu><tuv xml:lang='de'><seg>Fen&szlig;ter</seg></tuv></tu>" + _END
    with pytest.raises(DataError, match=r"line 3: unknown entity &szlig;"):
        _units(tmp_path / "a.tmx", elsewhere)


def test_damaged_file_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tmx: not a complete TMX file .*line 6"):
        _units(tmp_path / "a.tmx", _HEAD + _UNIT)
    with pytest.raises(DataError, match="not a complete TMX file"):
        _units(tmp_path / "a.tmx", "plain text")
    with pytest.raises(DataError, match="damaged gzip file"):
        _units(tmp_path / "a.tmx.gz", gzip.compress(b"<tmx>")[:-5])
    with pytest.raises(DataError, match="no such file"):
        list(iterate_translation_units(tmp_path / "absent.tmx", {"en"}))


def test_unit_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    long = f'<tmx><body><tu><tuv lang="en"><seg>{"word " * 250_000}'
    with pytest.raises(DataError, match="unit, tag or comment of more than 1000000 bytes"):
        _units(tmp_path / "a.tmx", long)


@pytest.mark.slow
def test_large_translation_memory_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(_HEAD + _UNIT * 4_000 + _END, encoding="utf-8")
    tracemalloc.start()
    assert sum(1 for _ in iterate_translation_units(path, {"en", "de"})) == 4_000
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < path.stat().st_size / 4
