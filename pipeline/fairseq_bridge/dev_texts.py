"""Greedy decodes of the first dev sentences by the model that is being trained."""

from __future__ import annotations

from typing import Any

from pipeline.fairseq_bridge import import_fairseq

_BATCH_SENTENCES = 64
# A model at its beginning need not end a sentence: longer ones are cut.
_LONGEST_RATIO, _LONGEST_OFFSET = 2, 10


def greedy_dev_texts(trainer: Any, count: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references [sentence], detokenised, of the first `count` dev sentences.

    A hypothesis is cut at twice the length of the longest reference of its batch and ten.
    """
    torch = import_fairseq("torch")
    dataset, dictionary = trainer.task.dataset("valid"), trainer.task.target_dictionary
    model = trainer.get_model().eval()
    hypotheses: list[str] = []
    references: list[str] = []
    count = min(count, len(dataset))
    for start in range(0, count, _BATCH_SENTENCES):
        places = range(start, min(start + _BATCH_SENTENCES, count))
        sample, _ = trainer._prepare_sample(dataset.collater([dataset[place] for place in places]))
        with torch.inference_mode():
            tokens = _greedy_tokens(model, sample, dictionary)
        hypotheses += [_text(dictionary, one) for one in tokens]
        references += [_text(dictionary, one) for one in sample["target"]]
    return hypotheses, references


def _greedy_tokens(model: Any, sample: Any, dictionary: Any) -> Any:
    """The likeliest token after each prefix [sentence, token], filled up with padding after EOS."""
    torch = import_fairseq("torch")
    encoded = model.encoder.forward_torchscript(sample["net_input"])
    prefix = sample["net_input"]["prev_output_tokens"][:, :1]
    ended = torch.zeros_like(prefix[:, 0], dtype=torch.bool)
    state: dict[str, Any] = {}
    for _ in range(_LONGEST_RATIO * sample["target"].shape[1] + _LONGEST_OFFSET):
        output = model.decoder(prefix, encoder_out=encoded, incremental_state=state)
        logprob = model.get_normalized_probs(output, log_probs=True)[:, -1]
        logprob[:, dictionary.pad()] = -torch.inf
        token = torch.where(ended, dictionary.pad(), logprob.argmax(dim=1))
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        ended |= token == dictionary.eos()
        if ended.all():
            break
    return prefix[:, 1:]


def _text(dictionary: Any, tokens: Any) -> str:
    text: str = dictionary.string(tokens, "sentencepiece", None, {dictionary.pad()})
    return text
