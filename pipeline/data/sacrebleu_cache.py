"""WMT test sets that the user's sacrebleu has already fetched; nothing is downloaded here."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.data.corpus import Corpus
from pipeline.data.user_files import side_by_side
from pipeline.errors import DataError


def is_cached(name: str, pair: tuple[str, str]) -> bool:
    """Whether the cache holds source and reference of a test set such as `wmt14`."""
    return _sides(name, pair) is not None


def read_sacrebleu(name: str, pair: tuple[str, str]) -> Corpus:
    """Source and reference of a test set such as `wmt14`, from SACREBLEU or ~/.sacrebleu.

    Of several references the first is taken. Raises DataError where the cache lacks the set, with
    the command that fetches it.
    """
    source_language, target_language = pair
    sides = _sides(name, pair)
    if sides is None:
        stem = _stem(name, pair)
        raise DataError(
            f"the sacrebleu cache must hold {stem}.src and {stem}.ref, got no such files: run "
            f"{fetching_command(name, pair)}"
        )
    source, reference = sides
    return side_by_side(f"sacrebleu {name}", {source_language: source, target_language: reference})


def fetching_command(name: str, pair: tuple[str, str]) -> str:
    """What puts a test set into the cache."""
    return f"sacrebleu -t {name} -l {'-'.join(pair)} --echo src ref"


def _sides(name: str, pair: tuple[str, str]) -> tuple[Path, Path] | None:
    """The files of source and first reference; None where one of them is missing."""
    folder = Path(os.environ.get("SACREBLEU") or Path.home() / ".sacrebleu") / name
    stem = _stem(name, pair)
    source = folder / f"{stem}.src"
    references = [folder / f"{stem}.ref", *sorted(folder.glob(f"{stem}.ref-*"))]
    reference = next((path for path in references if path.is_file()), None)
    return (source, reference) if source.is_file() and reference is not None else None


def _stem(name: str, pair: tuple[str, str]) -> str:
    return f"{name.replace('/', '_')}.{'-'.join(pair)}"
