#!/usr/bin/env bash
# `make demo`, or by itself where the package is installed: one MPI process with 8
# virtual ranks, and three ways to look into it while it runs.
set -euo pipefail
cd "$(dirname "$0")"
source=$PWD/jacobi3d.c
if [ ! -e "$source" ]; then # in a checkout, and not where a package has put it
    cd ..
    PATH=$PWD/.venv/bin:$PATH
    source=tests/programs/jacobi3d/jacobi3d.c
fi
seconds=${DEMO_SECONDS:-25}
work=$(mktemp -d)
job=
cleanup() {
    [ -z "$job" ] || kill "$job" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1;36m' plain=$'\e[0m'; else bold='' plain=''; fi
title() { printf '\n%s== %s ==%s\n' "$bold" "$1" "$plain"; }
show() {
    printf '%s$ %s%s\n' "$bold" "$*" "$plain"
    "$@"
}

title "An ordinary MPI program, 8 ranks in one process, each with globals of its own"
program=$work/jacobi3d
show rankcc -g -O1 -o "$program" "$source" -lm
mkfifo "$work/output"
printf '%s$ rankrun -n 8 jacobi3d --seconds %s &%s\n' "$bold" "$seconds" "$plain"
rankrun -n 8 "$program" --seconds "$seconds" >"$work/output" &
job=$!
exec 3<"$work/output"
read -r line <&3 && printf '%s\n' "$line"

title "1. inspector report: every rank, and what differs between them"
show inspector report "$job"

title "   where every rank is, without stopping the job"
show inspector stacks "$job"

title "2. GDB: ranks have backtraces and globals again"
cat >"$work/session.gdb" <<SESSION
set pagination off
set confirm off
set width 0
python
import gdb
def show(command):
    print("(gdb) " + command)
    gdb.execute(command)
for command in ("source $(ranklens-gdb-path)", "rank list", "rank bt", "rank 5", "rank bt", "print my_rank",
                "rank print my_rank", "info symbol &my_rank", "rank tree"):
    show(command)
frame = gdb.newest_frame()
while frame.name() != "main":
    frame = frame.older()
with open("$work/addresses", "w") as file:
    file.write("%#x\n%#x\n" % (frame.pc(), int(gdb.parse_and_eval("(unsigned long)&my_rank"))))
end
SESSION
printf '%s$ gdb -p %s%s\n' "$bold" "$job" "$plain"
gdb -nx -q -batch -iex "set auto-load python-scripts off" -p "$job" -x "$work/session.gdb" 2>&1 | grep -v -E '^\[(New|Thread|Inferior)|^(Using host|warning:)'

title "3. pieglobalsfind: whose address is this?"
mapfile -t addresses <"$work/addresses"
show pieglobalsfind --pid "$job" "${addresses[@]}"

title "The job was never harmed, and ends by itself"
cat <&3
wait "$job" && job=
