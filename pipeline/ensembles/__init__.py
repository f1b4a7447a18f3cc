"""Which checkpoints make which ensemble."""

from pipeline.ensembles.chosen import Chosen, chosen_ensembles, finders
from pipeline.ensembles.ensemble import DropoutMask, Ensemble, Member, manifest
from pipeline.ensembles.loading import load
from pipeline.ensembles.training_run import made_folder, remove_unused

__all__ = [
    "Chosen",
    "DropoutMask",
    "Ensemble",
    "Member",
    "chosen_ensembles",
    "finders",
    "load",
    "made_folder",
    "manifest",
    "remove_unused",
]
