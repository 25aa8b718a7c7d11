// Columns of numbers that a condition can be asked of at once, as numpy's are: arithmetic and comparisons with
// numbers and with each other, and, or, not of what is compared. Whatever else a condition does with them raises
// an exception, and it is then asked of one job after another.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>

#include "python.hpp"

// Numbers in memory that goes from one to the next: most are there for one question only.
template <class Number>
class Values {
public:
    explicit Values(size_t length = 0) : length_(length) {
        if (!length) return;
        if (!spare_.empty()) {
            memory_ = std::move(spare_.back());
            spare_.pop_back();
        }
        if (memory_.capacity >= length) return;
        memory_.capacity = std::max<size_t>(2 * length, 64);
        memory_.numbers.reset(new Number[memory_.capacity]);
    }
    Values(Values&& other) noexcept { *this = std::move(other); }
    Values& operator=(Values&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(length_, other.length_);
        return *this;
    }
    ~Values() {
        if (memory_.numbers && spare_.size() < kSpare) spare_.push_back(std::move(memory_));
    }

    size_t size() const { return length_; }
    void shorten(size_t length) { length_ = length; }
    Number* data() { return memory_.numbers.get(); }
    const Number* data() const { return memory_.numbers.get(); }
    Number& operator[](size_t place) { return memory_.numbers[place]; }
    const Number& operator[](size_t place) const { return memory_.numbers[place]; }

private:
    struct Memory {
        std::unique_ptr<Number[]> numbers;
        size_t capacity = 0;
    };

    static constexpr size_t kSpare = 16;
    static inline std::vector<Memory> spare_ = [] {
        std::vector<Memory> none;
        none.reserve(kSpare);
        return none;
    }();
    Memory memory_;
    size_t length_ = 0;
};

struct Column {
    Values<double> values;
    bool truth = false;  // whether they say what is true
};

inline Ref new_column(Values<double> values, bool truth = false) {
    Ref made(checked(make_box<Column>(&Box<Column>::type)));
    of<Column>(made.get()).values = std::move(values);
    of<Column>(made.get()).truth = truth;
    return made;
}

// A column, or a number that stands for one of any length.
class Operand {
public:
    explicit Operand(PyObject* object) {
        if (is_a<Column>(object)) {
            column_ = &of<Column>(object);
        } else if (PyFloat_Check(object)) {
            number_ = PyFloat_AS_DOUBLE(object);
        } else if (PyLong_Check(object) && !PyBool_Check(object)) {
            number_ = PyLong_AsDouble(object);
            exact_ = std::abs(number_) <= 9007199254740992.0;
            PyErr_Clear();
        } else {
            exact_ = false;
        }
    }

    bool fits(bool truth) const { return column_ ? column_->truth == truth : exact_ && !truth; }
    size_t length() const { return column_ ? column_->values.size() : 0; }
    double number() const { return number_; }
    const double* values() const { return column_ ? column_->values.data() : nullptr; }

private:
    const Column* column_ = nullptr;
    double number_ = 0;
    bool exact_ = true;
};

template <class Function>
PyObject* combine(PyObject* left, PyObject* right, bool of_truth, bool gives_truth, Function function) {
    return guarded([&]() -> PyObject* {
        Operand one(left), other(right);
        size_t length = std::max(one.length(), other.length());
        bool unequal = one.length() && other.length() && one.length() != other.length();
        if (!one.fits(of_truth) || !other.fits(of_truth) || unequal) return Py_NewRef(Py_NotImplemented);
        Values<double> values(length);
        const double *a = one.values(), *b = other.values();
        const double x = one.number(), y = other.number();
        auto fill = [&](auto value) {
            for (size_t place = 0; place < length; ++place) values[place] = value(place);
        };
        if (a && b) fill([&](size_t place) { return function(a[place], b[place]); });
        else if (a) fill([&](size_t place) { return function(a[place], y); });
        else fill([&](size_t place) { return function(x, b[place]); });
        return new_column(std::move(values), gives_truth).release();
    });
}

inline PyObject* compare(PyObject* left, PyObject* right, int how) {
    auto with = [&](auto function) { return combine(left, right, false, true, function); };
    switch (how) {
        case Py_LT: return with([](double a, double b) { return a < b; });
        case Py_LE: return with([](double a, double b) { return a <= b; });
        case Py_GT: return with([](double a, double b) { return a > b; });
        case Py_GE: return with([](double a, double b) { return a >= b; });
        case Py_EQ: return with([](double a, double b) { return a == b; });
        default: return with([](double a, double b) { return a != b; });
    }
}

inline void prepare_columns(PyObject* module) {
    static PyNumberMethods numbers = {};
    numbers.nb_add = [](PyObject* a, PyObject* b) {
        return combine(a, b, false, false, [](double x, double y) { return x + y; });
    };
    numbers.nb_subtract = [](PyObject* a, PyObject* b) {
        return combine(a, b, false, false, [](double x, double y) { return x - y; });
    };
    numbers.nb_multiply = [](PyObject* a, PyObject* b) {
        return combine(a, b, false, false, [](double x, double y) { return x * y; });
    };
    numbers.nb_true_divide = [](PyObject* a, PyObject* b) {
        return combine(a, b, false, false, [](double x, double y) { return x / y; });
    };
    numbers.nb_and = [](PyObject* a, PyObject* b) {
        return combine(a, b, true, true, [](double x, double y) { return x && y; });
    };
    numbers.nb_or = [](PyObject* a, PyObject* b) {
        return combine(a, b, true, true, [](double x, double y) { return x || y; });
    };
    numbers.nb_invert = [](PyObject* a) {
        return combine(a, a, true, true, [](double x, double) { return !x; });
    };
    numbers.nb_bool = [](PyObject*) {
        PyErr_SetString(PyExc_ValueError, "a column is neither true nor false; use & and | in place of and and or");
        return -1;
    };
    PyTypeObject& type = box_type<Column>("batsched_py._native.Column", "Numbers of some jobs.", nullptr);
    type.tp_as_number = &numbers;
    type.tp_richcompare = compare;
    type.tp_hash = PyObject_HashNotImplemented;
    checked(PyModule_AddType(module, &type));
    checked(PyDict_SetItemString(type.tp_dict, "__array_ufunc__", Py_None));
}
