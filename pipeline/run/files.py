"""Files and folders that are complete or absent, JSON, and hashes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, DataError
from pipeline.run.locks import exclusive_lock


def digest(*content: Any) -> str:
    """Return the sha256 (hex) of plain values, such as settings and hashes of inputs."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the sha256 (hex) of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Write a text file in one step: an interrupted run leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically, with sorted keys and one item per line."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    write_atomically(path, text + "\n")


def read_json(path: Path, stage: str, kind: type = dict) -> Any:
    """Return the content of a JSON file that a stage wrote; `kind` is dict or list.

    Raises DataError if the file is missing, damaged or of another kind.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file. Run python -m stages.{stage} first.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, kind):
            raise ValueError(f"not a {kind.__name__}")
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: damaged JSON ({error}). {run_again(stage)}") from None
    return content


def run_again(stage: str) -> str:
    """Return the advice that ends an error about a file that a stage wrote."""
    return f"Run python -m stages.{stage} again."


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` if the block ends without an error.

    At every moment `folder` is complete or absent. If it is a link, its target is replaced.
    Temporary folders that a killed run left beside it are removed; if it was killed between the two
    renames at its end, the old folder is put back first.
    """
    if folder.is_symlink():
        folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.building")
    replaced = folder.with_name(f".{folder.name}.replaced")
    if replaced.is_dir() and not (replaced.is_symlink() or folder.exists()):
        replaced.rename(folder)
    for left_over in (temporary, replaced):
        remove(left_over)
    temporary.mkdir()
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if folder.exists():
        folder.replace(replaced)
    temporary.replace(folder)
    remove(replaced)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def new_files(folder: Path, key: str) -> Iterator[Path]:
    """Yield a temporary folder whose files are moved into `folder` if the block ends without error.

    `folder` belongs to the user: its other files stay, and it gets no manifest. One run at a time
    writes into it. If nothing was written, a folder that did not exist before is removed again.
    Raises ConfigError, naming the setting `key`, if the files cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{key}: not a folder ({folder}). Name a folder or a new path.")
    is_new, hidden = not folder.exists(), folder / ".building"
    try:
        hidden.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{key}: cannot be written ({error}). Name another folder.") from None
    with exclusive_lock(hidden / "lock", f"a stage that writes into {folder}", wait=False):
        temporary = hidden / "files"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        try:
            yield temporary
            _move_files(temporary, folder, key)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)  # another run may be about to lock it
            if is_new:
                with suppress(OSError):
                    folder.rmdir()


def _move_files(source: Path, folder: Path, key: str) -> None:
    targets = {path: folder / path.name for path in source.iterdir()}
    for target in targets.values():
        if target.is_dir():
            raise ConfigError(
                f"{key}: {target} is a folder where a file is to be written. Rename it."
            )
    for path, target in targets.items():
        path.replace(target)
