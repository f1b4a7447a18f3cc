"""Translation memories (TMX 1.4): their units, one at a time, from a file that is not trusted."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from pipeline.data.text import open_bytes
from pipeline.errors import DataError

_CHUNK_BYTES = 1 << 16
_MOST_UNIT_CHARACTERS = 1_000_000
_MOST_TAG_BYTES = 1_000_000
# Inside a segment these hold codes of the program that wrote it, not text.
_CODE_TAGS = frozenset({"bpt", "ept", "ph", "it", "ut"})


def iterate_units(path: Path, languages: Collection[str]) -> Iterator[dict[str, str]]:
    """Language -> text of each translation unit, for those of `languages` that the unit has.

    `en` answers to `en-US` too; of a repeated language the first stands. White space is one space.
    Nothing outside the file is read. Raises DataError, naming file and line, where the file is
    missing or no XML, where it declares entities or uses others than XML's own, or where a unit or
    a tag is longer than a million characters.
    """
    parser = _UnitParser(path, languages)
    try:
        with open_bytes(path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield from parser.units(chunk, last=False)
        yield from parser.units(b"", last=True)
    except FileNotFoundError:
        raise DataError(f"{path} must exist, got no such file") from None
    except (expat.ExpatError, LookupError, ValueError) as error:
        # The last two: an encoding that Python does not know, or that is not of single bytes.
        raise DataError(f"{path} must be a TMX file, got: {error}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} must be a whole gzip file, got a damaged one ({error})") from None


class _UnitParser:
    def __init__(self, path: Path, languages: Collection[str]) -> None:
        self._path = path
        self._languages = frozenset(languages)
        self._finished: list[dict[str, str]] = []
        self._unit: dict[str, str] = {}
        self._language = ""
        self._pieces: list[str] | None = None
        self._code_depth = 0
        self._characters = 0
        self._bytes = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._skipped

    def units(self, chunk: bytes, *, last: bool) -> list[dict[str, str]]:
        """The units that end in this chunk of the file."""
        self._parser.Parse(chunk, last)
        self._bytes += len(chunk)
        # What the parser keeps of a tag or comment that has not ended yet.
        if self._bytes - self._parser.CurrentByteIndex > _MOST_TAG_BYTES:
            self._refuse(f"tags of at most {_MOST_TAG_BYTES} bytes, got a longer one")
        finished, self._finished = self._finished, []
        return finished

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._unit, self._characters = {}, 0
        elif tag == "tuv":
            name = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._language = name.replace("_", "-").partition("-")[0].lower()
        elif tag == "seg":
            self._pieces, self._code_depth = [], 0
        elif tag in _CODE_TAGS:
            self._code_depth += 1

    def _end(self, tag: str) -> None:
        if tag == "tu":
            self._finished.append(self._unit)
        elif tag == "seg" and self._pieces is not None:
            text = " ".join("".join(self._pieces).split())
            if self._language in self._languages:
                self._unit.setdefault(self._language, text)
            self._pieces = None
        elif tag in _CODE_TAGS:
            self._code_depth -= 1

    def _text(self, text: str) -> None:
        if self._pieces is None or self._code_depth:
            return
        self._characters += len(text)
        if self._characters > _MOST_UNIT_CHARACTERS:
            self._refuse(f"units of at most {_MOST_UNIT_CHARACTERS} characters, got a longer one")
        self._pieces.append(text)

    def _entity(self, name: str, *_: object) -> None:
        self._refuse(f"no entity declarations, got one of {name!r}")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        # Of a document type in another file, which is not read.
        if not is_parameter:
            self._refuse(f"no entities but those of XML itself, got &{name};")

    def _refuse(self, rule: str) -> NoReturn:
        raise DataError(f"{self._path}, line {self._parser.CurrentLineNumber} must have {rule}")
