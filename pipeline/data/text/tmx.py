"""Translation memories: TMX files, read one translation unit at a time."""

from __future__ import annotations

import gzip
import re
import unicodedata
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from lxml import etree

from pipeline.data.lines import open_bytes, refuse_control_characters
from pipeline.errors import DataError

_CHUNK_BYTES = 1 << 14
_MAX_UNIT_BYTES = 1_000_000
# Inside a segment these elements hold codes of the program that wrote the file, not text.
_CODE_TAGS = ("bpt", "ept", "ph", "it", "ut")
# Of these, the ones that stand for something, such as a picture, instead of formatting text.
_PLACEHOLDER_TAGS = ("ph", "ut")
_PLACE = "\ufffc"  # Unicode's object replacement character
_PLACES = re.compile(f"(.?){_PLACE}+(?=(.?))", re.DOTALL)
# Elements whose tags are reported while parsing: units, and what may come before them.
_REPORTED_TAGS = ("tmx", "header", "note", "prop", "ude", "body", "tu")
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def iterate_translation_units(path: Path, languages: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield each translation unit as language -> text, for those of `languages` that it has.

    Codes are compared without regard to case, and `pt_BR` is `pt-BR`. In a unit without `pt`, `pt`
    also matches `pt-BR`, unless that is one of `languages` itself. If a unit repeats a language,
    the first text is used; empty texts are none. White space becomes single spaces, and so does a
    placeholder between words. No other file is read. Raises DataError, naming file and line, if the
    file is missing or not XML, if it declares entities or uses other than XML's own, or if a unit,
    tag or comment is longer than a million bytes.
    """
    codes = {_code(language): language for language in languages}
    for texts in _iterate_units(path):
        yield {
            language: texts[match]
            for code, language in codes.items()
            if (match := _match(code, texts, codes)) is not None
        }


def languages_in(path: Path) -> list[str]:
    """Return the codes of all languages of a file, in lower case."""
    return sorted({code for texts in _iterate_units(path) for code in texts})


def _code(language: str) -> str:
    return language.replace("_", "-").lower()


def _match(code: str, texts: Collection[str], codes: Collection[str]) -> str | None:
    """Return the code of a unit's text that serves for `code`, or None."""
    if code in texts:
        return code
    regions = (other for other in texts if other.startswith(f"{code}-") and other not in codes)
    return next(regions, None)


def _iterate_units(path: Path) -> Iterator[dict[str, str]]:
    """Yield each translation unit as code -> first text that is not empty."""
    parser = etree.XMLPullParser(
        events=("start", "end"),
        tag=_REPORTED_TAGS,
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    unit: etree._Element | None = None
    is_first = True
    line = 1
    n_byte = 0  # read since the last unit began, or since the last tag outside of units
    try:
        with open_bytes(path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                parser.feed(chunk)
                line += chunk.count(b"\n")
                n_byte += len(chunk)
                for event, element in parser.read_events():
                    if is_first:
                        _refuse_declared_entities(path, element)
                        is_first = False
                    if unit is None:
                        n_byte = 0
                    if event == "start" and element.tag == "tu":
                        unit = element
                    elif event == "end" and element is unit:
                        yield _texts(path, element)
                        unit = None
                    if event == "end" and unit is None:
                        _free(element)
                if n_byte > _MAX_UNIT_BYTES:
                    raise DataError(
                        f"{path}, line {line}: a translation unit, tag or comment of more than "
                        f"{_MAX_UNIT_BYTES} bytes. Shorten it."
                    )
        parser.close()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Check the path.") from None
    except etree.XMLSyntaxError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a complete TMX file ({reason}). Export it again.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}). Copy the file again.") from None


def _texts(path: Path, unit: etree._Element) -> dict[str, str]:
    """Return code -> text of a complete unit; raises DataError if it has an entity."""
    for entity in unit.iter(etree.Entity):
        raise DataError(
            f"{path}, line {entity.sourceline}: unknown entity {entity.text}. Only the entities of "
            f"XML itself are supported."
        )
    texts: dict[str, str] = {}
    for variant in unit.iter("tuv"):
        code = _code(variant.get(_XML_LANG) or variant.get("lang") or "")
        for segment in variant.iter("seg"):
            text = " ".join(_content(segment).split())
            refuse_control_characters(text, path, segment.sourceline or 0)
            if text:
                texts.setdefault(code, text)
    return texts


def _content(segment: etree._Element) -> str:
    """Return the text of a segment without codes."""
    if len(segment):
        for element in segment.iter(*_PLACEHOLDER_TAGS):
            element.tail = _PLACE + (element.tail or "")
        etree.strip_elements(segment, *_CODE_TAGS, with_tail=False)
    text = "".join(segment.itertext())
    return _PLACES.sub(_filled, text) if _PLACE in text else text


def _filled(place: re.Match[str]) -> str:
    """Return what precedes a placeholder, with a space if it stands between words."""
    is_between_words = all(
        side and unicodedata.category(side)[0] in "LMN" for side in place.groups()
    )
    return place[1] + " " * is_between_words


def _refuse_declared_entities(path: Path, root: etree._Element) -> None:
    document_type = root.getroottree().docinfo.internalDTD
    for entity in () if document_type is None else document_type.iterentities():
        raise DataError(
            f"{path}, line {root.sourceline}: the file declares an entity ({entity.name!r}). "
            f"Remove the declaration."
        )


def _free(element: etree._Element) -> None:
    """Free an element that has been read, and those before it."""
    element.clear(keep_tail=True)
    while element.getprevious() is not None:
        del element.getparent()[0]
