"""Jobs of the program that has every kind of variable, under each method, and core files of them."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.methods.matrix import refused_on
from tests.support.methods import Held, compile_common, compile_kinds, hold
from tests.support.running import StartJob
from tests.support.sharing import Shared


def method_of(request: pytest.FixtureRequest) -> str:
    """The method that the test is for, which this machine has to have."""
    method: str = request.getfixturevalue("method")
    reason = refused_on(platform.machine(), method)
    if reason:
        pytest.skip(reason)
    return method


@pytest.fixture
def held(request: pytest.FixtureRequest, start_job: StartJob, tmp_path: Path, shared: Shared) -> Held:
    """The C++ program under the method that the test is for; rank 0 runs on."""
    method = method_of(request)
    return hold(start_job, method, compile_kinds(method, tmp_path, shared), "spin")


@pytest.fixture
def held_fortran(request: pytest.FixtureRequest, start_job: StartJob, tmp_path: Path, shared: Shared) -> Held:
    method = method_of(request)
    return hold(start_job, method, compile_common(method, tmp_path, shared))
