"""Members made from fairseq checkpoints."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from pipeline.ensembles.ensemble import Member
from pipeline.ensembles.training_run import WEIGHTS, made
from pipeline.fairseq_bridge.members import imported
from pipeline.run.files import digest, file_sha256, write_json

_DESCRIPTION = "model.json"


def imported_member(name: str, path: Path, dictionaries: tuple[Path, Path], folder: Path) -> Member:
    """Convert a fairseq checkpoint to a member, once; its weights are kept in `folder`.

    `dictionaries` are those of source and target. Raises DataError if the checkpoint cannot be read
    or does not fit them.
    """
    sha256 = file_sha256(path)
    vocabularies = [file_sha256(dictionary) for dictionary in dictionaries]
    own_folder = folder / digest(file_sha256(Path(imported.__file__)), sha256, vocabularies)
    hashes = made(own_folder, partial(_convert, path, dictionaries))
    description = json.loads((own_folder / _DESCRIPTION).read_text(encoding="utf-8"))
    description["vocabulary_sha256"] = vocabularies[1]
    return Member(
        name,
        own_folder / WEIGHTS,
        hashes[WEIGHTS],
        description["seed"],
        description,
        description["updates"],
        {path.name: sha256},
    )


def _convert(path: Path, dictionaries: tuple[Path, Path], folder: Path) -> None:
    description = imported.convert_checkpoint(path, *dictionaries, folder / WEIGHTS)
    write_json(folder / _DESCRIPTION, description)
