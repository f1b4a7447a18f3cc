"""The inputs of a part (prepared data, vocabularies, weights, settings), and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pipeline.data.subwords import CODES_FILE, MODEL_FILE
from pipeline.decoding.plan import Part, shards
from pipeline.ensembles import Ensemble, Member, load_member, load_tokenizer
from pipeline.errors import ConfigError, DataError, StoreError
from pipeline.run.artifacts import Artifact, Provenance
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import DecodeConfig, DumpConfig, plain
from pipeline.store import is_store, open_store, validate

if TYPE_CHECKING:
    from pipeline.decoding.model import MemberModel
    from pipeline.decoding.rescoring import HypothesisFile
    from pipeline.decoding.test_set import TestSetFile
    from pipeline.decoding.tokenizer import Tokenizer


@dataclass(frozen=True)
class Prepared:
    """The folder {io.root}/prepare/{task}, with the source and target language of the task."""

    folder: Path
    source_language: str
    target_language: str

    @cached_property
    def _artifact(self) -> Artifact:
        return Artifact(self.folder, "prepare")

    def absent_sets(self) -> dict[str, str]:
        """Role -> reason, for the test sets that could not be prepared."""
        absent: dict[str, str] = self._artifact.description.get("absent_sets", {})
        return absent

    def has(self, name: str) -> bool:
        """Whether a file was prepared."""
        return name in self._artifact.names()

    def file(self, name: str) -> Path:
        """Path of a prepared file. Raises DataError if it is missing or has changed."""
        return self._artifact.file(name)

    def test_set(self, name: str) -> Path:
        """Path of the sentences of a test set."""
        return self.file(f"test/{name}.jsonl")

    def test_set_files(self, name: str) -> list[Path]:
        """Paths of all files of a test set: its sentences and, for speech, their sound."""
        sound = f"test/{name}.h5"
        return [self.test_set(name), *([self.file(sound)] if self.has(sound) else [])]

    @property
    def subword_model(self) -> Path:
        """Path of the subword model: a sentencepiece model or BPE codes."""
        return self.folder / (CODES_FILE if self.has(CODES_FILE) else MODEL_FILE)

    def dictionaries(self) -> tuple[Path, Path]:
        """Paths of the vocabularies of the source and target language."""
        return (
            self.file(f"fairseq/dict.{self.source_language}.txt"),
            self.file(f"fairseq/dict.{self.target_language}.txt"),
        )


Loaders = dict[str, "Callable[[], MemberModel]"]


@dataclass(frozen=True)
class Inputs:
    """Prepared data and ensembles of a task, and the settings of its decodes.

    ensembles: by name; code: digest of the code that decodes.
    """

    prepared: Prepared
    ensembles: Mapping[str, Ensemble]
    decode: DecodeConfig
    dump: DumpConfig
    code: str

    def provenance(self, part: Part) -> Provenance:
        """The provenance of the store of a part."""
        members = {member.name: member.model_sha256 for member in self.members(part)}
        made_from = members | self._file_hashes(part)
        return Provenance("decode", self.code, digest(self._settings(part)), made_from)

    def content(self, part: Part) -> list[Any]:
        """Settings, and sha256 of models and files, from which a part's store is made."""
        models = [member.model_sha256 for member in self.members(part)]
        return [self._settings(part), models, [*self._file_hashes(part).values()]]

    def _settings(self, part: Part) -> list[Any]:
        return [settings_of(part, self.decode, self.dump), self.prepared.subword_model.name]

    def _file_hashes(self, part: Part) -> dict[str, str]:
        """sha256 of every file that decoding a part reads, by what the file is."""
        files = {path.name: path for path in self.prepared.test_set_files(part.test_set)}
        files |= self.dictionaries(self.ensembles[part.ensemble_name])
        hypotheses = self.hypotheses(part)
        files |= {"hypotheses": hypotheses} if hypotheses else {}
        subword_model = self._subword_model(part, hypotheses)
        files |= {"subword model": subword_model} if subword_model else {}
        return {name: file_sha256(path) for name, path in files.items()}

    def attributes(self, task: str, part: Part) -> dict[str, Any]:
        """Root attributes of a part's store."""
        vocab_size = self.tokenizer(self.ensembles[part.ensemble_name]).vocab_size
        digests = {
            "members": digest(*(member.model_sha256 for member in self.members(part))),
            "decode": digest(*self.content(part)),
        }
        settings = settings_of(part, self.decode, self.dump)
        search_members = self.search_members(part)
        return store_attributes(task, part, settings, search_members, vocab_size, digests)

    def shard_labels(self, part: Part) -> list[str]:
        """Values of setting `part` for the shards of a part; [] if one job decodes all of it."""
        if self.decode.shards == 1:
            return []
        from pipeline.decoding.test_set import read_test_set

        n_sentence = len(read_test_set(self.prepared.test_set(part.test_set)))
        n_block = ceil(n_sentence / self.decode.part_sentences)
        return [shard.label(part.name) for shard in shards(self.decode.shards, n_block)]

    def members(self, part: Part) -> list[Member]:
        """The members that decode a part, in the order of their ensemble."""
        ensemble = self.ensembles[part.ensemble_name]
        return [member for member in ensemble.members if member.name in part.members]

    def dictionaries(self, ensemble: Ensemble) -> dict[str, Path]:
        """The vocabularies of both sides: the ensemble's own, or the prepared ones.

        Empty if the members have a tokenizer of their own, which is among their files.
        """
        if ensemble.tokenizer is not None:
            return {}
        paths = ensemble.dictionaries or self.prepared.dictionaries()
        return dict(zip(("source dictionary", "target dictionary"), paths, strict=True))

    def tokenizer(self, ensemble: Ensemble) -> Tokenizer:
        """What cuts text for an ensemble: its own tokenizer, or the subwords of stage prepare."""
        from pipeline.data.subwords import detokeniser, read_subword_model
        from pipeline.decoding.tokenizer import SubwordTokenizer
        from pipeline.fairseq_bridge.corpus.binarised import load_dictionary

        if ensemble.tokenizer is not None:
            own: Tokenizer = load_tokenizer(ensemble)
            return own
        source, target = map(load_dictionary, self.dictionaries(ensemble).values())
        model, language = self.prepared.subword_model, self.prepared.target_language

        def cut(text: str) -> Sequence[str]:
            return read_subword_model(model, language).subwords(text)

        return SubwordTokenizer(source, target, detokeniser(model, language), cut)

    def own_vocabularies(self) -> dict[str, dict[str, Any]]:
        """Kind of ensemble -> vocabulary, for those with their own tokenizer.

        It has the piece of every token id, the id of EOS, and the ids that are no part of a text.
        """
        own = {
            ensemble.kind: self.tokenizer(ensemble)
            for ensemble in self.ensembles.values()
            if ensemble.tokenizer is not None
        }
        return {
            kind: {
                "pieces": tokenizer.pieces,
                "eos": tokenizer.eos,
                "control": list(tokenizer.control),
            }
            for kind, tokenizer in own.items()
        }

    def loaders(self, ensemble: Ensemble, tokenizer: Tokenizer) -> Loaders:
        """By name, a function that loads each member."""
        device, dtype = self.decode.device, self.decode.dtype
        return {
            member.name: partial(load_member, member, tokenizer, device, dtype)
            for member in ensemble.members
        }

    def hypotheses(self, part: Part) -> Path | None:
        """The store or text file whose hypotheses are scored in place of a search.

        Raises ConfigError if there is no such file.
        """
        if not part.takes_hypotheses or self.decode.hypotheses is None:
            return None
        path = Path(self.decode.hypotheses.replace("{test_set}", part.test_set))
        if not path.is_file():
            raise ConfigError(
                f"decode.hypotheses: no such file ({path}). Give a decode store or a text file."
            )
        return path

    def hypothesis_file(self, part: Part, test_set: TestSetFile) -> HypothesisFile | None:
        """The file of `hypotheses`, read sentence by sentence; None if a search finds them."""
        from pipeline.decoding.rescoring import HypothesisFile

        path = self.hypotheses(part)
        return None if path is None else HypothesisFile(path, test_set, not is_store(path))

    def search_members(self, part: Part) -> Sequence[str]:
        """Names of the members that found the hypotheses: those of the part, or of a given store.

        Raises StoreError if that store is invalid.
        """
        path = self.hypotheses(part)
        if path is None:
            return part.search_members
        if not is_store(path):
            return []
        for fault in validate(path):
            raise StoreError(fault)
        with open_store(path) as store:
            names: Sequence[str] = store.attributes.get("search_members", [])
        return names

    def check_vocabularies(self) -> None:
        """Raise DataError if a member was trained with another target vocabulary."""
        for ensemble in self.ensembles.values():
            if ensemble.tokenizer is not None:
                continue
            path = self.dictionaries(ensemble)["target dictionary"]
            sha256 = file_sha256(path)
            for member in ensemble.members:
                trained_with = member.description["vocabulary_sha256"]
                if trained_with != sha256:
                    raise DataError(
                        f"{path}: not the vocabulary that member {member.name} was trained with "
                        f"(sha256 {sha256}, not {trained_with}). "
                        f"Run python -m stages.train again."
                    )

    def check_sources(self, test_set: str) -> None:
        """Raise ConfigError or DataError if a tokenizer does not take what was prepared.

        Such as text for models of speech. The subwords of stage prepare need no check.
        """
        for ensemble in self.ensembles.values():
            if ensemble.tokenizer is not None:
                from pipeline.decoding.test_set import read_test_set

                sentence = read_test_set(self.prepared.test_set(test_set))[0]
                # First, since a tokenizer asks for settings of models of its kind.
                ensemble.check_source(is_speech=sentence.utterances is not None)
                self.tokenizer(ensemble).source(sentence)

    def _subword_model(self, part: Part, hypotheses: Path | None) -> Path | None:
        """The prepared subword model that cuts the lines of a text file; None for a store."""
        own = self.ensembles[part.ensemble_name].tokenizer is not None
        if hypotheses is None or own or is_store(hypotheses):
            return None
        return self.prepared.file(self.prepared.subword_model.name)


