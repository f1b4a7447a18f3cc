"""A digest of what a tokenizer does, so that members can be checked to have the same one."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.huggingface.folder import TOKENIZER_FILES, ModelFolder
from pipeline.huggingface.tokenizer import read_tokenizer
from pipeline.run.files import digest, file_sha256


def tokenizer_sha256(folder: ModelFolder) -> str:
    """sha256 (hex) of vocabulary, merges, normalisation and control tokens.

    It does not depend on how files are formatted, nor on which files of equal content there are.
    Raises DataError if the folder has no tokenizer.
    """
    files = [(path.name, file_sha256(path)) for path in folder.others]
    return _digest(folder.path, digest(*sorted(files)))


@cache
def _digest(folder: Path, _: str) -> str:
    """The digest of the tokenizer in a folder, which has files of a digest."""
    tokenizer = read_tokenizer(folder)
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    content: list[Any] = [sorted(tokenizer.get_vocab().items()), special]
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        rules = json.loads(backend.to_str())
        # These are settings of a call.
        content.append({key: rules[key] for key in rules if key not in ("padding", "truncation")})
    else:
        content += [type(tokenizer).__name__, *map(_content, sorted(folder.iterdir()))]
    return digest(*content)


def _content(path: Path) -> Any:
    """What a file of a tokenizer says, without its formatting; None for other files."""
    if path.name not in TOKENIZER_FILES:
        return None
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    return file_sha256(path)
