"""rank_hooks_add_program() describes a file as an independent reader of ELF does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from pieglobalsfind.decoders.registry import layout
from pieglobalsfind.decoders.registry.read_consistent import take
from pieglobalsfind.targets import open_target
from tests.support.running import ROOT, StartJob

PROGRAMS = Path(__file__).parent / "programs"
HEADER = ROOT / "build" / "runtime" / "include"
LIBRARY = (
    "long counter = 3; static char zeros[100000]; __thread char local[40]; char *f(void) { return zeros + local[0]; }"
)
PAGE = 4096


def expected(path: str, bias: int) -> tuple[object, ...]:
    """Build-id, segments, TLS size and module, by pyelftools."""
    with open(path, "rb") as file:
        elf = ELFFile(file)
        loads = [segment.header for segment in elf.iter_segments("PT_LOAD")]
        notes = [
            note["n_desc"]
            for section in elf.iter_sections()
            if isinstance(section, NoteSection)
            for note in section.iter_notes()
            if note["n_type"] == "NT_GNU_BUILD_ID"
        ]
        low = min(load.p_vaddr for load in loads) & -PAGE
        tls = [segment.header.p_memsz for segment in elf.iter_segments("PT_TLS")]
        segments = [(load.p_vaddr - low, load.p_memsz, load.p_filesz, load.p_flags & 7) for load in loads]
        span = max(load.p_vaddr + load.p_memsz for load in loads) - low
        dynamic = next(bias + segment.header.p_vaddr for segment in elf.iter_segments("PT_DYNAMIC"))
        return bias + low, span, dynamic, notes, segments, sum(tls)


@pytest.mark.parametrize("kind", ["-pie", "-no-pie"])
def test_it_describes_loaded_files(tmp_path: Path, start_job: StartJob, kind: str) -> None:
    (tmp_path / "library.c").write_text(LIBRARY)
    library, program = tmp_path / "library.so", tmp_path / "describe"
    common = ["gcc", "-g", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*common, "-shared", "-fPIC", tmp_path / "library.c", "-o", library], check=True, timeout=60)
    words = [kind, f"-I{HEADER}", str(PROGRAMS / "describe.c"), "-o", str(program), "-lm", "-ldl"]
    subprocess.run([*common, "-fno-builtin", *words], check=True, timeout=60)
    job = start_job(program, library)
    assert job.wait_for("ready") == "ready 0 1 2 1 1"
    snapshot = take(open_target(pid=job.pid))
    assert snapshot is not None
    records = snapshot.records
    paths = [
        layout.path_text(records.strings[object_record.path : object_record.path + 4096])
        for object_record in records.objects
    ]
    assert paths[0] == str(program.resolve()) and paths[2] == str(library.resolve()) and "libm" in paths[1]
    assert [object_record.flags for object_record in records.objects] == [
        layout.OBJECT_PROGRAM,
        0,
        layout.OBJECT_PRIVATIZED,
    ]
    for path, object_record in zip(paths, records.objects):
        segments = records.segments[
            object_record.first_segment : object_record.first_segment + object_record.segment_count
        ]
        seen = [(part.offset, part.memory_size, part.file_size, part.protection) for part in segments]
        build_ids = [object_record.build_id[: object_record.build_id_size].hex()]
        assert (
            object_record.base,
            object_record.span,
            object_record.dynamic,
            build_ids,
            seen,
            object_record.tls_size,
        ) == expected(path, object_record.load_bias)
        assert (object_record.tls_module_id > 0) == (object_record.tls_size > 0)
    assert records.objects[2].tls_size == 40
