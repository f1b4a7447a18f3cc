"""fairseq's configuration and models, built without fairseq's parsers.

The parsers clear Hydra's global state, so they cannot be used inside a Hydra application.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.run.settings import unknown_key_message


def model_configuration(architecture: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a fairseq model as plain values: its defaults, overridden by `settings`.

    Raises ConfigError for an architecture or a setting that fairseq does not have.
    """
    defaults = _model_dataclasses().get(architecture)
    if defaults is None:
        raise ConfigError(
            f"model.architecture: not a fairseq model (got {architecture}). "
            f"Set it to one of {', '.join(sorted(_model_dataclasses()))}."
        )
    defaults = defaults()
    _refuse_unknown(defaults, settings, "model.settings")
    # Some defaults refer to the model itself, the task and other sections of the configuration.
    root = OmegaConf.structured(import_fairseq("fairseq.dataclass.configs").FairseqConfig)
    OmegaConf.set_struct(root, False)
    root.task = import_fairseq("fairseq.tasks.translation").TranslationConfig()
    root.model = OmegaConf.merge(OmegaConf.structured(defaults), dict(settings))
    plain = cast(dict[str, Any], OmegaConf.to_container(root.model, resolve=True, enum_to_str=True))
    return {**plain, "_name": architecture}


def build_model(model: Mapping[str, Any], source_dictionary: Any, target_dictionary: Any) -> Any:
    """Build a fairseq model with fresh weights from its full configuration (with `_name`).

    `source_dictionary` is None if sources are not symbols.
    """
    translation = import_fairseq("fairseq.tasks.translation")
    import_fairseq("pipeline.fairseq_bridge.models.vggtransformer")  # registers itself
    task = translation.TranslationTask(
        OmegaConf.structured(translation.TranslationConfig), source_dictionary, target_dictionary
    )
    # fairseq's defaults refer to each other from the root of its configuration.
    configuration = OmegaConf.create({"model": dict(model)}).model
    return import_fairseq("fairseq.models").build_model(configuration, task)


def _model_dataclasses() -> dict[str, Any]:
    """Configuration classes by architecture; fairseq does not register one for `transformer`."""
    transformer = import_fairseq("fairseq.models.transformer")
    import_fairseq("pipeline.fairseq_bridge.models.vggtransformer")  # registers itself
    registry = import_fairseq("fairseq.models").MODEL_DATACLASS_REGISTRY
    return {**registry, "transformer": transformer.TransformerConfig}


def _refuse_unknown(defaults: Any, settings: Mapping[str, Any], where: str) -> None:
    known = {field.name for field in dataclasses.fields(defaults)}
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(unknown_key_message(f"{where}.{name}", sorted(known), where))
        child = getattr(defaults, name)
        if isinstance(value, Mapping) and dataclasses.is_dataclass(child):
            _refuse_unknown(child, value, f"{where}.{name}")


def fairseq_configuration(
    *,
    task: Mapping[str, Any],
    model: Mapping[str, Any],
    criterion: Mapping[str, Any],
    optimizer: Mapping[str, Any],
    lr_scheduler: Mapping[str, Any],
    sections: Mapping[str, Mapping[str, Any]],
) -> Any:
    """Build a FairseqConfig from its named components and the settings of its other sections."""
    configs = import_fairseq("fairseq.dataclass.configs")
    schedulers = import_fairseq("fairseq.optim.lr_scheduler")
    registries = {
        "task": import_fairseq("fairseq.tasks").TASK_DATACLASS_REGISTRY,
        "model": _model_dataclasses(),
        "criterion": import_fairseq("fairseq.criterions").CRITERION_DATACLASS_REGISTRY,
        "optimizer": import_fairseq("fairseq.optim").OPTIMIZER_DATACLASS_REGISTRY,
        "lr_scheduler": schedulers.LR_SCHEDULER_DATACLASS_REGISTRY,
    }
    configuration = OmegaConf.structured(configs.FairseqConfig)
    OmegaConf.set_struct(configuration, False)
    components = {
        "task": task,
        "model": model,
        "criterion": criterion,
        "optimizer": optimizer,
        "lr_scheduler": lr_scheduler,
    }
    for kind, settings in components.items():
        # Older fairseq components have no configuration class.
        known = registries[kind].get(settings["_name"], {})
        defaults = OmegaConf.create(known) if known == {} else OmegaConf.structured(known)
        OmegaConf.set_struct(defaults, False)
        configuration[kind] = OmegaConf.merge(defaults, dict(settings))
    for section, values in sections.items():
        for name, value in values.items():
            configuration[section][name] = value
    return configuration


def translation_task(data: Path, source_language: str, target_language: str) -> dict[str, Any]:
    """Settings of fairseq's translation task for a folder of binarised text."""
    return {
        "_name": "translation",
        "data": str(data),
        "source_lang": source_language,
        "target_lang": target_language,
    }
