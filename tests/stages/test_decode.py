from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from sentencepiece import SentencePieceTrainer

from pipeline.config import CONF, PipelineConfig, typed
from pipeline.errors import ConfigError, DataError, PipelineError
from pipeline.fairseq_bridge.configuration import model_configuration
from pipeline.fairseq_bridge.models import build_model, load_dictionary
from pipeline.fairseq_bridge.weights import save_weights
from pipeline.parts import PartFolder, file_sha256, write_json
from pipeline.store import Flag, open_store, validate
from stages.decode import decode

SMALL = [
    "experiment=laptop",
    "ensemble.seeds=[1,2]",
    "train.keep_checkpoints=3",
    "train.average_last=2",
    "decode.beam=2",
    "decode.batch_sentences=4",
]


def settings(root: Path, *overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        composed = compose("pipeline", [*SMALL, *overrides])
    composed.io.root = str(root)
    return typed(composed)


UPDATES = (20, 40, 60)
ALL_SETS = settings(Path()).task.test_sets
TEST_SETS = {role: ALL_SETS[role] for role in ("newstest14", "MED", "PRM", "L-DE", "L-DEDE")}
ABSENT = {str(role): "no data" for role in ALL_SETS if role not in TEST_SETS}
IN_DOMAIN = [role for role, one in TEST_SETS.items() if one.in_domain]
SEARCHED = [role for role, one in TEST_SETS.items() if "search" in one.regimes]
ONLY_SCORED = [role for role in TEST_SETS if role not in SEARCHED]


def prepare(folder: Path) -> None:
    (folder / "fairseq").mkdir(parents=True)
    (folder / "test").mkdir()
    for language in ("en", "de"):
        words = "".join(f"▁w{one} 1\n" for one in range(20))
        (folder / "fairseq" / f"dict.{language}.txt").write_text(words, encoding="utf-8")
    for role in TEST_SETS:
        write_sentences(folder / "test" / f"{role}.jsonl", role in IN_DOMAIN + ONLY_SCORED)
    write_sentences(folder / "dev.jsonl", has_reference=True)
    write_manifest(folder)


def write_sentences(path: Path, has_reference: bool) -> None:
    with path.open("w", encoding="utf-8") as file:
        for place in range(5):
            sentence = {
                "id": place,
                "source": f"source {place}",
                "reference": f"w{place}" if has_reference else None,
                "source_pieces": [f"▁w{place}"] * place,
                "reference_pieces": [f"▁w{place}"] if has_reference else None,
            }
            file.write(json.dumps(sentence) + "\n")


def write_manifest(folder: Path) -> None:
    files = {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in folder.rglob("*")
        if path.is_file()
    }
    write_json(folder / "manifest.json", {"absent_sets": ABSENT, "files": files})


def train(folder: Path, prepared: Path) -> None:
    path = prepared / "fairseq" / "dict.de.txt"
    dictionary = load_dictionary(path)
    side = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    configuration = model_configuration("transformer", {"encoder": side, "decoder": side})
    parts = PartFolder(folder, {f"seed_{seed}": f"digest {seed}" for seed in (1, 2)})
    for seed in (1, 2):
        with parts.building(f"seed_{seed}") as part:
            names = ["average", *(f"update_{update:08d}" for update in UPDATES)]
            for place, name in enumerate(names):
                torch.manual_seed(10 * seed + place)
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
                    "weights": {one.name: file_sha256(one) for one in files},
                },
            )
    parts.write_manifest()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("out puts: 日本")
    prepare(root / "prepare" / "nmt_ende")
    train(root / "train" / "nmt_ende", root / "prepare" / "nmt_ende")
    return root


def made(root: Path, part: str, *overrides: str) -> Path:
    decode(settings(root, f"part={part}", *overrides))
    path = root / "decode" / "nmt_ende" / part / "store.h5"
    assert validate(path) == []
    return path


