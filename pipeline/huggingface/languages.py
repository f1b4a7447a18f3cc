"""Languages of a tokenizer: which tokens a prefix begins with in models of many languages."""

from __future__ import annotations

from typing import Any

from pipeline.errors import ConfigError


def set_languages(tokenizer: Any, source: str | None, target: str | None) -> None:
    """Set the languages of a tokenizer that has several; None keeps those of its configuration.

    Raises ConfigError if the tokenizer has no languages and one is given, if it has languages and
    the target is not known, or if it does not know a language.
    """
    sides = {"source_language": ("src_lang", source), "target_language": ("tgt_lang", target)}
    if not hasattr(tokenizer, "src_lang"):
        for setting, (_, code) in sides.items():
            if code is not None:
                raise ConfigError(
                    f"settings.{setting}: must be null for a tokenizer without languages "
                    f"(got {code}). Leave it out."
                )
        return
    for setting, (attribute, code) in sides.items():
        if code is not None:
            try:
                setattr(tokenizer, attribute, code)
            except KeyError:  # M2M100
                raise _unknown(setting, code) from None
    if tokenizer.tgt_lang is None:
        raise ConfigError(
            "settings.target_language: must be set for a tokenizer of many languages (got null). "
            "Take a code of its tokenizer, such as deu_Latn or de_DE."
        )
    if tokenizer.unk_token_id in tokenizer("")["input_ids"]:
        raise _unknown("source_language", tokenizer.src_lang)
    language_token(tokenizer)


def language_token(tokenizer: Any) -> int | None:
    """The token of the target language, None if the tokenizer has no languages.

    Raises ConfigError if the tokenizer does not know the language.
    """
    if not hasattr(tokenizer, "src_lang"):
        return None
    code = tokenizer.tgt_lang
    try:
        control = tokenizer(text_target="")["input_ids"]
    except KeyError:
        raise _unknown("target_language", code) from None
    for token in control:
        if tokenizer.convert_ids_to_tokens(token) in (code, f"__{code}__"):
            return int(token)
    raise _unknown("target_language", code)


def is_language_last(tokenizer: Any) -> bool:
    """Whether targets end with their language, as in mBART, and prefixes begin with it alone."""
    return bool(tokenizer(text_target="")["input_ids"][-1] == language_token(tokenizer))


def _unknown(setting: str, code: str) -> ConfigError:
    return ConfigError(
        f"settings.{setting}: not a language of the model (got {code}). Take a code of its "
        f"tokenizer, such as deu_Latn or de_DE."
    )
