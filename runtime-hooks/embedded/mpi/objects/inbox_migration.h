/*
 * inbox_migration.h: what MPI has to do for ranks that move between processes: messages find them, and what waits for a
 * rank goes with it.
 *
 * In a process that is the whole job, nothing here does anything.
 */
#ifndef RANK_MPI_INBOX_MIGRATION_H
#define RANK_MPI_INBOX_MIGRATION_H

/* Once, before any rank runs. */
void inbox_migration_prepare(void);

/* Empties a rank's inbox, which is away from then on, into the rank's own heap; the rank is off its stack. */
void *inbox_migration_pack(int world);
/* Makes it present again, with what inbox_migration_pack() returned and the memory it names. */
void inbox_migration_unpack(int world, void *inbox_content);

#endif
