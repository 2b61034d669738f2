"""Inputs that once were findings, and those that fuzzing starts from; `make fuzz` finds new ones."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.fuzz.decoder import KEPT, MOST_MEGABYTES, NAMES, load


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_decoded_truly(name: str) -> None:
    """No answer is wrong, no exception escapes, and no input takes more memory than it may."""
    decoder = load(name)
    kept = sorted((KEPT / name).glob("*"))
    inputs = [*decoder.seeds(), *(path.read_bytes() for path in kept)]
    assert inputs
    tracemalloc.start()
    try:
        for data in inputs:
            decoder.check(data)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEGABYTES << 20
    finally:
        tracemalloc.stop()
