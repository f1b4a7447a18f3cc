"""Stage uncertainty: without torch and fairseq, for one store, and for all stores of a task."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from pipeline.errors import ConfigError, DataError, PipelineError, StoreError
from pipeline.run.application import _run_locked
from pipeline.run.artifacts import PartFolder
from pipeline.run.files import read_json
from pipeline.run.locks import exclusive_lock
from pipeline.run.settings import ROOT, PipelineConfig
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics, open_store
from pipeline.uncertainty.measures_of_sequences import SINGLE_MODEL
from pipeline.uncertainty.sequence import KEYS
from pipeline.uncertainty.token import token_statistics
from stages.uncertainty import uncertainty
from tests.artifacts import made_by
from tests.composed_settings import composed_settings

WITHOUT_TORCH = """
import runpy, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "fairseq"):
            raise ImportError(f"{name} must not be imported here")

sys.meta_path.insert(0, Refuse())
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def settings(root: Path, *overrides: str) -> PipelineConfig:
    return composed_settings(f"io.root={root}", *overrides)


@pytest.fixture
def example_store(tmp_path: Path) -> Path:
    """Write the store of the example in the documentation."""
    text = (ROOT / "docs" / "write_a_store.md").read_text(encoding="utf-8")
    code, *_ = re.findall(r"```python.*?\n(.*?)```", text, flags=re.DOTALL)
    path = tmp_path / "toy store.h5"
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=True)
    return path


