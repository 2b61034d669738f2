"""`inspector audit`: counts as the assembler has them, and each diagnosis beside a program that lacks its cause."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inspector.analysis.method_diagnoses import RISK, Diagnosis, applying
from pieglobalsfind.model import Evidence, RankTable
from tests.support.running import StartJob, built

MAIN = "\n#include <mpi.h>\nint main(int argc, char **argv) { MPI_Init(&argc, &argv); return use(); }\n"
COUNTED = """
int initialized = 1, zero;
static int file_static = 2;
const int constant = 3;
static const char *const names[] = {"a", "b"};
const char *changeable = "c";
int table[10];
__thread int per_thread;
int step(void) { static int calls; static const int limit = 9; return ++calls + limit; }
int use(void) { return initialized + zero + file_static + table[2] + per_thread + (names[1] == changeable) + step(); }
"""

COUNTED_CXX = """
namespace app {
int one;
static double two;
inline int three;
template <int N> int &each() {
    static int own;
    return own;
}
}
struct S { static int member; };
int S::member;
int use() { return app::one + app::two + app::three + app::each<1>() + app::each<2>() + S::member; }
"""


def compiled(folder: Path, source: str, *options: str, method: str = "none", name: str = "program.c") -> Path:
    (folder / name).write_text(source)
    compiler = "rankcxx" if name.endswith("pp") else "rankcc"
    program = folder / f"{name}.{method}"
    command = [built(compiler), f"--method={method}", "-g", *options, folder / name, "-o", program]
    subprocess.run([str(word) for word in command], check=True, timeout=60)
    return program


def audit(target: object, *options: str, status: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
    command = [str(built("inspector")), "audit", str(target), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ids(target: object, method: str) -> set[str]:
    (judged,) = audit(target, "--method", method)["methods"]
    return {one["id"] for one in judged["diagnoses"]}


def readelf(option: str, path: Path) -> str:
    return subprocess.run(["readelf", option, str(path)], check=True, capture_output=True, text=True, timeout=60).stdout


# ---- counting ----


def assembled(folder: Path, source: str, compiler: str, name: str) -> dict[str, int]:
    """Writable variables by binding, from the object file's own symbol table."""
    (folder / name).write_text(source)
    subprocess.run([compiler, "-c", "-g", "-fPIC", name, "-o", "counted.o"], cwd=folder, check=True, timeout=60)
    table, sections = readelf("-sW", folder / "counted.o"), readelf("-SW", folder / "counted.o")
    writable = set()
    for line in sections.splitlines():
        number, _, rest = line.strip().removeprefix("[").partition("]")
        words = rest.split()
        if number.strip().isdigit() and len(words) > 6 and "W" in words[6] and ".rel.ro" not in words[0]:
            writable.add(number.strip())
    found = {"external": 0, "local": 0, "thread-local": 0}
    for line in table.splitlines():
        words = line.split()
        if len(words) < 8 or words[3] not in ("OBJECT", "TLS") or words[6] not in writable:
            continue
        if words[3] == "TLS":
            found["thread-local"] += 1
        else:
            found["local" if words[4] == "LOCAL" else "external"] += 1
    return found


@pytest.mark.parametrize(
    ("source", "name", "compiler"), [(COUNTED, "counted.c", "gcc"), (COUNTED_CXX, "counted.cpp", "g++")]
)
def test_counts(source: str, name: str, compiler: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, source + MAIN, name=name)
    counted = assembled(tmp_path, source, compiler, name)
    by_storage: dict[str, int] = {}
    for one in audit(program)["variables"]:
        by_storage[one["storage"]] = by_storage.get(one["storage"], 0) + one["count"]
    assert by_storage.get("thread-local", 0) == counted["thread-local"]
    assert sum(count for storage, count in by_storage.items() if storage != "thread-local") == (
        counted["external"] + counted["local"]
    )
    if compiler == "gcc":  # in C++ statics of templates are weak, and external for the assembler
        assert by_storage["global"] == counted["external"]
        assert by_storage["file static"] + by_storage["function static"] == counted["local"]


# ---- diagnoses: (id, method, a program that has it, the same without its cause) ----

THREAD_LOCAL = "static __thread int tls[{count}];\nint data = 1;\nint use(void) {{ tls[1]++; return tls[1] + data; }}\n"
PACKED = "struct __attribute__((packed)) odd {{ {pad} void *pointer; }};\nint data;\n" \
    "struct odd odd = {{ {init} &data }};\nint use(void) {{ return odd.pointer == &data; }}\n"  # fmt: skip
