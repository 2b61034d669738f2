// Every kind of C++ variable of static storage: namespaces, statics of classes, templates, inline variables,
// references.
#include <map>
#include <string>
#include <vector>

namespace app {
int total = 3;
static int table[2][3];
namespace {
double hidden = 2.5;
}
inline namespace v2 {
long versioned = 8;
}
enum class Color : unsigned char { red, green };
Color color = Color::green;

class Base {
  public:
    virtual ~Base() = default;
    virtual int value() const {
        return number;
    }
    int number = 7;
};

struct Derived : public Base, private std::string {
    unsigned narrow : 3;
    unsigned wide : 9;
    int Base::*data_member = &Base::number;
    int (Base::*function_member)() const = &Base::value;
    int count(int by) {
        static int hits = 2;
        return hits += by;
    }
    static int made;
    static inline long inlined = 9;
};
int Derived::made = 4;
Derived derived;
Derived *pointer = &derived;

template <class T> struct Holder { static T held; };
template <class T> T Holder<T>::held = 5;

int work(int by) {
    static int calls = 100;
    struct Local {
        static int deep(int more) {
            static int deepest = 1;
            return deepest += more;
        }
    };
    table[by & 1][1] += by;
    hidden += by;
    return calls += by + Holder<int>::held + static_cast<int>(Holder<long>::held) + Local::deep(by);
}
} // namespace app

inline int shared_counter() {
    static int counted = 4;
    return ++counted;
}

thread_local int per_thread = 5;
int (*function)(int) = app::work;
int &reference = app::total;
std::vector<int> numbers{1, 2, 3};
std::map<int, std::string> words;
const char *const names[] = {"a", "b"};

int use(int by) {
    return app::work(by) + app::derived.count(by) + shared_counter() + per_thread + (int)app::Derived::inlined;
}
