"""Members made from fairseq checkpoints."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pipeline.ensembles.ensemble import Member
from pipeline.ensembles.training_run import WEIGHTS, derived
from pipeline.errors import DataError
from pipeline.fairseq_bridge.members import imported
from pipeline.run.files import file_sha256, read_json, write_json

_DESCRIPTION = "model.json"


def imported_member(name: str, path: Path, dictionaries: tuple[Path, Path], folder: Path) -> Member:
    """Convert a fairseq checkpoint to a member, once; its weights are kept in `folder`.

    dictionaries: files of source and target vocabulary. Raises DataError, naming the member and
    the checkpoint, if it cannot be read, does not fit them, or has weights that are not finite.
    """
    sha256 = file_sha256(path)
    vocabularies = [file_sha256(dictionary) for dictionary in dictionaries]
    made_from = {
        "checkpoint": sha256,
        "source dictionary": vocabularies[0],
        "target dictionary": vocabularies[1],
    }
    code = file_sha256(Path(imported.__file__))
    try:
        converted = derived(folder, code, made_from, partial(_convert, path, dictionaries))
    except DataError as error:
        raise DataError(f"member {name}: {error}") from None
    description = read_json(converted.file(_DESCRIPTION), "decode")
    description["vocabulary_sha256"] = vocabularies[1]
    return Member(
        name,
        converted.folder / WEIGHTS,
        converted.sha256(WEIGHTS),
        description["seed"],
        description,
        description["updates"],
        {path.name: sha256},
        given=path,
    )


def _convert(path: Path, dictionaries: tuple[Path, Path], folder: Path) -> None:
    description = imported.convert_checkpoint(path, *dictionaries, folder / WEIGHTS)
    write_json(folder / _DESCRIPTION, description)
