"""Conversion of fairseq checkpoints to weights and a description, without running pickled code."""

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
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.fairseq_bridge.models.weights import DAMAGE, check_finite, save_weights

_REMEDY = "Give an unchanged checkpoint of a fairseq transformer."


def convert_checkpoint(
    path: Path, source_dictionary: Path, target_dictionary: Path, out: Path
) -> dict[str, Any]:
    """Write the weights of a fairseq checkpoint to a safetensors file; return its description.

    The description has the keys of a model.json, without the keys of weights and vocabulary. Raises
    DataError if the checkpoint is damaged, holds objects of classes that fairseq does not store, is
    not a transformer, does not fit the dictionaries, or has weights that are not finite.
    """
    state = _read(path)
    model_settings = _model_settings(state, path)
    configuration = _configuration(model_settings, path)
    source, target = load_dictionary(source_dictionary), load_dictionary(target_dictionary)
    sides = (("encoder", source_dictionary, source), ("decoder", target_dictionary, target))
    for side, dictionary_path, dictionary in sides:
        embeddings = state["model"].get(f"{side}.embed_tokens.weight")
        if embeddings is not None and len(embeddings) != len(dictionary):
            raise DataError(
                f"{path}: trained with {len(embeddings)} vocabulary entries, but "
                f"{dictionary_path} has {len(dictionary)}. Give the checkpoint's dictionaries."
            )
    try:
        model = build_model(configuration, source, target)
    except ValueError as error:  # for example, shared embeddings of two vocabularies
        raise DataError(
            f"{path}: does not fit its dictionaries ({error}). Give the checkpoint's dictionaries."
        ) from None
    try:
        model.load_state_dict(state["model"])  # upgrades the names of older fairseq versions
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path}: weights do not fit its own model settings ({reason}). {_REMEDY}"
        ) from None
    check_finite(model.state_dict(), path, _REMEDY)
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
    """Read a checkpoint without running code from the file."""
    import numpy as np
    import torch

    # Besides tensors and plain values, fairseq stores parsed arguments and a numpy loss.
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
    except (pickle.UnpicklingError, *DAMAGE) as error:  # type: ignore[misc]
        foreign = re.search(r"(?:GLOBAL|class|Type|type) ([\w.]+)", str(error))
        if foreign and isinstance(error, pickle.UnpicklingError):
            raise DataError(
                f"{path}: only tensors, plain values and parsed arguments are allowed "
                f"(got objects of {foreign[1]}). {_REMEDY}"
            ) from None
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path}: damaged or not a fairseq checkpoint ({reason}). {_REMEDY}"
        ) from None
    if not isinstance(state, dict) or not isinstance(state.get("model"), Mapping):
        raise DataError(f"{path}: a fairseq checkpoint without a model. {_REMEDY}")
    return state


def _model_settings(state: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Settings of the model, flat (fairseq's arguments) or nested, with its `_name`."""
    arguments = state.get("args")
    if arguments is None:
        arguments = (state.get("cfg") or {}).get("model")
    settings = vars(arguments) if isinstance(arguments, Namespace) else arguments
    name = None if not settings else settings.get("_name") or settings.get("arch")
    if not settings or not name:
        raise DataError(f"{path}: has no settings of its model (args or cfg). {_REMEDY}")
    return {**settings, "_name": name}


def _configuration(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Full configuration of the model, as in a model.json.

    fairseq's own conversion of arguments clears Hydra's global state and cannot be used.
    """
    models = import_fairseq("fairseq.models")
    transformer = import_fairseq("fairseq.models.transformer")
    name = settings["_name"]
    model_class = models.ARCH_MODEL_REGISTRY.get(name) or models.MODEL_REGISTRY.get(name)
    if model_class not in (transformer.TransformerModel, transformer.TransformerModelBase):
        raise DataError(
            f"{path}: only fairseq's transformers can be imported (got {name}). {_REMEDY}"
        )
    arguments = Namespace(**settings)
    if name in models.ARCH_CONFIG_REGISTRY and "encoder" not in settings:
        models.ARCH_CONFIG_REGISTRY[name](arguments)
    try:
        explicit = _explicit_settings(transformer.TransformerConfig.from_namespace(arguments))
        return model_configuration("transformer", explicit)
    except (OmegaConfBaseException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{path}: not the settings of a transformer ({reason}). {_REMEDY}"
        ) from None


def _explicit_settings(settings: Any) -> dict[str, Any]:
    """Values of a configuration, without those that refer to other settings."""
    explicit = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, str) and OmegaConf.is_interpolation(OmegaConf.create([value]), 0):
            continue
        explicit[field.name] = _explicit_settings(value) if is_dataclass(value) else value
    return explicit


def _training_setting(state: Mapping[str, Any], section: str, name: str) -> Any:
    """A plain setting of the training, None if the checkpoint does not have it."""
    arguments = state.get("args") or (state.get("cfg") or {}).get(section)
    settings = vars(arguments) if isinstance(arguments, Namespace) else arguments or {}
    value = settings.get(name)
    return value if isinstance(value, int | str) else None


def _updates(state: Mapping[str, Any]) -> int | None:
    history = state.get("optimizer_history") or [{}]
    updates = history[-1].get("num_updates")
    return updates if isinstance(updates, int) else None
