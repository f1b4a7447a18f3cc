from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from pipeline.data.lines import has_byte_order_mark, iterate_lines
from pipeline.data.text.user_files import check_parallel
from pipeline.errors import DataError


def read_lines(path: Path) -> list[str]:
    return list(iterate_lines(path))


def _write(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def test_case_10_lines_end_at_lf_only(tmp_path: Path) -> None:
    content = "a\rb\nc\u2028d\x85e\nf\fg\x1ch\r\nlast"
    lines = ["a\rb", "c\u2028d\x85e", "f\fg\x1ch", "last"]
    assert read_lines(_write(tmp_path / "text", content)) == lines


def test_byte_order_mark_is_not_content(tmp_path: Path) -> None:
    path = _write(tmp_path / "text", "\ufeffa\n")
    assert read_lines(path) == ["a"]
    assert has_byte_order_mark(path)
    assert not has_byte_order_mark(_write(path, "a\ufeff\n"))


@pytest.mark.parametrize("character", ["\0", "\b", "\x1b", "\x7f", "\x80", "\x9f"])
def test_control_character_is_refused_with_its_line(tmp_path: Path, character: str) -> None:
    path = _write(tmp_path / "text", f"fine\tü\nnot {character}fine\n")
    with pytest.raises(
        DataError, match=rf"text, line 2: control character U\+00{ord(character):02X}"
    ):
        read_lines(path)


def test_case_12_blank_lines_are_lines(tmp_path: Path) -> None:
    source = _write(tmp_path / "s", "a\n\n \n\t\n")
    reference = _write(tmp_path / "r", "\nB\nC\n\n")
    assert check_parallel({"en": source, "de": reference})[0] == 4
    assert read_lines(source) == ["a", "", " ", "\t"]
    assert read_lines(reference) == ["", "B", "C", ""]


def test_case_13_long_line_is_one_line(tmp_path: Path) -> None:
    long = " ".join(["word"] * 5000)
    assert read_lines(_write(tmp_path / "s", f"a\n{long}\nb\n")) == ["a", long, "b"]


def test_gzipped_text_is_read_like_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    path.write_bytes(gzip.compress("a\rb\nc\u2028d\r\n".encode()))
    assert read_lines(path) == ["a\rb", "c\u2028d"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"s\.gz: damaged gzip file"):
        read_lines(path)
    path.write_bytes(b"plain")
    with pytest.raises(DataError, match=r"s\.gz: damaged gzip file"):
        read_lines(path)


@pytest.mark.slow
def test_large_file_needs_little_memory(tmp_path: Path) -> None:
    path = _write(tmp_path / "s", "some words of a line\n" * 100_000)
    tracemalloc.start()
    assert check_parallel({"en": path, "de": path})[0] == 100_000
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < path.stat().st_size / 10


def test_invalid_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"fine\nB\xfcro\n")
    with pytest.raises(DataError, match=r"line 2: not UTF-8 \(byte 0xfc\)"):
        read_lines(tmp_path / "s")
    with pytest.raises(DataError, match="no such file"):
        read_lines(tmp_path / "absent")
