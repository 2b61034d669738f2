"""Byte copies in which no pointer was rewritten: the rank's code uses the original's variables, which the table says.

The host makes two copies of a library as AMPI does: of the first no word is rewritten, of the second all.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from pieglobalsfind.decoders.ampi.unrewritten_got import as_used, is_unaligned
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.model import Absent, Evidence, Object, Rank, RankTable, Rebase, Redirect, Segment
from pieglobalsfind.targets.live import LiveTarget
from tests.support.running import Job, StartJob

LIBRARY = """
static __thread char small = 1;
int external = 5;
int row[100];
static int hidden = 6;
int *use(int n) {{ external += n; row[n] = n; hidden += small; return &hidden; }}
{more}
"""
HOST = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <link.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    struct link_map *map;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return 1;
    const ElfW(Ehdr) *file = (const void *)map->l_addr;
    const ElfW(Phdr) *headers = (const void *)(map->l_addr + file->e_phoff);
    uintptr_t span = 0, base = map->l_addr;
    for (int i = 0; i < file->e_phnum; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr + headers[i].p_memsz > span)
            span = headers[i].p_vaddr + headers[i].p_memsz;
    uintptr_t copies[2];
    for (int rank = 0; rank < 2; rank++) {
        char *copy = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        copies[rank] = (uintptr_t)copy;
        for (int i = 0; i < file->e_phnum; i++)
            if (headers[i].p_type == PT_LOAD)
                memcpy(copy + headers[i].p_vaddr, (void *)(base + headers[i].p_vaddr), headers[i].p_memsz);
        for (uintptr_t at = 0; rank == 1 && at + 8 <= span; at += 8) {
            uint64_t word;
            memcpy(&word, copy + at, 8);
            if (word >= base && word < base + span) {
                word += copies[rank] - base;
                memcpy(copy + at, &word, 8);
            }
        }
    }
    printf("ready %#lx %#lx %#lx ", base, copies[0], copies[1]);
    printf("%p %p\n", dlsym(library, "external"), dlsym(library, "row"));
    fflush(stdout);
    pause();
}
"""
MOST = 8
NOT_KNOWN = Absent("nothing tells")


def writable_start(path: Path) -> int:
    with path.open("rb") as file:
        return next(segment["p_vaddr"] for segment in ELFFile(file).iter_segments("PT_LOAD") if segment["p_flags"] & 2)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """One whose writable segment begins at no multiple of 8: where it does depends on how much is before it."""
    for count in range(MOST):
        more = "".join(f"int more{n}(int x) {{ return x / {n + 3}; }}\n" for n in range(count))
        (tmp_path / "library.c").write_text(LIBRARY.format(more=more))
        options = ["-shared", "-fPIC", "-g", "-Wl,-z,norelro", "-Wl,-z,noseparate-code"]
        built = tmp_path / "library.so"
        subprocess.run(["gcc", *options, tmp_path / "library.c", "-o", built], check=True, timeout=60)
        if writable_start(built) % 8:
            return built
    pytest.fail("the linker has aligned every segment")


def rank(number: int, elf_object: Object, copy: int) -> Rank:
    return Rank(
        rank=number,
        state="ready",
        processing_element=0,
        kernel_thread=0,
        context=NOT_KNOWN,
        stack=NOT_KNOWN,
        heap=NOT_KNOWN,
        heap_used=NOT_KNOWN,
        range=NOT_KNOWN,
        waiting=None,
        switches=NOT_KNOWN,
        placements=(Rebase(0, elf_object.base, elf_object.span, copy),),
        evidence=Evidence("runtime", "a test"),
    )


def table_of(job: Job, path: Path) -> tuple[LiveTarget, RankTable, dict[str, int]]:
    words = [int(one, 16) for one in job.wait_for("ready").split()[1:]]
    base, first, second, external, row = words
    target = LiveTarget(job.pid)
    elf = LoadedElf(target.read, base)
    segments = tuple(
        Segment(segment.vaddr - elf.low, segment.memory_size, segment.file_size, segment.flags & 7)
        for segment in elf.segments
    )
    elf_object = Object(0, str(path), elf.build_id, base, elf.load_bias, elf.span, segments, True, True)
    ranks = (rank(0, elf_object, first), rank(1, elf_object, second))
    table = RankTable("pie", "AMPI", 2, (elf_object,), ranks, Evidence("runtime", "a test"))
    return target, table, {"external": external, "row": row}


def test_what_ranks_use_is_shown(tmp_path: Path, library: Path, start_job: StartJob) -> None:
    (tmp_path / "host.c").write_text(HOST)
    subprocess.run(["gcc", tmp_path / "host.c", "-o", tmp_path / "host", "-ldl"], check=True, timeout=60)
    target, table, places = table_of(start_job(tmp_path / "host", library), library)
    assert is_unaligned(table.objects[0])
    used = as_used(target, table)
    lost, kept = used.ranks
    moved = [placement for placement in lost.placements if isinstance(placement, Redirect)]
    covered = {at for redirect in moved for at in range(redirect.original, redirect.original + redirect.size)}
    assert covered == {
        *range(places["external"], places["external"] + 4),
        *range(places["row"], places["row"] + 400),
    }
    assert all(redirect.storage == redirect.original and redirect.is_shared for redirect in moved)
    assert kept == table.ranks[1] and lost.placements[-1:] == table.ranks[0].placements
    (warning,) = used.warnings
    assert warning.startswith("privatization of library.so failed in 1 of 2 ranks")


def test_an_aligned_segment_is_not_looked_at(tmp_path: Path) -> None:
    segments = (Segment(0, 64, 64, 5), Segment(4096 + 504, 64, 64, 6))
    elf_object = Object(0, "x.so", b"", 0x10000, 0x10000, 8192, segments, True, True)
    assert not is_unaligned(elf_object)
