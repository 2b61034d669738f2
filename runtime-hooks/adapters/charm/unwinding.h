/*
 * unwinding.h: C++ exceptions and backtrace() inside copies, which stock AMPI can't do: no unwinder knows their frames.
 *
 * Off unless asked for.  Copies are made known to libgcc by __register_frame, and forgotten before they are packed.
 */
#ifndef CHARM_UNWINDING_H
#define CHARM_UNWINDING_H

#include "images.h"

void unwinding_prepare(bool wanted);
void unwinding_register(const struct copies *copies);
void unwinding_forget(const struct copies *copies);

#endif
