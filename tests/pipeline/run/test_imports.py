"""Imports: no torch or Hydra before a stage needs it, and fairseq hides no setting."""

import subprocess
import sys

import pytest
from hydra.core.config_store import ConfigStore

from pipeline.fairseq_bridge import import_fairseq
from pipeline.run.settings import CONF

pytestmark = pytest.mark.process

FOREIGN = ("torch", "fairseq", "sentencepiece", "hydra", "mlflow", "dvc")
CODE = f"""
import importlib, pkgutil, sys
from pipeline import metrics, report, store, uncertainty
for room in (metrics, report, store, uncertainty):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print([name for name in {FOREIGN} if name in sys.modules], end="")
"""


def test_evaluation_packages_import_neither_models_nor_runners() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]", "")


def test_decode_and_sweep_start_without_torch() -> None:
    """A refused setting is reported, and complete results are reused, within a second."""
    code = "import sys, stages.decode, stages.sweep; print('torch' in sys.modules, end='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False"), done.stderr


def test_fairseq_registers_no_name_that_conf_uses() -> None:
    """Hydra would use a registered name of fairseq as the schema of our file."""
    import_fairseq("fairseq.trainer")
    import_fairseq("pipeline.fairseq_bridge.models.vggtransformer")
    for path in CONF.rglob("*.yaml"):
        *groups, name = path.relative_to(CONF).parts
        node = ConfigStore.instance().repo
        for group in groups:
            node = node.get(group, {})
        assert name not in node, path
