/* Every kind of C variable of static storage, and types that readers get wrong. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct node {
    struct node *next;
    int value;
};
union number {
    long whole;
    double real;
    unsigned char bytes[8];
};
enum mood { CALM = -1, BUSY = 5 };
typedef int (*operation)(int, const char *, ...);
struct flags {
    unsigned int low : 3;
    int middle : 7;
    uint64_t high : 40;
};
struct __attribute__((packed)) packet {
    char kind;
    struct node *where;
    union number payload;
};

int counter = 7;
static short kept = -3;
double grid[3][4];
struct node first, *head = &first;
union number number;
enum mood mood = BUSY;
operation chosen = printf == 0 ? 0 : (operation)0;
struct flags flags = {5, -20, 1234567};
struct packet packets[2];
const char *const names[] = {"one", "two"};
volatile unsigned char octet;
bool ready = true;
float _Complex wave;
__thread int per_thread = 4;
static __thread long hidden_per_thread;
int (*row)[4];
struct {
    int inside;
} nameless;
char long_text[200];
int negative_bound_is_none[0];
const int limit = 12;

static int step(int by) {
    static int calls = 100;
    if (by > 0) {
        static int calls = 200;
        calls += by;
        return calls;
    }
    return ++calls;
}

/* Names of more than seven letters are kept elsewhere than shorter ones. */
static int with_a_long_name(int by) {
    static int accumulated_so_far, again;
    again += by;
    return accumulated_so_far += again;
}

int brief(int by) {
    static int accumulated_so_far;
    return accumulated_so_far += with_a_long_name(by);
}

int work(int by) {
    hidden_per_thread += by;
    kept += (short)by;
    grid[by & 1][by & 3] += step(by) + step(-by);
    octet = (unsigned char)by;
    return counter + per_thread + kept + (int)hidden_per_thread + names[by & 1][0];
}
