"""The registry of kinds of test sets: what each is, what it needs, and which function makes it.

Adding a kind takes one entry here, the function that it names, and a test of that function. A task
then lists a set of the kind in conf/task. The schema, the checks of settings, stage prepare, the
data card and the tables beyond the paper all read this registry.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KindOfTestSet:
    """A kind of test set of one family of tasks.

    name: the value of `kind` in conf/task. family: translation or speech. description: how the data
    card describes the set; it may contain fields of the set in braces. corpus: function that reads
    the corpus of the set. None selects the held-out sentences of the task. rows: for translation,
    the function that makes rows of these sentences. needs: settings of the set that must not be
    null. is_synthetic: whether a program distorts the input. users_corpus: the setting that names
    the user's own corpus for such sets, and what the corpus is called. beyond_paper: the role in
    the tables beyond the paper, and what their notes say about it.
    """

    name: str
    family: str
    description: str
    corpus: str | None = None
    rows: str | None = None
    needs: tuple[str, ...] = ()
    is_synthetic: bool = False
    users_corpus: tuple[str, str] | None = None
    beyond_paper: tuple[str, str] | None = None


_TRANSLATION = (
    KindOfTestSet(
        name="held_out",
        family="translation",
        description="real sentences of held-out pages",
        rows="pipeline.data.text.test_sets.task_rows",
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
        beyond_paper=("TYPO", "typing errors"),
    ),
    KindOfTestSet(
        name="truncated",
        family="translation",
        description="the in-domain source, cut short",
        rows="pipeline.data.text.test_sets.truncated_rows",
        is_synthetic=True,
        beyond_paper=("CUT", "the source cut short"),
    ),
    KindOfTestSet(
        name="other_side",
        family="translation",
        description="real sentences, {language} as source and {reference_language} as reference",
        rows="pipeline.data.text.test_sets.other_side_rows",
        needs=("language",),
        beyond_paper=("COPY", "the target language as source"),
    ),
    KindOfTestSet(
        name="debian_reference",
        family="translation",
        description="real sentences of another domain",
        corpus="pipeline.data.text.sources.debian_reference_corpus",
        rows="pipeline.data.text.test_sets.task_rows",
        users_corpus=("data.khresmoi", "Khresmoi-Summary, dev and test"),
    ),
    KindOfTestSet(
        name="spoken",
        family="translation",
        description="real sentences, as spoken",
        corpus="pipeline.data.text.sources.spoken_corpus",
        rows="pipeline.data.text.test_sets.task_rows",
        needs=("librispeech_subset",),
        users_corpus=("data.librispeech", "LibriSpeech {librispeech_subset}, transcripts"),
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
    ),
    KindOfTestSet(
        name="harder",
        family="speech",
        description="utterances in other voices, at other speeds, with noise",
        corpus="pipeline.data.speech.sets.harder_corpus",
    ),
    KindOfTestSet(
        name="meetings",
        family="speech",
        description="utterances of another domain",
        corpus="pipeline.data.speech.sets.meetings_corpus",
        users_corpus=("data.speech.ami", "AMI"),
    ),
    KindOfTestSet(
        name="other_language",
        family="speech",
        description="utterances in another language",
        corpus="pipeline.data.speech.sets.other_language_corpus",
        needs=("language",),
        users_corpus=("data.speech.common_voice", "Common Voice, {language}"),
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
