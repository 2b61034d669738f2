/*
 * shapes.cpp: the globals of the C++ oracle program, and how a rank fills them.
 *
 * It takes the rank's number; every value depends on it.  Several globals allocate in their constructors, so that a
 * rank owns heap blocks which the loader made.
 */
#include "shapes.hpp"

namespace {

PRIVATE int secret = 900;

struct Ledger {
    int entries = 3;
    std::string owner = "the ledger in an anonymous namespace";
};
PRIVATE Ledger ledger;

} // namespace

PRIVATE Table table(5);
PRIVATE std::vector<int> history = {1, 2, 3};
PRIVATE std::vector<std::vector<double>> grid;
PRIVATE std::vector<std::unique_ptr<geometry::Shape>> shapes;
PRIVATE std::map<std::string, int> census = {{"zero", 0}, {"a rather long key that does not fit in place", 1}};
PRIVATE std::set<int> members = {1, 2};
PRIVATE std::string greeting = "a greeting that is too long for the short string's place";
PRIVATE std::string short_text = "short";
PRIVATE std::array<geometry::Point, 2> corners;
PRIVATE std::pair<int, std::string> couple;
PRIVATE std::tuple<int, double, char> triple;
PRIVATE std::optional<int> perhaps;
PRIVATE std::variant<int, double, std::string> either;
PRIVATE std::shared_ptr<geometry::Point> shared;
PRIVATE std::function<int(int)> adder;

Table::Table(int size) : size_(size), cells_(new int[static_cast<std::size_t>(size)]), self_(this) {
    for (int i = 0; i < size; i++)
        cells_[i] = i * i;
}

Table::~Table() {
    delete[] cells_;
}

namespace geometry {

PRIVATE int Shape::made = 0;
PRIVATE int detail::v2::depth = 11;
PRIVATE Stack<int, 4> numbers;
PRIVATE Stack<Point, 3> points;
PRIVATE Circle unit_circle(1.0, 0);
PRIVATE Shape *current = &unit_circle;
PRIVATE Shape &favourite = unit_circle;
PRIVATE double (Shape::*area_member)() const = &Shape::area;
PRIVATE double Point::*coordinate = &Point::x;

Shape::Shape(std::string name, Colour colour) : name_(std::move(name)), colour_(colour), serial_(++made) {}

Circle::Circle(double radius, int rank)
    : Shape("circle", rank % 2 == 0 ? Colour::red : Colour::blue), centre_{1.0 + rank, 2.0}, radius_(radius) {}

double Circle::area() const {
    return 3.0 * radius_ * radius_;
}

Polygon::Polygon(std::vector<Point> points, int rank)
    : Shape("polygon with a long name, on the heap", Colour::green), Labelled(70 + rank), points_(std::move(points)) {}

double Polygon::area() const {
    return static_cast<double>(points_.size());
}

int Polygon::corners() const {
    return static_cast<int>(points_.size());
}

static void fill_templates(int rank) {
    for (int i = 0; i <= rank; i++)
        numbers.push(10 * rank + i);
    points.push({0.5 * rank, -0.5});
    unit<double> = 1.5 * rank;
    unit<long> = 3L * rank;
    inline_count += rank;
    detail::depth += rank;
    coordinate = rank % 2 == 0 ? &Point::x : &Point::y;
}

void fill(int rank) {
    fill_templates(rank);
    shapes.push_back(std::make_unique<Circle>(2.0 + rank, rank));
    shapes.push_back(std::make_unique<Polygon>(std::vector<Point>(static_cast<std::size_t>(rank) + 1), rank));
    current = shapes[static_cast<std::size_t>(rank % 2)].get();
    secret += rank;
    ledger.entries *= rank + 1;
    ledger.owner += static_cast<char>('0' + rank);
}

} // namespace geometry
