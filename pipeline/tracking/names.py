"""Names that MLflow takes."""

from __future__ import annotations

import re


def metric_name(text: str) -> str:
    """A name that MLflow takes and a person can type: ASCII letters, digits, `_ - . /`."""
    return re.sub(r"[^A-Za-z0-9_./-]+", "_", text).strip("_")
