"""The rules by which measures are computed; tables, figures and signatures share them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.run.schema import UncertaintyConfig

# Settings of stage uncertainty whose combinations each have measures of their own.
GRID = ("beam", "temperature", "length_norm")


@dataclass(frozen=True)
class MeasureRules:
    """Settings `uncertainty.weights_from`, `.eos`, `.equal_texts`, and those of X-BLEU and X-WER.

    weights_from: posterior of the importance weights, `prex`, `expr`, or `decoding` for the one
    that decoded. eos: `include`, or `zero` to set the measures of full distributions to 0 at EOS.
    equal_texts: `keep` hypotheses of equal text apart, or `merge` them into one.
    bleu_tokeniser: a tokeniser of sacrebleu. transcripts: X-WER of texts `as_decoded`, or of their
    lower-case `words`. Raises ConfigError for another value of all but the tokeniser.
    """

    weights_from: str = "decoding"
    eos: str = "include"
    equal_texts: str = "keep"
    bleu_tokeniser: str = "13a"
    transcripts: str = "as_decoded"

    def __post_init__(self) -> None:
        choices = {
            "uncertainty.weights_from": ("decoding", "prex", "expr"),
            "uncertainty.eos": ("include", "zero"),
            "uncertainty.equal_texts": ("keep", "merge"),
            "metrics.transcripts": ("as_decoded", "words"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name.partition(".")[2])
            if value not in allowed:
                *first, last = allowed
                raise ConfigError(f"{name}: must be {', '.join(first)} or {last} (got {value}).")

    @classmethod
    def of(cls, settings: UncertaintyConfig, bleu_tokeniser: str, transcripts: str) -> MeasureRules:
        """The rules of a run."""
        given = settings.weights_from, settings.eos, settings.equal_texts
        return cls(*given, bleu_tokeniser, transcripts)

    def as_dict(self) -> dict[str, str]:
        """Setting -> value, as checks.json records them."""
        return asdict(self)

    @property
    def signature(self) -> str:
        """The rules as part of the signature of a cell."""
        return (
            f"measures|weights:{self.weights_from}|eos:{self.eos}|equal-texts:{self.equal_texts}"
            f"|xbleu-tok:{self.bleu_tokeniser}|xwer-transcripts:{self.transcripts}"
        )
