"""Rules of settings: fields of the schema that say which values are valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from omegaconf import MISSING


def rule(text: str, holds: Callable[[Any], bool], default: Any = MISSING) -> Any:
    """Declare a setting that must be `text`."""
    return field(default=default, metadata={"rule": text, "holds": holds})


def at_least(minimum: float) -> Any:
    """Declare a number of at least `minimum`."""
    return rule(f"at least {minimum}", lambda value: value >= minimum)


def above(minimum: float) -> Any:
    """Declare a number greater than `minimum`."""
    return rule(f"greater than {minimum}", lambda value: value > minimum)


def within(low: float, high: float) -> Any:
    """Declare a number in [low, high]."""
    return rule(f"in [{low}, {high}]", lambda value: low <= value <= high)


def one_of(*choices: str) -> Any:
    """Declare a setting that is one of `choices`."""
    return rule(f"one of {', '.join(choices)}", lambda value: value in choices)


def each(text: str, holds: Callable[[Any], bool]) -> Any:
    """Declare a setting that is one value or a list of values, each of which must be `text`."""

    def all_hold(value: Any) -> bool:
        return all(map(holds, value)) if isinstance(value, list) else holds(value)

    return rule(f"{text}, or a list of such values", all_hold)


def are_files(value: Any) -> bool:
    """Tell whether `value` is null, a file or a list of files."""
    files = value if isinstance(value, list) else [value]
    return value is None or (bool(files) and all(isinstance(file, str) and file for file in files))


def is_number(value: Any) -> bool:
    """Tell whether `value` is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
