// The waiting jobs (batsched_py/ledger/queue.py is their specification).
//
// Places, gaps and the counting of new jobs follow the Python class step by step, because they decide which
// jobs a policy sees as new. Orders are left to that class: it finds what it needs under the same names here.
#pragma once
#include "columns.hpp"
#include "hosts.hpp"
#include "jobs.hpp"

inline PyObject *name_append, *name_remove, *name_shorten, *name_estimates;
inline Py_ssize_t open_gaps;

class JobQueue {
public:
    Ref score = Ref::to(Py_None);
    Ref place{PyDict_New()};
    Ref jobs{PyList_New(0)};  // None where there is a gap
    Ref columns = Ref::to(Py_None);
    std::vector<int64_t> sizes;  // of the jobs; beyond all hosts where there is a gap
    std::vector<double> estimates;
    Py_ssize_t first = 0, most = 64, nb_new = 0;

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&score, &place, &jobs, &columns}) function(*ref);
    }

    Py_ssize_t length() const { return PyDict_GET_SIZE(place.get()); }
    Py_ssize_t end() const { return PyList_GET_SIZE(jobs.get()); }
    PyObject* at(Py_ssize_t index) const { return PyList_GET_ITEM(jobs.get(), index); }

    bool waits(PyObject* id) const {
        int found = PyDict_Contains(place.get(), id);
        checked(found);
        return found;
    }

    // Where a job stands; -1 if it does not.
    Py_ssize_t find(PyObject* id) const {
        PyObject* number = PyDict_GetItemWithError(place.get(), id);
        if (number) return PyLong_AsSsize_t(number);
        if (PyErr_Occurred()) throw PythonError();
        return -1;
    }

    Py_ssize_t need(PyObject* id) const {
        Py_ssize_t found = find(id);
        if (found < 0) {
            PyErr_SetObject(PyExc_KeyError, id);
            throw PythonError();
        }
        return found;
    }

    void append(PyObject* job, double estimate) {
        int64_t size = job_size(job);
        if (end() == most) close_gaps();
        put(job_id(job), end());
        checked(PyList_Append(jobs.get(), job));
        sizes.push_back(size);
        estimates.push_back(estimate);
        ++nb_new;
        if (columns.is_some()) call_method(columns.get(), name_append, job, from_double(estimate).get());
    }

    // The job at a place leaves; how long it was expected to run.
    double discard(PyObject* id, Py_ssize_t index) {
        Ref kept = Ref::to(id);
        checked(PyDict_DelItem(place.get(), id));
        double estimate = estimates[index];
        Py_ssize_t last = end() - 1;
        checked(PyList_SetItem(jobs.get(), index, Py_NewRef(Py_None)));
        sizes[index] = INT64_MAX;
        if (columns.is_some()) call_method(columns.get(), name_remove, from_int(index).get());
        if (index == first) {
            while (first <= last && at(first) == Py_None) ++first;
        } else if (index == last) {
            while (at(index) == Py_None) --index;
            shorten(index + 1);
        } else if (last + 1 - first > 2 * length() + open_gaps) {
            close_gaps();
        }
        return estimate;
    }

    void expect(PyObject* id, double estimate) {
        Py_ssize_t index = need(id);
        estimates[index] = estimate;
        if (columns.is_some()) {
            Ref column(checked(PyObject_GetAttr(columns.get(), name_estimates)));
            checked(PySequence_SetItem(column.get(), index, from_double(estimate).get()));
        }
    }

private:
    void put(PyObject* id, Py_ssize_t index) {
        checked(PyDict_SetItem(place.get(), id, from_int(index).get()));
    }

    // Searches that are under way go on in the list as it was.
    void shorten(Py_ssize_t end) {
        jobs = Ref(checked(PyList_GetSlice(jobs.get(), 0, end)));
        sizes.resize(end);
        estimates.resize(end);
        if (columns.is_some()) call_method(columns.get(), name_shorten, from_int(end).get());
    }

    void close_gaps() {
        Ref left(checked(PyList_New(0)));
        place = Ref(checked(PyDict_New()));
        Py_ssize_t count = 0;
        for (Py_ssize_t index = 0; index < end(); ++index) {
            if (at(index) == Py_None) continue;
            put(job_id(at(index)), count);
            checked(PyList_Append(left.get(), at(index)));
            sizes[count] = sizes[index];
            estimates[count] = estimates[index];
            ++count;
        }
        jobs = left;
        sizes.resize(count);
        estimates.resize(count);
        first = 0;
        columns = Ref::to(Py_None);
        while (count > most / 2) most *= 2;
    }
};

// The one who may write in a queue.
struct QueueBook {
    Ref queue;

    template <class Function>
    void each_ref(Function function) {
        function(queue);
    }

    JobQueue& book() const { return of<JobQueue>(queue.get()); }
};

