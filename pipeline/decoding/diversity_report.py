"""diversity.json: the diversity of each ensemble, measured only if its inputs have changed."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.decoding.inputs import Inputs
from pipeline.ensembles import Ensemble
from pipeline.errors import DataError
from pipeline.run.files import digest, file_sha256, read_json

_log = logging.getLogger(__name__)


def diversity_report(inputs: Inputs, path: Path) -> dict[str, Any]:
    """The content of diversity.json; the file `path` is reused if it is up to date.

    Raises PipelineError if two members are the same model, or one gives NaN.
    """
    ensembles = [ensemble for ensemble in inputs.ensembles.values() if len(ensemble.members) > 1]
    if not inputs.prepared.has("dev.jsonl"):
        folder = inputs.prepared.folder
        _log.info("%s: no dev.jsonl, so the diversity of members is not measured", folder)
        return {"made_from": None, "ensembles": {}}
    dev = inputs.prepared.file("dev.jsonl")
    models = [
        [(member.name, member.model_sha256) for member in ensemble.members]
        for ensemble in ensembles
    ]
    dictionaries = [
        file for ensemble in ensembles for file in inputs.dictionaries(ensemble).values()
    ]
    made_from = digest(
        inputs.code,
        models,
        [inputs.decode.device, inputs.decode.dtype],
        [file_sha256(file) for file in dictionaries],
        file_sha256(dev),
    )
    if path.is_file():
        with suppress(DataError):  # a damaged report is made again
            report: dict[str, Any] = read_json(path, "decode")
            if report.get("made_from") == made_from:
                return report
    measured = {ensemble.name: _diversity_of(inputs, ensemble, dev) for ensemble in ensembles}
    return {"made_from": made_from, "ensembles": measured}


def _diversity_of(inputs: Inputs, ensemble: Ensemble, dev: Path) -> dict[str, Any]:
    import torch

    from pipeline.decoding.diversity import diversity_on

    torch.set_num_threads(1)
    tokenizer = inputs.tokenizer(ensemble)
    labels = {member.name: member.label for member in ensemble.members}
    loaders = inputs.loaders(ensemble, tokenizer)
    report = diversity_on(dev, loaders, labels, tokenizer, inputs.decode)
    if report["tokens"]:
        _log.info(
            "%s: on dev, members disagree on %.1f %% of %d tokens; mean divergence %.3f nats per "
            "token",
            ensemble.name,
            report["disagreement_percent"],
            report["tokens"],
            report["kl_nats"],
        )
    return report
