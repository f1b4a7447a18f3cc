"""Settings of tests, from the groups of conf/ that Hydra composes once per process."""

from __future__ import annotations

import copy
from functools import cache
from typing import cast

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from pipeline.run.settings import CONF, PipelineConfig, TestSetConfig, changed, plain, typed


@cache
def composed_settings(*overrides: str) -> PipelineConfig:
    """Return the checked, read-only settings for a command line.

    Raises ConfigError if they break a rule. Composing takes most of the time, so Hydra composes
    the chosen groups, and values are then set as Hydra sets them.
    """
    groups, values = [], []
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        is_value = not override.is_delete() and not (CONF / override.key_or_group).is_dir()
        (values if is_value else groups).append(override)
    config = copy.deepcopy(_composed(*(str(group.input_line) for group in groups)))
    for value in values:
        OmegaConf.update(config, value.key_or_group, value.value(), force_add=value.is_add())
    return typed(config)


@cache
def _composed(*overrides: str) -> DictConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return cast(DictConfig, compose("pipeline", list(overrides)))


def own_task(*overrides: str, roles: tuple[str, ...] = ()) -> PipelineConfig:
    """Settings of a task of the user's own, `mine`, with one test set of the same name."""
    settings = composed_settings(*overrides)
    (baseline,) = (s for s in settings.task.test_sets.values() if s.baseline)
    test_set = TestSetConfig(**(plain(baseline) | {"roles": list(roles)}))
    return changed(settings, {"task.name": "mine", "task.test_sets": {"mine": test_set}})
