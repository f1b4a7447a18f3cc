"""LoRA adapters as members: one model in memory, and a few weights per member."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pipeline.errors import DataError
from pipeline.huggingface import import_transformers
from pipeline.huggingface.folder import ADAPTER_CONFIG, read_json_file
from pipeline.run.files import digest

# The models that members in this process share; each is freed with its last member.
_SHARED: WeakValueDictionary[tuple[str, ...], _SharedModel] = WeakValueDictionary()


class AdaptedModel:
    """A shared model with one adapter, which is made active whenever the model runs.

    It has what members use of a model of transformers. Adapters are not merged into the weights:
    merging and unmerging would change them by rounding.
    """

    def __init__(self, shared: _SharedModel, adapter: str) -> None:
        self._shared, self._adapter = shared, adapter
        model = shared.peft_model.get_base_model()
        self.config, self.device, self.dtype = model.config, model.device, model.dtype
        self.forward = model.forward

    def __call__(self, **inputs: Any) -> Any:
        """Run the model."""
        return self._active()(**inputs)

    def eval(self) -> AdaptedModel:
        """The model is never trained."""
        return self

    def get_encoder(self) -> Any:
        """The encoder, to be run before another member runs."""
        return self._active().get_encoder()

    def get_output_embeddings(self) -> Any:
        """The map from hidden states to logits."""
        return self._active().get_output_embeddings()

    def _active(self) -> Any:
        self._shared.activate(self._adapter)
        return self._shared.peft_model.get_base_model()


class _SharedModel:
    """A model of peft with the adapters that have been added to it."""

    def __init__(self, peft_model: Any, adapter: str) -> None:
        self.peft_model = peft_model
        self._active = adapter

    def activate(self, adapter: str) -> None:
        if adapter != self._active:
            self.peft_model.set_adapter(adapter, inference_mode=True)
            self._active = adapter


def adapted_model(key: tuple[str, ...], load: Callable[[], Any], adapter: Path) -> AdaptedModel:
    """The model `key` with an adapter; members of one key share the model that `load` returns.

    Raises DataError if the adapter is not one of LoRA or does not fit the model.
    """
    peft = import_transformers("peft")
    shared, name = _SHARED.get(key), digest(str(adapter))
    with _as_data_error(adapter):
        kind = read_json_file(adapter / ADAPTER_CONFIG).get("peft_type")
        if kind != "LORA":
            raise ValueError(f"peft_type is {kind}, not LORA")
        if shared is None:
            config = peft.PeftConfig.from_pretrained(adapter)
            model = peft.PeftModel(load(), config, adapter_name=name)
            shared = _SHARED[key] = _SharedModel(model, name)
        result = shared.peft_model.load_adapter(adapter, adapter_name=name)
        shared.peft_model.eval()
        missing = result.missing_keys
        if missing:
            raise ValueError(f"{len(missing)} weights are missing, such as {missing[0]}")
    return AdaptedModel(shared, name)


@contextmanager
def _as_data_error(adapter: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{adapter}: not a LoRA adapter of this model ({reason}). Give the model that it was "
            f"trained with."
        ) from None
