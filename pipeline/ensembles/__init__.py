"""Members and ensembles, made from the checkpoints of training runs."""

from pipeline.ensembles.chosen import (
    Chosen,
    chosen_ensembles,
    ensemble_functions,
    planned_ensembles,
)
from pipeline.ensembles.ensemble import (
    DropoutMask,
    Ensemble,
    Member,
    load_member,
    load_tokenizer,
    manifest,
)
from pipeline.ensembles.training_run import derived_folder, remove_unused

__all__ = [
    "Chosen",
    "DropoutMask",
    "Ensemble",
    "Member",
    "chosen_ensembles",
    "derived_folder",
    "ensemble_functions",
    "load_member",
    "load_tokenizer",
    "manifest",
    "planned_ensembles",
    "remove_unused",
]
