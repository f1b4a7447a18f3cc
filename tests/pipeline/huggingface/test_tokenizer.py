"""Texts to token ids and back as the models' own tokenizers do it, for every layout of labels."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers

from pipeline.decoding.test_set import PreparedSentence
from pipeline.errors import ConfigError, DataError
from pipeline.huggingface.control_tokens import control_tokens
from pipeline.huggingface.tokenizer import HuggingFaceTokenizer, read_tokenizer
from tests.pipeline.huggingface.folders import (
    save_bart,
    save_causal,
    save_marian,
    save_mbart,
    save_mbart50,
    save_nllb,
    save_t5,
)

WORDS = ["<s>", "<pad>", "</s>", "<unk>", "en_XX", "de_DE", "a", "b", "c"]
BOS, PAD, EOS, UNK, EN, DE, A, B, C = range(9)
NO_LANGUAGES = (None, None)


def sentence(source: str, reference: str | None = None) -> PreparedSentence:
    return PreparedSentence(0, source, reference, [], None)


def write(folder: Path, template: str, config: Any, **generation: Any) -> Path:
    """Write a word tokenizer that puts control tokens around a text, and a configuration."""
    model = tokenizers.models.WordLevel({word: index for index, word in enumerate(WORDS)}, "<unk>")
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    special = [(word, WORDS.index(word)) for word in template.split() if word != "$A"]
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single=template, special_tokens=special
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        unk_token="<unk>", extra_special_tokens=["en_XX", "de_DE"],
    ).save_pretrained(folder)  # fmt: skip
    config.save_pretrained(folder)
    defaults = {"eos_token_id": EOS, "pad_token_id": PAD}
    transformers.GenerationConfig(**defaults | generation).save_pretrained(folder)
    return folder


def seq2seq(**settings: Any) -> Any:
    return transformers.BartConfig(
        vocab_size=len(WORDS) + 1, pad_token_id=PAD, eos_token_id=EOS, **settings
    )


LAYOUTS = {
    "t5": ("$A </s>", {"decoder_start_token_id": PAD}, (PAD,), [A, B, EOS]),
    "bart": (
        "<s> $A </s>",
        {"decoder_start_token_id": EOS, "forced_bos_token_id": BOS},
        (EOS, BOS),
        [A, B, EOS],
    ),
    "bart without a forced token": (
        "<s> $A </s>", {"decoder_start_token_id": EOS}, (EOS,), [BOS, A, B, EOS]
    ),
    "language first": (
        "de_DE $A </s>",
        {"decoder_start_token_id": EOS, "forced_bos_token_id": DE},
        (EOS, DE),
        [A, B, EOS],
    ),
    "language last": ("$A </s> de_DE", {"decoder_start_token_id": DE}, (DE,), [A, B, EOS]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_start_symbols_are_taken_off_the_labels(tmp_path: Path, layout: str) -> None:
    template, generation, start, labels = LAYOUTS[layout]
    folder = write(tmp_path, template, seq2seq(), **generation)
    tokenizer = HuggingFaceTokenizer(folder, None, NO_LANGUAGES)
    assert tokenizer.tokens.start == start
    assert tokenizer.target(sentence("a", "a b")) == labels
    assert tokenizer.target_of_text("a x")[-2:] == [UNK, EOS]
    assert tokenizer.target_of_text(" ") == []
    assert tokenizer.target(sentence("a", "")) == [EOS]
    assert tokenizer.target(sentence("a")) is None
    assert tokenizer.text(labels) == "a b"
    assert tokenizer.source(sentence(" ")) == []
    assert tokenizer.tokens.suppressed == (PAD,)
    assert (tokenizer.tokens.eos, tokenizer.tokens.unk) == (EOS, UNK)
    assert tokenizer.vocab_size == 10
    assert tokenizer.pieces == [*WORDS, "<unused>"]


# Folder of a model -> its languages, and the names of the tokens that its prefixes begin with.
LANGUAGES: dict[Any, Any] = {
    save_nllb: (("eng_Latn", "deu_Latn"), ["</s>", "deu_Latn"]),
    save_mbart: (("en_XX", "de_DE"), ["de_DE"]),
    save_mbart50: (("en_XX", "de_DE"), ["</s>", "de_DE"]),
    save_t5: (NO_LANGUAGES, ["<pad>"]),
    save_bart: (NO_LANGUAGES, ["</s>", "<s>"]),
    save_marian: (NO_LANGUAGES, ["<pad>"]),
}


@pytest.mark.parametrize("save", LANGUAGES)
def test_texts_are_cut_and_joined_as_by_the_own_tokenizer(tmp_path: Path, save: Any) -> None:
    languages, start = LANGUAGES[save]
    folder = save(tmp_path / "model", 1)
    own = transformers.AutoTokenizer.from_pretrained(folder)
    if languages != NO_LANGUAGES:
        own.src_lang, own.tgt_lang = languages
    tokenizer = HuggingFaceTokenizer(folder, None, languages)
    assert own.convert_ids_to_tokens(list(tokenizer.tokens.start)) == start
    text = "source 3 and words"
    assert tokenizer.source(sentence(text)) == own(text)["input_ids"]
    control = {*tokenizer.tokens.start} - {tokenizer.tokens.eos}
    labels = [token for token in own(text_target=text)["input_ids"] if token not in control]
    assert tokenizer.target_of_text(text) == labels
    assert labels.index(tokenizer.tokens.eos) == len(labels) - 1
    assert tokenizer.text(labels) == text
    assert "".join(tokenizer.pieces[token] for token in labels[:-1]).strip("▁") == (
        text.replace(" ", "▁")
    )


@pytest.mark.parametrize(
    ("save", "languages", "match"),
    [
        (save_nllb, (None, None), r"target_language: must be set .* many languages \(got null\)"),
        (save_nllb, (None, "fra_Latn"), r"target_language: not a language.* \(got fra_Latn\)"),
        (save_nllb, ("x", "deu_Latn"), r"source_language: not a language of the model \(got x\)"),
        (save_mbart, (None, "de"), r"target_language: not a language of the model \(got de\)"),
        (save_t5, (None, "and"), r"target_language: must be null .* without languages \(got and\)"),
    ],
)
def test_languages_that_do_not_fit_the_tokenizer_are_named(
    tmp_path: Path, save: Any, languages: Any, match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        HuggingFaceTokenizer(save(tmp_path / "model", 1), None, languages)


def test_a_prompt_surrounds_the_source(tmp_path: Path) -> None:
    folder = write(tmp_path, "$A </s>", seq2seq(), decoder_start_token_id=PAD)
    tokenizer = HuggingFaceTokenizer(folder, "a {source} b", NO_LANGUAGES)
    assert tokenizer.source(sentence("c {source}"))[:2] == [A, C]
    assert tokenizer.source(sentence("c")) == [A, C, B, EOS]


def test_the_spaces_before_the_target_belong_to_the_target(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "causal", 1)
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer = HuggingFaceTokenizer(folder, "source {source}: {target}", NO_LANGUAGES)
    assert tokenizer.source(sentence("w1")) == plain("source w1:")["input_ids"]
    target = tokenizer.target(sentence("w1", "more words"))
    assert target == [*plain(" more words")["input_ids"], tokenizer.tokens.eos]
    together = plain("source w1: more words")["input_ids"]
    assert [*tokenizer.source(sentence("w1")), *(target or [])[:-1]] == together
    assert tokenizer.text(target or []) == "more words"
    # Padding is EOS, so that it is not suppressed.
    assert tokenizer.tokens.suppressed == ()


def _without_tokenizer(folder: Path) -> None:
    """Keep the model alone."""
    for path in folder.iterdir():
        if path.name not in ("config.json", "generation_config.json", "model.safetensors"):
            path.unlink()


@pytest.mark.parametrize("save", [save_causal, *LANGUAGES])
@pytest.mark.parametrize("has_settings", [False, True])
def test_a_folder_without_tokenizer_is_refused(
    tmp_path: Path, save: Any, has_settings: bool
) -> None:
    folder = save(tmp_path / "model", 1)
    settings = (folder / "tokenizer_config.json").read_bytes()
    _without_tokenizer(folder)
    if has_settings:
        (folder / "tokenizer_config.json").write_bytes(settings)
    words = rf"^{re.escape(str(folder))}: no tokenizer\. Save it there with save_pretrained\.$"
    with pytest.raises(DataError, match=words):
        read_tokenizer(folder)


def test_a_damaged_tokenizer_is_refused_with_the_reason(tmp_path: Path) -> None:
    folder = save_t5(tmp_path / "model", 1)
    (folder / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"model: its tokenizer cannot be read \(.+\)\. Save it"):
        read_tokenizer(folder)


def test_a_tokenizer_of_bytes_needs_no_vocabulary(tmp_path: Path) -> None:
    config = transformers.T5Config(vocab_size=384, d_model=8, num_layers=1)
    config.save_pretrained(tmp_path)
    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    assert read_tokenizer(tmp_path)("a")["input_ids"] == [100, 1]


def test_long_texts_are_cut_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    tokenizer = HuggingFaceTokenizer(save_marian(tmp_path / "model", 1), None, NO_LANGUAGES)
    tokenizer._tokenizer.model_max_length = 3
    assert len(tokenizer.source(sentence("source 1 and more words"))) > 3
    assert len(tokenizer.target_of_text("source 1 and more words")) > 3
    assert "longer than the specified maximum" not in caplog.text
    tokenizer._tokenizer("source 1 and more words")
    assert "longer than the specified maximum" in caplog.text


@pytest.mark.parametrize(
    ("is_causal", "form"),
    [
        (True, r"such as 'English: \{source\}.nGerman: \{target\}'\.$"),
        (False, r"such as 'translate English to German: \{source\}'\.$"),
    ],
)
def test_a_wrong_prompt_is_answered_with_the_form_for_the_model(
    tmp_path: Path, is_causal: bool, form: str
) -> None:
    folder = (save_causal if is_causal else save_marian)(tmp_path / "model", 1)
    with pytest.raises(ConfigError, match=r"must contain \{source\} once \(got x\).*" + form):
        HuggingFaceTokenizer(folder, "x", NO_LANGUAGES)


def test_a_tokenizer_that_ends_prompts_is_refused(tmp_path: Path) -> None:
    config = transformers.GPT2Config(
        vocab_size=len(WORDS), bos_token_id=BOS, eos_token_id=EOS, n_layer=1
    )
    folder = write(tmp_path, "$A </s>", config)
    with pytest.raises(DataError, match=r"ends every text with EOS, .* add_eos_token to false"):
        HuggingFaceTokenizer(folder, "{source} {target}", NO_LANGUAGES)


def test_several_or_no_end_symbols_are_refused(tmp_path: Path) -> None:
    config = seq2seq()
    generation = transformers.GenerationConfig(eos_token_id=[2, 3], decoder_start_token_id=0)
    with pytest.raises(DataError, match=r"mine: eos_token_id must be one token \(got \[2, 3\]\)"):
        control_tokens(config, generation, "mine")


def test_what_generate_suppresses_is_suppressed() -> None:
    generation = transformers.GenerationConfig(
        eos_token_id=[2], pad_token_id=1, decoder_start_token_id=0, bad_words_ids=[[4], [5, 6]],
        suppress_tokens=[7], begin_suppress_tokens=[2, 8],
    )  # fmt: skip
    tokens = control_tokens(seq2seq(), generation, "mine")
    assert tokens.at(0) == (1, 4, 7, 2, 8)
    assert tokens.at(1) == (1, 4, 7)
