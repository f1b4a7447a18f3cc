"""Which checkpoints make which ensemble."""

from pipeline.ensembles.chosen import Chosen, chosen_ensembles, finders
from pipeline.ensembles.ensemble import Ensemble, manifest
from pipeline.ensembles.loading import load
from pipeline.ensembles.made_files import made_folder, remove_unused
from pipeline.ensembles.member import DropoutMask, Member

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
