"""`inspector audit`: which variables a program has, and how it would fare under each method of privatization.

Takes a program's file, or a job or core file whose program is then judged under its own method. Nothing is run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Optional, Union

from rich.console import Console
from rich.text import Text

from pieglobalsfind.elf.file import ET_CORE, ElfFile
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.targets.snapshot import is_snapshot

from ..analysis.method_diagnoses import METHODS, Judgement
from ..analysis.program_facts import Facts, read_facts
from ..analysis.report import diagnosis_as_json
from ..analysis.runtime_diagnoses import AMPI, EMBEDDED, PIP, RUNTIMES, SMPI, judge_for, methods_of, of_job
from ..job.job import open_job
from ..output.adaptive_table import Listing
from ..output.table_cells import heading
from ..program.program_file import ProgramFile
from ..program.variable_list import COLUMNS, Listed, listed, text
from ..schemas import envelope, schema_name
from ..terminal.console import console
from ..terminal.forms import print_json
from ..terminal.text import declared, harmless

SCHEMA = schema_name("audit", 2)
HOW = "read from the program's file; nothing was run"
NAMED = {AMPI: "AMPI", SMPI: "SMPI", PIP: "Process-in-Process", EMBEDDED: "the embedded runtime"}
MOST_NAMES = 20  # of variables that are not judged
AMPI_LOADER = (
    "_Z26AMPI_FuncPtr_Unpack_LocatePv"  # by which -pieglobals, -pipglobals and -fsglobals find MPI's functions
)
NUMBERED = 7  # letters of a library's name in place of which SMPI puts the rank in its copy's


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Count the variables that a program may write, by storage and language, and judge every method of "
        "privatization for it: cause, evidence and cure of what would go wrong. Nothing is run or stopped."
    )
    parser.epilog = (
        "exit status: 0 done, 1 there are findings on the method of --method, risks included, or it can't be judged, "
        "2 bad call or unreadable file"
    )
    parser.add_argument(
        "target",
        metavar="BINARY|PID|FILE",
        help="a program; or a process, core file or snapshot whose program is meant",
    )
    parser.add_argument("--method", metavar="M", help="judge this method alone")
    parser.add_argument(
        "--for",
        dest="runtime",
        metavar="R",
        help=f"judge by the rules of one runtime ({', '.join(RUNTIMES)}); else by those of the job's, or the file's",
    )
    parser.add_argument("--ranks", metavar="N", type=int, help="ranks in one process, for limits that depend on it")
    parser.add_argument("--exe", metavar="FILE", help="the program that left the core file")
    parser.add_argument("--json", action="store_true", help="as JSON (docs/audit-schema.md)")
    parser.add_argument(
        "--variables", action="store_true", help="list the variables, with the functions that write to them"
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--tsv", action="store_true", help="that list, tab-separated")
    forms.add_argument("--lines", action="store_true", help="that list, as FILE:LINE: note: ..., to which editors jump")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector audit`; returns the exit status."""
    path, method, runtime, private = program_of(options)
    if options.runtime is not None and options.runtime not in RUNTIMES:
        raise UsageError(f"{options.runtime!r} is not a runtime", f"runtimes are {', '.join(RUNTIMES)}")
    if method and method not in METHODS:
        raise UsageError(f"{method!r} is not a method", f"methods are {', '.join(METHODS)}")
    if options.ranks is not None and options.ranks < 1:
        raise UsageError(f"a job can't have {options.ranks} ranks", "--ranks takes a number from 1 on")
    facts = read_facts(path)
    facts = replace(facts, libraries=tuple(name for name in facts.libraries if name[NUMBERED:] not in private))
    if options.tsv or options.lines or (options.variables and not options.json):
        return _show_variables(facts, options)
    runtime = options.runtime or runtime or facts.runtime
    if method and method not in methods_of(runtime):
        raise UsageError(f"{runtime} has no method {method!r}", f"it has {', '.join(methods_of(runtime))}")
    methods = (method,) if method else methods_of(runtime)
    judged = [judge_for(facts, method, runtime, options.ranks or 0) for method in methods]
    if options.json:
        print_json(as_json(facts, judged, runtime, options.variables))
    else:
        show(facts, judged, runtime, console())
    return 1 if method and (judged[0].diagnoses or isinstance(judged[0].verdict, Absent)) else 0


