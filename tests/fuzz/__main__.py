"""`make fuzz`: run every decoder, or those that are named, under Atheris or libFuzzer for FUZZ_SECONDS altogether.

An input that crashes, takes more than 2 s of processor time or 500 MB, or has a wrong answer, ends the decoder's run
with status 1. Of a decoder in Python it is kept in tests/fuzz/kept/DECODER, where `make test` replays it from then on;
the corpus, and findings in the runtime, lie in build/fuzz.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz import runtime
from tests.fuzz.decoder import KEPT, NAMES

CORPUS = Path("build/fuzz").resolve()
OF_RUNTIME = [f"rankrun-{name}" for name in runtime.NAMES]
MOST_READ = 1 << 16  # bytes at the end of a fuzzer's output
RUNS = re.compile(rb"Done (\d+) in|stat::number_of_executed_units: (\d+)")


def fuzz(name: str, seconds: int) -> bool:
    """Whether nothing was found; prints how many inputs were tried. `rankrun-` precedes the parts of the runtime."""
    log = CORPUS / f"{name}.log"
    with log.open("wb") as output:  # not read here: the fuzzer's peak of memory would begin with this process's
        if name in OF_RUNTIME:
            status = runtime.run(name.partition("-")[2], CORPUS / name, seconds, output)
        else:
            command = [sys.executable, "-m", "tests.fuzz.decoder", name, str(CORPUS / name), str(seconds)]
            status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    with log.open("rb") as output:
        output.seek(max(log.stat().st_size - MOST_READ, 0))
        text = output.read()
    counts = [int(first or second) for first, second in RUNS.findall(text)]
    result = "FOUND:" if status else "nothing found"
    print(f"{name:18} {max(counts, default=0):>10,} inputs, {result}", flush=True)
    if status:
        print(text[-4000:].decode(errors="replace"))
    return not status


def main() -> int:
    every = [*NAMES, *OF_RUNTIME]
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=60, help="of all decoders together (60)")
    parser.add_argument("decoders", nargs="*", metavar="DECODER", help=f"of {', '.join(every)}; all by default")
    options = parser.parse_args()
    names = options.decoders or every
    unknown = [name for name in names if name not in every]
    if unknown:
        parser.error(f"no such decoder: {', '.join(unknown)}")
    CORPUS.mkdir(parents=True, exist_ok=True)
    if any(name in OF_RUNTIME for name in names) and not runtime.build():
        return 2
    results = [fuzz(name, max(options.seconds // len(names), 1)) for name in names]
    if not all(results):
        print(f"Inputs are kept in {KEPT} or {CORPUS}; mend the decoder, then commit a test that has the input.")
    return 0 if all(results) else 1


sys.exit(main())
