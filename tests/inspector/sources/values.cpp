// Values of C++ types: bases, virtual tables, enum classes, references, pointers to members.
#include <cstdio>
#include <unistd.h>

namespace app {
enum class Color : unsigned char { red, green = 7 };
struct Base {
    virtual ~Base() = default;
    int number = 7;
};
struct Other {
    double weight = 0.5;
};
struct Derived : Base, Other {
    Color color = Color::green;
    bool flag = true;
    int sum() const {
        return number;
    }
};
Derived derived;
Derived several[2];
Color color = Color::green;
int total = 3;
static long hidden = -8;
} // namespace app

int &reference = app::total;
int app::Base::*member = &app::Base::number;
char16_t wide = u'w';

int main() {
    std::puts("ready");
    std::fflush(stdout);
    pause();
    return app::derived.sum() + static_cast<int>(app::hidden);
}
