// A global with a namespace, in a file that no line of `main` is in.
namespace geometry {
struct Box {
    int side;
};
Box box = {-1};
} // namespace geometry

void assign(int rank) {
    geometry::box.side = 200 + rank;
}