def program_of(options: argparse.Namespace) -> tuple[str, str, str, frozenset[str]]:
    """The file to judge, the method to judge it under, a job's own unless another is asked for, and a job's runtime.

    Last, of the libraries of which a job's ranks have copies the names, without the letters that SMPI replaces in them.
    """
    method = options.method or ""
    if not options.target.isdecimal():
        if not Path(options.target).is_file():
            raise UsageError(f"{options.target!r} is neither a file nor a process", "name a program, or a PID")
        if is_program(options.target):
            if options.exe is not None:
                raise UsageError(f"{options.target} is not a core file", "leave --exe out")
            return loaded_by(options.target), method, "", frozenset()
    job = open_job(options.target, options.exe)
    program = next((elf_object for elf_object in job.table.objects if elf_object.is_program), None)
    path = job.file(program) if program is not None else Absent("the job names no program")
    if isinstance(path, Absent):
        raise UsageError(path.reason, path.hint)
    copied = (elf_object for elf_object in job.table.objects if elf_object.privatized and not elf_object.is_program)
    private = frozenset(
        elf_object.path.removesuffix(" (deleted)").rpartition("/")[2][NUMBERED:] for elf_object in copied
    )
    return path, method or job.table.method, of_job(job.table), private


def loaded_by(path: str) -> str:
    """The file that the user's code is in: AMPI puts it beside a loader of its own, which has the name of the program.

    Raises `UsageError` if it is not there.
    """
    with ProgramFile(path) as file:
        if AMPI_LOADER not in file.exported:
            return path
    program = f"{path}.user.so"
    if not Path(program).is_file():
        raise UsageError(f"{path} is AMPI's loader, and its program {program} is not there", "link it again")
    return program


def is_program(path: str) -> bool:
    """Whether it is one, and no core file or snapshot; raises `ObjectFileError` if it is none of them."""
    if is_snapshot(path):
        return False
    with ElfFile(path) as elf:
        return elf.header.type != ET_CORE


# ---- the list of variables ----


def variables_of(facts: Facts) -> list[Listed]:
    """Raises `UsageError` where debug information says nothing of them."""
    if isinstance(facts.variables, Absent):
        raise UsageError(facts.variables.reason, facts.variables.hint)
    return list(listed(facts.path, facts.variables, facts.types))


def _show_variables(facts: Facts, options: argparse.Namespace) -> int:
    if options.json:
        raise UsageError("--json is another form of the list than --tsv and --lines", "give one of them")
    variables = variables_of(facts)
    if options.tsv:
        print("\t".join(COLUMNS))
    for variable in variables:
        if options.tsv:
            print("\t".join(cell.replace("\t", " ") for cell in variable.cells))
        elif options.lines:
            print(variable.note)
    if not (options.tsv or options.lines):
        screen = console()
        heading(screen, "Variables", f"{harmless(facts.path)}: what it may write, each place once")
        table = Listing(("variable", "type", "bytes", "declared", "storage", "written by", "address taken by"), (2,))
        for variable in variables:
            place = declared(variable.file, variable.line)
            functions = (text(variable.written_by), text(variable.taken_by))
            table.add((variable.name, variable.type, str(variable.size), place, variable.storage, *functions))
        screen.print(table)
        _say_why_unknown(variables, screen)
    return 0 if variables else 1


def _say_why_unknown(variables: list[Listed], screen: Console) -> None:
    for why in dict.fromkeys(variable.written_by for variable in variables if isinstance(variable.written_by, Absent)):
        hint = f" ({why.hint})" if why.hint else ""
        screen.print(Text(f"! ?: which functions is unknown, {harmless(why.reason)}{harmless(hint)}", style="bold red"))


def _listed_as_json(variable: Listed) -> dict[str, object]:
    def names(functions: Union[tuple[str, ...], Absent]) -> Optional[list[str]]:
        return None if isinstance(functions, Absent) else list(functions)

    return {
        "name": variable.name,
        "type": variable.type,
        "size": variable.size,
        "file": variable.file,
        "line": variable.line,
        "storage": variable.storage,
        "language": variable.language,
        "written_by": names(variable.written_by),
        "address_taken_by": names(variable.taken_by),
    }


