/* Numbers in formats that few programs use; the smallest and largest of each, and what is not a number. */
#include <complex.h>
#include <stdio.h>
#include <unistd.h>

_Float16 half = 1.5f16, half_third = 1.0f16 / 3, half_least = 6e-8f16, half_most = 65504;
_Float128 quad = 1.5, quad_tenth = -0.1, quad_third = 1.0Q / 3, quad_least = 6.5e-4966Q, quad_most = 1e4932Q, quad_zero;
__float128 other_quad = 3.25e100Q;
_Float128 _Complex quad_complex = 2.5 - 0.125 * I;
long double extended = 0.1L, extended_least = 3.6e-4951L, extended_most = 1e4932L;
long double _Complex extended_complex = 3.0L + 0.1L * I;
float _Complex single_complex = 1.0f - 2.0f * I;
_Decimal32 decimal32 = 1.25df, decimal32_most = 9.999999e96df, decimal32_least = -1e-101df, decimal32_zero = 0.00df;
_Decimal64 decimal64 = -1.5dd, decimal64_most = 9.999999999999999e384dd, decimal64_large = 9007199254740993.dd;
_Decimal128 decimal128 = 3.75dl, decimal128_most = 9.999999999999999999999999999999999e6144dl, decimal128_zero;

/* A debugger has no way to show it; ours shows its bytes. */
_Complex int whole_complex = 1 + 2i;

/* What is not a number, with bits that tell one from another; and what is beyond all numbers. */
_Float16 half_none = __builtin_nanf16("5"), half_beyond = -__builtin_inff16();
float single_none = __builtin_nanf("77"), single_minus_none, single_beyond = __builtin_inff();
double double_none = __builtin_nan("0x123456"), double_beyond = -__builtin_inf();
long double extended_none = __builtin_nanl("9"), extended_beyond = __builtin_infl();
_Float128 quad_none = __builtin_nanf128("3"), quad_beyond = -__builtin_inff128();

struct places {
    char first;
    double second;
    struct {
        short third, fourth;
    } inner;
    unsigned fifth : 3, sixth : 7;
    union {
        int seventh;
        char eighth[4];
    };
} places = {1, 2.5, {3, -4}, 5, 66, {7}}, many[3] = {{2, 3.5, {4, -5}, 6, 67, {8}}};

int main(void) {
    single_minus_none = -single_none;
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
