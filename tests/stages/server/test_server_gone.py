"""A server that stops during a run, and a server that several runs begin to use at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.errors import MachineError
from pipeline.tracking import open_run
from pipeline.tracking.experiment import open_experiment
from pipeline.tracking.log import register
from tests.stages.trained_members import settings

from .conftest import Server, served

N_RUN = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("server")) as server:
        yield server


def test_simultaneous_runs_share_one_experiment_and_one_model(
    server: Server, tmp_path: Path
) -> None:
    client = MlflowClient(server.uri)

    def begin(number: int) -> str:
        _, experiment = open_experiment(server.uri, tmp_path, "together")
        run = client.create_run(experiment).info.run_id
        manifest = tmp_path / f"{number}.json"
        manifest.write_text(f"[{number}]")
        register(client, run, "together ensembles", manifest)
        return experiment

    with ThreadPoolExecutor(N_RUN) as pool:
        experiments = list(pool.map(begin, range(N_RUN)))
    assert len(set(experiments)) == 1
    assert len(client.search_model_versions("name='together ensembles'")) == N_RUN


def test_server_that_stops_during_a_run_is_named_in_one_line(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    config = settings(tmp_path, "tracking=mlflow_server", f"tracking.uri={server.uri}")
    words = rf"MLflow at {server.uri}: could not store metrics of run .*\. Results are already"
    with pytest.raises(MachineError, match=words) as refused, open_run(config, "metrics") as log:
        log.metrics({"bleu": 1.0})
        server.stop()
        log.metrics({"chrf": 2.0})
    assert "\n" not in str(refused.value)
