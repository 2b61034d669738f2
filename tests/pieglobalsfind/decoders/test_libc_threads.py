"""glibc's kernel threads, found from outside: each with its number and its own part of the memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.decoders.libc_threads import control_blocks, descriptions
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.x86_64 import X86_64
from pieglobalsfind.targets.live import LiveTarget
from tests.support.running import Job, StartJob

THREADS = 6
# Stacks without guard pages are neighbours in one mapping, as all are since glibc 2.42.
SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *run(void *unused) {
  int here;
  printf("THREAD %d %p %p\n", gettid(), (void *)pthread_self(), (void *)&here);
  fflush(stdout);
  pthread_barrier_wait(&all);
  pause();
  return unused;
}
int main(int count, char **words) {
  pthread_attr_t how;
  pthread_t thread;
  (void)words;
  pthread_attr_init(&how);
  if (count > 1) pthread_attr_setguardsize(&how, 0);
  pthread_attr_setstacksize(&how, 1 << 20);
  pthread_barrier_init(&all, 0, THREADS + 1);
  for (int made = 0; made < THREADS; made++) pthread_create(&thread, &how, run, 0);
  pthread_barrier_wait(&all);
  printf("THREAD %d %p %p\nready\n", gettid(), (void *)pthread_self(), (void *)&how);
  fflush(stdout);
  pause();
}
"""


def compiled(compiler: str, folder: Path) -> Path:
    source, path = folder / "threads.c", folder / "threads"
    source.write_text(SOURCE)
    words = [compiler, "-pthread", f"-DTHREADS={THREADS}", str(source), "-o", str(path)]
    subprocess.run(words, check=True, timeout=120)
    return path


def told(job: Job) -> dict[int, tuple[int, int]]:
    """By thread: its pthread_self(), which is its control block's address, and the address of a variable."""
    rows = [line.split()[1:] for line in job.lines if line.startswith("THREAD ")]
    return {int(tid): (int(block, 16), int(place, 16)) for tid, block, place in rows}


@pytest.mark.parametrize("options", [[], ["without guard pages"]], ids=["guarded", "neighbours"])
def test_every_thread_has_its_own(options: list[str], tmp_path: Path, start_job: StartJob) -> None:
    job = start_job(compiled("gcc", tmp_path), *options)
    job.wait_for("ready")
    check(job, X86_64)


def check(job: Job, processor: Processor) -> None:
    truth = told(job)
    assert len(truth) == THREADS + 1
    target = LiveTarget(job.pid)
    described = descriptions(target, target.maps())
    assert described is not None
    found = {block.tid: block for block in control_blocks(target, target.maps(), described, processor)}
    assert {tid: control_block.address for tid, control_block in found.items()} == {
        tid: block for tid, (block, _) in truth.items()
    }
    for tid, (_, place) in truth.items():
        if tid != job.pid:  # the first thread's stack is the process's
            holders = [
                other
                for other, control_block in found.items()
                if control_block.mapping.start <= place < control_block.address
            ]
            assert holders == [tid]
