/*
 * runtime.h: all that rankrun's main() calls, which is in the library so that its symbols come first.
 */
#ifndef RANK_RUNTIME_H
#define RANK_RUNTIME_H

int rank_runtime_main(int argc, char **argv);

#endif
