"""Decode every test set of a task with the ensembles, and where tables need it with members."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.config import PipelineConfig, TestSetConfig, implementation
from pipeline.decoding.job_settings import settings_of, store_attributes
from pipeline.decoding.plan import Job, jobs
from pipeline.decoding.prepared import Prepared
from pipeline.ensembles import (
    Chosen,
    Ensemble,
    Member,
    chosen_ensembles,
    finders,
    load,
    made_folder,
    manifest,
    remove_unused,
)
from pipeline.errors import ConfigError, DataError
from pipeline.parts import PartFolder, digest, file_sha256, write_json
from stages import code_digest, run, run_parts

if TYPE_CHECKING:
    from pipeline.decoding.given import Given
    from pipeline.decoding.test_set import Dictionary, TestSetFile
    from pipeline.fairseq_bridge.models import FairseqMember

_log = logging.getLogger(__name__)


def decode(config: PipelineConfig) -> None:
    """Write {io.root}/decode/{task}/: one store a job of pipeline.decoding.plan.

    Beside them ensemble.json, of the members, and diversity.json, of how much these differ.
    """
    root = Path(config.io.root)
    train_folder = root / "train" / config.task.name
    chosen = chosen_ensembles(config.ensemble, train_folder)
    ensembles = chosen.by_name
    plan = {
        job.name: job
        for job in jobs(chosen.main, chosen.further, config.decode, _test_sets(config))
    }
    _check_vocabularies(config, ensembles.values())
    code = code_digest("decode", *finders(config.ensemble), _search(config))
    folder = PartFolder(
        root / "decode" / config.task.name,
        {
            job.name: digest(code, *_content(config, job, ensembles[job.ensemble_name]))
            for job in plan.values()
        },
    )
    if config.part is None:
        members = [member for one in ensembles.values() for member in one.members]
        _check_weights(members)
        remove_unused(made_folder(train_folder), members)
        diversity = _diversity(config, chosen, code, folder.root / "diversity.json")
        made = run_parts(config, folder)
        write_json(folder.root / "ensemble.json", manifest(list(ensembles.values())))
        write_json(folder.root / "diversity.json", diversity)
        _log.info("decoded %d of %d parts into %s", len(made), len(plan), folder.root)
    elif config.part in plan:
        job = plan[config.part]
        with folder.building(config.part) as part:
            row = list(plan).index(config.part)
            resume = root / "resume" / "decode" / config.task.name / config.part
            _remove_other_work(resume, folder.parts[config.part])
            resume /= folder.parts[config.part]
            ensemble = ensembles[job.ensemble_name]
            _decode_part(config, job, ensemble, part / "store.h5", resume, row)
    else:
        raise ConfigError(f"part must be one of {', '.join(plan)}, got {config.part}")


def _decode_part(
    config: PipelineConfig,
    job: Job,
    ensemble: Ensemble,
    store: Path,
    resume: Path,
    row: int,
) -> None:
    import torch

    from pipeline.decoding.estimate import estimate, refuse_what_does_not_fit
    from pipeline.decoding.run import decode_to_store
    from pipeline.decoding.self_check import SELF_CHECK_SENTENCES, self_check
    from pipeline.decoding.start import decoder_of
    from pipeline.decoding.test_set import read_test_set
    from pipeline.decoding.unknown_units import unknown_units

    torch.set_num_threads(1)
    _check_weights(_members(job, ensemble))
    source, target, loaders = _loaders(config, ensemble)
    test_set = read_test_set(_prepared(config).test_set(job.test_set))
    if ensemble.dictionaries is not None:
        _log.info("%s: unknown are %s", job.name, unknown_units(test_set, source, target))
    decoder = decoder_of(
        job,
        loaders,
        _search(config),
        (source, target),
        config.decode,
        config.dump,
        _given(config, job, test_set),
    )
    tokens = (one.expected_tokens for one in test_set)
    expected = estimate(
        tokens, decoder.model, job.regime, job.combination, config.decode, config.dump
    )
    _log.info("%s: %s", job.name, expected)
    refuse_what_does_not_fit(expected, store.parent, job.name)
    if config.decode.self_check:
        first = [one.encoded(source, target) for one in test_set[:SELF_CHECK_SENTENCES]]
        difference = self_check(decoder, first, job.combination)
        _log.info("%s: self-check passed, largest difference %.1e nats", job.name, difference)
    attributes = _attributes(config, job, ensemble, decoder.model.vocab_size)
    decode_to_store(decoder, test_set, store, attributes, f"decode {job.name}", resume, row)
    _log_counts(job.name, len(test_set), store)


def _log_counts(name: str, n_read: int, path: Path) -> None:
    from pipeline.store import Flag, open_store

    with open_store(path) as store:
        _log.info(
            "%s: read %d sentences, wrote %d with %d hypotheses, flagged %d",
            name,
            n_read,
            store.n_sentence,
            store.n_hypothesis,
            (store.flag & (255 - Flag.NO_REFERENCE)).astype(bool).sum(),
        )


def _loaders(
    config: PipelineConfig, ensemble: Ensemble
) -> tuple[Dictionary, Dictionary, dict[str, Callable[[], FairseqMember]]]:
    """Vocabularies of source and target, and what loads each member of an ensemble."""
    from pipeline.fairseq_bridge.models import load_dictionary

    source, target = (load_dictionary(path) for path in _dictionaries(config, ensemble))
    loaders: dict[str, Callable[[], FairseqMember]] = {
        one.name: partial(load, one, source, target, config.decode.device, config.decode.dtype)
        for one in ensemble.members
    }
    return source, target, loaders


def _diversity(config: PipelineConfig, chosen: Chosen, code: str, path: Path) -> dict[str, Any]:
    """How much the members of each ensemble differ on the dev set; as in `path` if that holds it.

    Raises PipelineError, before anything is decoded, where two members say the same.
    """
    ensembles = [one for one in chosen.by_name.values() if len(one.members) > 1]
    prepared = _prepared(config)
    if not prepared.has("dev.jsonl"):
        _log.info("%s: no dev.jsonl, so no report on how much members differ", prepared.folder)
        return {"made_from": None, "ensembles": {}}
    dev = prepared.file("dev.jsonl")
    made_from = digest(
        code,
        [[one.model_sha256 for one in ensemble.members] for ensemble in ensembles],
        [file_sha256(one) for ensemble in ensembles for one in _dictionaries(config, ensemble)],
        file_sha256(dev),
    )
    if path.is_file():
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if report.get("made_from") == made_from:
            return report
    found = {ensemble.name: _diversity_of(config, ensemble, dev) for ensemble in ensembles}
    return {"made_from": made_from, "ensembles": found}


def _diversity_of(config: PipelineConfig, ensemble: Ensemble, dev: Path) -> dict[str, Any]:
    import torch

    from pipeline.decoding.diversity import diversity_on

    torch.set_num_threads(1)
    source, target, loaders = _loaders(config, ensemble)
    report = diversity_on(dev, loaders, (source, target), config.decode)
    if report["tokens"]:
        _log.info(
            "%s: on dev, members disagree on %.1f %% of %d tokens and diverge by %.3f nats a token",
            ensemble.name,
            report["disagreement_percent"],
            report["tokens"],
            report["kl_nats"],
        )
    return report


def _remove_other_work(folder: Path, own: str) -> None:
    """Delete what was begun for a part with other settings, weights or code."""
    for path in folder.glob("*"):
        if path.name != own:
            shutil.rmtree(path)


def _search(config: PipelineConfig) -> Any:
    return implementation(config.decode._target_, "decode._target_")


def _members(job: Job, ensemble: Ensemble) -> list[Member]:
    return [one for one in ensemble.members if one.name in job.members]


def _check_weights(members: Sequence[Member]) -> None:
    """Raise DataError where the weights are not those that were written; each file once."""
    for one in {member.weights: member for member in members}.values():
        one.check_weights()


def _attributes(
    config: PipelineConfig, job: Job, ensemble: Ensemble, vocab_size: int
) -> dict[str, Any]:
    from pipeline.store import is_store, open_store

    searching: Sequence[str] = job.search_members
    taken = _hypotheses(config, job)
    if taken is not None:
        searching = []
        if is_store(taken):
            with open_store(taken) as store:
                searching = store.attributes.get("search_members", [])
    digests = {
        "members": digest(*(one.model_sha256 for one in _members(job, ensemble))),
        "decode": digest(*_content(config, job, ensemble)),
    }
    settings = settings_of(job, config.decode, config.dump)
    return store_attributes(config.task.name, job, settings, searching, vocab_size, digests)


def _content(config: PipelineConfig, job: Job, ensemble: Ensemble) -> list[Any]:
    """What a job's store is made from: settings, and the sha256 of models and files."""
    models = [one.model_sha256 for one in _members(job, ensemble)]
    taken = _hypotheses(config, job)
    units = _units(config, taken)
    files = [
        *_prepared(config).test_set_files(job.test_set),
        *_dictionaries(config, ensemble),
        *([taken] if taken else []),
        *([units] if units else []),
    ]
    settings = settings_of(job, config.decode, config.dump)
    return [settings, models, [file_sha256(path) for path in files]]


