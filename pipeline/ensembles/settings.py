"""Settings of a kind of ensemble, checked when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.config import EnsembleConfig, plain, unknown_key_message
from pipeline.errors import ConfigError


class Settings:
    """The settings of one ensemble.

    Raises ConfigError where there are others than `names`, or where one is missing or breaks its
    rule.
    """

    def __init__(self, ensemble: EnsembleConfig, *names: str) -> None:
        self._ensemble = ensemble.name
        self._values: dict[str, Any] = plain(ensemble.settings)
        for name in self._values:
            if name not in names:
                where = f"settings of ensemble {self._ensemble}"
                raise ConfigError(unknown_key_message(f"settings.{name}", list(names), where))

    def value(self, name: str, rule: str, holds: Callable[[Any], bool]) -> Any:
        """The setting `name`, which must be as the words `rule` say and `holds` tells."""
        value = self._values.get(name)
        if not holds(value):
            raise ConfigError(
                f"settings.{name} of ensemble {self._ensemble} must be {rule}, got {value}"
            )
        return value

    def whole_number(self, name: str, least: int) -> int:
        """The setting `name`, a whole number that is at least so large."""
        return int(
            self.value(
                name,
                f"a whole number >= {least}",
                lambda value: type(value) is int and value >= least,
            )
        )
