"""Where models come from, and whether their tokenizers are the same."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import transformers

from pipeline.ensembles.ensemble import Ensemble, check_ensembles, manifest
from pipeline.ensembles.huggingface import huggingface_members
from pipeline.errors import ConfigError, DataError
from tests.pipeline.huggingface.folders import SETTINGS, save_marian, save_nllb, save_t5

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def ensemble(*models: Any, **settings: Any) -> Ensemble:
    members = huggingface_members("mine", SETTINGS | {"models": [*map(str, models)]} | settings)
    made = Ensemble("mine", "mine", tuple(members))
    check_ensembles("mine", [made], [])
    return made


class FakeHub:
    """Stands in for the hub: it has one model, and remembers what was asked for."""

    def __init__(self, model: Path) -> None:
        self.model = model
        self.asked: list[dict[str, Any]] = []

    def snapshot_download(self, name: str, **settings: Any) -> str:
        self.asked.append({"name": name, **settings})
        if name != "someone/marian":
            raise OSError("no such\nrepository")
        return str(self.model)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    hub = FakeHub(save_marian(tmp_path / "snapshots" / COMMIT, 1))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    return hub


def test_a_download_has_a_commit_which_is_recorded(hub: FakeHub) -> None:
    made = ensemble(f"someone/marian@{COMMIT}", allow_download=True)
    (asked,) = hub.asked
    assert (asked["name"], asked["revision"]) == ("someone/marian", COMMIT)
    # Neither pickled weights nor code, nor copies of the model in other formats.
    assert {"*.safetensors", "*.json"} < {*asked["allow_patterns"]}
    assert not {"*.bin", "*.py", "*"} & {*asked["allow_patterns"]}
    assert asked["ignore_patterns"] == ["*/*"]
    ((entry,),) = [described["members"] for described in manifest([made])]
    assert entry["origin"] == f"someone/marian@{COMMIT}"
    assert list(entry["checkpoints"]) == ["marian/model.safetensors"]


def test_nothing_is_downloaded_unasked_or_without_a_commit(hub: FakeHub) -> None:
    name = f"someone/marian@{COMMIT}"
    with pytest.raises(ConfigError, match=rf"no such folder \(got {name}\).*allow_download=true"):
        ensemble(name)
    for unpinned in ("someone/marian", "someone/marian@main", f"someone/marian@{COMMIT[:-1]}"):
        with pytest.raises(ConfigError, match=rf"commit of 40 .* digits \(got {unpinned}\)"):
            ensemble(unpinned, allow_download=True)
    assert hub.asked == []
    with pytest.raises(DataError, match=r"cannot be downloaded \(no such repository\)"):
        ensemble(f"someone/else@{COMMIT}", allow_download=True)


def test_a_folder_is_never_looked_for_on_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    folder = save_marian(tmp_path / "marian", 2)
    ensemble(folder, allow_download=True)
    assert hub.asked == []


@pytest.mark.parametrize("save", [save_marian, save_t5])
def test_equal_tokenizers_may_have_files_of_other_formatting(tmp_path: Path, save: Any) -> None:
    first, second = save(tmp_path / "first", 1), save(tmp_path / "second", 2)
    for path in second.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        if path.name == "tokenizer.json":  # settings of a call, and not of the tokenizer
            content["truncation"] = {
                "direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0,
            }  # fmt: skip
        path.write_text(json.dumps(content, indent=7), encoding="utf-8")
    assert len(ensemble(first, second).members) == 2


def _other_vocabulary(folder: Path) -> None:
    path = folder / "vocab.json"
    vocabulary = json.loads(path.read_text(encoding="utf-8"))
    words = [word for word in vocabulary if word.isalpha()][:2]
    vocabulary |= {words[0]: vocabulary[words[1]], words[1]: vocabulary[words[0]]}
    path.write_text(json.dumps(vocabulary), encoding="utf-8")


def _other_merges(folder: Path) -> None:
    _change(folder, lambda content: content["model"]["merges"].reverse())


def _other_normalizer(folder: Path) -> None:
    _change(folder, lambda content: content.update(normalizer={"type": "Lowercase"}))


def _save_generic(folder: Path, seed: int) -> Path:
    """Write a T5 model whose tokenizer is all in tokenizer.json; T5's class has its own rules."""
    path = save_t5(folder, seed) / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def _other_special_token(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": "<s>"})
    tokenizer.save_pretrained(folder)


def _change(folder: Path, change: Any) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("save", "change"),
    [
        (save_marian, _other_vocabulary),
        (save_nllb, _other_merges),
        (_save_generic, _other_normalizer),
        (save_nllb, _other_special_token),
    ],
)
def test_tokenizers_that_differ_are_refused_in_one_sentence(
    tmp_path: Path, save: Any, change: Any
) -> None:
    first, second = save(tmp_path / "first", 1), save(tmp_path / "second", 2)
    change(second)
    with pytest.raises(
        DataError, match=r"mine_1 \(.*first\) and mine_2 \(.*second\) have different"
    ):
        ensemble(first, second)


def test_tables_tell_models_of_one_name_apart(tmp_path: Path) -> None:
    first, second = (save_marian(tmp_path / str(seed) / "model", seed) for seed in (1, 2))
    made = ensemble(first, second)
    runs = [[*member.made_from] for member in made.members]
    assert runs == [["1/model/model.safetensors"], ["2/model/model.safetensors"]]
    (described,) = manifest([made])
    assert [entry["origin"] for entry in described["members"]] == ["1/model", "2/model"]
    shutil.move(second, second := second.with_name("other"))
    runs = [[*member.made_from] for member in ensemble(first, second).members]
    assert runs == [["model/model.safetensors"], ["other/model.safetensors"]]


def test_a_folder_without_configuration_is_named_once(tmp_path: Path) -> None:
    words = rf"^{re.escape(str(tmp_path))}: no config\.json\. Give the folder of a model"
    with pytest.raises(DataError, match=words):
        ensemble(tmp_path)
