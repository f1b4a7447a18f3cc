"""The medical test set of the paper, from a folder in its published layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from pipeline.data.text.cleaning import CleaningRules
from pipeline.data.text.sources import make_other_set
from pipeline.errors import DataError
from pipeline.run.settings import CONF, typed


def _write(folder: Path) -> None:
    for part, count in (("dev", 2), ("test", 3)):
        for language in ("en", "de"):
            lines = [f"{language} {part} {place}." for place in range(count)]
            path = folder / f"khresmoi-summary-{part}.{language}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_dev_and_test_are_the_set_as_given(tmp_path: Path) -> None:
    _write(tmp_path)
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        settings = typed(compose("pipeline", [f"data.khresmoi={tmp_path}"]))
    test_set = settings.task.test_sets["MED"]
    assert test_set.corpus == "Khresmoi-Summary, dev and test"
    rules = CleaningRules("en", 3, 12)
    made = make_other_set("MED", test_set, settings.data, ["en", "de", "fr"], rules, 0)
    assert not isinstance(made, str)
    assert [one.text for one in made.sentences] == [
        {"en": f"en {part} {place}.", "de": f"de {part} {place}."}
        for part, count in (("dev", 2), ("test", 3))
        for place in range(count)
    ]
    (tmp_path / "khresmoi-summary-test.de").unlink()
    with pytest.raises(DataError, match=r"khresmoi-summary-test\.de must exist"):
        make_other_set("MED", test_set, settings.data, ["en", "de", "fr"], rules, 0)
