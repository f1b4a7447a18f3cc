"""fairseq's own checkpoints, read without running what is in them, as weights and a description."""

from __future__ import annotations

import pickle
import re
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.models.configuration import model_configuration
from pipeline.fairseq_bridge.models.weights import DAMAGE, save_weights


def convert_checkpoint(
    path: Path, source_dictionary: Path, target_dictionary: Path, out: Path
) -> dict[str, Any]:
    """Write the weights of a fairseq checkpoint to a safetensors file; its description.

    The description has the keys of a model.json, but for those of weights and vocabulary. Raises
    DataError, naming the checkpoint, where it is damaged, holds objects of other classes than
    fairseq stores, is of another architecture than a transformer, or does not fit the dictionaries.
    """
    from pipeline.fairseq_bridge.members.member import build_model

    state = _read(path)
    model_settings = _model_settings(state, path)
    configuration = _configuration(model_settings, path)
    source, target = load_dictionary(source_dictionary), load_dictionary(target_dictionary)
    sides = (("encoder", source_dictionary, source), ("decoder", target_dictionary, target))
    for side, dictionary_path, dictionary in sides:
        embeddings = state["model"].get(f"{side}.embed_tokens.weight")
        if embeddings is not None and len(embeddings) != len(dictionary):
            raise DataError(
                f"{path} must be trained with the {len(dictionary)} units of {dictionary_path}, "
                f"got {len(embeddings)}"
            )
    try:
        model = build_model(configuration, source, target)
    except ValueError as error:  # as where one matrix is to serve two vocabularies
        raise DataError(f"{path} must suit its dictionaries: {error}") from None
    try:
        model.load_state_dict(state["model"])  # fairseq brings names of its older versions up
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} must hold the weights of its own model: {reason}") from None
    save_weights(model.state_dict(), out)
    return {
        "architecture": model_settings["_name"],
        "model": configuration,
        "seed": _training_setting(state, "common", "seed"),
        "source_language": _training_setting(state, "task", "source_lang"),
        "target_language": _training_setting(state, "task", "target_lang"),
        "updates": _updates(state),
    }


def _read(path: Path) -> dict[str, Any]:
    """The content of a checkpoint; no code of the file runs."""
    import numpy as np
    import torch

    # What fairseq puts beside tensors and plain values: its parsed arguments, and a loss of numpy.
    scalar: Any = np.float64(0).__reduce__()[0]
    allowed: list[Any] = [
        Namespace,
        np.dtype,
        type(np.dtype(np.float64)),
        type(np.dtype(np.float32)),
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
    ]
    try:
        with torch.serialization.safe_globals(allowed):
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"(?:GLOBAL|class|Type|type) ([\w.]+)", str(error))
        what = f"objects of {found[1]}" if found else "something else"
        raise DataError(
            f"{path} must hold tensors, plain values and parsed arguments alone, got {what}"
        ) from None
    except DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} must be a whole fairseq checkpoint: {reason}") from None
    if not isinstance(state, dict) or not isinstance(state.get("model"), Mapping):
        raise DataError(f"{path} must be a fairseq checkpoint with a model, got none")
    return state


def _model_settings(state: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The settings of the model, flat as fairseq's arguments or nested; its name in `_name`."""
    arguments = state.get("args")
    if arguments is None:
        arguments = (state.get("cfg") or {}).get("model")
    found = vars(arguments) if isinstance(arguments, Namespace) else arguments
    name = None if not found else found.get("_name") or found.get("arch")
    if not found or not name:
        raise DataError(f"{path} must hold the settings of its model (args or cfg), got none")
    return {**found, "_name": name}


def _configuration(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The model's full configuration, as in a model.json.

    fairseq's own conversion of arguments clears Hydra's global state, so it is not used.
    """
    models = import_fairseq("fairseq.models")
    transformer = import_fairseq("fairseq.models.transformer")
    name = settings["_name"]
    kind = models.ARCH_MODEL_REGISTRY.get(name) or models.MODEL_REGISTRY.get(name)
    if kind not in (transformer.TransformerModel, transformer.TransformerModelBase):
        raise DataError(f"{path} must be a transformer of fairseq, got the architecture {name}")
    arguments = Namespace(**settings)
    if name in models.ARCH_CONFIG_REGISTRY and "encoder" not in settings:
        models.ARCH_CONFIG_REGISTRY[name](arguments)
    try:
        found = _given(transformer.TransformerConfig.from_namespace(arguments))
        return model_configuration("transformer", found)
    except (OmegaConfBaseException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} must hold settings of a transformer: {reason}") from None


def _given(settings: Any) -> dict[str, Any]:
    """A configuration's values, without those that stand for a default elsewhere."""
    found = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, str) and OmegaConf.is_interpolation(OmegaConf.create([value]), 0):
            continue
        found[field.name] = _given(value) if is_dataclass(value) else value
    return found


def _training_setting(state: Mapping[str, Any], section: str, name: str) -> Any:
    """A plain setting of the training, None where the checkpoint does not tell it."""
    arguments = state.get("args") or (state.get("cfg") or {}).get(section)
    found = vars(arguments) if isinstance(arguments, Namespace) else arguments or {}
    value = found.get(name)
    return value if isinstance(value, int | str) else None


def _updates(state: Mapping[str, Any]) -> int | None:
    history = state.get("optimizer_history") or [{}]
    updates = history[-1].get("num_updates")
    return updates if isinstance(updates, int) else None
