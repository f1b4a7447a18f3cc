"""The only package that imports transformers."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from pipeline.errors import MachineError
from pipeline.run.extras import install_command


def import_transformers(module: str = "transformers") -> ModuleType:
    """Import transformers or one of its modules; nothing is sent or downloaded at import.

    Raises MachineError if it is not installed, or if a package that it finds cannot be loaded.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        importlib.import_module("transformers.utils.logging").disable_progress_bar()
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MachineError(
            f"{error.name}: not installed, but needed for Hugging Face models. "
            f"Run {install_command('transformers')}."
        ) from None
    except OSError as error:
        # fairseq asks for torchaudio, and transformers loads it where it is installed.
        raise MachineError(
            f"transformers: cannot be imported ({' '.join(str(error).split())}). "
            f"If this names torchaudio, run pip uninstall torchaudio: nothing here needs it."
        ) from None
