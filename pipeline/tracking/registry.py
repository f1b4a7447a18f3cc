"""Manifests of ensembles in MLflow's registry: a version each time that the members change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.parts import file_sha256

if TYPE_CHECKING:
    from mlflow import MlflowClient


def register(client: MlflowClient, run_id: str, name: str, manifest: Path) -> None:
    """Make a file that a run keeps the newest version of registered model `name`.

    A file that the newest version holds already makes no version.
    """
    from mlflow.exceptions import MlflowException

    sha256 = file_sha256(manifest)
    versions = client.search_model_versions(f"name='{name}'")
    newest = max(versions, key=lambda one: int(one.version), default=None)
    if newest is not None and newest.tags.get("sha256") == sha256:
        return
    if not client.search_registered_models(f"name='{name}'"):
        try:
            client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":  # else another process was faster
                raise
    source = f"{client.get_run(run_id).info.artifact_uri}/{manifest.name}"
    client.create_model_version(name, source, run_id, tags={"sha256": sha256})
