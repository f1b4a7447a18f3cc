"""Follow docs/published_models.md from a folder of checkpoints to the tables.

Tiny stand-ins replace the published checkpoints, sacrebleu's test sets and the corpora, so that
nothing is downloaded.
"""

from __future__ import annotations

import csv
import itertools
import json
import shlex
from pathlib import Path

import pytest
import yaml

from pipeline.run.artifacts import Artifact
from pipeline.run.settings import ROOT
from pipeline.store import open_store
from tests.docs.pages import blocks
from tests.docs.runs import OFFLINE, run_python
from tests.published_models import CHECKPOINTS, publish

FOLDER = "wmt18.en-de.ensemble"
# The paper's settings on a CPU, with short hypotheses and fewer test sets.
TINY = (
    *(
        f"~task.test_sets.{role}"
        for role in (
            "librispeech-test-other",
            "typos",
            "truncated",
            "german-english",
            "german-german",
            "english-english",
        )
    ),
    "decode.device=cpu",
    "decode.beam=2",
    "decode.max_length_offset=6",
    "decode.parts_per_job=100",
    "decode.self_check=false",
    "uncertainty.beam=[1,2]",
    "metrics.resamples=10",
    "~report.figures",
    "tracking=off",
)
STAGES = ("prepare", "train", "decode", "uncertainty", "metrics", "tables")
_DETECTION = "tab:ood-detection"
_WORDS = {
    "en": ("The old door's key", "A well-known lamp", "opens", "warms", "the house", "three rooms"),
    "de": ("Der alte Schlüssel", "Eine E-Lampe", "öffnet", "wärmt", "das Haus", "drei Räume"),
    "fr": ("La clé d'or", "Une lampe", "ouvre", "chauffe", "l'hôtel", "trois pièces"),
}


def _texts(language: str) -> list[str]:
    words = _WORDS[language]
    phrases = itertools.product(words[:2], words[2:4], words[4:])
    return [f"{' '.join(sentence)}." for sentence in phrases]


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _write_published_files(folder: Path) -> None:
    for name, target in (("wmt13", "de"), ("wmt14/full", "de"), ("wmt14/full", "fr")):
        stem = folder / "sacrebleu" / name / f"{name.replace('/', '_')}.en-{target}"
        _write(Path(f"{stem}.src"), _texts("en"))
        _write(Path(f"{stem}.ref"), _texts(target))
    data = folder / "paper_data"
    for split, language in itertools.product(("dev", "test"), ("en", "de")):
        path = data / "khresmoi-summary" / f"khresmoi-summary-{split}.{language}"
        _write(path, _texts(language)[:3])
    for subset in ("test-clean", "test-other"):
        lines = [f"1-2-{index} HE OPENS ROOM {index} OF MANY" for index in range(3)]
        _write(data / "LibriSpeech" / subset / "1" / "2" / "1-2.trans.txt", lines)
    texts = [text for language in ("en", "de") for text in _texts(language)]
    publish(folder / FOLDER, texts, ("en", "de"))


def _settings() -> list[str]:
    """Return the settings that the page puts into conf/dag.yaml, as overrides."""
    page = ROOT / "docs" / "published_models.md"
    (block,) = (block for block in blocks(page) if block.language == "yaml")
    content = yaml.safe_load(block.text)
    (task,) = content["tasks"]
    return [
        f"task={task}",
        f"experiment={content['experiment']}",
        *shlex.split(content["overrides"]),
        *TINY,
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    _write_published_files(folder)
    environment = {**OFFLINE, "SACREBLEU": str(folder / "sacrebleu")}
    for stage in STAGES:
        run_python(["-m", f"stages.{stage}", *_settings()], folder, **environment)
    return folder


def test_page_names_the_checkpoints_of_the_folder() -> None:
    checkpoints = ",".join(f"{FOLDER}/{name}" for name in CHECKPOINTS)
    assert f"ensemble.settings.checkpoints=[{checkpoints}]" in _settings()


def test_token_ids_and_subwords_are_those_of_the_published_dictionaries(folder: Path) -> None:
    prepared = folder / "outputs" / "prepare" / "nmt_ende"
    for language in ("en", "de"):
        name = f"dict.{language}.txt"
        assert (prepared / "fairseq" / name).read_bytes() == (folder / FOLDER / name).read_bytes()
    assert {path.name for path in (prepared / "fairseq").iterdir()} == {
        "dict.en.txt",
        "dict.de.txt",
    }
    manifest = Artifact(prepared, "prepare").description
    assert "train" not in manifest["counts"]["split"]
    assert manifest["absent_sets"] == {}
    counts = manifest["counts"]["test_sets"]
    assert counts["newstest14"]["unknown_source_pieces"] == 0
    first = json.loads((prepared / "test" / "newstest14.jsonl").read_text().splitlines()[0])
    assert first["source"] == _texts("en")[0]
    tokens = f"{' '.join(first['source_pieces'])} ".replace("@@ ", "")
    assert tokens == "The old door &apos;s key opens the house . "
    assert any(subword.endswith("@@") for subword in first["source_pieces"])


def test_every_checkpoint_is_a_member_and_hypotheses_are_detokenised(folder: Path) -> None:
    decoded = folder / "outputs" / "decode" / "nmt_ende"
    (ensemble,) = json.loads((decoded / "ensemble.json").read_text(encoding="utf-8"))
    checkpoints = [[*member["checkpoints"]] for member in ensemble["members"]]
    assert checkpoints == [[name] for name in CHECKPOINTS]
    with open_store(decoded / "imported.prex.newstest14" / "store.h5") as store:
        dictionary = (folder / FOLDER / "dict.de.txt").read_text(encoding="utf-8")
        assert store.vocab_size == dictionary.count("\n") + 4
        assert store.n_sentence == 8
        texts = store.read("/hypothesis/text", 0, store.n_hypothesis).tolist()
    assert any(texts)
    assert not any("@@ " in text or "&apos;" in text or text.endswith("@@") for text in texts)


def test_tables_hold_the_numbers_of_the_ensemble(folder: Path) -> None:
    with (folder / "outputs" / "tables" / "results.csv").open(encoding="utf-8") as file:
        cells = [row for row in csv.DictReader(file) if row["task"] == "nmt_ende"]
    bleu = {
        (cell["ensemble"], cell["hypotheses"]): cell["value"]
        for cell in cells
        if (cell["table"], cell["metric"]) == ("tab:nmt-bleu-asr-wer", "bleu")
        and cell["test_set"] == "newstest14"
    }
    assert {*bleu} == {("single", "-"), ("imported", "prex"), ("imported", "expr")}
    assert all(bleu.values())
    detection = [
        cell for cell in cells if (cell["table"], cell["test_set"]) == (_DETECTION, "L-FR")
    ]
    # Eight sentences of french-source and eight of newstest14.
    assert {cell["n"] for cell in detection if cell["value"]} == {"16"}
    assert (folder / "outputs" / "report" / "index.html").stat().st_size > 10**4
