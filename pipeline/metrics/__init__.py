"""Error detection, out-of-domain detection and calibration, each with bootstrap intervals."""

from pipeline.metrics.bootstrap import Estimate, Interval, Resamples, estimate, resample
from pipeline.metrics.detection import average_precision, roc_auc
from pipeline.metrics.rejection import prediction_rejection_ratio
from pipeline.quality.speech import corpus_wer_percent, sentence_wer_percent
from pipeline.quality.translation import corpus_bleu, sentence_bleu

__all__ = [
    "Estimate",
    "Interval",
    "Resamples",
    "average_precision",
    "corpus_bleu",
    "corpus_wer_percent",
    "estimate",
    "prediction_rejection_ratio",
    "resample",
    "roc_auc",
    "sentence_bleu",
    "sentence_wer_percent",
]
