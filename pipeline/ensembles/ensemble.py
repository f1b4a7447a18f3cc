"""Members and ensembles: their descriptions, and the checks that members form an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.models.weights import parameter_count
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import implementation


@dataclass(frozen=True)
class DropoutMask:
    """A mask over the units of a model; `rate` is the share it drops (None: as in training)."""

    rate: float | None
    seed: int


@dataclass(frozen=True)
class Member:
    """One fixed model.

    weights, sha256: a safetensors file. seed: of its training. description: the content of a
    model.json, with architecture and vocabulary. update: the training update of the weights.
    made_from: file name -> sha256 of the checkpoints behind the weights. mask: dropped units.
    loader: dotted name of the function `(member, tokenizer, device, dtype)` that returns its
    MemberModel. files: what it is loaded from besides the weights -> sha256. given: the file or
    folder of the user that it was made from; None if it was trained here.
    """

    name: str
    weights: Path
    sha256: str
    seed: int | None
    description: Mapping[str, Any]
    update: int | None = None
    made_from: Mapping[str, str] = field(default_factory=dict)
    mask: DropoutMask | None = None
    loader: str = "pipeline.fairseq_bridge.members.loader.load"
    files: Mapping[Path, str] = field(default_factory=dict)
    given: Path | None = None

    @property
    def model_sha256(self) -> str:
        """sha256 (hex) of everything that its probabilities depend on."""
        mask = None if self.mask is None else asdict(self.mask)
        return digest(self.sha256, self.description["model"], mask)

    @property
    def weight_files(self) -> list[Path]:
        """Its files of weights, which are several for a large model and for an adapter."""
        return [self.weights, *(path for path in self.files if path.suffix == self.weights.suffix)]

    @property
    def label(self) -> str:
        """Its name, and the file or folder of the user that it was made from, or its weights."""
        return f"{self.name} ({self.given or self.weights})"

    def check_weights(self) -> None:
        """Raise DataError if the weights are missing or not those that model.json describes."""
        if not self.weights.is_file():
            raise DataError(
                f"{self.weights}: no such file (the weights of member {self.name}). "
                f"Train member {self.name} again."
            )
        for path, expected in self.files.items():
            if not path.is_file() or file_sha256(path) != expected:
                raise DataError(
                    f"{path}: missing, or changed since this run started (a file of member "
                    f"{self.name}). Restore it, or start again."
                )
        sha256 = file_sha256(self.weights)
        if sha256 != self.sha256:
            raise DataError(
                f"{self.weights}: sha256 differs from the one in model.json (got {sha256}, not "
                f"{self.sha256}). Train member {self.name} again."
            )


def planned_member(name: str) -> Member:
    """A member that does not exist yet: it has a name but no weights."""
    return Member(name, Path(), "", None, {})


def load_member(member: Member, tokenizer: Any, device: str, dtype: str) -> Any:
    """Load the MemberModel of a member with its loader, ready to decode.

    tokenizer: of its ensemble. Raises ConfigError if the loader cannot be imported, and the errors
    of the loader: DataError if the weights are damaged or do not fit, MachineError if there is no
    such device.
    """
    load = implementation(member.loader, f"loader of member {member.name}")
    return load(member, tokenizer, device, dtype)


@dataclass(frozen=True)
class Ensemble:
    """Members that are decoded together.

    name: the kind, or `{kind}.{run}` for kinds with one ensemble per training run. dictionaries:
    files of source and target vocabulary, None for the prepared dictionaries. tokenizer: dotted
    name of the function `(first member)` that returns a Tokenizer, which cuts the text of test sets
    in place of the prepared subwords and dictionaries. takes_speech: whether the sources of these
    members are audio, None if they are whatever was prepared.
    """

    kind: str
    name: str
    members: tuple[Member, ...]
    dictionaries: tuple[Path, Path] | None = None
    tokenizer: str | None = None
    takes_speech: bool | None = None

    @property
    def member_names(self) -> tuple[str, ...]:
        """Names of the members, in order."""
        return tuple(member.name for member in self.members)

    def check_source(self, is_speech: bool) -> None:
        """Raise ConfigError if test sets of speech, or of text, are not what the members take."""
        if self.takes_speech in (None, is_speech):
            return
        own, others = ("speech", "text") if self.takes_speech else ("text", "speech")
        task = "speech" if self.takes_speech else "translation"
        raise ConfigError(
            f"ensemble {self.name}: {self.members[0].label} is a model of {own}, and the test sets "
            f"are {others}. Choose models of {others}, or a task of {task}."
        )


def load_tokenizer(ensemble: Ensemble) -> Any:
    """Load the ensemble's own tokenizer. Raises ConfigError if its function cannot be imported."""
    name = str(ensemble.tokenizer)
    return implementation(name, f"tokenizer of ensemble {ensemble.name}")(ensemble.members[0])


