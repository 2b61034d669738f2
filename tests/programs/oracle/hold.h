/*
 * hold.h: where every rank of an oracle program stops for a debugger.
 *
 * It takes a whole MPI job.  All ranks but the last end in an MPI_Recv that nobody serves; the last one prints
 * "holding" and then runs for ever.  It never returns.
 */
#ifndef ORACLE_HOLD_H
#define ORACLE_HOLD_H

#ifdef __cplusplus
extern "C" {
#endif

void hold(int rank, int size);

#ifdef __cplusplus
}
#endif
#endif
