"""The optional packages of this distribution, which pip calls extras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from pipeline.errors import MachineError

# Extra -> the modules of its packages, as pyproject.toml lists them.
EXTRAS = {
    "train": (
        *("torch", "fairseq", "sentencepiece", "sacremoses", "subword_nmt", "safetensors"),
        *("kaldi_native_fbank", "soundfile", "soxr"),
    ),
    "transformers": (
        *("torch", "transformers", "tokenizers", "sentencepiece", "safetensors"),
        *("soundfile", "soxr"),
    ),
    "peft": ("peft",),
    "tracking": ("mlflow",),
}
# How the names of functions begin -> the extra that they need; the first that fits applies.
_EXTRA_OF = {
    "pipeline.fairseq_bridge.": "train",
    "pipeline.ensembles.kinds.huggingface": "transformers",
    "pipeline.ensembles.kinds.": "train",
}


def is_installed(module: str) -> bool:
    """Whether a top-level module can be found. It is not imported."""
    return find_spec(module) is not None


def install_command(extra: str) -> str:
    """Return the command that installs an extra, beside a wheel and beside a checkout."""
    return f"pip install 'sequence-uncertainty[{extra}]'"


def check_extra(extra: str, user: str) -> None:
    """Raise MachineError if a package of an extra is not installed.

    user: what needs it, such as 'stage train'. Nothing is imported, so that this takes no time.
    """
    for module in EXTRAS[extra]:
        if not is_installed(module):
            raise _not_installed(module, extra, user)


def check_extra_of(function: str, user: str) -> None:
    """Raise MachineError if the extra is not installed that a function needs.

    function: a dotted name. What a function of the user needs is not known.
    """
    for beginning, extra in _EXTRA_OF.items():
        if function.startswith(beginning):
            check_extra(extra, user)
            return


@contextmanager
def extras_named(user: str) -> Iterator[None]:
    """Turn the failed import of a package of an extra into a MachineError that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        for extra, modules in EXTRAS.items():
            if module in modules:
                raise _not_installed(module, extra, user) from None
        raise


def _not_installed(module: str, extra: str, user: str) -> MachineError:
    return MachineError(
        f"{module}: not installed, but {user} needs it. Run {install_command(extra)}."
    )