def check_ensembles(kind: str, main: Sequence[Ensemble], further: Sequence[Ensemble]) -> None:
    """Check that the members of each ensemble fit together and that names are unique.

    Raises DataError, naming the ensembles or members, if there is no ensemble of the main kind, if
    two members of an ensemble are the same model or have different vocabularies, or if two
    ensembles, or two different models, have the same name.
    """
    if not main:
        raise DataError(f"ensemble {kind}: has no members. Set ensemble.seeds or its settings.")
    ensemble_names: set[str] = set()
    models: dict[str, str] = {}
    for ensemble in (*main, *further):
        if ensemble.name in ensemble_names:
            raise DataError(
                f"ensemble {ensemble.name}: two ensembles have this name. Give each its own name."
            )
        ensemble_names.add(ensemble.name)
        _check_members(ensemble)
        for member in ensemble.members:
            if models.setdefault(member.name, member.model_sha256) != member.model_sha256:
                raise DataError(
                    f"ensemble {ensemble.name}: its member {member.name} is another model than the "
                    "member of that name in a previous ensemble. Give each its own name."
                )


def _check_members(ensemble: Ensemble) -> None:
    if not ensemble.members:
        raise DataError(f"ensemble {ensemble.name}: has no members. Check its settings.")
    first = ensemble.members[0]
    by_model: dict[str, Member] = {}
    for member in ensemble.members:
        is_trained_here = member.given is None
        twin = by_model.setdefault(member.model_sha256, member)
        if twin is not member:
            advice = (
                "Train them with different seeds." if is_trained_here else "List each model once."
            )
            raise DataError(
                f"ensemble {ensemble.name}: members {twin.label} and {member.label} are the same "
                f"model. {advice}"
            )
        if member.description["vocabulary_sha256"] != first.description["vocabulary_sha256"]:
            advice = (
                "Train them on the same prepared data."
                if is_trained_here
                else "Choose models with one tokenizer."
            )
            raise DataError(
                f"ensemble {ensemble.name}: members {first.label} and {member.label} have "
                f"different vocabularies. {advice}"
            )


def manifest(ensembles: Sequence[Ensemble]) -> list[dict[str, Any]]:
    """Content of ensemble.json: the ensembles with a description of each of their members."""
    return [
        {
            "kind": ensemble.kind,
            "name": ensemble.name,
            "members": [_member_entry(member) for member in ensemble.members],
        }
        for ensemble in ensembles
    ]


def _member_entry(member: Member) -> dict[str, Any]:
    # The name of a model's folder, or on the hub with its commit.
    origin = member.description.get("origin")
    return ({} if origin is None else {"origin": origin}) | {
        "name": member.name,
        "checkpoints": dict(member.made_from),
        "sha256": member.sha256,
        "parameters": parameter_count(member.weight_files),
        "seed": member.seed,
        "update": member.update,
        "dropout": None if member.mask is None else asdict(member.mask),
        "vocabulary_sha256": member.description["vocabulary_sha256"],
        "model_sha256": member.model_sha256,
    }