def test_case_17_a_store_below_any_path_has_every_sentence_and_its_origin(root: Path) -> None:
    with open_store(made(root, "random_init.prex.newstest14")) as store:
        assert store.n_sentence == 5
        assert store.flag[0] == Flag.EMPTY_SOURCE | Flag.NO_HYPOTHESIS
        attributes = store.attributes
        assert attributes["members"] == ["seed_1", "seed_2"]
        assert (attributes["regime"], attributes["combination"]) == ("beam", "prex")
        assert attributes["ensemble"] == "random_init"
        assert attributes["signature"].startswith("task:nmt_ende|set:newstest14|")
        assert str(root) not in str(attributes)


def test_a_member_alone_is_an_ensemble_of_one(root: Path) -> None:
    with open_store(made(root, "seed_2.beam.newstest14")) as store:
        assert store.attributes["members"] == ["seed_2"]
        assert store.n_member == 1


def test_references_are_scored_by_teacher_forcing(root: Path) -> None:
    with open_store(made(root, "random_init.teacher_forcing.newstest14")) as store:
        assert store.attributes["regime"] == "teacher_forcing"
        assert "beam" not in store.attributes
        assert store.best_texts()[1:] == ["w1", "w2", "w3", "w4"]


@pytest.mark.parametrize("dump", ["full", "topk"])
def test_whole_distributions_are_kept_where_they_are_asked_for(root: Path, dump: str) -> None:
    with open_store(made(root, "random_init.prex.PRM", f"dump={dump}")) as store:
        assert store.dump == dump


def test_greedy_decoding_is_a_beam_of_one(root: Path) -> None:
    with open_store(
        made(root, "seed_1.greedy.newstest14", "decode=greedy", "decode.beam=1")
    ) as store:
        assert store.regime == "greedy"
        assert store.n_hypothesis == 4


def test_samples_say_how_they_were_drawn(root: Path) -> None:
    part = "random_init.member.newstest14"
    given = ["decode=sample", "decode.combination=member", "decode.beam=3", "seed=5"]
    with open_store(made(root, part, *given)) as store:
        attributes = store.attributes
        assert (attributes["regime"], attributes["combination"]) == ("sample", "member")
        assert (attributes["sampling_temperature"], attributes["seed"]) == (1.0, 5)
        assert "sampling_top_k" not in attributes
        assert store.read("/hypothesis/member").tolist() == [0, 0, 0, 1, 1, 1] * 4
    with open_store(made(root, "random_init.prex.newstest14")) as store:
        assert not {"seed", "sampling_temperature", "sampling_top_p"} & set(store.attributes)


def test_one_member_may_search_for_all_and_another_store_may_give_hypotheses(root: Path) -> None:
    part = "random_init.expr.newstest14"
    given = ["decode.search_members=[seed_2]", "decode.self_check=true"]
    with open_store(made(root, part, *given)) as store:
        assert store.attributes["search_members"] == ["seed_2"]
        assert store.attributes["members"] == ["seed_1", "seed_2"]
        texts = store.best_texts()
    for role in SEARCHED:  # all sets have the same sources here
        other = root / "other" / f"{role}.h5"
        other.parent.mkdir(exist_ok=True)
        shutil.copy(root / "decode" / "nmt_ende" / part / "store.h5", other)
    pattern = str(other.parent / "{test_set}.h5")
    with open_store(made(root, part, f"decode.hypotheses='{pattern}'")) as store:
        assert store.attributes["search_members"] == ["seed_2"]
        assert store.best_texts() == texts
        assert str(root) not in str(store.attributes)
    with pytest.raises(
        ConfigError, match=r"decode\.hypotheses must name a decode store or .*, got .*a\.h5"
    ):
        decode(settings(root, f"part={part}", "decode.hypotheses=a.h5"))


