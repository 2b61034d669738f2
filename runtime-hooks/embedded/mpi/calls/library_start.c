/*
 * library_start.c: makes what ranks have in common, and registers the library with the runtime.
 */
#include "mpi/calls/library_start.h"
#include "mpi/calls/environment.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/inbox_migration.h"
#include "mpi/objects/rank_state.h"
#include "mpi/objects/request.h"
#include "ranks/client.h"

static const struct rank_client client = {mpi_is_unfinished, mpi_root, inbox_migration_pack, inbox_migration_unpack};

void mpi_prepare(void) {
    calls_register();
    inboxes_make();
    types_prepare();
    inbox_migration_prepare();
    mpi_rank_on_detached(request_sweep);
    rank_client_register(&client);
}