# ---- what it prints ----


def show(facts: Facts, judged: list[Judgement], runtime: str, screen: Console) -> None:
    """Print the audit as text."""
    heading(screen, "Variables", f"{harmless(facts.path)}: what it may write, each place once")
    if isinstance(facts.variables, Absent):
        screen.print(Text(f"! {harmless(str(facts.variables))}", style="bold red"))
    else:
        table = Listing(("storage", "language", "variables"), (2,))
        for (storage, language), count in facts.counts().items():
            table.add((storage, language, str(count)))
        table.add(("all", "", str(len(facts.variables))))
        screen.print(table)
    if facts.apart:
        screen.print(Text(f"  {facts.apart} variables of the MPI runtime and the C++ library are left out"))
    if facts.undescribed:
        screen.print(Text(f"! {harmless(lacking(facts))}", style="yellow"))
    heading(screen, "Methods", f"how the program would fare{f' under {NAMED[runtime]}' if runtime else ''}")
    table = Listing(("method", "verdict", "private", "shared", "diagnoses"), (2, 3))
    for judgement in judged:
        ids = ", ".join(diagnosis.id for diagnosis in judgement.diagnoses)
        cells = (
            "unknown" if isinstance(cell, Absent) else str(cell)
            for cell in (judgement.verdict, judgement.private, judgement.shared)
        )
        table.add((judgement.method, *cells, ids or "-"))
    screen.print(table)
    for line in (*explanations(judged), *notes(judged)):
        screen.print(Text(harmless(line)), soft_wrap=False)


def lacking(facts: Facts) -> str:
    """What of the program is not judged."""
    names = ", ".join(facts.undescribed[:MOST_NAMES]) + (", ..." if len(facts.undescribed) > MOST_NAMES else "")
    return (
        f"not counted and not judged, no debug information describes them: {len(facts.undescribed)} variables: {names}"
    )


def explanations(judged: list[Judgement]) -> Iterator[str]:
    """Each diagnosis once, with the methods that it is for."""
    methods: dict[tuple[str, str, str, str], list[str]] = {}
    for judgement in judged:
        for diagnosis in judgement.diagnoses:
            key = (diagnosis.id, diagnosis.cause, diagnosis.evidence, diagnosis.cure)
            methods.setdefault(key, []).append(judgement.method)
    for (name, cause, evidence, cure), names in methods.items():
        yield f"{name} ({', '.join(names)})"
        yield f"  cause: {cause}"
        yield f"  evidence: {evidence}"
        yield f"  cure: {cure}"


def notes(judged: list[Judgement]) -> Iterator[str]:
    """Each limit once, with the methods that have it."""
    methods: dict[str, list[str]] = {}
    for judgement in judged:
        for note in judgement.notes:
            methods.setdefault(note, []).append(judgement.method)
    for note, names in methods.items():
        yield f"note ({', '.join(names)}): {note} (--ranks N checks it)"


def or_null(value: Union[str, int, Absent]) -> Union[str, int, None]:
    """For JSON, which says once why variables are not known: in `absent`."""
    return None if isinstance(value, Absent) else value


def as_json(facts: Facts, judged: list[Judgement], runtime: str, with_list: bool) -> dict[str, object]:
    """Return the audit as JSON has it."""
    absent = facts.variables if isinstance(facts.variables, Absent) else None
    return {
        **envelope(SCHEMA, harmless(facts.path), HOW),
        "program": harmless(facts.path),
        "runtime": runtime or None,
        "absent": None if absent is None else harmless(str(absent)),
        "apart": facts.apart,
        "undescribed": [harmless(name) for name in facts.undescribed],
        "variables": [
            {"storage": storage, "language": language, "count": count}
            for (storage, language), count in facts.counts().items()
        ],
        **({"listed": [_listed_as_json(variable) for variable in variables_of(facts)]} if with_list else {}),
        "methods": [
            {
                "method": judgement.method,
                "verdict": or_null(judgement.verdict),
                "private": or_null(judgement.private),
                "shared": or_null(judgement.shared),
                "diagnoses": [diagnosis_as_json(diagnosis) for diagnosis in judgement.diagnoses],
                "notes": list(judgement.notes),
            }
            for judgement in judged
        ],
    }
