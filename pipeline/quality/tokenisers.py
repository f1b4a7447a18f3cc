"""The tokenisers of BLEU, which are sacrebleu's: their choice by language, and what they need."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.errors import ConfigError, MachineError
from pipeline.run.measure_rules import MeasureRules
from pipeline.run.schema import BLEU_TOKENISERS, PipelineConfig

AUTO = "auto"
DEFAULT = "13a"
# ISO 639 codes of languages that sacrebleu has a tokeniser for.
_OF_LANGUAGE = {
    **dict.fromkeys(("zh", "zho", "chi", "cmn", "yue"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
_PACKAGES = {"ja-mecab": "sacrebleu[ja]", "ko-mecab": "sacrebleu[ko]"}


def bleu_tokeniser(choice: str, language: str) -> str:
    """The tokeniser of sacrebleu for a target language, such as `zh` for `zho_Hans`.

    `choice` is the name of a tokeniser, or auto: zh, ja-mecab and ko-mecab for their languages and
    13a for all others. Script and region of a language code do not matter.
    """
    if choice != AUTO:
        return choice
    return _OF_LANGUAGE.get(re.split("[-_]", language.lower())[0], DEFAULT)


def measure_rules(config: PipelineConfig) -> MeasureRules:
    """The rules of a run, with the tokeniser of its target language."""
    tokeniser = bleu_tokeniser(config.metrics.bleu_tokenize, config.task.target_language)
    return MeasureRules.of(config.uncertainty, tokeniser, config.metrics.transcripts)


def check_tokeniser(
    tokeniser: str,
    setting: str = "metrics.bleu_tokenize",
    remedy: str = "choose another tokeniser, such as char",
) -> None:
    """Raise ConfigError for an unknown tokeniser, MachineError if it does not work here.

    A tokeniser may need a package or a file. sacrebleu would download a missing sentencepiece
    model; here the user has to provide it. The error names the `setting` to blame, and `remedy` is
    what else can be done.
    """
    from sacrebleu.metrics import BLEU

    if tokeniser not in BLEU_TOKENISERS:
        raise ConfigError(
            f"{setting}: must be a tokeniser of sacrebleu (got {tokeniser}). "
            f"Use one of {', '.join(BLEU_TOKENISERS)}."
        )
    model = _sentencepiece_model(tokeniser)
    if model is not None and not model[0].is_file():
        raise MachineError(
            f"{setting}: tokeniser {tokeniser} needs the file {model[0]} (not found). "
            f"Save {model[1]} as this file, or {remedy}."
        )
    try:
        BLEU(tokenize=tokeniser)
    except (ImportError, RuntimeError, AssertionError, OSError) as error:
        package = _PACKAGES.get(tokeniser, "sentencepiece")
        reason = " ".join(str(error).split())
        raise MachineError(
            f"{setting}: tokeniser {tokeniser} does not work on this machine ({reason}). "
            f"Run pip install '{package}', or {remedy}."
        ) from None


def _sentencepiece_model(tokeniser: str) -> tuple[Path, str] | None:
    """Where sacrebleu looks for the model of a tokeniser, and where it is published."""
    from sacrebleu.tokenizers import tokenizer_spm

    if tokeniser not in tokenizer_spm.SPM_MODELS:
        return None
    url = tokenizer_spm.SPM_MODELS[tokeniser]["url"]
    return Path(tokenizer_spm.SACREBLEU_DIR) / "models" / Path(url).name, url
