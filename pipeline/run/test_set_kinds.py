"""The registry of kinds of test sets: what each is, what it needs, and which function makes it.

Adding a kind takes one entry here, the function that it names, and a test of that function. A task
then lists a set of the kind in conf/task. The schema, the checks of settings, stage prepare, the
data card and the tables beyond the paper all read this registry.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UsersCorpus:
    """A corpus of the user that takes the place of the demo's.

    setting: the key that says whether there is one. in_place_of: the name of the demo's set, which
    then changes to `name`. corpus: what tables call the corpus; None keeps the text of the task.
    `name` and `corpus` may contain fields of the set in braces, and {corpus}, the value of
    `corpus_setting`.
    """

    setting: str
    in_place_of: str
    name: str
    corpus: str | None = None
    corpus_setting: str = "data.corpus"


@dataclass(frozen=True)
class KindOfTestSet:
    """A kind of test set of one family of tasks.

    name: the value of `kind` in conf/task. family: translation or speech. description: how the data
    card describes the set; it may contain fields of the set in braces. corpus: function that reads
    the corpus of the set. None selects the held-out sentences of the task. rows: for translation,
    the function that makes rows of these sentences. needs: settings of the set that must not be
    null. is_synthetic: whether a program distorts the input. users_corpus: the user's own corpus
    that takes the place of the demo's.
    """

    name: str
    family: str
    description: str
    corpus: str | None = None
    rows: str | None = None
    needs: tuple[str, ...] = ()
    is_synthetic: bool = False
    users_corpus: UsersCorpus | None = None


_TRANSLATION = (
    KindOfTestSet(
        name="held_out",
        family="translation",
        description="real sentences of held-out pages",
        rows="pipeline.data.text.test_sets.task_rows",
        users_corpus=UsersCorpus("data.source", "help", "{corpus}"),
    ),
    KindOfTestSet(
        name="permuted",
        family="translation",
        description="sub-word tokens of the in-domain source, permuted",
        rows="pipeline.data.text.test_sets.permuted_rows",
        is_synthetic=True,
    ),
    KindOfTestSet(
        name="typos",
        family="translation",
        description="the in-domain source with typing errors",
        rows="pipeline.data.text.test_sets.typo_rows",
        is_synthetic=True,
    ),
    KindOfTestSet(
        name="truncated",
        family="translation",
        description="the in-domain source, cut short",
        rows="pipeline.data.text.test_sets.truncated_rows",
        is_synthetic=True,
    ),
    KindOfTestSet(
        name="other_side",
        family="translation",
        description="real sentences, {language} as source and {reference_language} as reference",
        rows="pipeline.data.text.test_sets.other_side_rows",
        needs=("language",),
    ),
    KindOfTestSet(
        name="debian_reference",
        family="translation",
        description="real sentences of another domain",
        corpus="pipeline.data.text.sources.debian_reference_corpus",
        rows="pipeline.data.text.test_sets.task_rows",
        users_corpus=UsersCorpus(
            "data.khresmoi", "debian-reference", "khresmoi", "Khresmoi-Summary, dev and test"
        ),
    ),
    KindOfTestSet(
        name="spoken",
        family="translation",
        description="real sentences, as spoken",
        corpus="pipeline.data.text.sources.spoken_corpus",
        rows="pipeline.data.text.test_sets.task_rows",
        needs=("librispeech_subset",),
        users_corpus=UsersCorpus(
            "data.librispeech",
            "fish-fillets",
            "librispeech-{librispeech_subset}",
            "LibriSpeech {librispeech_subset}, transcripts",
        ),
    ),
    KindOfTestSet(
        name="files",
        family="translation",
        description="real sentences from the user's own files",
        corpus="pipeline.data.text.sources.files_corpus",
        rows="pipeline.data.text.test_sets.task_rows",
        needs=("path",),
    ),
)

_SPEECH = (
    KindOfTestSet(
        name="held_out",
        family="speech",
        description="utterances like those of training, with other sentences",
        corpus="pipeline.data.speech.sets.held_out_corpus",
        users_corpus=UsersCorpus(
            "data.speech.train", "commands", "{corpus}", corpus_setting="data.speech.corpus"
        ),
    ),
    KindOfTestSet(
        name="harder",
        family="speech",
        description="utterances in other voices, at other speeds, with noise",
        corpus="pipeline.data.speech.sets.harder_corpus",
        users_corpus=UsersCorpus(
            "data.speech.train",
            "commands-noisy",
            "{corpus}-other",
            "{corpus}, other",
            "data.speech.corpus",
        ),
    ),
    KindOfTestSet(
        name="meetings",
        family="speech",
        description="utterances of another domain",
        corpus="pipeline.data.speech.sets.meetings_corpus",
        users_corpus=UsersCorpus("data.speech.ami", "fish-fillets", "ami", "AMI"),
    ),
    KindOfTestSet(
        name="other_language",
        family="speech",
        description="utterances in another language",
        corpus="pipeline.data.speech.sets.other_language_corpus",
        needs=("language",),
        users_corpus=UsersCorpus(
            "data.speech.common_voice",
            "french-prompts",
            "common-voice-{language}",
            "Common Voice, {language}",
        ),
    ),
    KindOfTestSet(
        name="telephone_prompts",
        family="speech",
        description="recorded telephone prompts",
        corpus="pipeline.data.speech.sets.prompts_corpus",
        needs=("language",),
    ),
    KindOfTestSet(
        name="files",
        family="speech",
        description="utterances from the user's own files",
        corpus="pipeline.data.speech.sets.files_corpus",
        needs=("path",),
    ),
)

KINDS_OF_TEST_SETS = {(kind.family, kind.name): kind for kind in (*_TRANSLATION, *_SPEECH)}
