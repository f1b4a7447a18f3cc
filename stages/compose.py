"""Compose the settings of one task into the one file from which the other stages read them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

from omegaconf import DictConfig, OmegaConf

from pipeline.quality.tokenisers import bleu_tokeniser, check_tokeniser
from pipeline.run.application import run
from pipeline.run.dvc_lock import announcement
from pipeline.run.files import write_atomically
from pipeline.run.settings import PipelineConfig

_log = logging.getLogger(__name__)


def compose(config: PipelineConfig) -> None:
    """Write {io.root}/config/{task}/resolved.yaml; settings are checked by then.

    Raises MachineError if this machine lacks the tokeniser of BLEU, which would stop the run only
    after decoding.
    """
    check_tokeniser(bleu_tokeniser(config.metrics.bleu_tokenize, config.task.target_language))
    settings = cast(DictConfig, OmegaConf.create(OmegaConf.to_container(cast(DictConfig, config))))
    settings.from_config = None
    path = Path(config.io.root) / "config" / config.task.name / "resolved.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, OmegaConf.to_yaml(settings))
    _log.info("composed %s", path)
    if sentence := announcement(config.task.name, path):
        _log.info("%s", sentence)


if __name__ == "__main__":
    run(compose)
