"""The rules by which measures are computed; tables, figures and signatures share them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.run.schema import UncertaintyConfig


@dataclass(frozen=True)
class MeasureRules:
    """Settings `uncertainty.weights_from`, `.eos` and `.equal_texts`, and the tokeniser of X-BLEU.

    weights_from: posterior of the importance weights, `prex`, `expr`, or `decoding` for the one
    that decoded. eos: `include`, or `zero` to set the measures of full distributions to 0 at EOS.
    equal_texts: `keep` hypotheses of equal text apart, or `merge` them into one.
    bleu_tokeniser: a tokeniser of sacrebleu. Raises ConfigError for another value of the first
    three.
    """

    weights_from: str = "decoding"
    eos: str = "include"
    equal_texts: str = "keep"
    bleu_tokeniser: str = "13a"

    def __post_init__(self) -> None:
        choices = {
            "weights_from": ("decoding", "prex", "expr"),
            "eos": ("include", "zero"),
            "equal_texts": ("keep", "merge"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed:
                *first, last = allowed
                raise ConfigError(
                    f"uncertainty.{name}: must be {', '.join(first)} or {last} (got {value})."
                )

    @classmethod
    def of(cls, settings: UncertaintyConfig, bleu_tokeniser: str) -> MeasureRules:
        """The rules of a run."""
        return cls(settings.weights_from, settings.eos, settings.equal_texts, bleu_tokeniser)

    def as_dict(self) -> dict[str, str]:
        """Setting -> value, as checks.json records them."""
        return asdict(self)

    @property
    def signature(self) -> str:
        """The rules as part of the signature of a cell."""
        return (
            f"measures|weights:{self.weights_from}|eos:{self.eos}|equal-texts:{self.equal_texts}"
            f"|xbleu-tok:{self.bleu_tokeniser}"
        )
