/*
 * deadlock_report.h: telling the user that no rank can continue, and in which call each of them is.
 */
#ifndef RANK_DEADLOCK_REPORT_H
#define RANK_DEADLOCK_REPORT_H

#include <stdbool.h>

/* Writes the report to standard error; `ends` says whether the job is about to end. */
void deadlock_report(bool ends);

/* The part of it that is about this process. */
void deadlock_report_process(bool ends);

#endif
