"""Synthetic outputs of stages prepare and train, for the tests of stage decode."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.fairseq_bridge.models.weights import save_weights
from pipeline.run.artifacts import PartFolder
from pipeline.run.files import file_sha256, write_json
from pipeline.run.settings import PipelineConfig
from pipeline.store import validate
from stages.decode import decode
from tests.artifacts import list_files, made_by
from tests.composed_settings import composed_settings

SMALL = [
    "experiment=laptop",
    "ensemble.seeds=[1,2]",
    "train.keep_checkpoints=3",
    "train.average_last=2",
    "decode.beam=2",
    "decode.batch_sentences=4",
]


def settings(root: Path, *overrides: str) -> PipelineConfig:
    return composed_settings(f"io.root='{root}'", *SMALL, *overrides)


UPDATES = (20, 40, 60)
SETTINGS = settings(Path())
ALL_SETS = SETTINGS.task.test_sets
TEST_SETS = {
    role: ALL_SETS[role]
    for role in ("help", "debian-reference", "permuted", "german-source", "german-german")
}
ABSENT = {str(role): "no data" for role in ALL_SETS if role not in TEST_SETS}
# For tests that need neither all test sets nor all figures.
FEW_SETS = tuple(
    f"~task.test_sets.{role}" for role in TEST_SETS if role not in ("help", "permuted")
)
ONE_FIGURE = tuple(
    f"~report.figures.{name}" for name in SETTINGS.report.figures if name != "error_histograms"
)
IN_DOMAIN = [role for role, test_set in TEST_SETS.items() if test_set.in_domain]
SEARCHED = [role for role, test_set in TEST_SETS.items() if "search" in test_set.regimes]
ONLY_SCORED = [role for role in TEST_SETS if role not in SEARCHED]


def prepare(folder: Path, *, has_dev: bool = False) -> None:
    """Write test sets of five sentences.

    has_dev: also write a dev set, on which stage decode measures the diversity of the members. To
    do so, its own process imports torch and fairseq, as the processes of its parts do.
    """
    (folder / "fairseq").mkdir(parents=True)
    (folder / "test").mkdir()
    for language in ("en", "de"):
        words = "".join(f"▁w{index} 1\n" for index in range(20))
        (folder / "fairseq" / f"dict.{language}.txt").write_text(words, encoding="utf-8")
    for role in TEST_SETS:
        write_sentences(folder / "test" / f"{role}.jsonl", role in IN_DOMAIN + ONLY_SCORED)
    if has_dev:
        write_sentences(folder / "dev.jsonl", has_reference=True)
    (folder / "data_card.md").write_text("# Card\n", encoding="utf-8")
    write_manifest(folder)


def write_sentences(path: Path, has_reference: bool) -> None:
    with path.open("w", encoding="utf-8") as file:
        for index in range(5):
            sentence = {
                "id": index,
                "source": f"source {index}",
                "reference": f"w{index}" if has_reference else None,
                "source_pieces": [f"▁w{index}"] * index,
                "reference_pieces": [f"▁w{index}"] if has_reference else None,
                "group": f"page_{index // 2}",
                "original": f"{path.stem}:{index}",
            }
            file.write(json.dumps(sentence) + "\n")


def write_manifest(folder: Path) -> None:
    list_files(folder, "prepare", {"absent_sets": ABSENT})


def train(folder: Path, prepared: Path) -> None:
    path = prepared / "fairseq" / "dict.de.txt"
    dictionary = load_dictionary(path)
    side = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    configuration = model_configuration("transformer", {"encoder": side, "decoder": side})
    parts = PartFolder(
        folder, "train", {f"seed_{seed}": made_by("train", str(seed)) for seed in (1, 2)}
    )
    for seed in (1, 2):
        with parts.building(f"seed_{seed}") as part:
            names = ["average", *(f"update_{update:08d}" for update in UPDATES)]
            for index, name in enumerate(names):
                torch.manual_seed(10 * seed + index)
                model = build_model(configuration, dictionary, dictionary)
                save_weights(model.state_dict(), part / f"{name}.safetensors")
            files = part.glob("*.safetensors")
            write_json(
                part / "model.json",
                {
                    "model": configuration,
                    "seed": seed,
                    "updates": UPDATES[-1],
                    "vocabulary_sha256": file_sha256(path),
                    "weights": {file.name: file_sha256(file) for file in files},
                },
            )
    parts.write_manifest()


def prepare_and_train(root: Path, *, has_dev: bool = False) -> None:
    """Write test sets of five sentences, and random models of two seeds, three checkpoints each."""
    prepare(root / "prepare" / "nmt_ende", has_dev=has_dev)
    train(root / "train" / "nmt_ende", root / "prepare" / "nmt_ende")


def decoded_store(root: Path, part: str, *overrides: str) -> Path:
    """Decode one part; return the path of its store."""
    decode(settings(root, f"part={part}", *overrides))
    path = root / "decode" / "nmt_ende" / part / "store.h5"
    assert validate(path) == []
    return path
