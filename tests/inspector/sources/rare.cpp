// Virtual base classes: where they lie in an object only its virtual table tells.
#include <cstdio>
#include <unistd.h>

struct Counted {
    int count = 11;
    virtual ~Counted() = default;
};
struct Left : virtual Counted {
    int left = 1;
};
struct Right : virtual Counted {
    long right = 2;
};
struct Both : Left, Right {
    short both = 3;
};
struct Holder {
    char tag = 'h';
    Both inside;
    Left alone;
};
struct Plain {
    double weight = 0.5;
};
struct Deep : virtual Plain, Both {
    int deep = 4;
};

Left left;
Both both;
Both several[2];
Holder holder;
Deep deep;

int main() {
    both.count = 12;
    several[1].count = 13;
    holder.alone.count = 14;
    std::puts("ready");
    std::fflush(stdout);
    pause();
    return deep.count;
}
