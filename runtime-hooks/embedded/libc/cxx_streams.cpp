/*
 * cxx_streams.cpp: names the streams without <iostream>, which would count this library among those that use them: in
 * a linker namespace they would then never be written out.
 */
#include "libc/cxx_streams.h"

#include <ostream>

namespace std {
extern ostream cout, cerr, clog;
extern wostream wcout, wcerr, wclog;
} // namespace std

extern const char end_of_streams[] __asm__("_ZNSt8ios_base4InitD1Ev");

bool cxx_streams_end_by(const void *function) {
    return function == end_of_streams;
}

void cxx_streams_flush() {
    std::ios_base::Init begun; /* a C program has not made them */
    for (std::ostream *stream : {&std::cout, &std::cerr, &std::clog})
        stream->flush();
    for (std::wostream *stream : {&std::wcout, &std::wcerr, &std::wclog})
        stream->flush();
}
