"""constraints.txt pins every dependency to a tested version, completely and without conflicts."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.run.extras import EXTRAS
from pipeline.run.settings import ROOT

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_REQUIREMENTS = [
    Requirement(text)
    for group in (_PROJECT["dependencies"], *_PROJECT["optional-dependencies"].values())
    for text in group
]


def _tested() -> dict[str, str]:
    """Return name -> version of every package in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("requirement", _REQUIREMENTS, ids=str)
def test_case_23_requirement_is_pinned_to_the_tested_version(
    requirement: Requirement,
) -> None:
    assert str(requirement.specifier) == f"=={_tested()[canonicalize_name(requirement.name)]}"


def test_case_23_pinned_set_is_complete_and_consistent() -> None:
    """Every dependency of a pinned package is pinned to an allowed version.

    pip then has exactly one choice for each package.
    """
    tested = _tested()
    waiting, seen = list(_REQUIREMENTS), set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        assert name in tested, f"constraints.txt: {requirement} is missing"
        assert requirement.specifier.contains(tested[name], prereleases=True), requirement
        waiting += _dependencies(name, requirement.extras)


def test_torchaudio_is_not_in_the_tested_set() -> None:
    """pip installs it, since fairseq asks for it; beside a CPU build of torch it does not load."""
    assert find_spec("torchaudio") is None, "pip uninstall torchaudio"


def _dependencies(name: str, extras: set[str]) -> list[Requirement]:
    """Return what a package requires on this machine, or nothing if it is not installed."""
    try:
        needed = map(Requirement, distribution(name).requires or [])
    except PackageNotFoundError:
        return []
    return [
        requirement
        for requirement in needed
        if requirement.marker is None
        or any(requirement.marker.evaluate({"extra": extra}) for extra in (*extras, ""))
    ]


def test_modules_of_an_extra_are_those_of_its_packages() -> None:
    """An error names the extra that brings the missing module."""
    distributions = packages_distributions()
    for extra, modules in EXTRAS.items():
        texts = _PROJECT["optional-dependencies"][extra]
        listed = {canonicalize_name(Requirement(text).name) for text in texts}
        brought = [{*map(canonicalize_name, distributions[module])} & listed for module in modules]
        assert all(brought)
        assert set().union(*brought) == listed


def test_stages_after_decoding_need_neither_dvc_nor_mlflow() -> None:
    base = {Requirement(text).name for text in _PROJECT["dependencies"]}
    assert base & {"dvc", "mlflow", "torch", "scikit-learn"} == set()
