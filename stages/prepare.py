"""Fetch and clean the corpora of a task, and write its subwords, training data and test sets."""

from __future__ import annotations

import logging
from pathlib import Path

from pipeline.data.paper_corpora import check_present, size_differences
from pipeline.data.speech.prepare import prepare_speech
from pipeline.data.text.prepare import prepare_text
from pipeline.run.application import run
from pipeline.run.artifacts import artifact_folder, write_manifest
from pipeline.run.code import provenance
from pipeline.run.extras import check_extra
from pipeline.run.settings import PipelineConfig

_log = logging.getLogger(__name__)


def prepare(config: PipelineConfig) -> None:
    """Write {io.root}/prepare/{task.name}/, with a data card and a manifest."""
    data, task = config.data, config.task
    if data.units.name != "own":
        check_extra("train", "stage prepare")
    if data.check_paper_sizes:
        check_present(data, task)
    Path(data.downloads).mkdir(parents=True, exist_ok=True)
    prepare_family = prepare_speech if task.family == "speech" else prepare_text
    target = Path(config.io.root) / "prepare" / task.name
    with artifact_folder(target) as folder:
        card, facts = prepare_family(config, folder)
        if data.check_paper_sizes:
            facts["not_as_in_the_paper"] = size_differences(task, facts["counts"])
            for difference in facts["not_as_in_the_paper"]:
                _log.warning("not as in the paper: %s", difference)
        (folder / "data_card.md").write_text(card, encoding="utf-8", newline="\n")
        packages = {name: package["sha256"] for name, package in facts["packages"].items()}
        write_manifest(folder, provenance(config, "prepare", packages), description=facts)
    _log.info("%s is ready", target)


if __name__ == "__main__":
    run(prepare)