def check_weights(members: Iterable[Member]) -> None:
    """Raise DataError if weights are missing or have changed; each file is read only once."""
    for member in {member.weights: member for member in members}.values():
        member.check_weights()


_SAMPLING = ("sampling_temperature", "sampling_top_k", "sampling_top_p", "seed")
_SEARCH = ("n_best", "unk_penalty", "min_length", "ending")
_HYPOTHESES = ("beam", "max_length_ratio", "max_length_offset", "settings", "_target_")
# Settings that a regime does not use.
_UNUSED: dict[str, tuple[str, ...]] = {
    "beam": _SAMPLING,
    "greedy": _SAMPLING,
    "sample": _SEARCH,
    "teacher_forcing": (*_SAMPLING, *_SEARCH, *_HYPOTHESES),
}
# Settings that do not enter a result. They choose the parts (and are recorded there), name a file
# whose content is recorded, or only check and distribute the work.
_NOT_IN_RESULT = (
    *("name", "also", "regime", "combination", "search_members"),
    *("hypotheses", "self_check", "parts_per_job", "shards", "subsets_per_size"),
    "device_memory_mib",
)


def settings_of(part: Part, decode: DecodeConfig, dump: DumpConfig) -> dict[str, Any]:
    """The settings that enter the result of a part, as plain values."""
    unused = (*_NOT_IN_RESULT, *_UNUSED[part.regime])
    used = {key: value for key, value in plain(decode).items() if key not in unused}
    if used.get("ending") == "fairseq":
        del used["ending"]  # the only rule when earlier stores were written
    # The keys are part of the store format: they are in its attributes `config` and `signature`.
    return {"decode": used, "dump": plain(dump), "job": asdict(part) | {"members": [*part.members]}}


