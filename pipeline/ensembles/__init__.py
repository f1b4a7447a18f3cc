"""Which checkpoints make which ensemble."""

from pipeline.ensembles.member import Member, check_ensemble, read_member

__all__ = ["Member", "check_ensemble", "read_member"]
