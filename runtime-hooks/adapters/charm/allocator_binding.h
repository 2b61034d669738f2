/*
 * allocator_binding.h: makes malloc() of -pieglobals ranks allocate from the rank's own share, so that it migrates.
 *
 * Off unless asked for. Stock AMPI loads the program with RTLD_DEEPBIND: its calls of malloc and free are libc's,
 * while what libc itself allocates for it (strdup, getline) comes from the loader's allocator, which serves ranks.
 */
#ifndef CHARM_ALLOCATOR_BINDING_H
#define CHARM_ALLOCATOR_BINDING_H

#include "image/objects.h"

/* Before any copy is made: the originals call the loader's allocator wherever they call libc's. */
void allocation_bind(const struct object_list *originals);

#endif
