// A session graph and how far its user has come in it (batsched_py/users/think_time.py is the specification).
#pragma once
#include <cstring>

#include "broker.hpp"

// A column of numbers of any width, read where numpy keeps it.
class Numbers {
public:
    Numbers() = default;
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;
    ~Numbers() {
        if (buffer_.obj) PyBuffer_Release(&buffer_);
    }

    void read(PyObject* column) {
        checked(PyObject_GetBuffer(column, &buffer_, PyBUF_CONTIG_RO | PyBUF_FORMAT));
        kind_ = *buffer_.format;
        if (!std::strchr("bhilqd", kind_)) {
            PyErr_Format(PyExc_TypeError, "%R is no column of numbers", column);
            throw PythonError();
        }
    }

    size_t size() const { return static_cast<size_t>(buffer_.len / buffer_.itemsize); }

    double operator[](size_t place) const {
        switch (kind_) {
            case 'b': return static_cast<const int8_t*>(buffer_.buf)[place];
            case 'h': return static_cast<const int16_t*>(buffer_.buf)[place];
            case 'i': return static_cast<const int32_t*>(buffer_.buf)[place];
            case 'd': return static_cast<const double*>(buffer_.buf)[place];
            default: return static_cast<double>(static_cast<const int64_t*>(buffer_.buf)[place]);
        }
    }

private:
    Py_buffer buffer_{};
    char kind_ = 'd';
};

class SessionReplay {
public:
    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&jobs_, &profiles_, &who_, &session_of_}) function(*ref);
        for (auto& [index, session] : under_way_) function(session.jobs);
    }

    void begin(PyObject* sessions, bool reduced, PyObject* profiles, PyObject* who) {
        jobs_ = attribute(sessions, "jobs");
        profiles_ = Ref::to(profiles);
        who_ = Ref::to(who);
        cut(sessions);
        link(reduced);
        nb_unfinished_ = starts_.size();
        begin_next_root();
    }

    double next_time() const { return plan_.empty() ? INFINITY : plan_[0].time; }
    bool over() const { return !nb_unfinished_; }

    // The jobs whose time has come, as submissions.
    Ref submit(double now) {
        Ref submissions(checked(PyList_New(0)));
        while (next_time() <= now) {
            auto [time, index, place] = plan_[0];
            std::pop_heap(plan_.begin(), plan_.end());
            plan_.pop_back();
            UnderWay& session = under_way_.at(index);
            if (!place) session.jobs = jobs_of(index);
            PyObject* jobs = session.jobs.get();
            Ref job = Ref::to(checked_job(PyList_GET_ITEM(jobs, place++)));
            double decided = session.decided;
            bool is_root = session.is_root;
            if (place < PyList_GET_SIZE(jobs)) {
                double distance = job_submission(PyList_GET_ITEM(jobs, place)) - job_submission(PyList_GET_ITEM(jobs, 0));
                plan(session.start + distance, index, place);
            } else {
                session.jobs = Ref();
            }
            if (place == 1 && is_root) begin_next_root();
            checked(PyDict_SetItem(session_of_.get(), job_id(job.get()), from_int(index).get()));
            Ref profile(checked(PyObject_GetItem(profiles_.get(), job_profile(job.get()))));
            Ref submission = call(submission_class(), job.get(), profile.get(), note(job.get(), index).get(),
                                  from_double(decided).get());
            checked(PyList_Append(submissions.get(), submission.get()));
        }
        return submissions;
    }

    // What depends on the session that is over with this job goes on.
    void job_ended(PyObject* id, double now) {
        PyObject* number = PyDict_GetItemWithError(session_of_.get(), id);
        if (!number) {
            if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, id);
            throw PythonError();
        }
        auto index = static_cast<int32_t>(as_int(number));
        checked(PyDict_DelItem(session_of_.get(), id));
        if (--under_way_.at(index).nb_unfinished) return;
        under_way_.erase(index);
        --nb_unfinished_;
        for (int32_t successor = first_[index]; successor < stop_[index]; ++successor) {
            double start = now + (starts_[successor] - finishes_[index]);
            auto known = earliest_start_.find(successor);
            if (known != earliest_start_.end()) start = std::max(start, known->second);
            if (--nb_predecessors_[successor]) {
                earliest_start_[successor] = start;
            } else {
                if (known != earliest_start_.end()) earliest_start_.erase(known);
                start_session(successor, start, now, false);
            }
        }
    }

