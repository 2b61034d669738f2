/* blocked.h: what waits in a file of its own, that nothing of it is put in its callers, nor the other way. */
#define KEPT __attribute__((noipa))
#ifdef __cplusplus
extern "C" {
#endif
int wait_for(int first, int peer, int tag);
int relay(int tag, int first, int peer);
#ifdef __cplusplus
}
#endif
