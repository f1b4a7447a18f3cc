"""Names of ensembles, members and training runs in words, for tables, figures and the page."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Kind of ensemble in settings and stores -> in words.
_KINDS = {
    "random_init": "random-init",
    "checkpoint_average": "checkpoint average",
    "mc_dropout": "MC dropout",
    "huggingface": "Hugging Face",
}
_SEED = re.compile(r"^seed_(?=-?\d)")
_UPDATE = re.compile(r"\.update_0*(\d+)")


def ensemble_name(name: str) -> str:
    """Return `random-init` for `random_init`, `checkpoint of seed 1` for `checkpoint.seed_1`.

    Names that a user gave are returned unchanged.
    """
    kind, _, run = name.partition(".")
    if kind in _KINDS or _SEED.match(run):
        words = _KINDS.get(kind, kind)
        return f"{words} of {member_name(run)}" if run else words
    return member_name(name)


def member_name(name: str) -> str:
    """Return `seed 1` for `seed_1`, `seed 1, update 1300` for `seed_1.update_00001300`.

    Names that a user gave are returned unchanged.
    """
    return _UPDATE.sub(r", update \1", _SEED.sub("seed ", name)) if _SEED.match(name) else name


def member_names(names: Iterable[str]) -> str:
    """Return the names of several members or runs as one text."""
    return ", ".join(map(member_name, names))
