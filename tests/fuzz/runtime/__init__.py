"""What of the embedded runtime reads files, words and messages, under libFuzzer; the Makefile here builds it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[2] / "build" / "fuzz" / "runtime"
NAMES = ("options", "program", "checkpoint", "messages")
HANG = 600  # seconds; a loaded machine takes its time
# One allocation, and all of a run: what the runtime keeps to its end, it keeps here from one input to the next.
MEMORY = ("-malloc_limit_mb=500", "-rss_limit_mb=4000")
WORDS = (
    b"-n\0004\0--pes\0002\0--stack-size\00064K\0prog\0word\0",
    b"--procs\x003\0-n\0009\0--method\0tls\0--every\0000.1\0--checkpoint\0/no/such/folder\0prog\0",
    b"--range-size\0001G\0--rewrite\0exact\0--migrate\0lean\0--procs\0002\0-n\0002\0prog\0",
)
DESCRIPTION = b"""ranklens-checkpoint 1
number 9
job-id 4393-6b047dd8-18f62094
ranks 4
processes 2
method pie
rewrite scan
stack-size 8388608
range-size 1073741824
share-code 0
guards 8a3c60d5634ca500 e2f268e9f19abedd
exited 3 0
program /tmp/steps
argument steps
argument 40%20
object 555555554000 4020 59b1ad25fc18439bd09db16084ccd6959310aa1d /tmp/steps
end
"""
# struct frame: FRAME_MESSAGE to process 1; struct wire_message: the rank, a message of 8 bytes, no sender that waits
MESSAGE = struct.pack("<IiiIQ", 1, 0, 1, 0, 80) + struct.pack("<i4x48xQQ", 2, 8, 0) + bytes(8)


def seeds(name: str) -> list[bytes]:
    """Inputs that are sound, or nearly so."""
    program = Path(sys.executable).resolve().read_bytes()[:4096]
    return {"options": [*WORDS], "program": [program], "checkpoint": [DESCRIPTION], "messages": [MESSAGE]}[name]


def build() -> bool:
    """All fuzzers; false if that has failed, and make has printed why."""
    return subprocess.run(["make", "--no-print-directory", "--silent", "-C", str(HERE)], check=False).returncode == 0


def run(name: str, corpus: Path, seconds: int, output: IO[bytes]) -> int:
    """Run one for so many seconds; the status is not 0 if there is a finding, which then lies in `corpus`' folder."""
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", f"-timeout={HANG}", *MEMORY, "-max_len=4096"]
    options += [f"-artifact_prefix={corpus.parent}/{name}-", "-close_fd_mask=3", "-print_final_stats=1"]
    # A refusal leaves by longjmp, as it would end the process: what was allocated by then is not released.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
    command = [str(BUILT / name), *options, str(corpus)]
    done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False)
    return done.returncode
