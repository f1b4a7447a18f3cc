"""Settings that the kind of a test set needs."""

from __future__ import annotations

from pipeline.errors import ConfigError


def needed(role: str, name: str, value: str | None) -> str:
    """The value of a setting of a test set; ConfigError where it is null."""
    if value is None:
        raise ConfigError(f"task.test_sets.{role}.{name} must be given for its kind, got null")
    return value
