"""Malicious and damaged files are refused with the name of the file."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.data.lines import iterate_lines
from pipeline.data.speech.layouts import read_ami, read_common_voice, read_stm
from pipeline.data.text.published_corpora import iterate_transcripts
from pipeline.data.text.tmx import iterate_translation_units
from pipeline.errors import DataError

# Kind of file -> name of a file, and the function that reads it.
READERS: dict[str, tuple[str, Callable[[Path], Iterable[Any]]]] = {
    "lines": ("corpus.en", iterate_lines),
    "gzipped lines": ("corpus.en.gz", iterate_lines),
    "tmx": ("memory.tmx", lambda path: iterate_translation_units(path, {"en", "de"})),
    "gzipped tmx": ("memory.tmx.gz", lambda path: iterate_translation_units(path, {"en", "de"})),
    "trans.txt": ("1-2.trans.txt", iterate_transcripts),
    "stm": ("talk.stm", lambda path: read_stm(path.parent, "talks").utterances),
    "tsv": ("clips.tsv", lambda path: read_common_voice(path, "clips").utterances),
    "ami": (
        "segments/M.A.segments.xml",
        lambda path: read_ami(path.parent.parent, "meetings").utterances,
    ),
}
# Fragments of valid files, so that damaged files pass the first check.
_PIECES = [
    b"a line of text\r\n", b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2\x80\xa8", b"\t", b"\n", b"\0",
    b'<?xml version="1.0" encoding="', b"utf-8", b"utf-16", b"big5", b"x", b'"?>', b"<tmx>",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<tu>", b'<tuv xml:lang="en">', b"<seg>", b"</seg>",
    b"</tuv>", b"</tu>", b"</tmx>", b"1-2-0 ", b"1-2-/../0 ", b"WORDS HERE\n",
    b"talk 1 speaker ", b"0.5 ", b". ", b"1..2 ", b"9" * 400, b" <label> words\n", b";; note\n",
    b"path\tsentence\n", b"clip.mp3\twords\n", b"../clip\twords\n", b"..\twords\n",
    b"<r xmlns:nite='http://nite.sourceforge.net/'>", b"<segment ", b"nite:id='s' ",
    b"transcriber_start='0' ", b"transcriber_end='x'", b">", b"<nite:child href='#id(w)'/>",
    b"</segment>", b"</r>",
]  # fmt: skip
contents = st.lists(st.sampled_from(_PIECES) | st.binary(max_size=12), max_size=12).map(b"".join)


@pytest.mark.parametrize("kind", READERS)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=contents, kept=st.floats(0, 1))
@example(content=b"talk 1 speaker 1..2 3 words", kept=1.0)
@example(content=b"1-2-/../0 WORDS", kept=1.0)
@example(content=b"path\tsentence\n..\twords", kept=1.0)
@example(content=b'<?xml version="1.0" encoding="big5"?><tmx/>', kept=1.0)
@example(content=b"<r><segment/></r>", kept=1.0)
def test_hostile_bytes_are_read_or_refused_with_the_file_name(
    kind: str, content: bytes, kept: float, tmp_path: Path
) -> None:
    name, read = READERS[kind]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for recording in ("talk.wav", "M.Mix-Headset.wav"):
        (tmp_path / recording).touch()
    if name.endswith(".gz"):
        content = gzip.compress(content)
        content = content[: round(kept * len(content))]
    path.write_bytes(content)
    try:
        list(read(path))
    except DataError as error:
        assert str(path.parent.parent if kind == "ami" else path) in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("kind", "first_line"),
    [
        ("lines", b"a line\n"),
        ("trans.txt", b"1-2-0 WORDS\n"),
        ("stm", b";; note\n"),
        ("tsv", b"path\tsentence\n"),
    ],
)
def test_hostile_line_of_a_gigabyte_is_refused_with_little_memory(
    kind: str, first_line: bytes, tmp_path: Path
) -> None:
    name, read = READERS[kind]
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(first_line)
        file.truncate(2**30)  # a sparse file
    _refused_in_little_memory(read, path, rf"{name}, line 2: longer than 1048576 bytes")


@pytest.mark.parametrize("head", [b"", b"<tmx><!--", b'<tmx a="', b'<tmx><tuv lang="en"><seg>'])
def test_hostile_line_or_tag_without_end_is_refused_with_little_memory(
    head: bytes, tmp_path: Path
) -> None:
    name, read = READERS["gzipped tmx" if head else "gzipped lines"]
    path = tmp_path / name
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(2**6):
            file.write(b"x" * 2**20)
    _refused_in_little_memory(read, path, rf"{name}, line 1: .*(longer|more) than 10[0-9]+ ")


def _refused_in_little_memory(
    read: Callable[[Path], Iterable[Any]], path: Path, message: str
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message):
            for _ in read(path):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**23
