/*
 * messages.c: an input is what another process of the job writes to its socket; messages end at the ranks' inboxes.
 */
#include "refusals.h"

#include <unistd.h>
#define pause() refuse(0) /* where the launcher would end a process whose peer has gone */

#include "job/process_sockets.c" /* one frame at a time, without its threads */
#include "mpi/objects/inbox.h"
#include "mpi/objects/inbox_migration.h"
#include "mpi/objects/library_memory.h"

#include <stdlib.h>

#define RANKS 4

bool __wrap_process_is_one_of_a_job(void);
int __wrap_rank_total(void);
void __wrap_message_deliver(int world, struct message *message);
void __wrap_message_acknowledge(int owner, struct request *sender);

bool __wrap_process_is_one_of_a_job(void) {
    return true;
}

int __wrap_rank_total(void) {
    return RANKS;
}

void __wrap_message_deliver(int world, struct message *message) {
    volatile unsigned char last = message->bytes ? message->data[message->bytes - 1] : 0;
    (void)last;
    if (world < 0 || world >= RANKS)
        abort();
    host_release(message);
}

void __wrap_message_acknowledge(int owner, struct request *sender) {
    (void)sender;
    if (owner < 0 || owner >= RANKS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int ends[2];
    inbox_migration_prepare();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || write(ends[0], data, size) != (ssize_t)size)
        abort();
    close(ends[0]);
    if (!setjmp(next_input))
        while (take_frame(ends[1]))
            ;
    close(ends[1]);
    return 0;
}
