// Globals with a namespace and without, in a file that no line of `main` is in.
namespace geometry {
struct Box {
    int side;
};
Box box = {-1};
} // namespace geometry
int elsewhere = -1;

void assign(int rank) {
    geometry::box.side = 200 + rank;
    elsewhere = 300 + rank;
}
