"""A missing extra is one sentence that says what to install."""

from __future__ import annotations

import sys

import pytest

from pipeline.errors import MachineError
from pipeline.run import extras
from pipeline.run.extras import check_extra, check_extra_of, extras_named
from pipeline.run.settings import implementation

SENTENCE = (
    r"soxr: not installed, but stage train needs it\. "
    r"Run pip install 'sequence-uncertainty\[train\]'\."
)


def test_the_first_missing_package_of_an_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_extra("train", "stage train")
    monkeypatch.setattr(extras, "is_installed", lambda name: name != "soxr")
    with pytest.raises(MachineError, match=f"^{SENTENCE}$"):
        check_extra("train", "stage train")
    check_extra("peft", "stage decode")


@pytest.mark.parametrize(
    ("function", "extra"),
    [
        ("pipeline.fairseq_bridge.training.train_member", "train"),
        ("pipeline.ensembles.kinds.mc_dropout", "train"),
        ("pipeline.ensembles.kinds.huggingface", "transformers"),
        ("mine.ensembles.kinds", None),
    ],
)
def test_functions_of_the_pipeline_have_an_extra(
    function: str, extra: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _: False)
    if extra is None:
        check_extra_of(function, "stage decode")
    else:
        with pytest.raises(MachineError, match=rf"sequence-uncertainty\[{extra}\]"):
            check_extra_of(function, "stage decode")


def test_a_failed_import_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)
    with pytest.raises(MachineError, match=SENTENCE), extras_named("stage train"):
        import soxr  # noqa: F401


def test_a_failed_import_of_another_package_is_unexpected() -> None:
    with pytest.raises(ModuleNotFoundError), extras_named("stage train"):
        import no_such_package  # noqa: F401


def test_a_function_that_needs_an_extra_is_no_wrong_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "pipeline.fairseq_bridge.members.dropout_masks"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MachineError, match=rf"^torch: not installed, but x={module}\.f needs it"):
        implementation(f"{module}.f", "x")