// A search among candidates, each of which is looked at when its turn has come.
class Search {
public:
    // Candidates are those from one place to another in the queue for which enough hosts are free.
    void begin(PyObject* queue, PyObject* free, PyObject* condition, Py_ssize_t first, Py_ssize_t end) {
        const JobQueue& waiting = of<JobQueue>(queue);
        queue_ = Ref::to(queue);
        free_ = Ref::to(free);
        condition_ = Ref::to(condition);
        jobs_ = waiting.jobs;
        int64_t widest = of<FreeHosts>(free).count;
        size_t count = 0, most = static_cast<size_t>(std::max<Py_ssize_t>(end - first, 0));
        places_ = Values<Py_ssize_t>(most);
        sizes_ = Values<double>(most);
        estimates_ = Values<double>(most);
        for (Py_ssize_t place = first; place < end; ++place) {
            places_[count] = place;
            sizes_[count] = static_cast<double>(waiting.sizes[place]);
            estimates_[count] = waiting.estimates[place];
            count += waiting.sizes[place] <= widest;
        }
        places_.shorten(count);
    }

    PyObject* find() {
        const FreeHosts& hosts = of<FreeHosts>(free_.get());
        asked_ = false;  // what was found has changed what is harmless
        while (next_ < places_.size()) {
            size_t place = next_++;
            if (sizes_[place] > static_cast<double>(hosts.count) || !meets(place)) continue;
            PyObject* job = checked(PyList_GetItem(jobs_.get(), places_[place]));
            if (job != Py_None && of<JobQueue>(queue_.get()).waits(job_id(job))) return Py_NewRef(job);
        }
        return nullptr;
    }

private:
    static constexpr size_t kFew = 4;  // asking of so many at once takes as long as of one after another
    Ref queue_, free_, condition_;
    Ref jobs_;                        // the list of the queue as it was, but for new gaps
    Values<Py_ssize_t> places_;       // of the candidates in it
    Values<double> sizes_, estimates_;
    size_t next_ = 0;
    bool columns_ = true;  // whether the condition can be asked of columns
    bool asked_ = false;   // whether it was, of all that are left
    size_t asked_from_ = 0;
    Values<double> answers_;

    bool meets(size_t place) {
        if (!condition_.is_some()) return true;
        if (!asked_ && columns_ && places_.size() - place >= kFew) ask(place);
        if (asked_) return answers_[place - asked_from_] != 0;
        Ref size = from_int(static_cast<int64_t>(sizes_[place])), estimate = from_double(estimates_[place]);
        return is_true(call(condition_.get(), size.get(), estimate.get()).get());
    }

    void ask(size_t place) {
        size_t length = places_.size() - place;
        auto left = [&](const Values<double>& values) {
            Values<double> copy(length);
            std::copy_n(values.data() + place, length, copy.data());
            return new_column(std::move(copy));
        };
        Ref size = left(sizes_), estimate = left(estimates_);
        PyObject* both[] = {size.get(), estimate.get()};
        Ref answer(PyObject_Vectorcall(condition_.get(), both, 2, nullptr));
        if (!answer) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError();
            PyErr_Clear();
        }
        columns_ = asked_ = is_a<Column>(answer.get()) && of<Column>(answer.get()).truth &&
                            of<Column>(answer.get()).values.size() == length;
        if (asked_) {
            asked_from_ = place;
            answers_ = std::move(of<Column>(answer.get()).values);
        }
    }
};

// The jobs that fit and meet a condition, in the queue's order or by their scores.
inline Ref where(PyObject* self, PyObject* free, PyObject* condition, PyObject* score, bool only_new) {
    JobQueue& queue = of<QueueBook>(self).book();
    if (score == Py_None && !queue.score.is_some()) {
        Py_ssize_t end = queue.end(), begin = queue.first;
        if (only_new) begin = std::max(begin, end - queue.nb_new);
        checked_of<FreeHosts>(free);
        Ref made(checked(make_box<Search>(&Box<Search>::type)));
        of<Search>(made.get()).begin(of<QueueBook>(self).queue.get(), free, condition, begin, end);
        return made;
    }
    return call(above(Box<QueueBook>::type, self, "where").get(), free, condition, score,
                only_new ? Py_True : Py_False);
}

