// Little of everything that C++ has, without headers: its debug information is small.
namespace app {
struct P {
    int x;
    static int count;
    double z[3];
    unsigned a : 3, b : 5;
    P *next;
    int (*f)(P *, int);
};
int P::count = 3;
namespace {
int hidden;
P hp;
} // namespace
template <class T> struct B { static T v; };
template <class T> T B<T>::v;
enum class E : char { a, b };
E en;
union U {
    int i;
    float f;
} un;
int (P::*mp)(int);
typedef const P *volatile Q;
Q q;
int &r = hidden;
int use(int n) {
    static int calls;
    struct L {
        int m(P p, E *) {
            static P q;
            q = p;
            return q.x;
        }
    };
    L l;
    for (int i = 0; i < n; i++) {
        int k = i * 2;
        calls += k;
    }
    return l.m(hp, &en) + calls++ + B<int>::v + (int)B<P>::v.x;
}
} // namespace app
thread_local int tl;
int arr[3][4];
static inline int inl(int a) {
    return app::use(a) + arr[a][0];
}
int call(int x) {
    return inl(x + 1) + inl(x * 2);
}
