"""What was read of one process is freed before the next one is read, without waiting for the garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from inspector.job.job import Job, open_job
from inspector.pointers.original_data import Originals
from tests.support.inspector.ranks import SOURCES, StartRanks


@contextmanager
def without_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("read", [Originals, lambda job: job.pristine(job.privatized[0])])
def test_without_the_collector(start_ranks: StartRanks, read: Callable[[Job], object]) -> None:
    job = open_job(str(start_ranks(SOURCES / "waits.c", loops=True).pid), None)
    with without_collector():
        made = read(job)
        assert made is not None
        left = weakref.ref(made)
        del made
        assert left() is None, "it is in a circle of references"
