"""Imports: no torch or Hydra before a stage needs it, and fairseq hides no setting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore

from pipeline.fairseq_bridge import import_fairseq
from pipeline.run.settings import CONF, ROOT

pytestmark = pytest.mark.slow

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


def test_training_text_is_written_without_torch_and_fairseq(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "sys.modules['torch'] = sys.modules['fairseq'] = None\n"
        "import stages.prepare\n"
        "from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split\n"
        "write_dictionaries(Path('out'), ('en', 'de'), {'a': 2})\n"
        "write_split(Path('out'), 'train', ('en', 'de'), ([['a']], [['a', 'b']]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert len(list((tmp_path / "out").iterdir())) == 6


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
