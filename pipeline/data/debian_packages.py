"""Debian packages as a source of data: found in a folder or downloaded, without root rights."""

from __future__ import annotations

import logging
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

from pipeline.errors import DataError, MachineError
from pipeline.run.files import complete_folder, file_sha256
from pipeline.run.settings import DataConfig

# The versions that the project was tested with, which `data.pin=true` requires.
TESTED_VERSIONS = {
    "libreoffice-help-en-us": "4:7.4.7-1+deb12u14",
    "libreoffice-help-de": "4:7.4.7-1+deb12u14",
    "libreoffice-help-fr": "4:7.4.7-1+deb12u14",
    "debian-reference-en": "2.100",
    "debian-reference-de": "2.100",
    "debian-reference-fr": "2.100",
    "fillets-ng-data": "1.0.1-1.1",
    "espeak-ng": "1.51+dfsg-10+deb12u2",
    "espeak-ng-data": "1.51+dfsg-10+deb12u2",
    "libespeak-ng1": "1.51+dfsg-10+deb12u2",
    "libpcaudio0": "1.2-2",
    "libsonic0": "0.2.0-12",
    "asterisk-core-sounds-en-wav": "1.6.1-1",
    "asterisk-core-sounds-fr-wav": "1.6.1-1",
}
_TIMEOUT_SECONDS = 20
# A .deb is an ar archive: `!<arch>` and a line feed, then a name of 16 bytes, then a decimal time.
_FIRST_TIME = slice(24, 36)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Package:
    """A .deb file. `date` is the day on which it was built, in UTC."""

    name: str
    version: str
    sha256: str
    path: Path
    date: str = ""


def origin(packages: list[Package]) -> dict[str, dict[str, str]]:
    """Return name -> version, date and sha256, for a manifest."""
    return {
        package.name: {
            "version": package.version,
            "date": package.date,
            "sha256": package.sha256,
        }
        for package in packages
    }


def packages_of(data: DataConfig, names: list[str]) -> list[Package]:
    """Find packages in the places that the settings name; errors as in `find_packages`."""
    folder = Path(data.packages) if data.packages is not None else None
    return find_packages(names, Path(data.downloads), folder, data.pin)


def find_packages(
    names: list[str], downloads: Path, folder: Path | None, pin: bool
) -> list[Package]:
    """Find packages in `folder` if it is given, or else in `downloads`, or else with apt.

    Nothing is downloaded if `downloads` has all packages. Raises MachineError if a package is
    not available, or (with `pin`) is not of the tested version.
    """
    where = folder if folder is not None else downloads
    if folder is not None and not folder.is_dir():
        raise MachineError(
            f"data.packages: no such folder ({folder}). Set it to a folder with .deb files."
        )
    absent = [name for name in names if not _candidates(name, where)]
    if absent and folder is not None:
        raise MachineError(
            f"data.packages: {folder} has no {_file_patterns(absent)}. It must contain "
            f"{_file_patterns(names)}."
        )
    if absent:
        _download(absent, downloads, pin)
    return [_package(name, where, pin) for name in names]


