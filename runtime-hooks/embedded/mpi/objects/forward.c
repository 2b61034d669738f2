/*
 * forward.c: frames of the job's transport for messages.
 *
 * Where to send what found the rank away is read once: a rank that returns opens its inbox first and is noted here
 * next, so this process among the answers says that the inbox is open.
 */
#include "mpi/objects/forward.h"
#include "job/process.h"
#include "job/process_sockets.h"
#include "mpi/objects/library_memory.h"

#include <string.h>

static void was_sent(void *wire, uint64_t bytes_on_the_wire) {
    (void)bytes_on_the_wire;
    host_release(wire);
}

bool forward_message(int world, struct message *message) {
    int to = process_of_rank(world);
    if (to == process_index())
        return false;
    size_t size = sizeof(struct wire_message) + message->bytes;
    struct wire_message *wire = host_allocate_message(size);
    wire->world = world;
    wire->message = *message;
    memcpy(wire + 1, message->data, message->bytes);
    host_release(message);
    struct iovec part = {wire, size};
    transport_send_parts(to, FRAME_MESSAGE, &part, 1, was_sent, wire);
    return true;
}

bool forward_acknowledgment(int owner, struct request *sender) {
    int to = process_of_rank(owner);
    if (to == process_index())
        return false;
    struct wire_acknowledgment wire = {owner, sender};
    transport_send(to, FRAME_ACKNOWLEDGED, &wire, sizeof wire);
    return true;
}
