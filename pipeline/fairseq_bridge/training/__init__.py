"""Training of one member with fairseq's Trainer."""

from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.trainer import train_member

__all__ = ["TrainJob", "train_member"]
