"""What made the numbers of the page: data, models and programs, compared with the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

from pipeline.report.ensemble_names import member_names
from pipeline.report.paper_numbers import FAMILIES, SYSTEMS
from pipeline.run.files import read_json

_PACKAGES = ("torch", "ve-fairseq", "transformers", "peft", "numpy", "scipy", "sacrebleu")
COPIES = "Copies in the training data"  # name of a fact that the page explains
_TRAIN, _COPIES = "train", "train, "
_KINDS = {
    "random_init": "random initialisations",
    "checkpoint": "checkpoints of one training run",
    "checkpoint_average": "averages of checkpoints",
    "snapshot": "snapshots of one training run",
    "mc_dropout": "dropout masks",
    "huggingface": "Hugging Face",
}
_LARGER = 2.0  # times the training data, from which on the paper's numbers are no yardstick


@dataclass(frozen=True)
class Origin:
    """The run behind the page, as its settings and manifests describe it.

    `experiment` is the size of the pipeline; empty for decode stores that a user named. `program`
    is the version of this package. `descriptions`: task -> what stage prepare says about its data.
    """

    experiment: str = ""
    program: str = ""
    descriptions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fact:
    """One fact about the run of a task, and what it is in the paper; empty if that is not known."""

    name: str
    value: str
    of_paper: str


def facts(origin: Origin, task: str, decodes: Path, members: Sequence[str]) -> list[Fact]:
    """The facts that are known of a task.

    `decodes` is the folder of its decodes, and `members` the names of the members that decoded the
    sentences of the page.
    """
    ours = dict(_facts(origin.descriptions.get(task, {}), _ensembles(decodes)))
    if members:
        ours.setdefault("Members", f"{len(members)}: {member_names(members)}")
    of_paper = _facts_of_paper(task)
    return [Fact(name, value, of_paper.get(name, "")) for name, value in ours.items()]


def comparison(origin: Origin, tasks: Sequence[str]) -> str:
    """How the numbers of these tasks compare with the paper's, in one or two sentences."""
    in_paper = [task for task in tasks if task in SYSTEMS]
    if not in_paper:
        return "The paper has none of these tasks, so its numbers are not shown."
    ratios = sorted(
        SYSTEMS[task].training_sentences / size
        for task in in_paper
        if (size := _training_sentences(origin.descriptions.get(task, {})))
    )
    if ratios and ratios[0] < _LARGER:
        return (
            "The training data are about as large as the paper's, whose numbers stand beside ours "
            "in italics."
        )
    if not ratios:
        difference = "Models and test sets are not the paper's."
    else:
        times = " to ".join(dict.fromkeys(f"{ratio:,.0f}" for ratio in (ratios[0], ratios[-1])))
        difference = (
            f"The paper trained on {times} times as many sentences and tested on other sets."
        )
    return (
        f"{difference} Its numbers, in italics, are therefore no target: expect lower BLEU and "
        "higher WER here, and compare the order of systems and of measures."
    )


def versions() -> str:
    """The versions of Python and of the packages that numbers depend on, as installed here."""
    installed = [f"Python {python_version()}"]
    for name in _PACKAGES:
        try:
            installed.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(installed)


def _ensembles(folder: Path) -> list[dict[str, Any]]:
    """The ensembles that were decoded; none for decodes that another program made."""
    path = folder / "ensemble.json"
    return read_json(path, "decode", list) if path.is_file() else []


def _facts(
    description: Mapping[str, Any], ensembles: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Name and value of each fact about a task. A new factor of runs is one more of them."""
    sizes = {subset["subset"]: subset for subset in description.get("subsets", ())}
    if _TRAIN in sizes:
        yield "Training data", f"{sizes[_TRAIN]['dataset']}: {_size(sizes[_TRAIN])}"
    copies = [
        f"{name.removeprefix(_COPIES)}: {_size(sizes[name])}"
        for name in sizes
        if name.startswith(_COPIES)
    ]
    if copies:
        yield COPIES, "; ".join(copies)
    packages = description.get("packages", {}).values()
    dates = sorted(package["date"] for package in packages if package.get("date"))
    if dates:
        yield "Date of the data", f"{dates[-1]} (newest of {len(dates)} packages)"
    elif packages:
        yield "Date of the data", "not recorded"
    elif description:
        files = dict.fromkeys(subset["dataset"] for subset in description.get("subsets", ()))
        yield "Date of the data", f"none, since it is from files: {', '.join(files)}"
    if not ensembles:
        return
    members = ensembles[0]["members"]
    names = member_names(member["name"] for member in members)
    yield "Members", f"{len(members)} ({_words(ensembles[0]['kind'])}): {names}"
    if parameters := _range(member.get("parameters") for member in members):
        yield "Size of a member", f"{parameters} parameters"
    if updates := _range(member["update"] for member in members):
        yield "Updates", updates
    further = Counter((other["kind"], len(other["members"])) for other in ensembles[1:])
    if further:
        yield (
            "Also decoded",
            "; ".join(
                f"{n} ensemble{'s' if n > 1 else ''} of {size} members ({_words(kind)})"
                for (kind, size), n in further.items()
            ),
        )


def _facts_of_paper(task: str) -> dict[str, str]:
    system = SYSTEMS.get(task)
    if system is None:
        return {}
    unit = "utterances" if FAMILIES[task] == "speech" else "sentences"
    return {
        "Training data": f"{system.corpus}: {system.training_sentences:,} {unit}",
        "Members": f"{system.members} {system.architecture}",
    }


def _words(kind: str) -> str:
    return _KINDS.get(kind, kind)


def _size(subset: Mapping[str, str]) -> str:
    """The size of a subset of the data: sentences, or utterances and hours."""
    if "utterances" in subset:
        return f"{int(subset['utterances']):,} utterances, {subset['hours']} hours"
    return f"{int(subset['sentences']):,} sentences"


def _training_sentences(description: Mapping[str, Any]) -> int:
    """The number of sentences or utterances that members were trained on; 0 if not known."""
    for subset in description.get("subsets", ()):
        if subset["subset"] == _TRAIN:
            return int(subset.get("utterances") or subset["sentences"])
    return 0


def _range(numbers: Iterable[int | None]) -> str:
    """One number, or the lowest and highest; empty if one of them is not known."""
    known = list(numbers)
    if not known or None in known:
        return ""
    low, high = min(filter(None, known)), max(filter(None, known))
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
