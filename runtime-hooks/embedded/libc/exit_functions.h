/*
 * exit_functions.h: what a program wants called at its end: atexit(), on_exit(), and the destructors of C++ objects of
 * static storage, which their constructors register.
 *
 * Every rank has a list of its own, in its own memory: it ends alone, and takes along what it has registered.  What the
 * originals registered while they were loaded is called for each rank as its copies would have registered it.
 */
#ifndef RANK_EXIT_FUNCTIONS_H
#define RANK_EXIT_FUNCTIONS_H

#include "image/image.h"

/* What is registered between the two is the loaded object's: its list, the newest first. */
void exit_functions_loading(void);
struct exit_function *exit_functions_loaded(void);

/* Calls the rank's, and what they register meanwhile.  One that calls exit() never returns: the rest is called then. */
void exit_functions_call(struct image *image, const struct image_plan *plan, int status);

/* Calls what ranks that use the original have in common. */
void exit_functions_call_shared(const struct image_plan *plan, int status);

#endif
