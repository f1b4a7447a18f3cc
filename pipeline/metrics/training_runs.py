"""The training runs behind the members of ensembles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.metrics.cell import RUN_SEPARATOR
from pipeline.run.files import read_json

_MEMBER_OF_RUN = re.compile(r"(seed_-?\d+)(\.|$)")


def run_of_member(name: str) -> str:
    """The training run of a member, by its name: `seed_1` for `seed_1.update_00001200`.

    A member whose name has another form stands for a run of its own.
    """
    match = _MEMBER_OF_RUN.match(name)
    return match[1] if match else name


def is_training_run(name: str) -> bool:
    """Whether a run was trained here; others are models that a user brought."""
    return _MEMBER_OF_RUN.fullmatch(name) is not None


def read_member_runs(path: Path) -> dict[str, str]:
    """Member -> training run, from ensemble.json; empty if there is no such file.

    A run is the folder that all checkpoints of a member lie in. Other members are left out.
    """
    if not path.is_file():
        return {}
    runs = {}
    for ensemble in read_json(path, "decode", list):
        for member in ensemble["members"]:
            folders = {Path(checkpoint).parent.as_posix() for checkpoint in member["checkpoints"]}
            if len(folders) == 1 and folders != {"."}:
                runs[str(member["name"])] = folders.pop()
    return runs


def joined_runs(runs: Iterable[str]) -> str:
    """Training runs as one text, without repetitions, in their order."""
    return RUN_SEPARATOR.join(dict.fromkeys(runs))