inline void prepare_queue(PyObject* module) {
    name_append = checked(PyUnicode_InternFromString("append"));
    name_remove = checked(PyUnicode_InternFromString("remove"));
    name_shorten = checked(PyUnicode_InternFromString("shorten"));
    name_estimates = checked(PyUnicode_InternFromString("estimates"));
    Ref python(checked(PyImport_ImportModule("batsched_py.ledger.queue")));
    open_gaps = as_int(attribute(python.get(), "GAPS").get());

    PyTypeObject& search = box_type<Search>("batsched_py._native.Search", "A search.", nullptr);
    search.tp_iter = PyObject_SelfIter;
    search.tp_iternext = [](PyObject* self) { return guarded([&] { return of<Search>(self).find(); }); };
    checked(PyType_Ready(&search));

    static PyMethodDef methods[] = {
        {"estimate",
         [](PyObject* self, PyObject* job) {
             return guarded([&] {
                 JobQueue& queue = of<JobQueue>(self);
                 return PyFloat_FromDouble(queue.estimates[queue.need(job_id(checked_job(job)))]);
             });
         },
         METH_O, "How long a waiting job is expected to run."},
        {}};
    static PyMemberDef members[] = {MEMBER(JobQueue, score, "_score", T_OBJECT_EX),
                                    MEMBER(JobQueue, place, "_place", T_OBJECT_EX),
                                    MEMBER(JobQueue, jobs, "_jobs", T_OBJECT_EX),
                                    MEMBER(JobQueue, columns, "_columns", T_OBJECT_EX),
                                    MEMBER(JobQueue, first, "_first", T_PYSSIZET),
                                    {}};
    static PyGetSetDef getset[] = {
        {"head",
         [](PyObject* self, void*) {
             return guarded([&] {
                 JobQueue& queue = of<JobQueue>(self);
                 if (queue.score.is_some()) return above(Box<JobQueue>::type, self, "head").release();
                 if (queue.first >= queue.end()) {
                     PyErr_SetString(PyExc_IndexError, "no job waits");
                     throw PythonError();
                 }
                 return Py_NewRef(queue.at(queue.first));
             });
         },
         nullptr, "The job that is first in line.", nullptr},
        {"_estimates",
         [](PyObject* self, void*) {
             return guarded([&] {
                 Ref list(checked(PyList_New(0)));
                 for (double estimate : of<JobQueue>(self).estimates) {
                     checked(PyList_Append(list.get(), from_double(estimate).get()));
                 }
                 return list.release();
             });
         },
         nullptr, "How long the jobs are expected to run.", nullptr},
        {}};
    static PySequenceMethods sequence = {};
    sequence.sq_length = [](PyObject* self) { return of<JobQueue>(self).length(); };
    sequence.sq_contains = [](PyObject* self, PyObject* job) {
        return guarded<int>(-1, [&] { return of<JobQueue>(self).waits(job_id(checked_job(job))); });
    };
    PyTypeObject& type = box_type<JobQueue>("batsched_py._native.JobQueue", "The waiting jobs.", methods, members,
                                            getset);
    type.tp_as_sequence = &sequence;
    checked(PyModule_AddType(module, &type));

    static PyMethodDef book_methods[] = {
        {"append",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* job;
                 double estimate;
                 if (!PyArg_ParseTuple(arguments, "Od", &job, &estimate)) throw PythonError();
                 of<QueueBook>(self).book().append(checked_job(job), estimate);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "A job joins; it is expected to run for so long."},
        {"discard",
         [](PyObject* self, PyObject* id) {
             return guarded([&] {
                 JobQueue& queue = of<QueueBook>(self).book();
                 return PyFloat_FromDouble(queue.discard(id, queue.need(id)));
             });
         },
         METH_O, "A job leaves; how long it was expected to run."},
        {"expect",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* job;
                 double estimate;
                 if (!PyArg_ParseTuple(arguments, "Od", &job, &estimate)) throw PythonError();
                 of<QueueBook>(self).book().expect(job_id(checked_job(job)), estimate);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "Change how long a waiting job is expected to run."},
        {"where",
         reinterpret_cast<PyCFunction>(+[](PyObject* self, PyObject* arguments, PyObject* names) {
             return guarded([&] {
                 static const char* known[] = {"free", "condition", "score", "only_new", nullptr};
                 PyObject *free, *condition = Py_None, *score = Py_None;
                 int only_new = 0;
                 if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|OOp", const_cast<char**>(known), &free,
                                                  &condition, &score, &only_new)) {
                     throw PythonError();
                 }
                 return where(self, free, condition, score, only_new).release();
             });
         }),
         METH_VARARGS | METH_KEYWORDS, "The jobs that fit and meet a condition, one after another."},
        {}};
    static PyGetSetDef book_getset[] = {
        TYPED(QueueBook, queue, JobQueue, "queue"),
        {"nb_new",
         [](PyObject* self, void*) { return PyLong_FromSsize_t(of<QueueBook>(self).book().nb_new); },
         [](PyObject* self, PyObject* number, void*) {
             return guarded<int>(-1, [&] {
                 of<QueueBook>(self).book().nb_new = as_int(number);
                 return 0;
             });
         },
         "How many jobs have joined since this was last made 0.", nullptr},
        {}};
    checked(PyModule_AddType(module, &box_type<QueueBook>("batsched_py._native.QueueBook",
                                                          "Who joins a queue and who leaves it.", book_methods,
                                                          nullptr, book_getset)));
}
