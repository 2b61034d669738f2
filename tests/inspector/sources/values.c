/* Values of every C type, for two readers to agree on. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum color { RED, GREEN = 5, BLUE = -1 };
enum option { OPTION_A = 1, OPTION_B = 2, OPTION_C = 8 };
struct inner {
    short low;
    double high;
};
struct outer {
    int id;
    struct inner pair[2];
    struct {
        int hidden;
    };
    union {
        int whole;
        float real;
    } either;
    char tag[8];
    struct outer *self;
    int (*call)(void);
};
struct bits {
    unsigned int a : 3;
    signed int b : 5;
    uint64_t c : 40;
    enum option d : 4;
    bool e : 1;
};

static int answer(void) {
    return 42;
}

signed char small = -5;
unsigned char byte = 200;
char letter = 'q', quote = '\'', control = '\033', high = '\351';
short port = -3;
unsigned int mask = 4000000000u;
long long wide = -9000000000LL;
unsigned long long widest = 18446744073709551615ull;
float single = 0.1f, whole = 3, tiny = 1e-30f;
double real = 0.1, big = 1e300, infinite, negative = -2.5, zero, precise = 1.0 / 3;
long double extended = 0.1L, extended_whole = 12, extended_negative = -1e100L;
double _Complex wave = 1.5 - 2 * I;
bool ready = true, done;
enum color color = GREEN, odd_color = 3, blue = BLUE;
enum option options = OPTION_A | OPTION_C, no_options, odd_options = 16 | OPTION_B;
int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
double grid[100][100], wide_rows[3][300];
struct inner inners[20000];
int zeros[50], huge[50000], runs[30] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3}, many[300];
char text[16] = "hello", full[4] = "full", empty[6], long_text[300], mixed[8] = "a\0b\tc\"d";
unsigned char octets[3] = {1, 2, 3};
struct outer outer = {7, {{1, 0.5}, {2, 0.25}}, {9}, {3}, "tag", &outer, answer};
struct bits bits = {5, -3, 1234567, OPTION_A | OPTION_B, true};
const char *message = "a message\n", *no_message, *messages[2] = {"first", "second"};
int *pointer = &matrix[1][2];
int (*function)(void) = answer;
void *opaque = matrix;
struct outer outers[3];

int main(void) {
    infinite = big * big;
    for (int i = 0; i < 300; i++)
        many[i] = i;
    huge[30000] = 1;
    grid[60][7] = 2;
    wide_rows[1][2] = 3;
    inners[15000].low = 4;
    memset(long_text, 'x', sizeof long_text);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
