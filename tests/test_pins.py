"""What a clean machine installs is the set that was tested: pinned, whole, without conflicts."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.run.settings import ROOT

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_ASKED_FOR = [
    Requirement(one)
    for group in (_PROJECT["dependencies"], *_PROJECT["optional-dependencies"].values())
    for one in group
]


def _tested() -> dict[str, str]:
    """Name -> version of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("requirement", _ASKED_FOR, ids=str)
def test_case_23_what_is_asked_for_is_pinned_to_the_tested_version(
    requirement: Requirement,
) -> None:
    assert str(requirement.specifier) == f"=={_tested()[canonicalize_name(requirement.name)]}"


def test_case_23_the_tested_set_is_whole_and_agrees_with_itself() -> None:
    """Everything that anything in the set depends on is in the set, in a version that is allowed.

    So pip with these constraints has one choice for each package, and that choice fits.
    """
    tested = _tested()
    waiting, seen = list(_ASKED_FOR), set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        assert name in tested, f"{requirement} is in no line of constraints.txt"
        assert requirement.specifier.contains(tested[name], prereleases=True), requirement
        waiting += _dependencies(name, requirement.extras)


def _dependencies(name: str, extras: set[str]) -> list[Requirement]:
    """What a package needs on this machine; nothing where it is not installed."""
    try:
        needed = map(Requirement, distribution(name).requires or [])
    except PackageNotFoundError:
        return []
    return [
        one
        for one in needed
        if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in (*extras, ""))
    ]
