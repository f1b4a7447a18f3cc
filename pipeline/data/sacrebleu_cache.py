"""WMT test sets that the user's sacrebleu has already fetched; nothing is downloaded here."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.data.corpus import Corpus
from pipeline.data.user_files import side_by_side
from pipeline.errors import DataError


def read_sacrebleu(name: str, pair: tuple[str, str]) -> Corpus:
    """Source and reference of a test set such as `wmt14`, from SACREBLEU or ~/.sacrebleu.

    Of several references the first is taken. Raises DataError where the cache lacks the set, with
    the command that fetches it.
    """
    cache = Path(os.environ.get("SACREBLEU") or Path.home() / ".sacrebleu")
    source_language, target_language = pair
    stem = f"{name.replace('/', '_')}.{source_language}-{target_language}"
    source = cache / name / f"{stem}.src"
    references = [cache / name / f"{stem}.ref", *sorted((cache / name).glob(f"{stem}.ref-*"))]
    reference = next((path for path in references if path.is_file()), None)
    if not source.is_file() or reference is None:
        raise DataError(
            f"the sacrebleu cache must hold {stem}.src and {stem}.ref, got no such files: run "
            f"sacrebleu -t {name} -l {source_language}-{target_language} --echo src ref"
        )
    return side_by_side(f"sacrebleu {name}", {source_language: source, target_language: reference})