def test_lines_of_text_may_give_hypotheses(root: Path) -> None:
    prepared = root / "prepare" / "nmt_ende"
    with (prepared / "units.model").open("wb") as file:
        words = iter([f"w{one}" for one in range(10)])
        SentencePieceTrainer.train(
            sentence_iterator=words, model_writer=file, model_type="word", vocab_size=13,
            minloglevel=2,
        )  # fmt: skip
    write_manifest(prepared)
    for role in SEARCHED:
        # Far more words than the length limit of a search, and one that no member knows.
        text = f"w1\n\nw3 w3\nw4 ü\n{'w5 ' * 40}\n"
        (root / f"{role}.txt").write_text(text, encoding="utf-8")
    given = ["decode.self_check=true", f"decode.hypotheses='{root}/{{test_set}}.txt'"]
    with open_store(made(root, "random_init.prex.newstest14", *given)) as store:
        nothing = Flag.NO_HYPOTHESIS
        assert store.flag.tolist() == [Flag.EMPTY_SOURCE | nothing, nothing, 0, 0, 0]
        assert store.best_texts()[1:] == [None, "w3 w3", "w4<unk>", " ".join(["w5"] * 40)]
        assert store.attributes["search_members"] == []
        assert store.attributes["members"] == ["seed_1", "seed_2"]
        assert set(store.read("/hypothesis/finished")) == {1}
    (root / "MED.txt").write_text("w1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"MED\.txt must have a line for each of the 5 sentences"):
        decode(settings(root, "part=random_init.prex.MED", *given))


def test_the_same_part_twice_is_the_same_bytes(root: Path) -> None:
    first = made(root, "random_init.expr.newstest14").read_bytes()
    assert made(root, "random_init.expr.newstest14").read_bytes() == first


@pytest.fixture
def asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The parts of each run that are missing, which are made in this process."""
    asked: list[list[str]] = []

    def run_parts(config: PipelineConfig, folder: PartFolder) -> list[str]:
        missing = folder.missing()
        asked.append(missing)
        for name in missing:
            own: Any = OmegaConf.create(config)
            OmegaConf.set_readonly(own, False)
            own.part = name
            decode(own)
        folder.write_manifest()
        return missing

    monkeypatch.setattr("stages.decode.run_parts", run_parts)
    return asked


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The parts of each run, none of which is made."""
    planned: list[set[str]] = []

    def run_parts(config: PipelineConfig, folder: PartFolder) -> list[str]:
        folder.root.mkdir(parents=True, exist_ok=True)
        planned.append(set(folder.parts))
        return []

    monkeypatch.setattr("stages.decode.run_parts", run_parts)
    return planned


def test_all_parts_are_planned_and_strangers_go(root: Path, asked: list[list[str]]) -> None:
    decode(settings(root))
    folder = root / "decode" / "nmt_ende"
    parts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(parts) == {
        *(f"random_init.{kind}.{role}" for kind in ("prex", "expr") for role in SEARCHED),
        *(f"random_init.teacher_forcing.{role}" for role in IN_DOMAIN + ONLY_SCORED),
        *(f"{member}.beam.{role}" for member in ("seed_1", "seed_2") for role in IN_DOMAIN),
    }
    (ensemble,) = json.loads((folder / "ensemble.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in ensemble["members"]] == ["seed_1", "seed_2"]
    report = json.loads((folder / "diversity.json").read_text(encoding="utf-8"))
    found = report["ensembles"]["random_init"]
    assert found["pairs"][0]["members"] == ["seed_1", "seed_2"]
    assert (found["sentences"], found["tokens"]) == (4, 8)
    assert found["kl_nats"] > 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    decode(settings(root))
    assert asked[-1] == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    decode(settings(root, "decode.beam=3"))
    assert set(asked[-1]) == {one for one in parts if "teacher_forcing" not in one}


def test_further_ensembles_stand_beside_the_main_one(root: Path, planned: list[set[str]]) -> None:
    also = ["checkpoint", "checkpoint_average"]
    given = [f"+ensemble@ensemble.also.{one}={one}" for one in also]
    decode(settings(root, *given))
    further = {one for one in planned[-1] if one.startswith("checkpoint")}
    assert further == {
        f"{kind}.seed_{seed}.{part}"
        for kind in also
        for seed in (1, 2)
        for part in (
            *(f"prex.{role}" for role in SEARCHED),
            *(f"teacher_forcing.{role}" for role in IN_DOMAIN + ONLY_SCORED),
        )
    }
    folder = root / "decode" / "nmt_ende"
    listed = json.loads((folder / "ensemble.json").read_text(encoding="utf-8"))
    assert [(one["kind"], one["name"], len(one["members"])) for one in listed] == [
        ("random_init", "random_init", 2),
        ("checkpoint", "checkpoint.seed_1", 3),
        ("checkpoint", "checkpoint.seed_2", 3),
        ("checkpoint_average", "checkpoint_average.seed_1", 1),
        ("checkpoint_average", "checkpoint_average.seed_2", 1),
    ]
    report = json.loads((folder / "diversity.json").read_text(encoding="utf-8"))
    assert set(report["ensembles"]) == {"random_init", "checkpoint.seed_1", "checkpoint.seed_2"}
    with open_store(made(root, "checkpoint.seed_2.prex.PRM", *given)) as store:
        assert store.attributes["ensemble"] == "checkpoint"


def test_a_further_ensemble_of_the_main_kind_is_the_main_one(
    root: Path, planned: list[set[str]]
) -> None:
    given = ["ensemble=checkpoint", "+ensemble@ensemble.also.checkpoint=checkpoint"]
    decode(settings(root, *given))
    decode(settings(root, given[0]))
    assert planned[0] == planned[1]


def test_members_that_say_the_same_stop_the_run_before_anything_is_decoded(
    root: Path, planned: list[set[str]]
) -> None:
    given = ["ensemble=mc_dropout", "ensemble.settings.rate=1e-12", "ensemble.settings.members=2"]
    with pytest.raises(
        PipelineError, match=r"members must differ, .* mc_dropout_1 and mc_dropout_2"
    ):
        decode(settings(root, *given))
    assert planned == []


OF_EVERY_KIND = {
    "random_init": ("random_init", ["seed_1", "seed_2"], []),
    "checkpoint": (
        "checkpoint.seed_2",
        ["seed_2.update_00000020", "seed_2.update_00000040", "seed_2.update_00000060"],
        [],
    ),
    "checkpoint_average": ("checkpoint_average.seed_1", ["seed_1"], []),
    "mc_dropout": (
        "mc_dropout",
        ["mc_dropout_1", "mc_dropout_2"],
        ["ensemble.settings.members=2"],
    ),
    "snapshot": (
        "snapshot.seed_1",
        ["seed_1.update_00000020", "seed_1.update_00000040", "seed_1.update_00000060"],
        ["ensemble.settings.cycles=3"],
    ),
}


@pytest.mark.parametrize("kind", OF_EVERY_KIND)
@pytest.mark.parametrize("regime", ["prex", "expr", "teacher_forcing"])
def test_every_kind_of_ensemble_decodes(root: Path, kind: str, regime: str) -> None:
    name, members, given = OF_EVERY_KIND[kind]
    part = f"{name}.{regime}.newstest14"
    with open_store(
        made(root, part, f"ensemble={kind}", "decode.self_check=true", *given)
    ) as store:
        assert (store.attributes["ensemble"], store.members) == (kind, members)
        logprob = store.read("/token/logprob")
        assert len({tuple(column) for column in logprob.T}) == len(members)


def test_means_of_checkpoints_are_made_once_and_go_when_they_are_not_asked_for(
    root: Path, planned: list[set[str]]
) -> None:
    given = ["ensemble=checkpoint", "ensemble.settings.members=1", "ensemble.settings.average=2"]
    decode(settings(root, *given))
    made_folder = root / "resume" / "ensembles" / "nmt_ende"
    assert len(list(made_folder.iterdir())) == 2
    decode(settings(root))
    assert list(made_folder.iterdir()) == []


@pytest.mark.parametrize("own_dictionary", [False, True])
def test_models_that_the_user_has_decode(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any, own_dictionary: bool
) -> None:
    monkeypatch.chdir(root)
    mine = Path("mine: a=b, 日本")
    mine.mkdir(exist_ok=True)
    prepared = root / "prepare" / "nmt_ende" / "fairseq" / "dict.de.txt"
    words = prepared.read_text(encoding="utf-8").splitlines(keepends=True)
    path = mine / "dict=.txt"
    path.write_text("".join(words[:3] if own_dictionary else words), encoding="utf-8")
    dictionary = load_dictionary(path)
    side = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    configuration = model_configuration("transformer", {"encoder": side, "decoder": side})
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = build_model(configuration, dictionary, dictionary).state_dict()
        cfg = {"model": {"_name": "transformer", "encoder": side, "decoder": side}}
        torch.save({"args": None, "cfg": cfg, "model": model}, mine / f"lr=0.{seed}.pt")
    given = [
        "ensemble=imported",
        "ensemble.seeds=[]",
        f"ensemble.settings.checkpoints=['{mine}/lr=0.1.pt','{mine}/lr=0.2.pt']",
        f"ensemble.settings.source_dictionary='{path}'",
        f"ensemble.settings.target_dictionary='{path}'",
    ]
    caplog.set_level(logging.INFO)
    with open_store(made(root, "imported.prex.newstest14", *given)) as store:
        assert store.members == ["imported_1", "imported_2"]
        assert store.n_hypothesis == 4 * 2
    unknown = "7 of 10 source units and 2 of 5" if own_dictionary else "0 of 10 source units and 0"
    assert f"unknown are {unknown}" in caplog.text


def test_models_that_are_not_there_are_named(root: Path) -> None:
    given = ["part=imported.prex.MED", "ensemble=imported", "ensemble.seeds=[]"]
    with pytest.raises(ConfigError, match=r"settings\.checkpoints .* at least one, got \[\]"):
        decode(settings(root, *given))
    with pytest.raises(ConfigError, match=r"settings\.checkpoints .* must name a file, got a=\.pt"):
        decode(settings(root, *given, "ensemble.settings.checkpoints=['a=.pt']"))


def test_a_part_that_is_not_planned_is_refused_with_the_names(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"part must be one of .*random_init.prex.PRM.* got x"):
        decode(settings(root, "part=x"))


def test_another_vocabulary_than_in_training_is_refused(root: Path, tmp_path: Path) -> None:
    prepare(tmp_path / "prepare" / "nmt_ende")
    train(tmp_path / "train" / "nmt_ende", tmp_path / "prepare" / "nmt_ende")
    path = tmp_path / "prepare" / "nmt_ende" / "fairseq" / "dict.de.txt"
    path.write_text("▁other 1\n", encoding="utf-8")
    write_manifest(tmp_path / "prepare" / "nmt_ende")
    with pytest.raises(DataError, match=r"dict\.de\.txt must be the vocabulary that member seed_1"):
        decode(settings(tmp_path))


def test_a_test_set_that_lost_rows_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path / "prepare" / "nmt_ende")
    train(tmp_path / "train" / "nmt_ende", tmp_path / "prepare" / "nmt_ende")
    path = tmp_path / "prepare" / "nmt_ende" / "test" / "PRM.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:2]), "utf-8")
    with pytest.raises(DataError, match=r"PRM\.jsonl must have the sha256 that stage prepare"):
        decode(settings(tmp_path))


def test_what_is_missing_is_named_with_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run python -m stages\.train first"):
        decode(settings(tmp_path))