def _test_sets(config: PipelineConfig) -> dict[str, TestSetConfig]:
    """The test sets that could be prepared."""
    absent = _prepared(config).absent_sets()
    if config.part is None:
        for role, reason in absent.items():
            _log.info("no decode of %s, which is absent: %s", role, reason)
    return {role: one for role, one in config.task.test_sets.items() if role not in absent}


def _hypotheses(config: PipelineConfig, job: Job) -> Path | None:
    """The store or text file whose hypotheses a job scores instead of searching."""
    if not job.takes_hypotheses or config.decode.hypotheses is None:
        return None
    path = Path(config.decode.hypotheses.replace("{test_set}", job.test_set))
    if not path.is_file():
        raise ConfigError(
            f"decode.hypotheses must name a decode store or a text file, got {path}, which is none"
        )
    return path


def _units(config: PipelineConfig, taken: Path | None) -> Path | None:
    """The sub-word model that cuts the hypotheses of a text file; a store's are cut."""
    from pipeline.store import is_store

    if taken is None or is_store(taken):
        return None
    return _prepared(config).file("units.model")


def _given(config: PipelineConfig, job: Job, test_set: TestSetFile) -> Given | None:
    from pipeline.decoding.given import Given

    taken = _hypotheses(config, job)
    return None if taken is None else Given(taken, test_set, _units(config, taken))


def _check_vocabularies(config: PipelineConfig, ensembles: Iterable[Ensemble]) -> None:
    for ensemble in ensembles:
        path = _dictionaries(config, ensemble)[1]
        found = file_sha256(path)
        for member in ensemble.members:
            trained_with = member.description["vocabulary_sha256"]
            if trained_with != found:
                raise DataError(
                    f"{path} must be the vocabulary that member {member.name} was trained with "
                    f"(sha256 {trained_with}), got {found}: run python -m stages.train again"
                )


def _prepared(config: PipelineConfig) -> Prepared:
    task = config.task
    folder = Path(config.io.root) / "prepare" / task.name
    return Prepared(folder, task.source_language, task.target_language)


def _dictionaries(config: PipelineConfig, ensemble: Ensemble) -> tuple[Path, Path]:
    return ensemble.dictionaries or _prepared(config).dictionaries()


if __name__ == "__main__":
    run(decode)
