"""Models from folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.ensembles.ensemble import load_member
from pipeline.ensembles.huggingface import huggingface_members
from pipeline.errors import DataError, MachineError
from pipeline.huggingface import import_transformers
from pipeline.huggingface.loader import load_tokenizer
from tests.pipeline.huggingface.folders import SETTINGS, save_marian


def test_changed_files_and_missing_weights_are_named(tmp_path: Path) -> None:
    folder = save_marian(tmp_path / "marian", 1)
    (member,) = huggingface_members("mine", SETTINGS | {"models": [str(folder)]})
    member.check_weights()
    tokenizer = load_tokenizer(member)
    config = folder / "config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text + " ", encoding="utf-8")
    with pytest.raises(DataError, match=r"config\.json: missing, or changed since"):
        member.check_weights()
    deeper = text.replace('"decoder_layers": 1', '"decoder_layers": 2')
    config.write_text(deeper, encoding="utf-8")
    tokenizer = load_tokenizer(member)
    with pytest.raises(DataError, match=r"weights are missing \(.*layers\.1"):
        load_member(member, tokenizer, "cpu", "float32")


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (
            ModuleNotFoundError("no", name="transformers"),
            r"transformers: not installed.*pip install",
        ),
        (OSError("libc10_cuda.so:\nno such file"), r"libc10_cuda\.so: no such file.*torchaudio"),
    ],
)
def test_transformers_that_cannot_be_imported_are_one_sentence(
    error: Exception, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str) -> None:
        raise error

    monkeypatch.setattr("importlib.import_module", fails)
    with pytest.raises(MachineError, match=match):
        import_transformers()