def test_one_store_is_measured_without_torch_and_fairseq(example_store: Path, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    arguments = [
        f"io.root={tmp_path}",
        f"io.store='{example_store}'",
        f"io.out='{out}'",
        "uncertainty.beam=[1,2]",
        "uncertainty.temperature=[1,10]",
        "uncertainty.length_norm=true",
    ]
    command = [sys.executable, "-c", WITHOUT_TORCH, "stages.uncertainty", *arguments]
    subprocess.run(command, cwd=ROOT, check=True)
    names = {"sequence.parquet", "token.parquet", "checks.json", "mine.txt"}
    assert {path.name for path in out.iterdir()} == names
    table = pd.read_parquet(out / "sequence.parquet")
    assert len(table) == 20 * 4
    assert table["expr_mi_w_c"].notna().all()


def test_the_log_names_what_is_inconsistent_and_where_the_checks_are(
    example_store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    out = tmp_path / "out"
    with h5py.File(example_store, "r+") as file:
        file["/hypothesis/score"][0] *= 0.75
    uncertainty(settings(tmp_path, f"io.store='{example_store}'", f"io.out={out}"))
    (warning,) = [message for message in caplog.messages if "scores" in message]
    assert warning == (
        f"{example_store}: 1 of 40 scores differ from ln P / length ** length_penalty by up to "
        f"25 %; see {out / 'checks.json'}"
    )
    assert not json.loads((out / "checks.json").read_text())["ok"]


def test_file_that_is_not_a_store_is_refused(tmp_path: Path):
    (tmp_path / "x.h5").write_text("nothing")
    out = tmp_path / "out"
    with pytest.raises(StoreError, match="not a complete HDF5 file"):
        uncertainty(settings(tmp_path, f"io.store={tmp_path / 'x.h5'}", f"io.out={out}"))
    assert not out.exists()


def test_store_with_a_missing_row_is_refused(example_store: Path, tmp_path: Path):
    with h5py.File(example_store, "r+") as file:
        file["/token/logprob"][7] = np.nan
    with pytest.raises(StoreError, match="/token/logprob, row 7: must not be NaN"):
        uncertainty(settings(tmp_path, f"io.store='{example_store}'", f"io.out={tmp_path / 'o'}"))


def test_error_about_a_decode_that_is_running_names_its_process(tmp_path: Path):
    config = settings(tmp_path, "part=any")
    locks = tmp_path / "hydra" / "locks"
    own = locks / "uncertainty.nmt_ende"
    first = r"no such file\. Run python -m stages\.decode first\."
    with pytest.raises(DataError, match=rf"{first}$"):
        _run_locked(uncertainty, config, own)
    running = rf"running now \(decode\.nmt_ende, process {os.getpid()}\): wait until it ends\.$"
    refused = pytest.raises(DataError, match=rf"{first} It is {running}")
    with exclusive_lock(locks / "decode.nmt_ende", "decode", wait=False), refused:
        _run_locked(uncertainty, config, own)
    refused = pytest.raises(DataError, match=rf"{first}$")
    with exclusive_lock(locks / "decode.asr", "decode", wait=False), refused:
        _run_locked(uncertainty, config, own)


def test_refused_run_leaves_no_folder(example_store: Path, tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    store = f"io.store='{example_store}'"
    with pytest.raises(ConfigError, match=r"io\.out: not a folder"):
        uncertainty(settings(tmp_path, store, f"io.out={tmp_path / 'file'}"))
    with pytest.raises(ConfigError, match=r"io\.out: cannot be written"):
        uncertainty(settings(tmp_path, store, f"io.out={tmp_path / 'file' / 'out'}"))
    members = f"io.member_stores=['{example_store}','{example_store}','{example_store}']"
    with pytest.raises(StoreError, match="n_member must be 1"):
        uncertainty(settings(tmp_path, store, f"io.out={tmp_path / 'out'}", members))
    blocked = tmp_path / "blocked" / "sequence.parquet"
    blocked.mkdir(parents=True)
    with pytest.raises(ConfigError, match=rf"io\.out: {blocked} is a folder where a file"):
        uncertainty(settings(tmp_path, store, f"io.out={blocked.parent}"))
    assert [*blocked.parent.iterdir()] == [blocked]
    assert {path.name for path in tmp_path.iterdir()} == {"file", "blocked", example_store.name}


def test_only_one_run_at_a_time_writes_into_an_output_folder(example_store: Path, tmp_path: Path):
    out = tmp_path / "out"
    config = settings(tmp_path, f"io.store='{example_store}'", f"io.out={out}")
    with (
        exclusive_lock(out / ".building" / "lock", "another", wait=False),
        pytest.raises(
            PipelineError, match=rf"run of a stage that writes into {out} \(process {os.getpid()}\)"
        ),
    ):
        uncertainty(config)
    # Files left by a killed run are removed.
    (out / ".building" / "files").mkdir()
    (out / ".building" / "files" / "token.parquet").write_text("half")
    uncertainty(config)
    names = {"sequence.parquet", "token.parquet", "checks.json"}
    assert {path.name for path in out.iterdir()} == names


@pytest.mark.parametrize("key", ["io.out=somewhere", "io.member_stores=[a.h5]"])
def test_settings_for_one_store_need_io_store(key: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"io\.out, io\.member_stores: need io\.store"):
        uncertainty(settings(tmp_path, key))


def test_io_store_needs_io_out(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"io\.out: missing"):
        uncertainty(settings(tmp_path, "io.store=x.h5"))


def _write_part(
    folder: PartFolder, name: str, members: list[str], ensemble: str, regime: str = "beam"
) -> None:
    random = np.random.default_rng(len(members))
    with (
        folder.building(name) as part,
        StoreWriter(
            part / "store.h5",
            test_set=name.rpartition(".")[2],
            ensemble=ensemble,
            members=members,
            regime=regime,
            combination="prex",
            vocab_size=5,
        ) as store,
    ):
        for sentence in range(3):
            logit = random.normal(size=(2, len(members), 5))
            logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
            token = np.array([3, 2])
            statistics: TokenStatistics = token_statistics(logprob, token)
            text = f"{' '.join(members)} said it"
            store.add_sentence(
                sentence, f"s {sentence}", "r", [Hypothesis(token, text, -1.0, True, statistics)]
            )


def test_every_ensemble_store_of_a_task_is_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    parts = {
        "e.prex.help": (["seed_1", "seed_2"], "e", "beam"),
        "e.prex.permuted": (["seed_1", "seed_2"], "e", "beam"),
        "e.teacher_forcing.help": (["seed_1", "seed_2"], "e", "teacher_forcing"),
        "e.subset_1_2.prex.help": (["seed_1", "seed_2"], "subset", "beam"),
        "seed_1.beam.help": (["seed_1"], "seed_1", "beam"),
        "seed_2.beam.help": (["seed_2"], "seed_2", "beam"),
    }
    folder = PartFolder(
        tmp_path / "decode" / "nmt_ende", "decode", dict.fromkeys(parts, made_by("decode"))
    )
    for name, (members, ensemble, regime) in parts.items():
        _write_part(folder, name, members, ensemble, regime)
    folder.write_manifest()
    (tmp_path / "uncertainty" / "nmt_ende" / "unexpected").mkdir(parents=True)

    caplog.set_level("INFO")
    uncertainty(settings(tmp_path))

    (line,) = [message for message in caplog.messages if "measures of" in message]
    assert line == "measures of 5 decodes: 15 sentences (0 without a hypothesis), 30 tokens"

    # The stores have one hypothesis per sentence, and the default is B = 1 and 5.
    (warning,) = [record.message for record in caplog.records if "uncertainty.beam" in record.msg]
    assert "uncertainty.beam=5: 4 of 4 stores have fewer hypotheses" in warning
    checks = read_json(
        tmp_path / "uncertainty" / "nmt_ende" / "e.prex.permuted" / "checks.json", "uncertainty"
    )
    assert checks["beam"]["used"] == {"1": 1, "5": 1}
    measured = tmp_path / "uncertainty" / "nmt_ende"
    names = sorted(path.name for path in measured.iterdir())
    assert names == sorted(["manifest.json", *parts.keys() - {"e.subset_1_2.prex.help"}])
    single = measured / "seed_1.beam.help"
    assert sorted(path.name for path in single.iterdir()) == ["checks.json", "sequence.parquet"]
    columns = pd.read_parquet(single / "sequence.parquet").columns
    assert set(columns) == {*KEYS, *SINGLE_MODEL}
    absent = read_json(single / "checks.json", "uncertainty")["absent"]
    assert absent["var_p"] == "with one member it is 0 or equal to another measure"
    tables = {
        name: pd.read_parquet(measured / name / "sequence.parquet") for name in list(parts)[:3]
    }
    assert tables["e.prex.help"]["xbleu"].gt(0).all()
    assert tables["e.prex.permuted"]["xbleu"].isna().all()
    with open_store(folder.root / "e.prex.permuted" / "store.h5") as store:
        assert store.members == ["seed_1", "seed_2"]


def test_case_2_ensemble_of_one_has_no_knowledge_uncertainty(tmp_path: Path):
    folder = PartFolder(
        tmp_path / "decode" / "nmt_ende", "decode", {"e.prex.help": made_by("decode")}
    )
    _write_part(folder, "e.prex.help", ["seed_1"], "e")
    folder.write_manifest()
    uncertainty(settings(tmp_path))
    path = tmp_path / "uncertainty" / "nmt_ende" / "e.prex.help" / "sequence.parquet"
    table = pd.read_parquet(path)
    assert (table[["prex_mi_c", "expr_rmi_s", "var_p", "xbleu"]] == 0).all(axis=None)


def test_ensembles_without_one_member_are_measured_too(tmp_path: Path):
    """Of subsets, only those of all members but one have measures."""
    seeds = ["seed_1", "seed_2", "seed_3"]
    parts = {
        "e.prex.help": (seeds, "e", "beam"),
        "e.subset_1_2.prex.help": (seeds[:2], "subset", "beam"),
        "e.subset_1_2.prex.permuted": (seeds[:2], "subset", "beam"),
        "e.subset_1.prex.help": (seeds[:1], "subset", "beam"),
    }
    folder = PartFolder(
        tmp_path / "decode" / "nmt_ende", "decode", dict.fromkeys(parts, made_by("decode"))
    )
    for name, (members, ensemble, regime) in parts.items():
        _write_part(folder, name, members, ensemble, regime)
    folder.write_manifest()
    uncertainty(settings(tmp_path))
    measured = {path.name for path in (tmp_path / "uncertainty" / "nmt_ende").iterdir()}
    assert measured == {*list(parts)[:2], "manifest.json"}
