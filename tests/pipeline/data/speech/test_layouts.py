from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.data.speech.corpus import Utterance
from pipeline.data.speech.layouts import read_speech
from pipeline.errors import DataError
from tests.pipeline.data.speech.conftest import WriteAudio

_NITE = 'xmlns:nite="http://nite.sourceforge.net/"'


def test_librispeech_is_read(tmp_path: Path, write_audio: WriteAudio) -> None:
    chapter = tmp_path / "1089" / "134686"
    for number in (0, 1, 10):
        write_audio(chapter / f"1089-134686-{number:04d}.flac", 0.5)
    (chapter / "1089-134686.trans.txt").write_text(
        "1089-134686-0000 HE HOPED\n1089-134686-0010 DON'T STOP\n1089-134686-0011 NO SOUND\n"
    )
    corpus = read_speech(tmp_path, "mine")
    below = "1089/134686/1089-134686"
    assert corpus.utterances == [
        Utterance(f"{below}-0000.flac", "he hoped", group="1089"),
        Utterance(f"{below}-0001.flac", None, group="1089"),
        Utterance(f"{below}-0010.flac", "don't stop", group="1089"),
    ]
    assert corpus.left_out == {f"{below}-0011.flac": "transcript without audio"}


def test_librispeech_line_of_another_chapter_is_refused(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    write_audio(tmp_path / "1" / "2" / "1-2-0000.flac", 0.5)
    (tmp_path / "1" / "2" / "1-2.trans.txt").write_text("1-2-0000 A\n7-7-0000 B\n")
    with pytest.raises(DataError, match=r"1-2\.trans\.txt, line 2: must be an utterance id of 1-2"):
        read_speech(tmp_path, "mine")


def test_common_voice_is_read_in_any_language(tmp_path: Path, write_audio: WriteAudio) -> None:
    write_audio(tmp_path / "clips" / "one.mp3", 0.5)
    write_audio(tmp_path / "clips" / "two.mp3", 0.5)
    tsv = tmp_path / "test.tsv"
    tsv.write_text(
        "client_id\tpath\tsentence\tup_votes\n"
        "a\tone.mp3\tOù « est »-il ?\t2\n"
        'b\ttwo\tElle dit "non\t1\n'
        "c\tthree.mp3\tRien.\t0\n",
        encoding="utf-8",
    )
    corpus = read_speech(tsv, "Common Voice, fr")
    assert corpus.name == "Common Voice, fr"
    assert corpus.utterances == [
        Utterance("clips/one.mp3", "où est il", group="a"),
        Utterance("clips/two.mp3", "elle dit non", group="b"),
    ]
    assert corpus.left_out == {"clips/three.mp3": "transcript without audio"}


def test_common_voice_without_speakers_has_no_groups(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    write_audio(tmp_path / "clips" / "one.mp3", 0.5)
    (tmp_path / "x.tsv").write_text("path\tsentence\none.mp3\tOne.\n")
    assert read_speech(tmp_path / "x.tsv", "n").utterances == [Utterance("clips/one.mp3", "one")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tsentence\nb\tc\n", "no column path \\(got a, sentence\\)"),
        ("path\tsentence\nx.mp3\tone\ttwo\n", "line 2: must have 2 columns \\(got 3\\)"),
        ("path\tsentence\nx.mp3\tone\n", "no utterance \\(left out: 1 x transcript with"),
    ],
)
def test_invalid_common_voice_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_speech(tmp_path / "x.tsv", "mine")


def test_plain_folder_is_read(tmp_path: Path, write_audio: WriteAudio) -> None:
    for name in ("b.wav", "a/c.FLAC", "a/d.mp3"):
        write_audio(tmp_path / name, 0.5)
    (tmp_path / "b.txt").write_text("Turn the\nlamp ON.\n")
    (tmp_path / "a" / "c.txt").write_text("\n")
    (tmp_path / "gone.txt").write_text("nothing\n")
    corpus = read_speech(tmp_path, "mine")
    assert corpus.utterances == [
        Utterance("a/c.FLAC", "", group="a"),
        Utterance("a/d.mp3", None, group="a"),
        Utterance("b.wav", "turn the lamp on", group="b.wav"),
    ]
    assert corpus.left_out == {"gone.txt": "transcript without audio"}


@pytest.mark.parametrize("names", [("1.wav", "2.wav"), ("wavs/1.wav", "wavs/2.wav")])
def test_files_of_one_folder_are_groups_of_their_own(
    tmp_path: Path, write_audio: WriteAudio, names: tuple[str, ...]
) -> None:
    for name in names:
        write_audio(tmp_path / name, 0.5)
    assert read_speech(tmp_path, "n").utterances == [
        Utterance(name, None, group=name) for name in names
    ]


def test_stm_is_read(tmp_path: Path, write_audio: WriteAudio) -> None:
    write_audio(tmp_path / "audio" / "EN2002a.wav", 9)
    (tmp_path / "eval.stm").write_text(
        ";; a comment\n"
        "EN2002a 1 FEO072 0.50 2.75 <o,f0,female> Okay, so\n"
        "EN2002a 1 FEO072 3 4 IGNORE_TIME_SEGMENT_IN_SCORING\n"
        "EN2002a 1 MEE071 5.0 6.5 yeah\n"
        "EN2002b 1 MEE071 5.0 6.5 lost\n"
    )
    corpus = read_speech(tmp_path, "AMI")
    assert corpus.utterances == [
        Utterance("audio/EN2002a.wav", "okay so", 0.5, 2.75, "EN2002a", "1"),
        Utterance("audio/EN2002a.wav", "yeah", 5.0, 6.5, "EN2002a", "1"),
    ]
    assert corpus.left_out == {
        "eval.stm, line 3": "not scored",
        "eval.stm, line 5": "transcript without audio",
    }
    (tmp_path / "eval.stm").write_text("EN2002a 1 X 5.0\n")
    with pytest.raises(DataError, match=r"eval\.stm, line 1: must be recording, channel"):
        read_speech(tmp_path, "AMI")


@pytest.mark.parametrize("end", ["4.0", "5.0"])
def test_stm_segment_must_end_after_it_starts(
    tmp_path: Path, write_audio: WriteAudio, end: str
) -> None:
    write_audio(tmp_path / "a.wav", 9)
    (tmp_path / "a.stm").write_text(f"a 1 s 0 1 fine\na 1 s 5.0 {end} backwards\n")
    with pytest.raises(DataError, match=rf"line 2: .* end after .* start 5\.0 and end {end}\)"):
        read_speech(tmp_path, "mine")


def test_stm_names_channel_and_marks_of_each_segment(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    write_audio(tmp_path / "call.sph", 3)
    (tmp_path / "call.stm").write_text(
        "call A ann 0.0 1.0 { um / uh / @ } it 's (so) good(2) [NOISE]\n"
        "call B bob 0.0 1.0 <unk> yes\n"
    )
    ann, bob = read_speech(tmp_path, "calls", "en-GB").utterances
    assert ann == Utterance(
        "call.sph",
        "um it's so good",
        0.0,
        1.0,
        "call",
        "A",
        ("non_words", "alternatives", "pronunciations", "optional_words", "words_joined"),
    )
    assert (bob.channel, bob.reference) == ("B", "yes")
    assert ann.source != bob.source == "call.sph#t=0.00,1.00&track=B"


def test_stm_with_a_single_brace_is_refused(tmp_path: Path, write_audio: WriteAudio) -> None:
    write_audio(tmp_path / "a.wav", 3)
    (tmp_path / "a.stm").write_text("a 1 s 0 1 fine\na 1 s 1 2 { um / uh well\n")
    with pytest.raises(DataError, match=r"a\.stm, line 2: has a brace \{ or \} without the other"):
        read_speech(tmp_path, "mine")


def test_audio_that_is_not_read_has_its_reason(tmp_path: Path) -> None:
    (tmp_path / "talk.m4a").write_bytes(b"x")
    reason = r"\.m4a is not read: convert it to \.flac"
    with pytest.raises(DataError, match=rf"no utterance \(left out: 1 x {reason}\)"):
        read_speech(tmp_path, "mine")
    (tmp_path / "talk.stm").write_text("talk 1 s 0 1 words\ntalk 1 s 1 2 more\n")
    with pytest.raises(DataError, match=rf"no utterance \(left out: 2 x {reason}\)"):
        read_speech(tmp_path, "mine")


def test_parts_of_librispeech_are_named(tmp_path: Path, write_audio: WriteAudio) -> None:
    for part in ("dev-clean", "test-other"):
        chapter = tmp_path / "LibriSpeech" / part / "1" / "2"
        write_audio(chapter / "1-2-0000.flac", 0.5)
        (chapter / "1-2.trans.txt").write_text("1-2-0000 A\n")
    with pytest.raises(DataError, match=r"LibriSpeech \(dev-clean, test-other\)\. Give one"):
        read_speech(tmp_path / "LibriSpeech", "mine")
    with pytest.raises(DataError, match=r"\(LibriSpeech/dev-clean, LibriSpeech/test-other\)"):
        read_speech(tmp_path, "mine")
    assert len(read_speech(tmp_path / "LibriSpeech" / "dev-clean", "mine").utterances) == 1


def _write_librispeech(folder: Path, write_audio: WriteAudio) -> None:
    write_audio(folder / "1" / "2" / "1-2-0000.flac", 0.5)
    (folder / "1" / "2" / "1-2.trans.txt").write_text("1-2-0000 A\n")


def _write_stm(folder: Path, write_audio: WriteAudio) -> None:
    write_audio(folder / "a.wav", 0.5)
    (folder / "a.stm").write_text("a 1 s 0 0.4 words\n")


def _write_plain(folder: Path, write_audio: WriteAudio) -> None:
    write_audio(folder / "b.wav", 0.5)
    (folder / "b.txt").write_text("words\n")


def _write_meeting(folder: Path, write_audio: WriteAudio) -> None:
    _write_ami(folder)
    write_audio(folder / "ES2004a.Mix-Headset.wav", 7)


@pytest.mark.parametrize("write", [_write_librispeech, _write_stm, _write_plain, _write_meeting])
def test_files_of_macos_are_ignored(
    tmp_path: Path, write_audio: WriteAudio, write: Callable[[Path, WriteAudio], None]
) -> None:
    write(tmp_path, write_audio)
    corpus = read_speech(tmp_path, "mine")
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7\xff")
    assert read_speech(tmp_path, "mine") == corpus


def _write_ami(folder: Path) -> None:
    for part in ("words", "segments", "corpusResources"):
        (folder / part).mkdir(parents=True)
    (folder / "words" / "ES2004a.B.words.xml").write_text(
        f'<nite:root {_NITE}><w nite:id="B.w0" starttime="1" endtime="2">Hmm</w>'
        '<w nite:id="B.w1" punc="true">,</w><vocalsound nite:id="B.w2" type="laugh"/>'
        '<w nite:id="B.w3">it\'s</w><w nite:id="B.w4">red</w></nite:root>'
    )
    segment = '<segment nite:id="s{}" transcriber_start="{}" transcriber_end="{}">{}</segment>'
    span = '<nite:child href="ES2004a.B.words.xml#id(B.w{})..id(B.w{})"/>'
    word = '<nite:child href="ES2004a.B.words.xml#id(B.w{})"/>'
    (folder / "segments" / "ES2004a.B.segments.xml").write_text(
        f"<nite:root {_NITE}>"
        + segment.format(0, "1.0", "3.5", span.format(0, 3))
        + segment.format(1, "4.0", "5.0", word.format(4))
        + segment.format(2, "5.0", "6.0", word.format(2))
        + "</nite:root>"
    )
    (folder / "segments" / "ES2004b.A.segments.xml").write_text(f"<nite:root {_NITE}/>")
    (folder / "corpusResources" / "meetings.xml").write_text(
        f'<nite:root {_NITE}><meeting observation="ES2004a"><speaker nxt_agent="A" channel="1"/>'
        '<speaker nxt_agent="B" channel="3"/></meeting></nite:root>'
    )


def test_ami_uses_the_headset_of_the_speaker(tmp_path: Path, write_audio: WriteAudio) -> None:
    _write_ami(tmp_path / "manual")
    audio = tmp_path / "amicorpus" / "ES2004a" / "audio"
    write_audio(audio / "ES2004a.Mix-Headset.wav", 7)
    below = audio.relative_to(tmp_path).as_posix()
    mixed = read_speech(tmp_path / "manual" / "..", "AMI")
    assert {utterance.file for utterance in mixed.utterances} == {
        f"{below}/ES2004a.Mix-Headset.wav"
    }
    write_audio(audio / "ES2004a.Headset-3.wav", 7)
    corpus = read_speech(tmp_path, "AMI")
    assert corpus.utterances == [
        Utterance(f"{below}/ES2004a.Headset-3.wav", "hmm it's", 1.0, 3.5, "ES2004a"),
        Utterance(f"{below}/ES2004a.Headset-3.wav", "red", 4.0, 5.0, "ES2004a"),
    ]
    assert corpus.left_out == {
        "ES2004a.B.segments.xml, s2": "no word",
        "manual/segments/ES2004b.A.segments.xml": "transcript without audio",
    }


def test_invalid_ami_is_refused(tmp_path: Path, write_audio: WriteAudio) -> None:
    _write_ami(tmp_path)
    write_audio(tmp_path / "ES2004a.Mix-Headset.wav", 7)
    words = tmp_path / "words" / "ES2004a.B.words.xml"
    content = words.read_text()
    words.write_text(content.replace("B.w4", "B.w9"))
    with pytest.raises(DataError, match=r"refers to unknown words \(.*B\.w4"):
        read_speech(tmp_path, "AMI")
    words.write_text(content[:-20])
    with pytest.raises(DataError, match=r"words\.xml: damaged XML"):
        read_speech(tmp_path, "AMI")
    words.unlink()
    with pytest.raises(DataError, match=r"words\.xml: no such file"):
        read_speech(tmp_path, "AMI")


def test_folder_without_speech_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no utterance \(left out: none\)"):
        read_speech(tmp_path, "mine")
    with pytest.raises(DataError, match=r"no such file or folder"):
        read_speech(tmp_path / "absent", "mine")
