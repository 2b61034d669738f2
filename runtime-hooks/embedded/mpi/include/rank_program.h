/*
 * rank_program.h: for programs: tells the runtime where their globals are.
 */
#ifndef RANK_PROGRAM_INTERFACE_H
#define RANK_PROGRAM_INTERFACE_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Says that the calling rank keeps its globals in the struct of type `type_name` (as the program's debug information
 * calls it, "struct globals" or "Globals") at `address`.  Tools show it; the runtime does nothing with it.
 */
void rank_globals(const char *type_name, const void *address);

/*
 * Under method hls: whose a variable is.  RANK_LEVEL(thread) int count; is one for all ranks of a processing element,
 * RANK_LEVEL(process) one for all ranks of the process; what has no level is the rank's own.  A static variable can't
 * have one: its code does not ask where it is.
 */
#define RANK_LEVEL(level) __attribute__((section("rank_level_" #level)))

#ifdef __cplusplus
}
#endif
#endif
