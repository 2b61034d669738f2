/*
 * struct.c: the program itself keeps its globals in one struct for each rank, and says where (rank_program.h).
 *
 * Nothing is done to it: what it does not keep there is shared.  A program may say so under any other method as well.
 * Described in "globals 2011" (docs/references.md has the source, and what differs).
 */
#include "image/image.h"
#include "image/method.h"
#include "rank_hooks.h"
#include "rank_program.h"
#include "ranks/scheduler.h"

static const struct method gathered = {
    .name = "struct",
    .summary = "change nothing: the program keeps its globals in one struct for each rank",
    .can_move = true,
};
RANK_METHOD(gathered);

void rank_globals(const char *type_name, const void *address) {
    struct rank *self = rank_current();
    if (!self)
        return;
    rank_hooks_begin();
    rank_hooks_add_root(&(struct rank_debug_root){
        .rank = rank_number(self),
        .type_name = rank_hooks_string(type_name),
        .address = (uint64_t)address,
    });
    rank_hooks_commit();
}
