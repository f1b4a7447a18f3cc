from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from pipeline.data.debian_packages import Package, find_packages, origin, package_files, unpack
from pipeline.data.speech.sets import read_prompts
from pipeline.errors import DataError, MachineError
from pipeline.run.files import file_sha256
from pipeline.run.settings import DataConfig

pytestmark = pytest.mark.slow  # runs dpkg-deb and a stand-in of apt

DE = "libreoffice-help-de"


def test_package_in_the_folder_is_used(help_packages: Path, tmp_path: Path) -> None:
    (package,) = find_packages([DE], tmp_path, help_packages, pin=False)
    assert (package.name, package.version) == (DE, "1.0")
    assert package.sha256 == file_sha256(help_packages / f"{DE}_1.0_all.deb")


def test_a_package_has_the_day_on_which_it_was_built(help_packages: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{DE}_1.0_all.deb"
    content = (help_packages / path.name).read_bytes()
    # The first member of the archive: its name, its time and further columns.
    path.write_bytes(content[:24] + b"1700000000  " + content[36:])
    (package,) = find_packages([DE], tmp_path, tmp_path, pin=False)
    assert package.date == "2023-11-14"
    assert origin([package])[DE]["date"] == "2023-11-14"


def test_package_in_the_cache_needs_no_apt(
    help_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_download(*_: object) -> None:
        raise AssertionError("reached out")

    monkeypatch.setattr("pipeline.data.debian_packages._download", no_download)
    (package,) = find_packages([DE], help_packages, None, pin=False)
    assert package.path.parent == help_packages


def test_files_are_read_only_below_one_folder(help_packages: Path, tmp_path: Path) -> None:
    (package,) = find_packages([DE], tmp_path, help_packages, pin=False)
    files = dict(package_files(package, "usr/share/libreoffice/help/de/text/", ".html"))
    assert len(files) == 27
    assert "Öffnen den roten Deckel" in files["page00.html"].decode()
    assert not list(package_files(package, "etc/", ".html"))


def test_pin_names_the_tested_and_the_actual_version(help_packages: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"data\.pin: requires .* 4:7\.4.* \(got 1\.0"):
        find_packages([DE], tmp_path, help_packages, pin=True)


def test_missing_package_in_the_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=rf"data\.packages: .* has no {DE}_\*\.deb"):
        find_packages([DE], tmp_path, tmp_path, pin=False)
    with pytest.raises(MachineError, match=r"data\.packages: no such folder"):
        find_packages([DE], tmp_path, tmp_path / "absent", pin=False)


def test_missing_apt_is_reported_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"apt-get: not installed.*data\.packages=FOLDER"):
        find_packages([DE], tmp_path / "downloads", None, pin=False)
    assert not list((tmp_path / "downloads").iterdir())


def test_missing_network_is_reported_with_the_reason_of_apt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_apt(tmp_path, "echo 'W: Failed to fetch X' >&2; [ $download = 0 ]")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(MachineError, match=r"\(W: Failed to fetch X\)\. Use .*data\.packages=FO"):
        find_packages([DE], tmp_path / "downloads", None, pin=False)


def test_apt_uses_private_folders_and_runs_once(
    help_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deb = help_packages / f"{DE}_1.0_all.deb"
    _fake_apt(tmp_path, f"echo \"$@\" >>'{tmp_path}/calls'; [ $download = 0 ] || cp '{deb}' .")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    downloads = tmp_path / "down loads"
    for _ in range(2):
        (package,) = find_packages([DE], downloads, None, pin=False)
        assert package.path == downloads / deb.name
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 2
    assert all(f"-oDir::State={downloads}" in call for call in calls)
    assert [path.name for path in downloads.iterdir()] == [deb.name]


def test_file_that_is_not_a_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"{DE}_2_all.deb").write_text("no package")
    with pytest.raises(DataError, match=r"_2_all\.deb: not a complete Debian package"):
        find_packages([DE], tmp_path, tmp_path, pin=False)


def test_two_versions_of_a_package_are_refused(help_packages: Path, tmp_path: Path) -> None:
    for version in "12":
        (tmp_path / f"{DE}_{version}_all.deb").write_bytes(b"")
    with pytest.raises(DataError, match=rf"several versions of {DE} \({DE}_1_all.deb, {DE}_2"):
        find_packages([DE], tmp_path, tmp_path, pin=False)


def test_damaged_package_is_refused(help_packages: Path, tmp_path: Path) -> None:
    content = (help_packages / f"{DE}_1.0_all.deb").read_bytes()
    (tmp_path / f"{DE}_1.0_all.deb").write_bytes(content[:-200])
    (package,) = find_packages([DE], tmp_path, tmp_path, pin=False)
    with pytest.raises(DataError, match=r"not a complete Debian package"):
        list(package_files(package, "usr/", ".html"))


def test_hostile_members_outside_the_folder_are_not_written(
    help_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in ("./../../climbed.html", "./usr/kept.html"):
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"hi"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "fs.tar").write_bytes(archive.getvalue())
    (package,) = find_packages([DE], tmp_path, help_packages, pin=False)
    script = tmp_path / "bin" / "dpkg-deb"
    script.write_text(f"#!/bin/sh\ncat '{tmp_path}/fs.tar'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert list(package_files(package, "usr/", ".html")) == [("kept.html", b"hi")]
    assert not list(tmp_path.parent.rglob("climbed.html"))


def _hostile_deb(path: Path, names: list[str]) -> None:
    """Write a Debian package with members of any name."""
    parts = {"debian-binary": b"2.0\n"}
    control = b"Package: evil\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.c>\n"
    trees = {"control.tar": {"./control": control}, "data.tar": dict.fromkeys(names, b"hi")}
    for part, members in trees.items():
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        parts[part] = archive.getvalue()
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for part, content in parts.items():
            file.write(f"{part:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))


def test_hostile_package_unpacks_nothing_outside_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "evil_1_all.deb"
    _hostile_deb(path, ["./../climbed", f"{tmp_path}/absolute", "./usr/kept"])
    folder = tmp_path / "below" / "tree"
    folder.mkdir(parents=True)
    try:
        unpack([Package("evil", "1", "", path)], folder)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017
    outside = {path.name for path in [*tmp_path.iterdir(), *folder.parent.iterdir()]}
    assert outside == {"evil_1_all.deb", "below", "tree"}


@pytest.mark.parametrize("name", ["en/../../climbed.wav", "climbed.wav", "en/a/../../../b.wav"])
def test_hostile_prompts_are_not_written_outside_their_folder(name: str, tmp_path: Path) -> None:
    sounds = "./usr/share/asterisk/sounds"
    path = tmp_path / "packages" / "asterisk-core-sounds-en-wav_1_all.deb"
    path.parent.mkdir()
    _hostile_deb(path, [f"{sounds}/{name}"])
    data = DataConfig(downloads=str(tmp_path / "cache"), packages=str(path.parent), pin=False)
    with pytest.raises(DataError, match=r"_all\.deb: contains an unsafe path \(.*\.wav\)"):
        read_prompts(data, "en", "prompts")
    assert not list(tmp_path.rglob("*.wav"))


def _fake_apt(folder: Path, body: str) -> None:
    """Write an apt-get that runs `body`, in which $download is 1 for a download."""
    script = folder / "apt-get"
    script.write_text(
        f'#!/bin/sh\ncase " $* " in *" download "*) download=1;; *) download=0;; esac\n{body}\n'
    )
    script.chmod(0o755)
