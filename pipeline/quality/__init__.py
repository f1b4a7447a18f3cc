"""Scores of hypotheses against references: BLEU, chrF, word and character error rates."""
