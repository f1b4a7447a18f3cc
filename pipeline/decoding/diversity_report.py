"""diversity.json: how much the members of each ensemble of a task differ on the dev set."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.decoding.inputs import Inputs
from pipeline.ensembles import Ensemble
from pipeline.errors import DataError
from pipeline.parts import digest, file_sha256, read_json

_log = logging.getLogger(__name__)


def diversity_report(inputs: Inputs, path: Path) -> dict[str, Any]:
    """What `path` shall hold; as it holds it already, where that was made from the same.

    Raises PipelineError where two members say the same.
    """
    several = [one for one in inputs.ensembles.values() if len(one.members) > 1]
    if not inputs.prepared.has("dev.jsonl"):
        folder = inputs.prepared.folder
        _log.info("%s: no dev.jsonl, so no report on how much members differ", folder)
        return {"made_from": None, "ensembles": {}}
    dev = inputs.prepared.file("dev.jsonl")
    made_from = digest(
        inputs.code,
        [[(one.name, one.model_sha256) for one in ensemble.members] for ensemble in several],
        [inputs.decode.device, inputs.decode.dtype],
        [file_sha256(one) for ensemble in several for one in inputs.dictionaries(ensemble)],
        file_sha256(dev),
    )
    if path.is_file():
        with suppress(DataError):  # of a damaged report: it is made again
            report: dict[str, Any] = read_json(path, "decode")
            if report.get("made_from") == made_from:
                return report
    found = {ensemble.name: _diversity_of(inputs, ensemble, dev) for ensemble in several}
    return {"made_from": made_from, "ensembles": found}


def _diversity_of(inputs: Inputs, ensemble: Ensemble, dev: Path) -> dict[str, Any]:
    import torch

    from pipeline.decoding.diversity import diversity_on

    torch.set_num_threads(1)
    source, target, loaders = inputs.loaders(ensemble)
    report = diversity_on(dev, loaders, (source, target), inputs.decode)
    if report["tokens"]:
        _log.info(
            "%s: on dev, members disagree on %.1f %% of %d tokens and diverge by %.3f nats a token",
            ensemble.name,
            report["disagreement_percent"],
            report["tokens"],
            report["kl_nats"],
        )
    return report