private:
    struct UnderWay {
        double start, decided;
        bool is_root;
        int64_t nb_unfinished;
        Ref jobs;  // all of them, from the first submission to the last
    };

    struct Planned {
        double time;
        int32_t index;
        Py_ssize_t place;

        // Whether it comes after the other one.
        bool operator<(const Planned& other) const {
            return time > other.time || (time == other.time && index > other.index);
        }
    };

    Ref jobs_, profiles_, who_;
    Ref session_of_{PyDict_New()};  // of each job that was submitted and has not ended
    std::vector<double> starts_, finishes_;
    std::vector<int32_t> first_jobs_;        // and behind the last session the number of all jobs
    std::vector<int32_t> first_, stop_;      // of the sessions that depend on one
    std::vector<int32_t> nb_predecessors_;   // that are not over
    std::vector<int32_t> roots_;
    std::unordered_map<int32_t, double> earliest_start_;
    std::unordered_map<int32_t, UnderWay> under_way_;
    std::vector<Planned> plan_;
    size_t nb_begun_roots_ = 0, nb_unfinished_ = 0;

    // The sessions of a user (batsched_py/workload/sessions.py is the specification).
    void cut(PyObject* sessions) {
        Ref delimiter = attribute(sessions, "delimiter");
        Ref rule = attribute(delimiter.get(), "rule");
        bool by_arrival = text_of(rule.get()) == "arrival", by_last = text_of(rule.get()) == "last";
        double threshold = as_double(attribute(delimiter.get(), "seconds").get());
        Numbers submissions, finishes;
        submissions.read(attribute(sessions, "submissions").get());
        finishes.read(attribute(sessions, "job_finishes").get());
        double latest = -INFINITY;  // finish of all jobs so far
        for (size_t job = 0; job < submissions.size(); ++job) {
            double start = submissions[job];
            bool opens = !job || (by_arrival ? start - submissions[job - 1] >= threshold
                                             : start - (by_last ? finishes[job - 1] : latest) > threshold);
            if (opens) {
                first_jobs_.push_back(static_cast<int32_t>(job));
                starts_.push_back(start);
                finishes_.push_back(finishes[job]);
            }
            finishes_.back() = std::max(finishes_.back(), finishes[job]);
            latest = std::max(latest, finishes[job]);
        }
        first_jobs_.push_back(static_cast<int32_t>(submissions.size()));
    }

    // What depends on what (batsched_py/workload/session_graph.py is the specification).
    void link(bool reduced) {
        auto count = static_cast<int32_t>(starts_.size());
        std::vector<int32_t> earliest(count + 1, count);  // that depends on some session from a place on
        for (int32_t index = 0; index < count; ++index) {
            auto later = std::lower_bound(starts_.begin(), starts_.end(), finishes_[index]);
            first_.push_back(std::max(index + 1, static_cast<int32_t>(later - starts_.begin())));
        }
        for (int32_t index = count; index-- > 0;) earliest[index] = std::min(earliest[index + 1], first_[index]);
        nb_predecessors_.assign(count + 1, 0);
        for (int32_t index = 0; index < count; ++index) {
            stop_.push_back(reduced ? earliest[first_[index]] : count);
            ++nb_predecessors_[first_[index]];
            --nb_predecessors_[stop_[index]];
        }
        for (int32_t index = 0; index < count; ++index) {
            if (index) nb_predecessors_[index] += nb_predecessors_[index - 1];
            if (!nb_predecessors_[index]) roots_.push_back(index);
        }
    }

    Ref jobs_of(int32_t index) const {
        return Ref(checked(PySequence_GetSlice(jobs_.get(), first_jobs_[index], first_jobs_[index + 1])));
    }

    void plan(double time, int32_t index, Py_ssize_t place) {
        plan_.push_back({time, index, place});
        std::push_heap(plan_.begin(), plan_.end());
    }

    void start_session(int32_t index, double start, double decided, bool is_root) {
        under_way_[index] = {start, decided, is_root, first_jobs_[index + 1] - first_jobs_[index], Ref()};
        plan(start, index, 0);
    }

    void begin_next_root() {
        if (nb_begun_roots_ == roots_.size()) return;
        int32_t index = roots_[nb_begun_roots_++];
        start_session(index, starts_[index], 0.0, true);
    }

    Ref note(PyObject* job, int32_t index) const {
        double time = job_submission(job);
        if (std::abs(time) < 1e15) {
            std::string text(text_of(who_.get()));
            text.append(" session=").append(std::to_string(index)).append(" recorded=").append(spelled(time));
            return Ref(checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))));
        }
        bool is_whole = std::isfinite(time) && time == std::floor(time);
        Ref number(checked(is_whole ? PyLong_FromDouble(time) : PyFloat_FromDouble(time)));
        return Ref(checked(PyUnicode_FromFormat("%U session=%d recorded=%R", who_.get(), index, number.get())));
    }
};

inline void prepare_replay(PyObject* module) {
    static PyMethodDef methods[] = {
        {"submit",
         [](PyObject* self, PyObject* now) {
             return guarded([&] { return of<SessionReplay>(self).submit(as_double(now)).release(); });
         },
         METH_O, "The jobs whose time has come."},
        {"job_ended",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* id;
                 double now;
                 if (!PyArg_ParseTuple(arguments, "Od", &id, &now)) throw PythonError();
                 of<SessionReplay>(self).job_ended(id, now);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "Go on with what depends on the session that is over with this job."},
        {}};
    static PyGetSetDef getset[] = {
        {"next_time", [](PyObject* self, void*) { return PyFloat_FromDouble(of<SessionReplay>(self).next_time()); },
         nullptr, "When the next job is to be submitted; infinite for none that is planned.", nullptr},
        {"over", [](PyObject* self, void*) { return PyBool_FromLong(of<SessionReplay>(self).over()); }, nullptr,
         "Whether all sessions are over.", nullptr},
        {}};
    PyTypeObject& type = box_type<SessionReplay>("batsched_py._native.SessionReplay",
                                                 "A session graph and how far the user has come in it.", methods,
                                                 nullptr, getset);
    type.tp_init = [](PyObject* self, PyObject* arguments, PyObject*) {
        return guarded<int>(-1, [&] {
            PyObject *sessions, *profiles, *who;
            int reduced;
            if (!PyArg_ParseTuple(arguments, "OpOU", &sessions, &reduced, &profiles, &who)) throw PythonError();
            of<SessionReplay>(self).begin(sessions, reduced, profiles, who);
            return 0;
        });
    };
    checked(PyModule_AddType(module, &type));
}
