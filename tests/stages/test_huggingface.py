"""Stage decode with Hugging Face models, from their folders to a store."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import transformers

from pipeline.decoding.inputs import Inputs, Prepared
from pipeline.ensembles import chosen_ensembles
from pipeline.errors import ConfigError, DataError
from pipeline.run.artifacts import Artifact
from pipeline.store import Flag, open_store
from stages.decode import decode
from stages.metrics import metrics
from stages.plan import plan
from stages.tables import tables
from stages.train import train
from stages.uncertainty import uncertainty
from tests.artifacts import list_files
from tests.pipeline.huggingface.folders import (
    save_bart,
    save_causal,
    save_marian,
    save_mbart,
    save_nllb,
    save_t5,
)
from tests.stages.trained_members import ABSENT, FEW_SETS, decoded_store, prepare, settings


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("marian: a=b")
    return [save_marian(folder / f"model_{seed}", seed) for seed in (1, 2)]


def chosen(models: list[Path], *overrides: str) -> list[str]:
    names = ",".join(f"'{path}'" for path in models)
    return [
        "ensemble=huggingface", "ensemble.seeds=[]", f"ensemble.settings.models=[{names}]",
        *overrides,
    ]  # fmt: skip


@pytest.mark.parametrize("regime", ["prex", "expr", "teacher_forcing"])
@pytest.mark.parametrize("ending", ["fairseq", "early"])
def test_marian_models_decode(root: Path, marian: list[Path], regime: str, ending: str) -> None:
    overrides = chosen(marian, "decode.self_check=true", f"decode.ending={ending}")
    path = decoded_store(root, f"huggingface.{regime}.help", *overrides)
    with open_store(path) as store:
        assert store.members == ["huggingface_1", "huggingface_2"]
        # The first sentence has no subwords of stage prepare, but it has a text.
        assert not (store.flag & ~Flag.NO_FINISHED_HYPOTHESIS).any()
        is_named = ending != "fairseq" and regime != "teacher_forcing"
        assert ("ending" in store.attributes["config"]) is is_named
        assert store.n_hypothesis == 5 * (1 if regime == "teacher_forcing" else 2)
        if regime == "teacher_forcing":
            assert list(store.read("/hypothesis/text")) == [f"w{index}" for index in range(5)]


def test_causal_models_decode_with_a_prompt(root: Path, tmp_path: Path) -> None:
    models = [save_causal(tmp_path / f"model_{seed}", seed) for seed in (1, 2)]
    prompt = r"ensemble.settings.prompt='English: {source}\nGerman: {target}'"
    overrides = chosen(models, "decode.self_check=true", prompt)
    for regime in ("prex", "teacher_forcing"):
        part = f"huggingface.{regime}.help"
        with open_store(decoded_store(root, part, *overrides)) as store:
            assert not (store.flag & ~Flag.NO_FINISHED_HYPOTHESIS).any()
            if regime == "teacher_forcing":
                assert list(store.read("/hypothesis/text")) == [f"w{index}" for index in range(5)]


LANGUAGES = {save_nllb: ("eng_Latn", "deu_Latn"), save_mbart: ("en_XX", "de_DE")}


@pytest.mark.parametrize("save", [save_t5, save_bart, save_nllb, save_mbart])
def test_other_families_decode_with_their_own_tokenizers(
    root: Path, tmp_path: Path, save: Any
) -> None:
    overrides = chosen([save(tmp_path / f"model_{seed}", seed) for seed in (1, 2)])
    for side, code in zip(("source", "target"), LANGUAGES.get(save, ()), strict=False):
        overrides.append(f"ensemble.settings.{side}_language={code}")
    with open_store(
        decoded_store(root, "huggingface.prex.help", "decode.self_check=true", *overrides)
    ) as store:
        assert store.n_hypothesis == 10
    part = "huggingface.teacher_forcing.help"
    with open_store(decoded_store(root, part, *overrides)) as store:
        assert list(store.read("/hypothesis/text")) == [f"w{index}" for index in range(5)]
        own = transformers.AutoTokenizer.from_pretrained(tmp_path / "model_1")
        codes = LANGUAGES.get(save, ("<pad>", "<s>"))
        assert not {*own.convert_tokens_to_ids([*codes])} & {*store.read("/token/id").tolist()}


def test_dropout_masks_of_one_model_decode(root: Path, marian: list[Path]) -> None:
    overrides = chosen(marian[:1], "decode.self_check=true", "ensemble.settings.members=2")
    with open_store(decoded_store(root, "huggingface.prex.help", *overrides)) as store:
        assert store.members == ["huggingface_1", "huggingface_2"]
        logprob = store.read("/token/logprob")
        assert abs(logprob[:, 0] - logprob[:, 1]).max() > 1e-4


def test_given_texts_are_cut_by_the_own_tokenizer_and_scored(
    root: Path, marian: list[Path], tmp_path: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"w{index}\n" for index in range(5)), encoding="utf-8")
    overrides = chosen(marian, f"decode.hypotheses='{texts}'")
    stores = [
        decoded_store(root, f"huggingface.{regime}.help", *overrides)
        for regime in ("prex", "teacher_forcing")
    ]
    with open_store(stores[0]) as given, open_store(stores[1]) as forced:
        for name in ("/hypothesis/text", "/token/id", "/token/logprob"):
            assert (given.read(name) == forced.read(name)).all()


def test_an_ensemble_of_fairseq_and_one_of_hugging_face_decode_in_one_run(
    root: Path, marian: list[Path]
) -> None:
    names = ",".join(f"'{path}'" for path in marian)
    overrides = [
        "+ensemble@ensemble.also.huggingface=huggingface",
        f"ensemble.also.huggingface.settings.models=[{names}]",
    ]
    vocab_sizes = []
    for kind in ("random_init", "huggingface"):
        with open_store(decoded_store(root, f"{kind}.prex.help", *overrides)) as store:
            vocab_sizes.append(store.vocab_size)
    assert vocab_sizes[0] != vocab_sizes[1]
    config = settings(root, *overrides)
    by_name = chosen_ensembles(config.ensemble, root / "train" / "nmt_ende").by_name
    prepared = Prepared(root / "prepare" / "nmt_ende", "en", "de")
    inputs = Inputs(prepared, by_name, config.decode, config.dump, "")
    inputs.check_vocabularies()
    assert list(inputs.own_vocabularies()) == ["huggingface"]


def test_a_task_is_evaluated_up_to_the_page_with_a_tokenizer_of_its_own(tmp_path: Path) -> None:
    """T5 models without any subwords of stage prepare."""
    root = tmp_path / "out"
    prepare(root / "prepare" / "nmt_ende", has_dev=True)
    for path in (root / "prepare" / "nmt_ende" / "fairseq").iterdir():
        path.unlink()
    list_files(root / "prepare" / "nmt_ende", "prepare", {"absent_sets": ABSENT})
    models = [save_t5(tmp_path / f"model_{seed}", seed) for seed in (1, 2)]
    fixed = (
        *FEW_SETS, "decode.also=[teacher_forcing]", "tracking=off", "~report.figures",
        "metrics.resamples=10", "uncertainty.beam=[1,2]",
    )  # fmt: skip
    overrides = chosen(models, *fixed)
    for part in ("prex.help", "prex.permuted", "teacher_forcing.help"):
        decode(settings(root, f"part=huggingface.{part}", *overrides))
    config = settings(root, *overrides)
    for stage in (decode, uncertainty, metrics, tables):
        stage(config)
    with (root / "tables" / "results.csv").open(encoding="utf-8", newline="") as file:
        found = {row["metric"] for row in csv.DictReader(file) if row["value"]}
    assert {"bleu", "nll", "roc_auc"} <= found
    page = (root / "report" / "index.html").read_text(encoding="utf-8")
    (packed, _) = re.findall('application/gzip" id="data-[01]">(.+?)</script>', page)
    shown = json.loads(gzip.decompress(base64.b64decode(packed)))
    own = transformers.AutoTokenizer.from_pretrained(models[0])
    with open_store(root / "decode" / "nmt_ende" / "huggingface.prex.help" / "store.h5") as store:
        first = own.convert_ids_to_tokens(
            store.read("/token/id", 0, store.token_offset[1]).tolist()
        )
    assert [shown["subwords"][index] for index in shown["subword"][: len(first)]] == first
    assert "model_1, model_2" in page


def test_the_pieces_of_all_tokens_are_written_beside_the_stores(
    root: Path, marian: list[Path]
) -> None:
    config = settings(root, *chosen(marian))
    prepared = Prepared(root / "prepare" / "nmt_ende", "en", "de")
    by_name = chosen_ensembles(config.ensemble, root / "train" / "nmt_ende").by_name
    inputs = Inputs(prepared, by_name, config.decode, config.dump, "")
    ((kind, vocabulary),) = inputs.own_vocabularies().items()
    pieces = vocabulary["pieces"]
    assert (kind, vocabulary["eos"]) == ("huggingface", 0)
    assert vocabulary["control"] == [0, 1, len(pieces) - 1]
    assert (pieces[0], pieces[1], pieces[-1]) == ("</s>", "<unk>", "<pad>")
    assert "▁w" in {piece[:2] for piece in pieces}


def test_nothing_is_trained_and_stage_train_says_so(
    marian: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    train(settings(tmp_path, "tracking=off", *chosen(marian)))
    assert "ensemble.seeds: [], so that nothing is trained" in caplog.messages
    # Under DVC, stage decode depends on this folder.
    assert Artifact(tmp_path / "train" / "nmt_ende", "train").parts() == {}
    curves = (tmp_path / "train" / "nmt_ende.curves.csv").read_text(encoding="utf-8")
    assert curves == "member,update,measure,value\n"


def test_the_cost_of_models_that_are_not_fairseqs_cannot_be_planned(
    root: Path, marian: list[Path]
) -> None:
    with pytest.raises(ConfigError, match=r"ensemble huggingface: its cost cannot be estimated"):
        plan(settings(root, *chosen(marian)))


def test_what_cannot_be_decoded_is_refused_by_name(
    root: Path, marian: list[Path], tmp_path: Path
) -> None:
    def rejected(error: Any, match: str, models: list[Any], *overrides: str) -> None:
        with pytest.raises(error, match=match):
            decode(settings(root, "part=huggingface.prex.help", *chosen(models, *overrides)))

    rejected(ConfigError, r"no such folder \(got Helsinki/x\)", ["Helsinki/x"])
    rejected(DataError, "are the same model", [marian[0], marian[0]])
    causal = save_causal(tmp_path / "causal", 1)
    rejected(DataError, r"\(.*causal\) have different vocabularies", [marian[0], causal])
    rejected(ConfigError, r"must contain \{source\} once \(got None\)", [causal])
    rejected(
        ConfigError, r"must end with \{target\}", [causal],
        "ensemble.settings.prompt='{source} is'",
    )  # fmt: skip
    config = json.loads((causal / "config.json").read_text(encoding="utf-8"))
    config["auto_map"] = {"AutoModel": "code.Model"}
    (causal / "config.json").write_text(json.dumps(config), encoding="utf-8")
    rejected(DataError, "such code is not run", [causal])
    (marian_like := tmp_path / "pickled").mkdir()
    (marian_like / "config.json").write_text("{}", encoding="utf-8")
    (marian_like / "pytorch_model.bin").touch()
    rejected(DataError, "Only safetensors are read", [marian_like])
