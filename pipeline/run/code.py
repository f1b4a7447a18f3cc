"""The provenance of results: the commit, and the code and settings that dvc.yaml lists."""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import yaml
from omegaconf import DictConfig, OmegaConf

from pipeline.run.artifacts import Provenance
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import DVC_YAML, IS_CHECKOUT, ROOT, PipelineConfig, plain

_DISTRIBUTION = "sequence-uncertainty"
_DOWNLOAD_FOLDERS = ("downloads", "packages")  # settings of group data


def code_digest(stage: str, *implementations: Callable[..., Any]) -> str:
    """Return the sha256 of the code of a stage: its deps in dvc.yaml, and plug-ins.

    It is part of the digest of every result, so that results are made again if the code changes.

    implementations: the functions that the settings name; those outside of pipeline/ are plug-ins.
    """
    deps = _dvc_stages()[stage]["deps"]
    paths = [ROOT / dep for dep in deps if dep.startswith(("pipeline/", "stages/"))]
    sources = [source for path in paths for source in sorted(path.rglob("*.py")) or [path]]
    for function in implementations:
        source = Path(inspect.getfile(function)).resolve()
        if source not in sources and not source.is_relative_to(ROOT / "pipeline"):
            sources.append(source)
    return digest([file_sha256(source) for source in sources])


def declared_params(stage: str) -> list[str] | None:
    """Return the keys of the composed settings that dvc.yaml lists as params of a stage.

    None if the stage may read all settings: it is not in dvc.yaml, or lists none.
    """
    for entry in _dvc_stages().get(stage, {}).get("params", []):
        for path, keys in entry.items():
            if path.endswith("resolved.yaml"):
                return [str(key) for key in keys]
    return None


def input_folders(stage: str) -> list[str]:
    """Return the folders of io.root that a stage reads, as dvc.yaml lists them."""
    if stage == "plan":  # it is not in dvc.yaml
        return ["prepare"]
    deps = _dvc_stages().get(stage, {}).get("deps", [])
    return [Path(dep).parts[1] for dep in deps if dep.startswith("outputs/")]


def output_folders(stage: str) -> list[str]:
    """Return the folders of io.root that a stage writes, as dvc.yaml lists them."""
    content = _dvc_stages().get(stage, {})
    entries = [entry for kind in ("outs", "metrics", "plots") for entry in content.get(kind, [])]
    paths = [path for entry in entries for path in (entry if isinstance(entry, dict) else [entry])]
    return [*dict.fromkeys(Path(path).parts[1] for path in paths)]


def resumed_folders(stage: str) -> list[str]:
    """Return the folders of io.root whose parts a stage keeps and resumes: its persistent outs."""
    outs = _dvc_stages().get(stage, {}).get("outs", [])
    persistent = [path for out in outs if isinstance(out, dict) for path in out]
    return [Path(path).parts[1] for path in persistent]


def readers_before(stage: str, key: str) -> list[str]:
    """Return the stages before `stage` that read a setting or group, as dvc.yaml lists them."""
    stages = [*_dvc_stages()]
    before = stages[: stages.index(stage)] if stage in stages else []
    return [name for name in before if is_read(key, declared_params(name) or [])]


def is_read(key: str, params: list[str]) -> bool:
    """Whether one of the settings in `params` is `key`, contains it or is in this group."""
    return any(
        f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.") for name in params
    )


def stages_of_a_task() -> list[str]:
    """Return the stages that dvc.yaml runs for each task with its settings, in their order."""
    return [
        name for name, stage in _dvc_stages().items() if "matrix" in stage and "params" in stage
    ]


def provenance(
    config: PipelineConfig,
    stage: str,
    made_from: Mapping[str, str],
    *implementations: Callable[..., Any],
) -> Provenance:
    """Return what the folder of a stage is made from: its code, settings and inputs.

    The settings are those that the stage may read, except the folders of downloads, which do not
    change a result. made_from: input -> digest.
    """
    keys = declared_params(stage) or []
    settings = {key: plain(OmegaConf.select(cast(DictConfig, config), key)) for key in keys}
    if "data" in settings:
        settings["data"] = settings["data"] | dict.fromkeys(_DOWNLOAD_FOLDERS)
    return Provenance(stage, code_digest(stage, *implementations), digest(settings), made_from)


def commit_hash() -> str:
    """Return the commit of this checkout; a wheel has none, and may lie in another repository."""
    return (_git("rev-parse", "--verify", "--quiet", "HEAD") if IS_CHECKOUT else "") or "unknown"


def program_version() -> str:
    """Return `sequence-uncertainty 0.1.0, commit 0123456789ab`, and whether the code has changes.

    Settings and results may change without that the code does.
    """
    version = f"{_DISTRIBUTION} {_installed_version()}".strip()
    commit = commit_hash()
    if commit == "unknown":
        return version
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", "pipeline", "stages")
    return f"{version}, commit {commit[:12]}{' with uncommitted changes' if changes else ''}"


def _git(*arguments: str) -> str:
    """Return the output of git in this checkout; empty if it fails or there is no git."""
    command = ["git", *arguments]
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return result.stdout.strip()


def _installed_version() -> str:
    """Return the version of this package; empty in a checkout that is not installed."""
    try:
        return metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _dvc_stages() -> dict[str, Any]:
    stages: dict[str, Any] = yaml.safe_load(DVC_YAML.read_text("utf-8"))["stages"]
    return stages
