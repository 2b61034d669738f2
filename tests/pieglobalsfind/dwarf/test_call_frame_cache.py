"""Rules and calls that are kept of a file: the same answers at the second look, also without the file's tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pieglobalsfind.cache import call_frame_cache
from pieglobalsfind.cache.call_frame_cache import CallAt, Rules
from pieglobalsfind.cache.elf_file_cache import load, state_of, store
from pieglobalsfind.dwarf import cfi
from pieglobalsfind.dwarf.cfi import CodeFile
from pieglobalsfind.elf.file import ElfFile
from tests.pieglobalsfind.dwarf.test_function_cache import built, symbols

Answers = dict[int, tuple[object, tuple[CallAt, ...]]]


def answers(code: CodeFile, addresses: list[int]) -> Answers:
    return {at: (code.rules(at), code.calls(at)) for at in addresses}


def test_the_second_look_opens_no_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = built(tmp_path / "program", "first")
    addresses = [at + 4 for at in symbols(program)]
    code = CodeFile(str(program))
    first = answers(code, addresses)
    assert len(first) == 5 and all(rules is not None and calls for rules, calls in first.values())
    code.keep()
    monkeypatch.setattr(cfi, "Module", None)
    assert answers(CodeFile(str(program)), addresses) == first


def test_another_content_is_read_anew(tmp_path: Path) -> None:
    program = built(tmp_path / "program", "first")
    place = next(at for at, name in symbols(program).items() if "first" in name) + 4
    code = CodeFile(str(program))
    assert code.calls(place)[-1].function == "outer::first"
    code.keep()
    built(program, "second")
    assert CodeFile(str(program)).calls(place)[-1].function == "outer::second"


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"no JSON",
        json.dumps({"rules": {"x": [7, 8, [], True]}, "calls": {}}).encode(),
        json.dumps({"rules": {"1": [7, "8", [], True]}, "calls": {}}).encode(),
        json.dumps({"rules": {"1": [7, 8, [[1, 2, 3]], True]}, "calls": {}}).encode(),
        json.dumps({"rules": {"1": [7, 8, [], 1]}, "calls": {}}).encode(),
        json.dumps({"rules": {}, "calls": {"1": [["f", None, 3]]}}).encode(),
        json.dumps({"rules": {"1": [7, 8, [[16, -8]], False]}, "calls": {"1": [["f", "a.c"]]}}).encode(),
    ],
)
def test_another_form_is_ignored(tmp_path: Path, data: bytes) -> None:
    program = built(tmp_path / "program", "first")
    with ElfFile(str(program)) as elf:
        state = state_of(str(program), elf.build_id)
    store(state, call_frame_cache.KIND, data)
    assert load(state, call_frame_cache.KIND) == data
    kept = call_frame_cache.CallCache(state)
    assert kept.rules == {} and kept.calls == {}


def test_what_is_kept_is_what_was_known(tmp_path: Path) -> None:
    program = built(tmp_path / "program", "first")
    with ElfFile(str(program)) as elf:
        state = state_of(str(program), elf.build_id)
    kept = call_frame_cache.CallCache(state)
    kept.rules[16] = Rules(7, 8, ((16, -8), (6, -16)), False)
    kept.calls[16] = CallAt("inner", "a.h", 3), CallAt("outer", "a.c", 4)
    kept.keep()
    again = call_frame_cache.CallCache(state)
    assert again.rules == kept.rules and again.calls == kept.calls
