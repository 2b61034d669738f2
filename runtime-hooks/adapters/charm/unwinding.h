/*
 * unwinding.h: registers copies' unwind tables with libgcc, so that C++ exceptions and backtrace() work in them, as
 * in stock AMPI they do not.
 *
 * Off unless asked for. Copies are made known to libgcc by __register_frame, and forgotten before they are packed.
 */
#ifndef CHARM_UNWINDING_H
#define CHARM_UNWINDING_H

#include "images.h"

void unwinding_prepare(bool wanted);
void unwinding_register(const struct copies *copies);
void unwinding_forget(const struct copies *copies);

#endif
