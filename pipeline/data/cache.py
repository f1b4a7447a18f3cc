"""Paragraphs of a corpus that take long to parse, kept beside the downloads."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pipeline.data.corpus import Paragraph
from pipeline.data.packages import Package
from pipeline.parts import digest, file_sha256

_log = logging.getLogger(__name__)


def cached_paragraphs(
    code: Path, downloads: Path, packages: list[Package], parse: Callable[[], Iterable[Paragraph]]
) -> Callable[[], Iterator[Paragraph]]:
    """What `parse` gives, as a function that reads it from a file; parsed where there is none.

    The file is known by a digest of the packages, of their order, of `code` (the module that
    parses) and of the code that splits sentences.
    """
    splitting = Path(__file__).with_name("corpus.py")
    parts = [file_sha256(code), file_sha256(splitting)]
    key = digest([(one.name, one.sha256) for one in packages], parts)
    cache = downloads / f"{code.stem}-{key[:16]}.jsonl"
    if not cache.is_file():
        _log.info("parsing %s", ", ".join(package.path.name for package in packages))
        _write_whole(cache, parse())
    return lambda: _read(cache)


def _write_whole(cache: Path, paragraphs: Iterable[Paragraph]) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    temporary = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for paragraph in paragraphs:
                file.write(json.dumps(paragraph, ensure_ascii=False, separators=(",", ":")) + "\n")
        temporary.replace(cache)
    finally:
        temporary.unlink(missing_ok=True)


def _read(cache: Path) -> Iterator[Paragraph]:
    with cache.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            page, sentences = json.loads(line)
            yield Paragraph(page, sentences)
