/*
 * unwinding.c: registers the .eh_frame of each byte copy with libgcc.
 */
#include "unwinding.h"

#include <stdint.h>
#include <string.h>

extern void __register_frame(void *begin);
extern void *__deregister_frame(void *begin);

static bool is_wanted;

void unwinding_prepare(bool wanted) {
    is_wanted = wanted;
}

/*
 * Where the copy has .eh_frame, 0 if there is none.  Its address is in .eh_frame_hdr (LSB, "Exception Frame Header"):
 * version, three encodings, then the distance, which every linker writes as pcrel sdata4.
 */
static uint64_t frames_of(const struct object *object, uint64_t copy) {
    const unsigned char *header = (const void *)object->frame_header;
    if (!header || header[0] != 1 || header[1] != 0x1b)
        return 0;
    int32_t distance;
    memcpy(&distance, header + 4, sizeof distance);
    return copy + (object->frame_header + 4 + (uint64_t)(int64_t)distance - object->base);
}

/* The system's loader tells the unwinder of copies that it has made itself (pip, fs). */
static void for_each(const struct copies *copies, void (*act)(uint64_t frames)) {
    const struct object_list *originals = images_originals();
    for (int i = 0; is_wanted && i < originals->count; i++) {
        uint64_t frames = copies->bases[i] ? frames_of(&originals->items[i], copies->bases[i]) : 0;
        if (frames && images_are_bytes())
            act(frames);
    }
}

static void add(uint64_t frames) {
    __register_frame((void *)frames);
}

static void drop(uint64_t frames) {
    __deregister_frame((void *)frames);
}

void unwinding_register(const struct copies *copies) {
    for_each(copies, add);
}

void unwinding_forget(const struct copies *copies) {
    for_each(copies, drop);
}
