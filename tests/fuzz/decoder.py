"""One decoder under Atheris: `python -m tests.fuzz.decoder NAME CORPUS SECONDS`.

Atheris: coverage-guided as libFuzzer, of Python code, by instrumenting bytecode.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Protocol, cast

HERE = Path(__file__).resolve().parent
KEPT = HERE / "kept"
NAMES = sorted(path.stem for path in (HERE / "decoders").glob("[a-z]*.py"))
MOST_SECONDS = 2.0  # of processor time, for one input
MOST_MEGABYTES = 500
HANG = 600  # seconds after which libFuzzer ends an input that does not end; it counts no processor time


class Decoder(Protocol):
    """What a module of `decoders` has."""

    def seeds(self) -> list[bytes]: ...
    def check(self, data: bytes) -> None: ...


def load(name: str) -> Decoder:
    return cast(Decoder, importlib.import_module(f"tests.fuzz.decoders.{name}"))


def main(name: str, corpus: Path, seconds: int) -> None:
    import atheris

    os.environ["XDG_CACHE_HOME"] = "/dev/null"  # no input fills the user's cache, or finds what another one has stored
    with atheris.instrument_imports(include=["pieglobalsfind", "inspector"]):
        decoder = load(name)
    corpus.mkdir(parents=True, exist_ok=True)
    kept = KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(decoder.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)

    def one_input(data: bytes) -> None:
        begun = time.process_time()
        decoder.check(data)
        taken = time.process_time() - begun
        if taken > MOST_SECONDS:
            raise TimeoutError(f"an input took {taken:.1f} s of processor time")

    options = [
        f"-max_total_time={seconds}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-timeout={HANG}",
        f"-artifact_prefix={kept}/",
        "-max_len=16384",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus), str(kept)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
