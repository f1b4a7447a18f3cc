"""Measures of the user: functions of a store, called once per value of what they depend on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from pipeline.errors import ConfigError
from pipeline.run.measure_rules import GRID
from pipeline.statistics.posterior import Float64
from pipeline.store import Store

OwnMeasure = Callable[..., Any]
SENTENCES, HYPOTHESES = "uncertainty.extra_measures", "uncertainty.hypothesis_measures"


def check_own_measures(
    extra: Mapping[str, OwnMeasure], of_hypotheses: Mapping[str, OwnMeasure], taken: Collection[str]
) -> None:
    """Raise ConfigError if another column has the name, or if a function cannot be called.

    taken: names of other columns.
    """
    for key, functions in ((SENTENCES, extra), (HYPOTHESES, of_hypotheses)):
        for name, function in functions.items():
            if name in taken or (key == HYPOTHESES and name in extra):
                raise ConfigError(
                    f"{key}.{name}: another column has this name. Rename the measure."
                )
            try:
                inspect.signature(function).bind(None, **dict.fromkeys(_accepted(function)))
            except (TypeError, ValueError) as error:
                raise ConfigError(
                    f"{key}.{name}: must be a function of a store and any of "
                    f"{', '.join(GRID)} ({error})."
                ) from None


class OwnMeasures:
    """The values of the user's measures for one store.

    A function is called with those of `beam`, `temperature` and `length_norm` that its signature
    has, and once per combination of their values.
    """

    def __init__(
        self, store: Store, extra: Mapping[str, OwnMeasure], of_hypotheses: Mapping[str, OwnMeasure]
    ) -> None:
        self._store = store
        self._extra = extra
        self._of_hypotheses = of_hypotheses
        self._returned: dict[tuple[Any, ...], Float64] = {}

    def of_sentences(self, settings: Mapping[str, Any]) -> dict[str, Float64]:
        """Return name -> [sentence] at one point of the grid.

        Raises ConfigError if a function does not return one number per sentence.
        """
        return {
            name: self._value(SENTENCES, name, function, settings, self._store.n_sentence)
            for name, function in self._extra.items()
        }

    def of_hypotheses(self, settings: Mapping[str, Any]) -> dict[str, Float64]:
        """Return name -> [hypothesis] at one point of the grid.

        Raises ConfigError if a function does not return one number per hypothesis.
        """
        return {
            name: self._value(HYPOTHESES, name, function, settings, self._store.n_hypothesis)
            for name, function in self._of_hypotheses.items()
        }

    def _value(
        self, key: str, name: str, function: OwnMeasure, settings: Mapping[str, Any], size: int
    ) -> Float64:
        given = {setting: settings[setting] for setting in _accepted(function)}
        call = (name, *given.items())
        if call not in self._returned:
            values = function(self._store, **given)
            self._returned[call] = _numbers(values, size, f"{key}.{name}", key == SENTENCES)
        return self._returned[call]


def _accepted(function: OwnMeasure) -> list[str]:
    """Return the settings of the grid that a function takes."""
    _, *parameters = inspect.signature(function).parameters.values() or (None,)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return list(GRID)
    names = {parameter.name for parameter in parameters}
    return [setting for setting in GRID if setting in names]


def _numbers(values: Any, size: int, key: str, of_sentences: bool) -> Float64:
    unit = "sentence" if of_sentences else "hypothesis"
    rule = f"{key}: must return one number per {unit}, {size} in all"
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{rule} ({error}).") from None
    if numbers.shape != (size,):
        raise ConfigError(f"{rule} (got shape {numbers.shape}).")
    return numbers
