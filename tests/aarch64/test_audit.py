"""What the audit says of an AArch64 program: its thread-local variables, and what is unknown, with the reason."""

from __future__ import annotations

import json
import subprocess

from tests.aarch64.conftest import Aarch64
from tests.support.running import built


def audit(aarch64: Aarch64, *options: str) -> str:
    program = aarch64.built("fs", source="per_thread.c")
    command = [str(word) for word in (built("inspector"), "audit", program, *options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout


def test_the_variables_are_known_and_who_writes_them_is_not(aarch64: Aarch64) -> None:
    listed = json.loads(audit(aarch64, "--variables", "--json"))["listed"]
    assert sorted(one["name"] for one in listed) == ["before", "external", "own"]
    assert all(one["storage"] == "thread-local" and one["written_by"] is None for one in listed)
    assert "its processor's machine code is not decoded (only that of x86-64 is)" in audit(aarch64, "--variables")


def test_no_method_by_the_word_at_the_thread_pointer(aarch64: Aarch64) -> None:
    text = audit(aarch64, "--method", "tls-word")
    assert "no-thread-pointer-word (tls-word)" in text and "%fs" not in text
