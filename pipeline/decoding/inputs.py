"""What the decodes of a task are made from: prepared data, vocabularies, weights, hypotheses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.data.subwords import CODES_FILE, MODEL_FILE
from pipeline.decoding.plan import Job, settings_of
from pipeline.ensembles import Ensemble, Member, load
from pipeline.errors import ConfigError, DataError, StoreError
from pipeline.run.files import digest, file_sha256, read_json
from pipeline.run.settings import DecodeConfig, DumpConfig

if TYPE_CHECKING:
    from pipeline.decoding.scoring import Given
    from pipeline.decoding.test_set import Dictionary, TestSetFile
    from pipeline.fairseq_bridge.members.member import FairseqMember


@dataclass(frozen=True)
class Prepared:
    """A folder {io.root}/prepare/{task}; languages: of the task's source and target."""

    folder: Path
    source_language: str
    target_language: str

    def absent_sets(self) -> dict[str, str]:
        """Test sets that could not be prepared, each with the reason."""
        absent: dict[str, str] = self._manifest().get("absent_sets", {})
        return absent

    def has(self, name: str) -> bool:
        """Whether a file was prepared."""
        return name in self._manifest()["files"]

    def file(self, name: str) -> Path:
        """A prepared file; DataError where it is not as it was written, or missing."""
        path = _existing(self.folder / name)
        written, found = self._manifest()["files"].get(name), file_sha256(path)
        if found != written:
            raise DataError(
                f"{path} must have the sha256 that stage prepare wrote down, {written}, "
                f"got {found}: run python -m stages.prepare again"
            )
        return path

    def test_set(self, role: str) -> Path:
        """The sentences of a test set."""
        return self.file(f"test/{role}.jsonl")

    def test_set_files(self, role: str) -> list[Path]:
        """All that a test set is: its sentences and, of speech, their features."""
        names = [f"test/{role}.jsonl", f"test/{role}.h5"]
        return [self.file(names[0]), *(self.file(one) for one in names[1:] if self.has(one))]

    @property
    def units(self) -> Path:
        """The sub-word units: a sentencepiece model or BPE codes."""
        return self.folder / (CODES_FILE if self.has(CODES_FILE) else MODEL_FILE)

    def dictionaries(self) -> tuple[Path, Path]:
        """The vocabularies of source and target."""
        return (
            self.file(f"fairseq/dict.{self.source_language}.txt"),
            self.file(f"fairseq/dict.{self.target_language}.txt"),
        )

    def _manifest(self) -> Mapping[str, Any]:
        path = self.folder / "manifest.json"
        manifest: dict[str, Any] = read_json(path, "prepare")
        if not isinstance(manifest.get("files"), dict):
            raise DataError(
                f"{path} must list the files, got none: run python -m stages.prepare again"
            )
        return manifest


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    return path


Loaders = dict[str, "Callable[[], FairseqMember]"]


@dataclass(frozen=True)
class Inputs:
    """The prepared data and the ensembles of a task, and the settings of their decodes.

    ensembles: by name; code: digest of the code that decodes.
    """

    prepared: Prepared
    ensembles: Mapping[str, Ensemble]
    decode: DecodeConfig
    dump: DumpConfig
    code: str

    def digest(self, job: Job) -> str:
        """sha256 of all that a job's part is made from."""
        return digest(self.code, *self.content(job))

    def content(self, job: Job) -> list[Any]:
        """What a job's store is made from: settings, and the sha256 of models and files."""
        ensemble = self.ensembles[job.ensemble_name]
        models = [one.model_sha256 for one in self.members(job)]
        taken = self.hypotheses(job)
        units = self._units(taken)
        files = [
            *self.prepared.test_set_files(job.test_set),
            *self.dictionaries(ensemble),
            *([taken] if taken else []),
            *([units] if units else []),
        ]
        settings = [settings_of(job, self.decode, self.dump), self.prepared.units.name]
        return [settings, models, [file_sha256(path) for path in files]]

    def members(self, job: Job) -> list[Member]:
        """The members that a job decodes with, in the order of their ensemble."""
        ensemble = self.ensembles[job.ensemble_name]
        return [one for one in ensemble.members if one.name in job.members]

    def dictionaries(self, ensemble: Ensemble) -> tuple[Path, Path]:
        """The vocabularies of source and target: the ensemble's own, or the prepared ones."""
        return ensemble.dictionaries or self.prepared.dictionaries()

    def loaders(self, ensemble: Ensemble) -> tuple[Dictionary, Dictionary, Loaders]:
        """Vocabularies of source and target, and what loads each member of an ensemble."""
        from pipeline.fairseq_bridge.corpus.binarised import load_dictionary

        source, target = (load_dictionary(path) for path in self.dictionaries(ensemble))
        device, dtype = self.decode.device, self.decode.dtype
        loaders: Loaders = {
            one.name: partial(load, one, source, target, device, dtype) for one in ensemble.members
        }
        return source, target, loaders

    def hypotheses(self, job: Job) -> Path | None:
        """The store or text file whose hypotheses a job scores instead of searching.

        Raises ConfigError where that is none.
        """
        if not job.takes_hypotheses or self.decode.hypotheses is None:
            return None
        path = Path(self.decode.hypotheses.replace("{test_set}", job.test_set))
        if not path.is_file():
            raise ConfigError(
                f"decode.hypotheses must name a decode store or a text file, "
                f"got {path}, which is none"
            )
        return path

    def given(self, job: Job, test_set: TestSetFile) -> Given | None:
        """The hypotheses of `hypotheses`, to be read sentence by sentence."""
        from pipeline.data.subwords import read_subword_model
        from pipeline.decoding.scoring import Given

        taken = self.hypotheses(job)
        if taken is None:
            return None
        units = self._units(taken)
        language = self.prepared.target_language
        return Given(
            taken, test_set, None if units is None else read_subword_model(units, language)
        )

    def search_members(self, job: Job) -> Sequence[str]:
        """Who found the hypotheses: members of the job, or those that a given store names.

        Raises StoreError where that store is faulty.
        """
        from pipeline.store import is_store, open_store, validate

        taken = self.hypotheses(job)
        if taken is None:
            return job.search_members
        if not is_store(taken):
            return []
        for fault in validate(taken):
            raise StoreError(fault)
        with open_store(taken) as store:
            names: Sequence[str] = store.attributes.get("search_members", [])
        return names

    def check_vocabularies(self) -> None:
        """Raise DataError where a member was trained with another target vocabulary."""
        for ensemble in self.ensembles.values():
            path = self.dictionaries(ensemble)[1]
            found = file_sha256(path)
            for member in ensemble.members:
                trained_with = member.description["vocabulary_sha256"]
                if trained_with != found:
                    raise DataError(
                        f"{path} must be the vocabulary that member {member.name} was trained "
                        f"with (sha256 {trained_with}), got {found}: "
                        f"run python -m stages.train again"
                    )

    def _units(self, taken: Path | None) -> Path | None:
        """The sub-word model that cuts the hypotheses of a text file; a store's are cut."""
        from pipeline.store import is_store

        if taken is None or is_store(taken):
            return None
        return self.prepared.file(self.prepared.units.name)


def check_weights(members: Iterable[Member]) -> None:
    """Raise DataError where the weights are not those that were written; each file once."""
    for one in {member.weights: member for member in members}.values():
        one.check_weights()
