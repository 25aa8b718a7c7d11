// What all of it needs of Python: owned references, objects that hold a C++ value, and calls.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

// A Python exception is set; whoever called C++ from Python passes it on.
struct PythonError {};

inline PyObject* checked(PyObject* object) {
    if (!object) throw PythonError();
    return object;
}

inline void checked(int status) {
    if (status < 0) throw PythonError();
}

// An owned reference, or none.
class Ref {
public:
    Ref() = default;
    explicit Ref(PyObject* owned) : object_(owned) {}
    Ref(const Ref& other) : object_(Py_XNewRef(other.object_)) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(const Ref& other) noexcept { return *this = Ref(other); }
    Ref& operator=(Ref&& other) noexcept {
        PyObject* before = std::exchange(object_, std::exchange(other.object_, nullptr));
        Py_XDECREF(before);
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }
    static Ref to(PyObject* borrowed) { return Ref(Py_XNewRef(borrowed)); }
    PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }
    bool is_some() const { return object_ && object_ != Py_None; }

private:
    PyObject* object_ = nullptr;
};

// A Python object that holds a C++ value.
template <class Value>
struct Box {
    PyObject_HEAD
    Value value;
    static PyTypeObject type;
};

template <class Value>
Value& of(PyObject* object) {
    return reinterpret_cast<Box<Value>*>(object)->value;
}

template <class Value>
bool is_a(PyObject* object) {
    return object && PyObject_TypeCheck(object, &Box<Value>::type);
}

template <class Value>
Value& checked_of(PyObject* object) {
    if (!is_a<Value>(object)) {
        PyErr_Format(PyExc_TypeError, "a compiled %s is needed, not %R", Box<Value>::type.tp_name, object);
        throw PythonError();
    }
    return of<Value>(object);
}

template <class Value>
PyObject* make_box(PyTypeObject* type, PyObject* = nullptr, PyObject* = nullptr) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self) new (&of<Value>(self)) Value();
    return self;
}

template <class Value>
void drop_box(PyObject* self) {
    if (PyType_IS_GC(Py_TYPE(self))) PyObject_GC_UnTrack(self);
    of<Value>(self).~Value();
    Py_TYPE(self)->tp_free(self);
}

// A value that takes part in the search for cycles has `each_ref`, which shows all its references.
template <class Value>
int visit_box(PyObject* self, visitproc visit, void* arg) {
    int status = 0;
    of<Value>(self).each_ref([&](Ref& ref) {
        if (!status && ref) status = visit(ref.get(), arg);
    });
    return status;
}

template <class Value>
int clear_box(PyObject* self) {
    of<Value>(self).each_ref([](Ref& ref) { ref = Ref(); });
    return 0;
}

// Prepares the type of a box; Python may derive classes from it.
template <class Value>
PyTypeObject& box_type(const char* name, const char* doc, PyMethodDef* methods, PyMemberDef* members = nullptr,
                       PyGetSetDef* getset = nullptr) {
    PyTypeObject& type = Box<Value>::type;
    type.tp_name = name;
    type.tp_doc = doc;
    type.tp_basicsize = sizeof(Box<Value>);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    type.tp_new = make_box<Value>;
    type.tp_dealloc = drop_box<Value>;
    type.tp_methods = methods;
    type.tp_members = members;
    type.tp_getset = getset;
    if constexpr (requires(Value value) { value.each_ref([](Ref&) {}); }) {
        type.tp_flags |= Py_TPFLAGS_HAVE_GC;
        type.tp_traverse = visit_box<Value>;
        type.tp_clear = clear_box<Value>;
    }
    return type;
}

template <class Value>
PyTypeObject Box<Value>::type = {PyVarObject_HEAD_INIT(nullptr, 0)};

#define MEMBER(Value, name, python_name, kind)                                                             \
    {python_name, kind, static_cast<Py_ssize_t>(offsetof(Box<Value>, value) + offsetof(Value, name)), 0,  \
     nullptr}

// Runs C++ that may throw PythonError where Python expects a null pointer or -1.
template <class Result, class Body>
Result guarded(Result failure, Body body) {
    try {
        return body();
    } catch (const PythonError&) {
        return failure;
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
        return failure;
    }
}

template <class Body>
PyObject* guarded(Body body) {
    return guarded<PyObject*>(nullptr, body);
}

// An attribute that can only be a box of a certain value, so that C++ need not look.
template <auto field, class Kind, class Value>
PyGetSetDef typed_attribute(const char* name, Ref Value::*) {
    return {name,
            [](PyObject* self, void*) { return Py_XNewRef((of<Value>(self).*field).get()); },
            [](PyObject* self, PyObject* object, void*) {
                return guarded<int>(-1, [&] {
                    checked_of<Kind>(object);
                    of<Value>(self).*field = Ref::to(object);
                    return 0;
                });
            },
            nullptr, nullptr};
}

#define TYPED(Value, name, Kind, python_name) typed_attribute<&Value::name, Kind>(python_name, &Value::name)

template <class... Arguments>
Ref call(PyObject* callable, Arguments... arguments) {
    PyObject* stack[] = {nullptr, arguments...};
    return Ref(checked(PyObject_Vectorcall(callable, stack + 1,
                                           sizeof...(arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
}

template <class... Arguments>
Ref call_method(PyObject* object, PyObject* name, Arguments... arguments) {
    PyObject* stack[] = {object, arguments...};
    return Ref(checked(PyObject_VectorcallMethod(
        name, stack, (sizeof...(arguments) + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
}

// The method of this name that Python would have found without the compiled type.
inline Ref above(PyTypeObject& type, PyObject* self, const char* name) {
    Ref super = call(reinterpret_cast<PyObject*>(&PySuper_Type), reinterpret_cast<PyObject*>(&type), self);
    return Ref(checked(PyObject_GetAttrString(super.get(), name)));
}

inline double as_double(PyObject* number) {
    if (PyFloat_CheckExact(number)) return PyFloat_AS_DOUBLE(number);
    double value = PyFloat_AsDouble(number);
    if (value == -1.0 && PyErr_Occurred()) throw PythonError();
    return value;
}

inline int64_t as_int(PyObject* number) {
    int64_t value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    return value;
}

inline Ref from_double(double value) { return Ref(checked(PyFloat_FromDouble(value))); }
inline Ref from_int(int64_t value) { return Ref(checked(PyLong_FromLongLong(value))); }

inline Ref attribute(PyObject* object, const char* name) {
    return Ref(checked(PyObject_GetAttrString(object, name)));
}

inline bool is_true(PyObject* object) {
    if (object == Py_True) return true;
    if (object == Py_False) return false;
    int truth = PyObject_IsTrue(object);
    checked(truth);
    return truth;
}

// Where the field of a msgspec Struct lies in it: a Struct keeps its fields as slots do.
inline Py_ssize_t slot_offset(PyObject* type, const char* name) {
    Ref descriptor = attribute(type, name);
    if (Py_TYPE(descriptor.get()) != &PyMemberDescr_Type) {
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
        throw PythonError();
    }
    return reinterpret_cast<PyMemberDescrObject*>(descriptor.get())->d_member->offset;
}

inline PyObject*& slot(PyObject* object, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}