def package_files(package: Package, folder: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield relative path and content of each file below a folder whose name ends in `suffix`.

    The archive is read as a stream and never unpacked, so that no path in it can touch the disk.
    Raises DataError if the file is not a complete Debian package.
    """
    command = ["dpkg-deb", "--fsys-tarfile", str(package.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    path = member.name.removeprefix("./")
                    if member.isfile() and path.startswith(folder) and path.endswith(suffix):
                        content = archive.extractfile(member)
                        assert content is not None  # since it is a regular file
                        yield path.removeprefix(folder), content.read()
        except tarfile.TarError as error:
            raise _not_a_package(package.path, str(error)) from None
        if process.wait():
            raise _not_a_package(package.path, "damaged")


def unpack(packages: list[Package], folder: Path) -> None:
    """Unpack packages below `folder`; raises DataError if a file is not a complete package."""
    for package in packages:
        command = ["dpkg-deb", "-x", str(package.path.resolve()), str(folder.resolve())]
        result = _run(command, folder, [package.name])
        if result.returncode:
            raise _not_a_package(package.path, _complaint(result))


def missing_libraries(name: str, downloads: Path) -> list[Package]:
    """Return the dependencies of package `name` that this system lacks, after downloading them.

    Raises MachineError if they are not available.
    """
    folder = downloads / f"{name}-libraries"
    if not folder.is_dir():
        _log.info("downloading the dependencies of %s with apt-get", name)
        with _private_apt(downloads, [name]) as apt, complete_folder(folder) as new_folder:
            # The system's own list tells what is installed. Nothing is locked or installed.
            options = ["-oDir::State::status=/var/lib/dpkg/status", "-oDebug::NoLocking=true"]
            fetch = ["install", "--yes", "--no-install-recommends", "--download-only", name]
            apt.run([*options, *fetch], [name], f"Install it (apt-get install {name}).")
            for path in sorted((apt.root / "cache" / "archives").glob("*.deb")):
                path.replace(new_folder / path.name)
    names = sorted(path.name.partition("_")[0] for path in folder.glob("*.deb"))
    return [_package(name, folder, pin=False) for name in names]


def _candidates(name: str, folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{name}_*.deb"))


def _file_patterns(names: list[str]) -> str:
    return ", ".join(f"{name}_*.deb" for name in names)


def _package(name: str, folder: Path, pin: bool) -> Package:
    paths = _candidates(name, folder)
    if len(paths) != 1:
        raise DataError(
            f"{folder}: several versions of {name} "
            f"({', '.join(path.name for path in paths)}). Keep one."
        )
    path = paths[0]
    result = _run(["dpkg-deb", "-f", str(path.resolve()), "Version"], folder, [name])
    if result.returncode:
        raise _not_a_package(path, _complaint(result))
    version = result.stdout.strip()
    tested = TESTED_VERSIONS.get(name, "of a tested version, but none was tested")
    if pin and version != tested:
        raise MachineError(
            f"data.pin: requires {name} {tested} (got {version} in {path}). Use that version."
        )
    return Package(name, version, file_sha256(path), path, _date(path))


def _date(path: Path) -> str:
    """The day on which a package was built: the time of the first member of its archive."""
    with path.open("rb") as file:
        file.seek(_FIRST_TIME.start)
        time = file.read(_FIRST_TIME.stop - _FIRST_TIME.start)
    return datetime.fromtimestamp(int(time), UTC).date().isoformat()


class _PrivateApt:
    """apt-get with its own state and cache below `root`; it runs in the folder `new` there."""

    def __init__(self, root: Path, names: list[str]) -> None:
        self.root = root
        for folder in ("state/lists/partial", "cache/archives/partial", "new"):
            (root / folder).mkdir(parents=True)
        self._command = [
            "apt-get",
            "-q",
            f"-oDir::State={root / 'state'}",
            f"-oDir::Cache={root / 'cache'}",
            f"-oAcquire::http::Timeout={_TIMEOUT_SECONDS}",
            "-oAcquire::Retries=1",
            "-oAPT::Sandbox::User=root",
        ]
        # Without a network `update` only warns, and apt-get then knows no package.
        self._update = _run([*self._command, "update"], root / "new", names)

    def run(self, arguments: list[str], wanted: list[str], remedy: str) -> None:
        """Run one command; raises MachineError, with apt-get's reason and a remedy, if it fails."""
        result = _run([*self._command, *arguments], self.root / "new", wanted)
        if result.returncode:
            reason = _complaint(self._update) or _complaint(result) or "no reason given"
            raise MachineError(f"apt-get: cannot download {', '.join(wanted)} ({reason}). {remedy}")


@contextmanager
def _private_apt(downloads: Path, names: list[str]) -> Iterator[_PrivateApt]:
    downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads, prefix=".apt-") as private:
        yield _PrivateApt(Path(private).resolve(), names)


def _download(names: list[str], downloads: Path, pin: bool) -> None:
    """Download packages with apt-get into `downloads`."""
    _log.info("downloading %s with apt-get", ", ".join(names))
    wanted = [
        f"{name}={TESTED_VERSIONS[name]}" if pin and name in TESTED_VERSIONS else name
        for name in names
    ]
    with _private_apt(downloads, names) as apt:
        apt.run(["download", *wanted], wanted, _remedy(names))
        for path in sorted((apt.root / "new").glob("*.deb")):
            path.replace(downloads / path.name)
    absent = [name for name in names if not _candidates(name, downloads)]
    if absent:
        raise MachineError(f"apt-get: downloaded no {_file_patterns(absent)}. {_remedy(absent)}")


def _run(command: list[str], folder: Path, names: list[str]) -> CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # so that `_complaint` can read the messages
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise MachineError(
            f"{command[0]}: not installed, but needed for {', '.join(names)}. {_remedy(names)}"
        ) from None


def _complaint(result: CompletedProcess[str]) -> str | None:
    """Return the first error, or else the first warning, of a program of apt or dpkg."""
    lines = result.stderr.splitlines()
    marks = ("E: ", "dpkg-deb: error: ", "W: ")
    complaints = (line.strip() for mark in marks for line in lines if line.startswith(mark))
    return next(complaints, None)


def _remedy(names: list[str]) -> str:
    return (
        f"Use a Debian system with apt and a network, or put {_file_patterns(names)} into a folder "
        f"and set data.packages=FOLDER."
    )


def _not_a_package(path: Path, reason: str | None) -> DataError:
    return DataError(f"{path}: not a complete Debian package ({reason}). Download it again.")