CATCH = "int use() { try { throw 1; } catch (int e) { return e; } }\n"
INLINE = "inline int unique = 1;\nint use() { return unique; }\n"
NO_INLINE = "int unique = 1;\nint use() { return unique; }\n"
PLAIN = "int data = 1;\nint use(void) { return data; }\n"
Case = tuple[str, str, str, str, str, tuple[str, ...], tuple[str, ...]]
CASES: dict[str, Case] = {
    "thread-local-in-byte-copy": ("pie", "c", THREAD_LOCAL.format(count=4), "c", PLAIN, (), ()),
    "exceptions-in-byte-copy": ("pie", "cpp", CATCH, "c", PLAIN, (), ()),
    "misaligned-pointer": (
        "pie", "c", PACKED.format(pad="char one;", init="1,"), "c", PACKED.format(pad="long one;", init="1,"), (), (),
    ),
    "static-tls-budget": (
        "pip", "c", THREAD_LOCAL.format(count=1000), "c", THREAD_LOCAL.format(count=4),
        ("-ftls-model=initial-exec",), ("-ftls-model=initial-exec",),
    ),
    "unique-symbols": ("fs", "cpp", INLINE, "cpp", INLINE, ("-std=c++17",), ("-std=c++17", "-fno-gnu-unique")),
    "dynamic-thread-local-storage": (
        "tls", "c", THREAD_LOCAL.format(count=4), "c", THREAD_LOCAL.format(count=4), (), ("-ftls-model=initial-exec",),
    ),
    "direct-thread-local-access": (
        "tls-word", "c", THREAD_LOCAL.format(count=4), "c", THREAD_LOCAL.format(count=4),
        ("-ftls-model=initial-exec",), ("-ftls-model=initial-exec", "-mno-tls-direct-seg-refs"),
    ),
    "no-got-slots": ("swap", "c", PLAIN, "c", PLAIN, (), ("--method=swap",)),
    "storage-not-private": (
        "swap", "c", "static int hidden; int use(void) { return ++hidden; }\n", "c", "int use(void) { return 0; }\n",
        ("--method=swap",), ("--method=swap",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_diagnosis(name: str, level: str, tmp_path: Path) -> None:
    method, language, bad, good_language, good, bad_options, good_options = CASES[name]
    planted = compiled(tmp_path, bad + MAIN, level, *bad_options, name=f"bad.{language}")
    clean = compiled(tmp_path, good + MAIN, level, *good_options, name=f"good.{good_language}")
    assert name in ids(planted, method)
    assert name not in ids(clean, method)


def test_what_a_job_does_otherwise() -> None:
    """Its runtime is known then, and a program's file tells nothing of that."""
    ids = ("exceptions-in-byte-copy", "misaligned-pointer", "storage-not-private")
    diagnosises = tuple(Diagnosis(one, RISK, "", "", "") for one in (*ids, "too-many-namespaces"))
    for runtime, mode, left in (
        ("AMPI", "scan", ids),
        ("embedded 1", "scan", ids[1:]),
        ("embedded 1", "exact", ids[2:]),
    ):
        table = RankTable("pie", runtime, 0, (), (), Evidence("registry", "a test"), process_id=1, rewrite_mode=mode)
        assert tuple(diagnosis.id for diagnosis in applying(diagnosises, table)) == left


def test_where_the_writable_segment_begins(tmp_path: Path) -> None:
    """The linker puts a small thread-local variable first, and where it begins depends on what is before it."""
    unaligned = []
    for functions in range(6):
        more = "".join(f"int more{n}(int x) {{ return x / {n + 3}; }}\n" for n in range(functions))
        source = "__thread int small = 1;\nint data = 1;\nint use(void) { return small + data; }\n" + more
        program = compiled(tmp_path, source + MAIN, "-O2", "-Wl,-z,norelro", "-Wl,-z,noseparate-code")
        lines = readelf("-lW", program).splitlines()
        (start,) = (int(line.split()[2], 16) for line in lines if re.match(r" +LOAD .* RW ", line))
        unaligned.append(start % 8 != 0)
        assert ("unaligned-writable-segment" in ids(program, "pie")) == unaligned[-1]
    assert any(unaligned)


CONSTANT = """
#include <regex>
#include <string>
inline int unique = 1;
inline const int table[] = {1, 2, 3};
template <typename Value> struct Kept {
    static int mine;
    static constexpr char digits[] = "0123456789";
};
template <typename Value> int Kept<Value>::mine = 5;
int use() {
    return std::regex_match("aa", std::regex("a+")) + Kept<int>::mine++ + Kept<long>::digits[unique++] + table[unique];
}
"""


def test_only_what_may_be_written_is_a_unique_symbol(tmp_path: Path) -> None:
    """readelf says which symbols there are, and in which sections; names are as in the source."""
    program = compiled(tmp_path, CONSTANT + MAIN, "-std=c++17", name="constant.cpp")
    lines = [line.split() for line in readelf("-sW", program).splitlines()]
    sections = {one[1]: one[2] for one in re.findall(r"(\[ *(\d+)\] (\S+))", readelf("-SW", program))}
    unique = {(sections[line[6]], line[7]) for line in lines if len(line) > 7 and line[4] == "UNIQUE"}
    assert any(section.startswith(".rodata") for section, _ in unique), "constants are among them"
    written = [name for section, name in unique if section in (".data", ".bss") and "_ZGV" not in name]
    (judged,) = audit(program, "--method", "fs")["methods"]
    (found,) = [one for one in judged["diagnoses"] if one["id"] == "unique-symbols"]
    assert found["evidence"].startswith(f"{len(written)} such variables: ")
    assert judged["shared"] == len(written), "and the other ones are private"
    assert "unique" in found["evidence"] and "Kept<int>::mine" in found["evidence"]
    assert "digits" not in found["evidence"] and "table" not in found["evidence"]


def test_limits_need_a_number_of_ranks() -> None:
    (plain,) = audit("/bin/ls", "--method", "pip")["methods"]
    assert (plain["diagnoses"], len(plain["notes"])) == ([], 1)
    for ranks, expected in ((15, []), (16, ["too-many-namespaces"])):
        (judged,) = audit("/bin/ls", "--method", "pip", "--ranks", str(ranks))["methods"]
        assert ([one["id"] for one in judged["diagnoses"]], judged["notes"]) == (expected, [])


def test_what_is_said_of_a_diagnosis(tmp_path: Path) -> None:
    program = compiled(tmp_path, INLINE + MAIN, "-std=c++17", name="inline.cpp")
    command = [str(built("inspector")), "audit", str(program), "--method", "fs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    for part in ("unique-symbols (fs)", "-fno-gnu-unique", "1 such variables: unique"):
        assert part in done.stdout


def test_a_job_is_judged_under_its_own_method(start_job: StartJob, tmp_path: Path) -> None:
    source = "#include <mpi.h>\n#include <stdio.h>\nint wait_for_me = 1;\nint main(int argc, char **argv) { int n; " \
        "MPI_Init(&argc, &argv); puts(\"ready\"); fflush(stdout); MPI_Recv(&n, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, " \
        "MPI_STATUS_IGNORE); return wait_for_me; }\n"  # fmt: skip
    program = compiled(tmp_path, source, method="none")
    job = start_job(built("rankrun"), "-n", 2, "--method", "none", program)
    job.wait_for("ready")
    (judged,) = audit(job.pid)["methods"]
    assert judged["method"] == "none" and [one["id"] for one in judged["diagnoses"]] == ["storage-not-private"]
    report = subprocess.run([built("inspector"), "report", str(job.pid)], capture_output=True, text=True, check=True)
    assert "storage-not-private" in report.stdout and "wait_for_me" in report.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "neither a file nor a process"),
        ((__file__,), "is not an ELF file"),
        (("999999999",), "999999999"),
        (("/bin/true", "--method", "magic"), "is not a method"),
    ],
)
def test_bad_calls(words: tuple[str, ...], sentence: str) -> None:
    done = subprocess.run([built("inspector"), "audit", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_program_without_debug_information_is_judged_by_its_file() -> None:
    found = audit("/bin/true")
    assert found["variables"] == [] and "no debug information" in found["absent"]
    assert {one["method"] for one in found["methods"]} >= {"pie", "fs", "swap"}


def test_a_program_without_debug_information(tmp_path: Path) -> None:
    """Nothing is known of its variables, so no method is said to make them private."""
    program = compiled(tmp_path, COUNTED + MAIN)
    subprocess.run(["strip", "--strip-debug", str(program)], check=True, timeout=60)
    found = audit(program)
    assert "has no debug information" in found["absent"] and found["variables"] == []
    told = {one["method"]: (one["verdict"], one["private"], one["shared"]) for one in found["methods"]}
    assert told.pop("pie") == ("can't run", None, None)  # it has thread-local variables, as its program headers say
    assert {one for method, one in told.items() if not method.startswith(("hls", "tls", "swap"))} == {
        (None, None, None)
    }
    audit(program, "--method", "fs", status=(1,))
    command = [str(built("inspector")), "audit", str(program), "--method", "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and any("has no debug information" in line for line in lines)
    assert any(line.split() == ["none", "unknown", "unknown", "unknown", "-"] for line in lines), done.stdout


def test_variables_that_debug_information_lacks_are_named(tmp_path: Path) -> None:
    """Of files compiled without -g: they are not counted, and it is said so. What compilers add is not a variable."""
    (tmp_path / "bare.cpp").write_text(
        "struct base { virtual ~base() {} };\nint shared;\n"
        "namespace app { thread_local int local = 2; static int own[7];\n"
        "base &object() { static base one; own[0]++; shared++; return one; } }\nconst int constant = 5;\n"
    )
    bare = tmp_path / "bare.o"
    command = [built("rankcxx"), "-g0", "-fPIC", "-c", tmp_path / "bare.cpp", "-o", bare]
    subprocess.run([str(word) for word in command], check=True, timeout=60)
    whole = audit(compiled(tmp_path, COUNTED + MAIN))
    part = audit(compiled(tmp_path, COUNTED + MAIN, str(bare), "-lstdc++", name="part.c"))
    assert whole["undescribed"] == []
    assert part["undescribed"] == ["app::local", "app::object()::one", "app::own", "shared"]
    assert part["variables"] == whole["variables"]
    said = subprocess.run(
        [str(built("inspector")), "audit", str(tmp_path / "part.c.none")], capture_output=True, text=True, timeout=60
    )
    words = " ".join(said.stdout.split())
    assert "not counted and not judged, no debug information describes them: 4 variables: app::local, " in words