def store_attributes(
    task: str,
    part: Part,
    settings: dict[str, Any],
    search_members: Sequence[str],
    vocab_size: int,
    digests: dict[str, str],
) -> dict[str, Any]:
    """Root attributes of a part's store; None for those that do not apply.

    settings: from `settings_of`. digests: `members` (of the weights) and `decode` (of everything
    that the result is made from).
    """
    used = settings["decode"]
    return {
        "task": task,
        "test_set": part.test_set,
        "ensemble": part.ensemble,
        "regime": part.regime,
        "combination": part.combination,
        "beam": used.get("beam"),
        "n_best": used.get("n_best"),
        # With an unk_penalty, scores do not follow from the log-probs alone.
        "length_penalty": None if used.get("unk_penalty") else used["length_penalty"],
        **{name: used.get(name) for name in _SAMPLING},
        "sampling_top_k": used.get("sampling_top_k") or None,
        "members": list(part.members),
        "search_members": list(search_members),
        "vocab_size": vocab_size,
        "config": yaml.safe_dump(_without_tuples(settings), sort_keys=True, allow_unicode=True),
        "signature": _signature(task, part, used, digests),
    }


def _signature(task: str, part: Part, used: dict[str, Any], digests: dict[str, str]) -> str:
    described = {
        "task": task,
        "set": part.test_set,
        "ensemble": part.ensemble,
        "members": f"{len(part.members)}:{digests['members'][:12]}",
        "regime": part.regime,
        "combination": part.combination,
        "beam": used.get("beam"),
        "length_penalty": used["length_penalty"],
        "temperature": used.get("sampling_temperature"),
        "seed": used.get("seed"),
        "decode": digests["decode"][:12],
    }
    return "|".join(f"{key}:{value}" for key, value in described.items() if value is not None)


def _without_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    return [_without_tuples(item) for item in value] if isinstance(value, list | tuple) else value
