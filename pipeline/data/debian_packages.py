"""Debian packages as a source of data: found in a folder or fetched, without root."""

from __future__ import annotations

import logging
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from pipeline.errors import DataError, MachineError
from pipeline.run.files import complete_folder, file_sha256
from pipeline.run.settings import DataConfig

# The versions that the project was tested with; `data.pin=true` demands them.
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
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Package:
    """A .deb file at hand."""

    name: str
    version: str
    sha256: str
    path: Path


def origin(packages: list[Package]) -> dict[str, dict[str, str]]:
    """Name -> version and sha256, for a manifest."""
    return {one.name: {"version": one.version, "sha256": one.sha256} for one in packages}


def packages_of(data: DataConfig, names: list[str]) -> list[Package]:
    """The packages `names` as the settings say; raises what `find_packages` raises."""
    folder = Path(data.packages) if data.packages is not None else None
    return find_packages(names, Path(data.downloads), folder, data.pin)


def find_packages(
    names: list[str], downloads: Path, folder: Path | None, pin: bool
) -> list[Package]:
    """The packages `names`, from `folder` if one is given, else from `downloads`, else from apt.

    What `downloads` already holds is used as it is and nothing reaches out for it. Raises
    MachineError where a package is neither there nor to be had, or (with `pin`) is not of the
    tested version.
    """
    where = folder if folder is not None else downloads
    if folder is not None and not folder.is_dir():
        raise MachineError(f"data.packages must name a folder with .deb files, got {folder}")
    absent = [name for name in names if not _candidates(name, where)]
    if absent and folder is not None:
        raise MachineError(
            f"data.packages={folder} must hold {_file_patterns(names)}, missing "
            f"{_file_patterns(absent)}"
        )
    if absent:
        _download(absent, downloads, pin)
    return [_package(name, where, pin) for name in names]


def package_files(package: Package, below: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Path below `below` and content of each regular file there whose name ends in `suffix`.

    The archive is read as a stream and never unpacked, so that no path in it can touch the disk.
    Raises DataError where the file is not a Debian package.
    """
    command = ["dpkg-deb", "--fsys-tarfile", str(package.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    path = member.name.removeprefix("./")
                    if member.isfile() and path.startswith(below) and path.endswith(suffix):
                        content = archive.extractfile(member)
                        assert content is not None  # true of every regular file
                        yield path.removeprefix(below), content.read()
        except tarfile.TarError as error:
            raise DataError(f"{package.path} must be a Debian package, got: {error}") from None
        if process.wait():
            raise DataError(f"{package.path} must be a whole Debian package, got a damaged one")


def unpack(packages: list[Package], folder: Path) -> None:
    """Unpack packages below `folder`; DataError where a file is not a whole Debian package."""
    for package in packages:
        command = ["dpkg-deb", "-x", str(package.path.resolve()), str(folder.resolve())]
        result = _run(command, folder, [package.name])
        if result.returncode:
            raise DataError(
                f"{package.path} must be a whole Debian package, got: {_complaint(result)}"
            )


def missing_libraries(name: str, downloads: Path) -> list[Package]:
    """The packages that package `name` depends on and this system lacks, fetched where not there.

    Raises MachineError where they cannot be had.
    """
    folder = downloads / f"{name}-libraries"
    if not folder.is_dir():
        _log.info("downloading what %s needs with apt-get", name)
        with _private_apt(downloads, [name]) as apt, complete_folder(folder) as whole:
            # What is installed is told by the system's own list; nothing is locked or installed.
            options = ["-oDir::State::status=/var/lib/dpkg/status", "-oDebug::NoLocking=true"]
            fetch = ["install", "--yes", "--no-install-recommends", "--download-only", name]
            apt.run([*options, *fetch], [name], f"install it (apt-get install {name})")
            for path in sorted((apt.root / "cache" / "archives").glob("*.deb")):
                path.replace(whole / path.name)
    names = sorted(path.name.partition("_")[0] for path in folder.glob("*.deb"))
    return [_package(one, folder, pin=False) for one in names]


def _candidates(name: str, folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{name}_*.deb"))


def _file_patterns(names: list[str]) -> str:
    return ", ".join(f"{name}_*.deb" for name in names)


def _package(name: str, folder: Path, pin: bool) -> Package:
    paths = _candidates(name, folder)
    if len(paths) != 1:
        raise DataError(
            f"{folder} must hold one version of {name}, got "
            f"{', '.join(path.name for path in paths)}"
        )
    path = paths[0]
    result = _run(["dpkg-deb", "-f", str(path.resolve()), "Version"], folder, [name])
    if result.returncode:
        raise DataError(f"{path} must be a Debian package, got: {_complaint(result)}")
    version = result.stdout.strip()
    tested = TESTED_VERSIONS.get(name, "in a tested version, of which there is none,")
    if pin and version != tested:
        raise MachineError(f"data.pin=true demands {name} {tested}, got {version} in {path}")
    return Package(name, version, file_sha256(path), path)


class _PrivateApt:
    """apt with a state and a cache of its own below `root`, where it runs in the folder `new`."""

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
        # Without a network `update` only warns, and apt then knows no package.
        self._update = _run([*self._command, "update"], root / "new", names)

    def run(self, arguments: list[str], wanted: list[str], remedy: str) -> None:
        """Run one command; MachineError with apt's reason and the remedy where it fails."""
        result = _run([*self._command, *arguments], self.root / "new", wanted)
        if result.returncode:
            reason = _complaint(self._update) or _complaint(result) or "no reason given"
            raise MachineError(
                f"apt-get must be able to get {', '.join(wanted)}, got '{reason}'; {remedy}"
            )


@contextmanager
def _private_apt(downloads: Path, names: list[str]) -> Iterator[_PrivateApt]:
    downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads, prefix=".apt-") as private:
        yield _PrivateApt(Path(private).resolve(), names)


def _download(names: list[str], downloads: Path, pin: bool) -> None:
    """Fetch packages with apt into `downloads`."""
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
        raise MachineError(f"apt-get brought no {_file_patterns(absent)}; {_remedy(absent)}")


def _run(command: list[str], folder: Path, names: list[str]) -> CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # messages that `_complaint` can tell apart
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise MachineError(
            f"{command[0]} must be installed to read {', '.join(names)}, got none on this machine; "
            f"{_remedy(names)}"
        ) from None


def _complaint(result: CompletedProcess[str]) -> str | None:
    """The first error that a program of apt or dpkg wrote, else its first warning."""
    lines = result.stderr.splitlines()
    marks = ("E: ", "dpkg-deb: error: ", "W: ")
    found = (line.strip() for mark in marks for line in lines if line.startswith(mark))
    return next(found, None)


def _remedy(names: list[str]) -> str:
    return (
        f"use a Debian system with apt and a network, or put {_file_patterns(names)} into a folder "
        f"and give it as data.packages=FOLDER"
    )
