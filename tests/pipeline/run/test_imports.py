"""What comes after decoding, imported as a whole: no model and no runner comes with it."""

import subprocess
import sys

from hydra.core.config_store import ConfigStore

from pipeline.fairseq_bridge import import_fairseq
from pipeline.run.settings import CONF

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


def test_what_comes_after_decoding_needs_no_model_and_no_runner() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]", "")


FAIRSEQ = """
import sys
from pipeline.fairseq_bridge import import_fairseq
import_fairseq("fairseq.trainer")
absent = ("sklearn", "sklearn.metrics", "scipy.stats", "tabulate", "wcwidth")
print([name for name in absent if name in sys.modules])
from scipy.stats import spearmanr
from sklearn.metrics import f1_score
from tabulate import tabulate
print(f1_score([1, 0], [1, 0]), round(spearmanr([1, 2, 3], [1, 2, 3]).statistic, 6))
print(tabulate([[1]], tablefmt="plain"), end="")
"""


def test_fairseq_comes_without_what_it_does_not_need_here_and_leaves_the_place_free() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAIRSEQ], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n1.0 1.0\n1"), done.stderr


def test_fairseq_registers_no_name_that_conf_uses() -> None:
    """Hydra would take such a name of fairseq for the schema of ours."""
    import_fairseq("fairseq.trainer")
    import_fairseq("pipeline.fairseq_bridge.models.vggtransformer")
    for path in CONF.rglob("*.yaml"):
        *groups, name = path.relative_to(CONF).parts
        node = ConfigStore.instance().repo
        for group in groups:
            node = node.get(group, {})
        assert name not in node, path


COMPILER = """
import sys
from pipeline.fairseq_bridge import import_fairseq
Adam = import_fairseq("fairseq.optim.adam").Adam
attend = import_fairseq("fairseq.modules").MultiheadAttention(4, 2, self_attention=True)
import torch
optimiser, x, last = Adam(attend.parameters()), torch.ones(3, 2, 4), torch.zeros(2, 3).bool()
optimiser.zero_grad()
attend(x, x, x, key_padding_mask=last)[0].sum().backward()
optimiser.step()
optimiser.load_state_dict(optimiser.state_dict())
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules], end="")
try:
    attend(x, x, x, key_padding_mask=last[:, :2])
except AssertionError as error:
    print(error, end="")
"""


def test_a_step_of_training_comes_without_the_compiler_of_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILER], capture_output=True, text=True, check=False
    )
    told = "[]a key padding mask must be (2, 3), got (2, 2)"
    assert (done.returncode, done.stdout) == (0, told), done.stderr
