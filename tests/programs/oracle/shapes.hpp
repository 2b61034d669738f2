/*
 * shapes.hpp: the types of the C++ oracle program.
 *
 * It takes nothing from MPI; shapes.cpp holds the data, shapes_main.cpp the program.
 */
#ifndef ORACLE_SHAPES_HPP
#define ORACLE_SHAPES_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#ifndef PRIVATE /* or what makes a variable thread-local */
#define PRIVATE
#endif

namespace geometry {

enum class Colour : std::uint8_t { red, green = 5, blue };

struct Point {
    double x = 0, y = 0;
    Point operator+(const Point &other) const {
        return {x + other.x, y + other.y};
    }
};

class Shape {
  public:
    Shape(std::string name, Colour colour);
    virtual ~Shape() = default;
    Shape(const Shape &) = delete;
    Shape &operator=(const Shape &) = delete;
    virtual double area() const = 0;
    virtual int corners() const {
        return 0;
    }
    static PRIVATE int made;
    static const int limit = 64;

  protected:
    std::string name_;
    Colour colour_;
    int serial_;
};

class Labelled {
  public:
    explicit Labelled(int number) : number_(number) {}
    virtual ~Labelled() = default;
    virtual int number() const {
        return number_;
    }

  private:
    int number_;
};

class Circle : public Shape {
  public:
    Circle(double radius, int rank);
    double area() const override;

  private:
    Point centre_;
    double radius_;
};

class Polygon : public Shape, public Labelled {
  public:
    Polygon(std::vector<Point> points, int rank);
    double area() const override;
    int corners() const override;

  private:
    std::vector<Point> points_;
};

template <typename T, int Capacity> class Stack {
  public:
    void push(const T &value) {
        items_[count_++] = value;
        pushed += 1;
        high_water = std::max(high_water, count_);
    }
    const T &top() const {
        return items_[count_ - 1];
    }
    int count() const {
        return count_;
    }
    static PRIVATE int pushed;
    inline static PRIVATE int high_water = 0;

  private:
    T items_[Capacity] = {};
    int count_ = 0;
};
template <typename T, int Capacity> PRIVATE int Stack<T, Capacity>::pushed = 0;

template <typename T> PRIVATE T unit = T(1);

inline PRIVATE int inline_count = 40;
inline PRIVATE const char *inline_title = "inline variable";

namespace detail {
inline namespace v2 {
extern PRIVATE int depth;
}
} // namespace detail

extern PRIVATE Stack<int, 4> numbers;
extern PRIVATE Stack<Point, 3> points;
extern PRIVATE Circle unit_circle;
extern PRIVATE Shape *current;
extern PRIVATE Shape &favourite;
extern PRIVATE double (Shape::*area_member)() const;
extern PRIVATE double Point::*coordinate;

/* Fills every global for this rank. */
void fill(int rank);

} // namespace geometry

/* Allocates in its constructor, which the loader runs before main. */
class Table {
  public:
    explicit Table(int size);
    ~Table();
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;
    int &operator[](int index) {
        return cells_[index];
    }
    int size() const {
        return size_;
    }

  private:
    int size_;
    int *cells_;
    Table *self_;
};

extern PRIVATE Table table;
extern PRIVATE std::vector<int> history;
extern PRIVATE std::vector<std::vector<double>> grid;
extern PRIVATE std::vector<std::unique_ptr<geometry::Shape>> shapes;
extern PRIVATE std::map<std::string, int> census;
extern PRIVATE std::set<int> members;
extern PRIVATE std::string greeting;
extern PRIVATE std::string short_text;
extern PRIVATE std::array<geometry::Point, 2> corners;
extern PRIVATE std::pair<int, std::string> couple;
extern PRIVATE std::tuple<int, double, char> triple;
extern PRIVATE std::optional<int> perhaps;
extern PRIVATE std::variant<int, double, std::string> either;
extern PRIVATE std::shared_ptr<geometry::Point> shared;
extern PRIVATE std::function<int(int)> adder;

#endif
