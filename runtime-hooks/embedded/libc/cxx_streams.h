/*
 * cxx_streams.h: flushes std::cout and its kin, which all ranks of a process share.
 */
#ifndef RANK_CXX_STREAMS_H
#define RANK_CXX_STREAMS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether it is the function by which an object that uses them ends: std::ios_base::Init's destructor. */
bool cxx_streams_end_by(const void *function);

/* Writes what they hold back. */
void cxx_streams_flush(void);

#ifdef __cplusplus
}
#endif
#endif
