// batsched_py._native: the native engine for Python. Python objects of jobs are made when somebody looks at them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "replay.hpp"
#include "simulation.hpp"
#include "swf.hpp"

namespace nb = nanobind;
using namespace batsched;

namespace {

// The Python classes that are needed here, as `prepare` was given them; they live as long as the module.
struct Types {
    nb::handle job, read_only, host_set, submission, withdrawal, computation, delay, states, rule_broken, policy_error;
    nb::handle running_job, reservation, availability_profile;
    nb::handle blame, next_time, actions, user_name;
    nb::handle check_job, check_name, check_function, expected, number, count, misused, refuse_copy;
} types;

// --- what a policy hands over: anything unusual is checked by Python, so that both engines say the same of it -----

void check_job(nb::handle job) {
    if (!job.type().is(types.job)) types.check_job(job);
}

[[noreturn]] void throw_expected(const char* kind, nb::handle given) {
    nb::object error = types.expected(kind, given);
    PyErr_SetObject(PyExc_TypeError, error.ptr());
    throw nb::python_error();
}

double number_from(nb::handle value) {
    if (PyFloat_CheckExact(value.ptr()) && !std::isnan(PyFloat_AS_DOUBLE(value.ptr()))) {
        return PyFloat_AS_DOUBLE(value.ptr());
    }
    return nb::cast<double>(types.number(value));
}

int64_t count_from(nb::handle value) { return nb::cast<int64_t>(types.count(value)); }

bool is_true(nb::handle value) {
    int truth = PyObject_IsTrue(value.ptr());
    if (truth < 0) throw nb::python_error();
    return truth;
}

// Binds a method whose arguments may be of any kind. If their number or names are wrong, Python says so: `kind` is the
// class of the Python engine that has the same method.
template <class Class, class Function, class... Arguments>
void method(Class& bound, const char* kind, const char* name, Function function, const Arguments&... arguments) {
    bound.def(name, function, arguments...);
    bound.def(name, [kind, name](nb::handle, nb::args given, nb::kwargs named) -> nb::object {
        return types.misused(kind, name, given, named);
    });
}

// An argument of this name that may be anything.
auto any(const char* name) { return nb::arg(name).none(); }

// Calls a class as the Python engine does, and lets its properties know their names, for the sake of messages.
template <class Class>
void name_as(Class& bound, const char* kind) {
    bound.attr("__name__") = kind;
    for (auto [name, member] : nb::cast<nb::dict>(bound.attr("__dict__").attr("copy")())) {
        if (PyObject_TypeCheck(member.ptr(), &PyProperty_Type)) member.attr("__set_name__")(bound, name);
    }
}

// Binds what shows a simulation that goes on, so that there is no second one of it.
template <class Class>
void refuse_copies(Class& bound, const char* kind) {
    name_as(bound, kind);
    bound.def("__reduce__", [kind](nb::handle) { return nb::object(types.refuse_copy(kind)); });
}

// --- text, hosts and jobs ----------------------------------------------------------------------------------

// Half a pair of surrogates may stand in a name; Python writes it as it is.
std::string to_utf8(nb::handle text) {
    if (!PyUnicode_Check(text.ptr())) types.check_name(text);
    Py_ssize_t length;
    if (const char* letters = PyUnicode_AsUTF8AndSize(text.ptr(), &length)) return {letters, static_cast<size_t>(length)};
    PyErr_Clear();
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!bytes) throw nb::python_error();
    return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

nb::object from_utf8(std::string_view text) {
    PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
    if (!made) throw nb::python_error();
    return nb::steal(made);
}

nb::object host_set(const Runs& runs) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(runs.size()));
    for (size_t place = 0; place < runs.size(); ++place) {
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(place),
                         Py_BuildValue("(LL)", static_cast<long long>(runs[place].first),
                                       static_cast<long long>(runs[place].last)));
    }
    return types.host_set(nb::none(), nb::steal(tuple));
}

Runs runs_of(nb::handle hosts) {
    Runs runs;
    for (nb::handle run : hosts.attr("runs")()) {
        Run added{nb::cast<int64_t>(run[0]), nb::cast<int64_t>(run[1])};
        if (added.last < added.first || added.first < (runs.empty() ? 0 : runs.back().last + 1)) {
            throw nb::value_error("the intervals of hosts are not in order");
        }
        runs.push_back(added);
    }
    return runs;
}

Handle handle_of(nb::object object) { return Handle(object.release().ptr()); }
nb::object object_of(const Handle& handle) { return nb::borrow(static_cast<PyObject*>(handle.get())); }

// What a log says about a job besides, as a dictionary.
nb::object extra_of(const Log& log, uint32_t extra) {
    if (log.extra_objects.empty()) log.extra_objects.resize(log.users.size());
    Handle& known = log.extra_objects[extra];
    if (!known.get()) {
        constexpr const char* names[] = {"user", "group", "executable", "queue", "partition"};
        nb::dict made;
        for (size_t place = 0; place < log.extras[extra].size(); ++place) {
            double value = log.extras[extra][place];
            if (value != -1) made[names[place]] = static_cast<int64_t>(value);
        }
        known = handle_of(types.read_only(made));
    }
    return object_of(known);
}

nb::object new_job(const std::string& id, double submission, int64_t size, double walltime, const std::string& profile,
                   nb::handle extra) {
    nb::object fields[] = {from_utf8(id), nb::float_(submission), nb::int_(size), nb::float_(walltime),
                           from_utf8(profile)};
    PyObject* arguments[] = {fields[0].ptr(), fields[1].ptr(), fields[2].ptr(), fields[3].ptr(), fields[4].ptr(),
                             extra.ptr()};
    if (!types.job.is_valid()) throw std::runtime_error("the class of jobs was not given to `prepare`");
    PyObject* made = PyObject_Vectorcall(types.job.ptr(), arguments, 6, nullptr);
    if (!made) throw nb::python_error();
    return nb::steal(made);
}

// The object by which a policy knows a job.
nb::object view_of(Job& job) {
    if (!job.view.get()) {
        nb::object extra = job.log ? extra_of(*job.log, job.extra)
                                   : job.source.get() ? object_of(job.source).attr("extra") : nb::dict();
        job.view = handle_of(new_job(job.id, job.told_submission, job.request.hosts, job.told_walltime,
                                     job.profile.name, extra));
    }
    return object_of(job.view);
}

// A job on its hosts, as Python sees it.
struct RunningJob {
    JobPtr job;

    explicit RunningJob(JobPtr shown) : job(std::move(shown)) {}
    RunningJob(RunningJob&&) = default;
    ~RunningJob() {
        if (job) job->running_view = nullptr;
    }
};

// The object by which a policy knows a job on its hosts; it is one object as long as somebody holds it.
nb::object running_view_of(const JobPtr& job) {
    if (job->running_view) return nb::borrow(static_cast<PyObject*>(job->running_view));
    nb::object view = nb::cast(RunningJob(job));
    job->running_view = view.ptr();
    return view;
}

const Job& running_from(nb::handle object) {
    RunningJob* running;
    if (!nb::try_cast(object, running) || !running) throw_expected("a RunningJob", object);
    return *running->job;
}

nb::object decision_of(const Job& job) { return job.decision.get() ? object_of(job.decision) : nb::none(); }

// The arguments of the Python engine's class.
nb::tuple fields_of(const RunningJob& one) {
    const Job& job = *one.job;
    return nb::make_tuple(view_of(*one.job), host_set(job.hosts), job.start, job.expected_end, job.nb_hosts, job.number,
                          decision_of(job));
}

// A reservation with the job that it is for.
struct HeldReservation {
    Reservation reservation;
    nb::object job;
};

nb::tuple fields_of(const HeldReservation& one) {
    const Reservation& made = one.reservation;
    return nb::make_tuple(one.job, made.now, made.shadow_time, made.extra.hosts);
}

nb::object state_of(const Job& job) { return nb::borrow(types.states[static_cast<size_t>(job.state)]); }

// A profile as Python describes it, rounded as Batsim rounds those that it is sent.
Profile profile_of(nb::handle profile, std::string name, bool in_ticks) {
    bool delay = profile.type().is(types.delay);
    if (!delay && !profile.type().is(types.computation)) {
        nb::object kind = profile.attr("kind");
        nb::raise_type_error("the native engine runs no profile of type %s; set BATSCHED_PY_PURE=1",
                             nb::str(kind).c_str());
    }
    double amount = nb::cast<double>(profile.attr(delay ? "seconds" : "work"));
    return {std::move(name), in_ticks ? to_tick(amount) : amount, nb::cast<int64_t>(profile.attr("return_code")),
            delay ? Profile::Kind::kDelay : Profile::Kind::kComputation};
}

JobPtr job_from(nb::handle object) {
    JobPtr job(new Job);
    job->id = to_utf8(object.attr("id"));
    job->submission = nb::cast<double>(object.attr("submission_time"));
    job->request = {nb::cast<int64_t>(object.attr("size"))};
    job->walltime = nb::cast<double>(object.attr("walltime"));
    job->source = handle_of(nb::borrow(object));
    return job;
}

// --- jobs and users that Python makes --------------------------------------------------------------------------

// The jobs of a workload, one after another.
class PythonSource : public JobSource {
public:
    PythonSource(nb::object jobs, nb::dict profiles) : jobs_(nb::iter(jobs)), profiles_(std::move(profiles)) {}

    JobPtr next() override {
        nb::object object = nb::steal(PyIter_Next(jobs_.ptr()));
        if (!object) {
            if (PyErr_Occurred()) throw nb::python_error();
            return nullptr;
        }
        JobPtr job = job_from(object);
        nb::object name = object.attr("profile");
        job->profile = profile_of(profiles_[name], to_utf8(name), false);
        job->tell_in_ticks();
        if (job->told_submission == job->submission && job->told_walltime == job->walltime) {
            job->view = handle_of(std::move(object));
        }
        return job;
    }

private:
    nb::object jobs_;
    nb::dict profiles_;
};

class PythonUser : public User {
public:
    PythonUser(nb::object user, bool hears_starts, nb::object refusal, const Simulation& simulation)
        : user_(std::move(user)), refusal_(std::move(refusal)), hears_starts_(hears_starts), simulation_(simulation) {}

    std::string name() const override { return to_utf8(types.user_name(user_)); }
    bool hears_starts() const override { return hears_starts_; }

    double next_time() override {
        return blamed("next_time", [&] { return nb::cast<double>(types.next_time(user_)); });
    }

    void submit(double now, Actions& actions) override {
        for (nb::handle action : types.actions(user_, now, simulation_.now())) {
            if (nb::isinstance(action, types.submission)) {
                actions.submissions.push_back(submission_from(action));
            } else {
                actions.changes.push_back({to_utf8(action.attr("job_id")), to_utf8(action.attr("note")),
                                           nb::isinstance(action, types.withdrawal)});
            }
        }
    }

    void job_started(Job& job, double now) override {
        blamed("job_started", [&] { return user_.attr("job_started")(object_of(job.source), now); });
    }

    void job_ended(Job& job, double now) override {
        blamed("job_ended", [&] { return user_.attr("job_ended")(object_of(job.source), state_of(job), now); });
    }

private:
    nb::object user_;
    nb::object refusal_;  // says why a profile cannot be run, if that is so
    bool hears_starts_;
    const Simulation& simulation_;

    JobPtr submission_from(nb::handle action) const {
        JobPtr job = job_from(action.attr("job"));
        std::string name = to_utf8(object_of(job->source).attr("profile"));
        nb::object profile = action.attr("profile"), fault = refusal_(profile);
        if (fault.is_none()) {
            job->profile = profile_of(profile, std::move(name), true);
        } else {
            job->profile.name = std::move(name);
            job->profile.fault = to_utf8(fault);
        }
        job->note = to_utf8(action.attr("note"));
        job->decided = nb::cast<double>(action.attr("decided"));
        return job;
    }

    // What a user raises is told as its fault.
    template <class Function>
    auto blamed(const char* method, Function function) -> decltype(function()) {
        try {
            return function();
        } catch (nb::python_error& error) {
            if (error.traceback().is_valid()) PyException_SetTraceback(error.value().ptr(), error.traceback().ptr());
            types.blame(user_, error.value(), simulation_.now(), method);
            throw;
        }
    }
};

// --- the engine ------------------------------------------------------------------------------------------------

// A simulation with the Python objects that it calls.
struct Engine {
    Simulation simulation;
    nb::object cluster;               // its attribute `now` is the time
    nb::object start_otherwise;       // starts a job where more is to be checked or chosen
    nb::object rank;                  // puts waiting jobs into an order
    bool is_ordered = false;          // whether the queue has one of its own
    nb::object write, estimate, demand_of;
    nb::object trace;                 // a Paje trace, if one is written
    std::vector<nb::object> listeners;
    nb::dict users;                   // whose jobs have waited, numbered
    JobPtr last;                      // the job that was last looked at, and the object it is known by
    PyObject* last_view = nullptr;
    bool has_ended = false;

    Engine(int64_t hosts, double speed) : simulation(hosts, speed) {}
    Engine(const Engine&) = delete;

    nb::object view(const JobPtr& job) {
        nb::object view = view_of(*job);
        last = job;
        last_view = view.ptr();
        return view;
    }

    // The job that Python means, if it waits or runs.
    JobPtr find(nb::handle object) {
        if (object.ptr() == last_view) return last->is_over() ? nullptr : last;
        check_job(object);
        return simulation.find(to_utf8(object.attr("id")));
    }

    JobPtr find_waiting(nb::handle object) {
        JobPtr job = find(object);
        return job && job->state == State::kWaiting && simulation.could_grant(job->request) ? job : nullptr;
    }

    void tell_time() {
        nb::object name = nb::str("now"), now = nb::float_(simulation.now());
        if (PyObject_GenericSetAttr(cluster.ptr(), name.ptr(), now.ptr())) throw nb::python_error();
    }

    Job& job_of(nb::handle id) const {
        JobPtr job = simulation.find(to_utf8(id));
        if (!job) throw nb::key_error("no such job waits or runs");
        return *job;
    }

    // What a job asks for, which may be none of the simulation's.
    Request request_of(nb::handle job) const {
        if (job.ptr() == last_view) return last->request;
        check_job(job);
        Request request{nb::cast<int64_t>(job.attr("size"))};
        if (simulation.nodes && request.hosts > 0) request.demand = nb::cast<int32_t>(demand_of(job));
        return request;
    }

    bool fits(nb::handle object) {
        Request request = request_of(object);
        if (request.hosts <= 0 || !request.fits(simulation.free.available())) return false;
        if (!simulation.nodes) return true;
        JobPtr job = find(object);
        return job && job->state == State::kWaiting ? simulation.nodes->fits(*job) : simulation.nodes->fits(request);
    }

    void set_nodes(size_t columns, FreeAmounts has, std::vector<int64_t> firsts, std::vector<size_t> switches,
                   int choice, nb::object function) {
        simulation.set_nodes(std::make_shared<Nodes>(columns, std::move(has), std::move(firsts), std::move(switches),
                                                     static_cast<Nodes::Choice>(choice)));
        demand_of = std::move(function);
        simulation.demand_of = [this](Job& job) { return nb::cast<int32_t>(demand_of(view_of(job))); };
    }

    void check_not_ended(const std::string& decision = "") const {
        if (has_ended) throw RuleBroken(decision + "the simulation has ended, nothing can be decided any more");
    }

    void set_estimate(nb::object function) {
        estimate = std::move(function);
        simulation.estimate = [this](Job& job) {
            tell_time();
            return nb::cast<double>(estimate(view_of(job)));
        };
    }

    void add_listener(nb::object listener) {
        listeners.push_back(listener);
        simulation.on_end.push_back([this, number = listeners.size() - 1](const JobPtr& job) {
            tell_time();
            nb::object listener = listeners[number];
            listener(running_view_of(job));
        });
    }

    void set_write(nb::object function) {
        write = std::move(function);
        simulation.rows.write = [this](const std::string& rows) { write(from_utf8(rows)); };
    }

    // What happens to jobs on their hosts is written to a Paje trace.
    void set_trace(nb::object object) {
        trace = std::move(object);
        simulation.trace = [this](const Job& job, Step step) {
            nb::object hosts = host_set(job.hosts), clock = nb::float_(simulation.agenda.clock);
            switch (step) {
                case Step::kLaunches: trace.attr("job_launches")(hosts, clock); break;
                case Step::kBegins: trace.attr("job_begins")(from_utf8(job.id), hosts, clock); break;
                case Step::kEnds: {
                    bool is_killed = job.outcome == State::kWalltimeReached ||
                                     (job.outcome == State::kKilled && job.profile.kind == Profile::Kind::kComputation);
                    trace.attr("job_ends")(from_utf8(job.id), hosts, clock, is_killed);
                    break;
                }
            }
        };
    }

    // Lets go of all that Python has given, when the simulation is over.
    void close() {
        has_ended = true;
        simulation.trace = nullptr;
        trace.reset();
        cluster.reset();
        start_otherwise.reset();
        rank.reset();
        estimate.reset();
        demand_of.reset();
        simulation.estimate = nullptr;
        simulation.demand_of = nullptr;
        simulation.on_end.clear();
        listeners.clear();
    }
};

// Something of an engine that Python looks at, which keeps the engine alive.
struct View {
    nb::object owner;
    Engine* engine;
};

// Some waiting jobs as columns of numbers.
struct Waiting : View {
    Queue::Selected jobs;
    int64_t nb_arrived = engine->simulation.queue.nb_arrived();
    size_t nb_waiting = engine->simulation.queue.size();

    void check_current() const {
        const Queue& queue = engine->simulation.queue;
        if (queue.nb_arrived() == nb_arrived && queue.size() == nb_waiting) return;
        throw std::runtime_error("jobs have joined or left the queue since these columns were asked for");
    }

    template <class Function>
    nb::object column(Function value) const {
        check_current();
        using Number = decltype(value(engine->simulation.queue, 0));
        auto* numbers = new Number[std::max<size_t>(jobs.arrivals.size(), 1)];
        nb::capsule memory(numbers, [](void* pointer) noexcept { delete[] static_cast<Number*>(pointer); });
        engine->simulation.queue.gather(jobs, numbers, value);
        return nb::cast(nb::ndarray<nb::numpy, Number, nb::ndim<1>>(numbers, {jobs.arrivals.size()}, memory));
    }

    nb::object users() const {
        check_current();
        std::vector<Job*> found(jobs.arrivals.size());
        engine->simulation.queue.gather(jobs, found.data(), Queue::JobAt());
        auto* numbers = new int64_t[std::max<size_t>(found.size(), 1)];
        nb::capsule memory(numbers, [](void* pointer) noexcept { delete[] static_cast<int64_t*>(pointer); });
        std::transform(found.begin(), found.end(), numbers, [this](Job* job) { return user_of(*job); });
        return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(numbers, {found.size()}, memory));
    }

    int64_t user_of(Job& job) const {
        if (job.user < 0) {
            nb::object name = view_of(job).attr("user");
            if (!engine->users.contains(name)) engine->users[name] = engine->users.size();
            job.user = nb::cast<int64_t>(engine->users[name]);
        }
        return job.user;
    }
};

// The place that a search has found for a job, which is forgotten when the search goes on.
class ChosenPlace {
public:
    ChosenPlace() = default;
    explicit ChosenPlace(JobPtr job) : job_(std::move(job)) {}
    ChosenPlace(ChosenPlace&&) = default;
    ChosenPlace& operator=(ChosenPlace&& other) {
        forget();
        job_ = std::move(other.job_);
        return *this;
    }
    ~ChosenPlace() { forget(); }

private:
    JobPtr job_;

    void forget() {
        if (job_) Nodes::forget(*job_);
    }
};

// Goes through the waiting jobs that fit, each of which is looked at when its turn has come.
struct Search : View {
    nb::object condition;
    std::shared_ptr<HeldReservation> beside;
    bool fits_only = true, is_over = false;
    int64_t epoch = 0;
    bool is_ordered = false;
    std::vector<int64_t> order = {};  // of arrivals, where they are not gone through in the order of the queue
    size_t next = 0;
    int64_t behind = 0, last = 0, nb_changes = 0;
    ChosenPlace chosen = {};

    JobPtr next_job() {
        if (is_over) return nullptr;
        is_over = true;
        JobPtr job = find();
        is_over = !job;
        return job;
    }

    JobPtr find() {
        Simulation& simulation = engine->simulation;
        chosen = {};
        if (fits_only && simulation.epoch() != epoch) {
            throw std::runtime_error("hosts may have become free since the jobs that fit were asked for; ask again");
        }
        bool on_nodes = simulation.nodes && fits_only;
        const Reservation* reservation = beside ? &beside->reservation : nullptr;
        auto allowed = [&](Request request, double estimate) {
            if (!fits_only) return true;
            if (!request.fits(simulation.free.available())) return false;
            if (on_nodes) return !simulation.finds_none(request, estimate, reservation);
            return !reservation || reservation->allows(request, estimate);
        };
        while (true) {
            JobPtr job;
            if (is_ordered) {
                if (next == order.size()) break;
                job = simulation.queue.at(order[next++]);
                if (!job || !allowed(job->request, job->estimate)) continue;
            } else {
                job = simulation.queue.find(behind, last, allowed);
                if (!job) break;
                behind = job->arrival;
            }
            if (on_nodes) {
                if (!simulation.finds_place(*job, reservation)) continue;
                chosen = ChosenPlace(job);
            }
            if (meets(*job)) return job;
        }
        if (reservation && condition.is_none()) simulation.note_tried(*reservation, nb_changes, last);
        return nullptr;
    }

    // The condition is the policy's, which may do anything meanwhile.
    bool meets(const Job& job) const {
        if (condition.is_none()) return true;
        return is_true(condition(job.request.hosts, job.estimate)) && job.state == State::kWaiting;
    }
};

struct QueueView : View {};

struct RunningView : View {

    JobPtr find(nb::handle id) const {
        types.check_name(id);
        JobPtr job = engine->simulation.find(to_utf8(id));
        return job && job->state == State::kRunning ? job : nullptr;
    }
};

struct PlanView : View {
    std::variant<Plan, NodePlan> plan;

    template <class Function>
    auto visit(Function function) {
        return std::visit(std::move(function), plan);
    }
};

Engine& engine_of(nb::handle self) { return *nb::inst_ptr<Engine>(self); }

template <class View>
View& inst(PyObject* self) {
    if (!nb::inst_ready(self)) throw std::runtime_error("this object was never made");
    return *nb::inst_ptr<View>(self);
}

// A function of Python's C interface that may throw.
template <class Result, class Function>
Result guarded(Result failure, Function function) {
    try {
        return function();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return failure;
}

// --- what the engine gives Python to look at -------------------------------------------------------------------

constexpr Request kAnything{INT64_MAX};

Waiting waiting_jobs(nb::handle self, int64_t behind, Request free, size_t most = SIZE_MAX) {
    Engine& engine = engine_of(self);
    return {{nb::borrow(self), &engine}, engine.simulation.queue.select(behind, free, most)};
}

// The arrivals of jobs in the order that Python gives them; only the first where that is enough.
std::vector<int64_t> in_order(Waiting waiting, nb::handle order, bool head_only) {
    nb::object rank = waiting.engine->rank, shown = nb::cast(std::move(waiting));
    const std::vector<int64_t>& arrivals = nb::inst_ptr<Waiting>(shown)->jobs.arrivals;
    std::vector<int64_t> ranked;
    if (!rank) throw std::runtime_error("the simulation has ended, and the order of its queue with it");
    for (nb::handle place : rank(order, shown, head_only)) ranked.push_back(arrivals.at(nb::cast<size_t>(place)));
    return ranked;
}

Search search(nb::handle self, nb::object condition, nb::object order, nb::handle only_new, nb::handle given) {
    Engine& engine = engine_of(self);
    const Simulation& simulation = engine.simulation;
    std::shared_ptr<HeldReservation> beside;
    if (!condition.is_none()) types.check_function(condition);
    if (!given.is_none() && !nb::try_cast(given, beside)) throw_expected("a Reservation", given);
    if (beside && beside->reservation.nodes != simulation.nodes) {
        throw nb::value_error("the reservation is not of this simulation");
    }
    if (!order.is_none()) types.check_function(order);
    Search made{{nb::borrow(self), &engine}, std::move(condition), std::move(beside)};
    made.epoch = simulation.epoch();
    made.last = simulation.queue.nb_arrived();
    made.nb_changes = simulation.nb_changes();
    if (is_true(only_new)) made.behind = simulation.queue.newest_settled();
    if (made.beside) made.behind = std::max(made.behind, simulation.tried(made.beside->reservation));
    made.is_ordered = engine.is_ordered || !order.is_none();
    if (made.is_ordered) made.order = in_order(waiting_jobs(self, made.behind, simulation.free.available()), order, false);
    return made;
}

Search all_waiting(nb::object self) {
    Engine& engine = engine_of(self);
    Search made{{self, &engine}, nb::none(), nullptr};
    made.fits_only = false;
    made.last = engine.simulation.queue.nb_arrived();
    made.is_ordered = engine.is_ordered;
    if (made.is_ordered) made.order = in_order(waiting_jobs(self, 0, kAnything), nb::none(), false);
    return made;
}

nb::object head(QueueView& view) {
    const Queue& queue = view.engine->simulation.queue;
    if (queue.empty()) throw nb::index_error("no job waits");
    if (!view.engine->is_ordered) return view.engine->view(queue.head());
    return view.engine->view(queue.at(in_order(waiting_jobs(view.owner, 0, kAnything), nb::none(), true).at(0)));
}

nb::list as_list(Engine& engine, const std::vector<JobPtr>& jobs) {
    nb::list made;
    for (const JobPtr& job : jobs) made.append(engine.view(job));
    return made;
}

// What has happened since the policy was last asked, as tuples that begin with a name and a time.
nb::list told(Engine& engine) {
    nb::list made;
    for (const Told& one : engine.simulation.told()) {
        switch (one.kind) {
            case Told::Kind::kSubmitted: made.append(nb::make_tuple("submitted", one.time, engine.view(one.job))); break;
            case Told::Kind::kEnded:
                made.append(nb::make_tuple("ended", one.time, running_view_of(one.job), state_of(*one.job), one.return_code));
                break;
            case Told::Kind::kCalled: made.append(nb::make_tuple("called", one.time)); break;
            case Told::Kind::kNoMoreJobs: made.append(nb::make_tuple("no more jobs", one.time)); break;
            case Told::Kind::kKilled: {
                nb::list ids;
                nb::dict progress;
                for (const std::string& id : one.killed->ids) ids.append(from_utf8(id));
                for (const Progress& each : one.killed->progress) {
                    progress[from_utf8(each.job->id)] = nb::make_tuple(from_utf8(each.job->profile.name), each.done);
                }
                made.append(nb::make_tuple("killed", one.time, ids, progress));
                break;
            }
        }
    }
    return made;
}

// What was decided and not carried out yet, as tuples that begin with a name and a time.
nb::list decided(Engine& engine) {
    nb::list made;
    for (const Effect& one : engine.simulation.decided()) {
        switch (one.kind) {
            case Effect::Kind::kStart: made.append(nb::make_tuple("start", one.time, running_view_of(one.job))); break;
            case Effect::Kind::kReject: made.append(nb::make_tuple("reject", one.time, engine.view(one.job))); break;
            default:
                if (one.decision.get()) made.append(nb::make_tuple("other", one.time, object_of(one.decision)));
        }
    }
    return made;
}

nb::object start(nb::handle self, nb::object job, nb::object hosts) {
    Engine& engine = engine_of(self);
    check_job(job);
    if (engine.has_ended) engine.check_not_ended("ExecuteJob " + to_utf8(job.attr("id")) + ": ");
    if (hosts.is_none()) {
        JobPtr found = engine.find_waiting(job);
        if (found && engine.simulation.fits(*found)) {
            engine.simulation.start(found);
            return running_view_of(found);
        }
    }
    return engine.start_otherwise(job, hosts);
}

// --- logs ------------------------------------------------------------------------------------------------------

// The log in pieces of whole lines, its comments, how many jobs have no processors, how many were cancelled while they
// waited and how many there are in all; nothing if a line is unusual or if the log is large.
nb::object read_swf(nb::iterable pieces, size_t largest, std::string workload, double factor, double speed) {
    SwfReader reader(std::move(workload), speed, factor);
    size_t size = 0;
    for (nb::handle piece : pieces) {
        nb::bytes lines = nb::cast<nb::bytes>(piece);
        size += lines.size();
        if (size > largest || !reader.read({lines.c_str(), lines.size()})) return nb::none();
    }
    std::shared_ptr<Log> log = reader.finish();
    if (!log) return nb::none();
    nb::list comments;
    for (const std::string& comment : reader.comments) comments.append(nb::bytes(comment.data(), comment.size()));
    return nb::make_tuple(log, comments, reader.nb_unsized, reader.nb_cancelled, reader.nb_records);
}

// A log of jobs that Python has, in the order of their submission.
std::shared_ptr<Log> new_log(std::string workload, nb::iterable jobs, nb::dict profiles, nb::iterable finishes) {
    auto log = std::make_shared<Log>();
    log->workload = std::move(workload);
    std::unordered_map<std::string, uint32_t> known_profiles;
    std::unordered_map<PyObject*, uint32_t> known_extras;
    nb::iterator finish = nb::iter(finishes);
    for (nb::handle object : jobs) {
        nb::object extra = object.attr("extra"), profile = object.attr("profile");
        std::string name = to_utf8(profile);
        auto [known, is_new] = known_profiles.try_emplace(name, static_cast<uint32_t>(log->profiles.size()));
        if (is_new) log->profiles.push_back(profile_of(profiles[profile], name, false));
        auto [number, is_new_extra] = known_extras.try_emplace(extra.ptr(), static_cast<uint32_t>(log->users.size()));
        if (is_new_extra) {
            nb::object user = object.attr("user");
            log->users.push_back(user.is_none() ? std::nullopt : std::optional(to_utf8(user)));
            log->extra_objects.push_back(handle_of(extra));
        }
        log->names.emplace_back(name_in(to_utf8(object.attr("id"))));
        log->records.push_back({nb::cast<double>(object.attr("submission_time")), nb::cast<double>(object.attr("walltime")),
                                nb::cast<double>(*finish), 0, 0, nb::cast<int64_t>(object.attr("size")),
                                number->second, known->second});
        ++finish;
    }
    return log;
}

nb::object log_job(const Log& log, size_t place) {
    const Log::Record& record = log.records.at(place);
    return new_job(log.id(place), record.submission, record.size, record.walltime, log.profile(place).name,
                   extra_of(log, record.extra));
}

template <class Function>
nb::object log_column(const Log& log, Function function) {
    auto* numbers = PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(log.size() * sizeof(double)));
    if (!numbers) throw nb::python_error();
    auto* values = reinterpret_cast<double*>(PyByteArray_AS_STRING(numbers));
    for (size_t place = 0; place < log.size(); ++place) values[place] = function(log.records[place]);
    return nb::steal(numbers);
}

// --- users -----------------------------------------------------------------------------------------------------

void add_think_time_users(Engine& engine, std::shared_ptr<Log> log, const std::string& rule, double seconds,
                          bool reduced, nb::callable who) {
    Delimiter delimiter{rule == "arrival" ? Delimiter::Rule::kArrival
                        : rule == "last"  ? Delimiter::Rule::kLast
                                          : Delimiter::Rule::kMax,
                        seconds};
    for (auto& [name, places] : log->by_user()) {
        engine.simulation.users.add(std::make_unique<ThinkTimeUser>(log, name, to_utf8(who(from_utf8(name))),
                                                                    std::move(places), delimiter, reduced));
    }
}

void add_rigid_user(Engine& engine, std::shared_ptr<Log> log, nb::callable who) {
    std::vector<std::string> who_by_extra;
    for (const auto& user : log->users) who_by_extra.push_back(user ? to_utf8(who(from_utf8(*user))) : "");
    engine.simulation.users.add(std::make_unique<RigidUser>(std::move(log), std::move(who_by_extra)));
}

// --- the module ------------------------------------------------------------------------------------------------

int visit_engine(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Engine& engine = inst<Engine>(self);
    for (nb::object* each : {&engine.cluster, &engine.start_otherwise, &engine.rank, &engine.write, &engine.estimate,
                             &engine.demand_of}) {
        Py_VISIT(each->ptr());
    }
    for (nb::object& listener : engine.listeners) Py_VISIT(listener.ptr());
    return 0;
}

template <class Kind>
int visit_view(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(inst<Kind>(self).owner.ptr());
    if constexpr (std::is_same_v<Kind, Search>) Py_VISIT(inst<Search>(self).condition.ptr());
    return 0;
}

template <class Kind>
PyType_Slot visit_slot() { return {Py_tp_traverse, reinterpret_cast<void*>(visit_view<Kind>)}; }

// What Python says about a frozen struct.
int refuse_to_set(PyObject* self, PyObject*, PyObject*) {
    PyErr_Format(PyExc_AttributeError, "immutable type: '%s'", Py_TYPE(self)->tp_name);
    return -1;
}

PyType_Slot frozen_slots[] = {{Py_tp_setattro, reinterpret_cast<void*>(refuse_to_set)}, {0, nullptr}};

PyType_Slot engine_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_engine)},
                              {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) {
                                   inst<Engine>(self).close();
                                   return 0;
                               })},
                              {0, nullptr}};

PyType_Slot queue_slots[] = {
    visit_slot<QueueView>(),
    {Py_sq_length, reinterpret_cast<void*>(+[](PyObject* self) {
         return guarded<Py_ssize_t>(-1, [&] { return inst<QueueView>(self).engine->simulation.queue.size(); });
     })},
    {Py_sq_contains, reinterpret_cast<void*>(+[](PyObject* self, PyObject* job) {
         return guarded(-1, [&] { return static_cast<int>(inst<QueueView>(self).engine->find_waiting(job) != nullptr); });
     })},
    {Py_tp_iter, reinterpret_cast<void*>(+[](PyObject* self) {
         return guarded<PyObject*>(
             nullptr, [&] { return nb::cast(all_waiting(inst<QueueView>(self).owner)).release().ptr(); });
     })},
    {0, nullptr}};

PyType_Slot running_slots[] = {visit_slot<RunningView>(), {0, nullptr}};
PyType_Slot waiting_slots[] = {visit_slot<Waiting>(), {0, nullptr}};
PyType_Slot plan_slots[] = {visit_slot<PlanView>(), {0, nullptr}};

PyType_Slot search_slots[] = {
    visit_slot<Search>(),
    {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) {
         inst<Search>(self).condition = nb::none();
         return 0;
     })},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(+[](PyObject* self) {
         return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
             Search& search = inst<Search>(self);
             JobPtr job = search.next_job();
             return job ? search.engine->view(job).release().ptr() : nullptr;
         });
     })},
    {0, nullptr}};

void bind_logs(nb::module_& module) {
    nb::class_<Log>(module, "Log", "The jobs of a workload as columns, in the order of their submission.")
        .def("__len__", &Log::size)
        .def("job", &log_job)
        .def("id", [](const Log& log, size_t place) { return from_utf8(log.id(place)); })
        .def("submissions", [](const Log& log) { return log_column(log, [](const Log::Record& r) { return r.submission; }); })
        .def("nb_larger_than",
             [](const Log& log, int64_t hosts) {
                 return std::count_if(log.records.begin(), log.records.end(),
                                      [hosts](const Log::Record& record) { return record.size > hosts; });
             })
        .def("finishes", [](const Log& log) { return log_column(log, [](const Log::Record& r) { return r.finish; }); })
        .def("run_times", [](const Log& log) { return log_column(log, [](const Log::Record& r) { return r.run_time; }); })
        .def("in_submission_order", &Log::in_submission_order)
        .def("has_jobs_without_user", &Log::has_jobs_without_user)
        .def("users",
             [](const Log& log) {
                 nb::list users;
                 for (const Log::Record& record : log.records) {
                     const auto& user = log.users[record.extra];
                     users.append(user ? from_utf8(*user) : nb::object(nb::none()));
                 }
                 return users;
             },
             "For each job, the name of its user.");
    module.def("read_swf", &read_swf, "A log in which nothing is unusual, or nothing.");
    module.def("new_log", &new_log, "A log of jobs in the order of their submission.");
}

void bind_reservations(nb::module_& module) {
    nb::class_<HeldReservation> reservation(module, "Reservation", nb::type_slots(frozen_slots));
    reservation.def_ro("job", &HeldReservation::job)
        .def_prop_ro("now", [](const HeldReservation& self) { return self.reservation.now; })
        .def_prop_ro("shadow_time", [](const HeldReservation& self) { return self.reservation.shadow_time; })
        .def_prop_ro("extra", [](const HeldReservation& self) { return self.reservation.extra.hosts; })
        .def("__iter__", [](const HeldReservation& self) {
            return nb::iter(nb::make_tuple(self.reservation.shadow_time, self.reservation.extra.hosts));
        })
        .def("__repr__", [](const HeldReservation& self) { return nb::repr(types.reservation(*fields_of(self))); })
        .def("__reduce__", [](const HeldReservation& self) { return nb::make_tuple(types.reservation, fields_of(self)); })
        .def("__copy__", [](const HeldReservation& self) { return std::make_shared<HeldReservation>(self); })
        .def("__deepcopy__", [](const HeldReservation& self, nb::handle) {
            return std::make_shared<HeldReservation>(self);
        });
    name_as(reservation, "Reservation");
    method(reservation, "Reservation", "allows", [](const HeldReservation& self, nb::handle size, nb::handle estimate) {
        Request request{count_from(size)};
        return self.reservation.allows(request, number_from(estimate));
    }, any("size"), any("estimate"));
    method(reservation, "Reservation", "admit", [](HeldReservation& self, nb::handle running) {
        self.reservation.admit(running_from(running));
    }, any("running"));
}

nb::tuple steps_of(const AvailabilityProfile& profile) {
    nb::list times, free;
    for (size_t step = 0; step < profile.nb_steps(); ++step) {
        times.append(profile.time(step));
        free.append(profile.free(step).hosts);
    }
    return nb::make_tuple(times, free);
}

void bind_profiles(nb::module_& module) {
    using Profile = AvailabilityProfile;
    constexpr const char* kind = "AvailabilityProfile";
    nb::class_<Profile> profile(module, kind);
    profile
        .def("__init__", [](Profile* self, nb::handle now, nb::handle free) {
            new (self) Profile(number_from(now), {count_from(free)});
        }, any("now"), any("free"))
        .def("__repr__", [](const Profile& self) { return nb::repr(types.availability_profile(*steps_of(self))); })
        .def("__reduce__", [](const Profile& self) { return nb::make_tuple(types.availability_profile, steps_of(self)); })
        .def("__copy__", [](const Profile& self) { return Profile(self); })
        .def("__deepcopy__", [](const Profile& self, nb::handle) { return Profile(self); });
    name_as(profile, kind);
    method(profile, kind, "free_at", [](const Profile& self, nb::handle time) {
        return self.free_at(number_from(time)).hosts;
    }, any("time"));
    method(profile, kind, "earliest", [](const Profile& self, nb::handle size, nb::handle duration) {
        Request request{count_from(size)};
        return self.earliest(request, number_from(duration));
    }, any("size"), any("duration"));
    method(profile, kind, "earlier",
           [](const Profile& self, nb::handle size, nb::handle duration, nb::handle reserved, nb::handle before) {
               Request request{count_from(size)};
               double seconds = number_from(duration), time = number_from(reserved);
               return self.earlier(request, seconds, time, number_from(before));
           }, any("size"), any("duration"), any("reserved"), any("before"));
    method(profile, kind, "take", [](Profile& self, nb::handle start, nb::handle end, nb::handle count) {
        double from = number_from(start), until = number_from(end);
        self.take(from, until, {count_from(count)});
    }, any("start"), any("end"), any("count"));
    method(profile, kind, "give", [](Profile& self, nb::handle start, nb::handle end, nb::handle count) {
        double from = number_from(start), until = number_from(end);
        self.give(from, until, {count_from(count)});
    }, any("start"), any("end"), any("count"));
    method(profile, kind, "advance", [](Profile& self, nb::handle now) { self.advance(number_from(now)); }, any("now"));
}

void bind_queue(nb::module_& module) {
    nb::class_<Waiting> waiting(module, "Waiting", nb::type_slots(waiting_slots),
                                "Some waiting jobs as columns of numbers, in submission order.");
    waiting.def("__len__", [](const Waiting& self) { return self.jobs.arrivals.size(); })
        .def_prop_ro("size", [](const Waiting& self) { return self.column(Queue::SizeAt()); })
        .def_prop_ro("estimate", [](const Waiting& self) { return self.column(Queue::EstimateAt()); })
        .def_prop_ro("submission", [](const Waiting& self) { return self.column(Queue::SubmissionAt()); })
        .def_prop_ro("user", &Waiting::users);
    refuse_copies(waiting, "Waiting");
    nb::class_<Search>(module, "Search", nb::type_slots(search_slots));
    constexpr const char* kind = "JobQueue";
    nb::class_<QueueView> queue(module, kind, nb::type_slots(queue_slots), "The waiting jobs.");
    queue.def_prop_ro("head", &head)
        .def_prop_ro("nb_joined", [](const QueueView& self) { return self.engine->simulation.queue.nb_arrived(); })
        .def_prop_ro("users", [](const QueueView& self) { return nb::steal(PyDictProxy_New(self.engine->users.ptr())); });
    refuse_copies(queue, kind);
    method(queue, kind, "first", [](const QueueView& self, nb::handle count) {
        return waiting_jobs(self.owner, 0, kAnything, static_cast<size_t>(std::max<int64_t>(count_from(count), 0)));
    }, any("count"));
    method(queue, kind, "get", [](const QueueView& self, nb::handle id) -> nb::object {
        types.check_name(id);
        JobPtr job = self.engine->simulation.find(to_utf8(id));
        bool waits = job && job->state == State::kWaiting && self.engine->simulation.could_grant(job->request);
        return waits ? self.engine->view(job) : nb::none();
    }, any("job_id"));
    method(queue, kind, "estimate", [](const QueueView& self, nb::handle object) {
        JobPtr job = self.engine->find_waiting(object);
        if (!job) throw nb::key_error(to_utf8(object.attr("id")).c_str());
        return job->estimate;
    }, any("job"));
}

void bind_running(nb::module_& module) {
    nb::class_<RunningJob> job(module, "RunningJob", nb::type_slots(frozen_slots), "A job on its hosts.");
    job.def_prop_ro("job", [](const RunningJob& self) { return view_of(*self.job); })
        .def_prop_ro("hosts", [](const RunningJob& self) { return host_set(self.job->hosts); })
        .def_prop_ro("start", [](const RunningJob& self) { return self.job->start; })
        .def_prop_ro("expected_end", [](const RunningJob& self) { return self.job->expected_end; })
        .def_prop_ro("nb_hosts", [](const RunningJob& self) { return self.job->nb_hosts; })
        .def_prop_ro("number", [](const RunningJob& self) { return self.job->number; })
        .def_prop_ro("decision", [](const RunningJob& self) { return decision_of(*self.job); })
        .def("__repr__", [](const RunningJob& self) { return nb::repr(types.running_job(*fields_of(self))); })
        .def("__reduce__", [](const RunningJob& self) { return nb::make_tuple(types.running_job, fields_of(self)); })
        .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
        .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); });
    name_as(job, "RunningJob");
    constexpr const char* kind = "Running";
    nb::class_<RunningView> running(module, kind, nb::type_slots(running_slots), "The running jobs.");
    running.def("__len__", [](const RunningView& self) { return self.engine->simulation.running.by_end().size(); })
        .def("__contains__", [](const RunningView& self, nb::handle id) { return bool(self.find(id)); }, any("job_id"))
        .def("__iter__", [](const RunningView& self) {
            nb::list jobs;
            for (const Running::Place& place : self.engine->simulation.running.by_end()) {
                jobs.append(running_view_of(place.job));
            }
            return nb::iter(jobs);
        });
    refuse_copies(running, kind);
    method(running, kind, "get", [](const RunningView& self, nb::handle id) -> nb::object {
        JobPtr job = self.find(id);
        return job ? running_view_of(job) : nb::none();
    }, any("job_id"));
}

void bind_plan(nb::module_& module) {
    constexpr const char* kind = "Plan";
    nb::class_<PlanView> plan(module, kind, nb::type_slots(plan_slots), "Reservations of the waiting jobs.");
    refuse_copies(plan, kind);
    method(plan, kind, "advance", [](PlanView& self) {
        const Simulation& simulation = self.engine->simulation;
        self.visit([&](auto& plan) { plan.advance(simulation.now(), simulation.queue); });
    });
    method(plan, kind, "move_forward", [](PlanView& self) { self.visit([](auto& plan) { plan.move_forward(); }); });
    method(plan, kind, "reserve_new", [](PlanView& self) {
        self.visit([&](auto& plan) { plan.reserve_new(self.engine->simulation.queue); });
    });
    method(plan, kind, "due", [](PlanView& self) {
        return as_list(*self.engine, self.visit([&](auto& plan) { return plan.due(self.engine->simulation.now()); }));
    });
    method(plan, kind, "job_started", [](PlanView& self, nb::handle running) {
        self.visit([&](auto& plan) { plan.job_started(running_from(running)); });
    }, any("running"));
    method(plan, kind, "job_ended", [](PlanView& self, nb::handle ended) {
        self.visit([&](auto& plan) { plan.job_ended(running_from(ended), self.engine->simulation.now()); });
    }, any("ended"));
    method(plan, kind, "reservations", [](PlanView& self) {
        nb::list made;
        self.visit([&](auto& plan) {
            for (const auto& one : plan.reservations()) made.append(nb::make_tuple(self.engine->view(one.job), one.start));
        });
        return made;
    });
}

// What a policy does with its cluster most often.
template <class Class>
void bind_cluster(Class& engine) {
    constexpr const char* kind = "Cluster";
    method(engine, kind, "fits", [](Engine& self, nb::handle job) { return self.fits(job); }, any("job"));
    method(engine, kind, "start", &start, any("job"), any("hosts") = nb::none());
    method(engine, kind, "fitting", &search, any("condition") = nb::none(), any("order") = nb::none(),
           any("only_new") = false, any("beside") = nb::none());
    method(engine, kind, "reservation", [](Engine& self, nb::object object) {
        Request request = self.request_of(object);
        JobPtr job = self.find(object);
        int64_t arrival = job && view_of(*job).is(object) ? job->arrival : 0;
        return std::make_shared<HeldReservation>(self.simulation.reservation(request, arrival), object);
    }, any("job"));
    method(engine, kind, "profile", [](const Engine& self) { return self.simulation.profile(); });
    method(engine, kind, "plan", [](nb::handle self) {
        Simulation& simulation = engine_of(self).simulation;
        View view{nb::borrow(self), &engine_of(self)};
        if (simulation.nodes && !simulation.nodes->are_hosts) return PlanView{std::move(view), simulation.node_plan()};
        return PlanView{std::move(view), Plan(simulation.profile())};
    });
}

void bind_engine(nb::module_& module) {
    nb::class_<Sums>(module, "Sums", "Sums over the jobs that are over.")
        .def_ro("nb_jobs", &Sums::nb_jobs)
        .def_ro("nb_rejected", &Sums::nb_rejected)
        .def_ro("nb_success", &Sums::nb_success)
        .def_ro("makespan", &Sums::makespan)
        .def_ro("sum_waiting", &Sums::sum_waiting)
        .def_ro("max_waiting", &Sums::max_waiting)
        .def_ro("sum_turnaround", &Sums::sum_turnaround)
        .def_ro("max_turnaround", &Sums::max_turnaround)
        .def_ro("sum_slowdown", &Sums::sum_slowdown)
        .def_ro("max_slowdown", &Sums::max_slowdown)
        .def_ro("sum_bounded_slowdown", &Sums::sum_bounded_slowdown);
    nb::class_<Engine> engine(module, "Engine", nb::type_slots(engine_slots), "A simulation of plain jobs on equal hosts.");
    bind_cluster(engine);
    engine.def(nb::init<int64_t, double>())
        // before it begins
        .def("add_log", [](Engine& self, std::shared_ptr<Log> log) {
            self.simulation.add_source(std::make_unique<LogSource>(std::move(log)));
        })
        .def("add_jobs", [](Engine& self, nb::object jobs, nb::dict profiles) {
            self.simulation.add_source(std::make_unique<PythonSource>(std::move(jobs), std::move(profiles)));
        })
        .def("accept_users", [](Engine& self) { self.simulation.accept_users(); })
        .def("add_user", [](Engine& self, nb::object user, bool hears_starts, nb::object refusal) {
            self.simulation.users.add(
                std::make_unique<PythonUser>(std::move(user), hears_starts, std::move(refusal), self.simulation));
        })
        .def("add_think_time_users", &add_think_time_users)
        .def("add_rigid_user", &add_rigid_user)
        .def("set_cluster", [](Engine& self, nb::object cluster, nb::object start_otherwise, nb::object rank) {
            self.cluster = std::move(cluster);
            self.start_otherwise = std::move(start_otherwise);
            self.rank = std::move(rank);
        })
        .def("set_write", &Engine::set_write)
        .def("set_trace", &Engine::set_trace)
        .def("set_procedures", [](Engine& self, double launch_time, double cleaning_time) {
            self.simulation.launch_time = launch_time;
            self.simulation.cleaning_time = cleaning_time;
        })
        .def("set_estimate", &Engine::set_estimate)
        .def("set_nodes", [](Engine& self, size_t columns, Amounts has, Amounts licences, std::vector<int64_t> firsts,
                             std::vector<size_t> switches, int choice, bool are_hosts, nb::object demand_of) {
            self.set_nodes(columns, {std::move(has), std::move(licences)}, std::move(firsts), std::move(switches), choice,
                           std::move(demand_of));
            self.simulation.nodes->are_hosts = are_hosts;
        })
        .def("add_demand", [](Engine& self, int64_t tasks, int64_t cores, int64_t least, int64_t most, int64_t per_node,
                              bool exclusive, Amounts by_task, Amounts by_node,
                              std::vector<std::vector<size_t>> alternatives,
                              std::vector<std::pair<size_t, int64_t>> licences) {
            return self.simulation.nodes->add({tasks, cores, least, most, per_node, exclusive, std::move(by_task),
                                               std::move(by_node), std::move(alternatives), std::move(licences)});
        })
        .def("free_amounts", [](const Engine& self) {
            const FreeAmounts& free = self.simulation.nodes->free;
            return std::pair(free.nodes, free.licences);
        })
        .def("only_starts_jobs", [](Engine& self) { self.simulation.only_starts_jobs = true; })
        // while it goes on
        .def("advance", [](Engine& self) -> nb::object {
            return self.simulation.advance() ? nb::float_(self.simulation.now()) : nb::object(nb::none());
        })
        .def("check_current", [](const Engine&, const Waiting& jobs) { jobs.check_current(); })
        .def("check_not_ended", [](const Engine& self) { self.check_not_ended(); })
        .def_prop_ro("now", [](const Engine& self) { return self.simulation.now(); })
        .def_prop_ro("clock", [](const Engine& self) { return self.simulation.agenda.clock; })
        .def_prop_ro("quiet", [](const Engine& self) { return self.simulation.quiet(); })
        .def_prop_ro("nb_free", [](const Engine& self) { return self.simulation.free.available().hosts; })
        .def_prop_ro("free", [](const Engine& self) { return host_set(self.simulation.free.runs()); })
        .def_prop_ro("last_submitted", [](const Engine& self) -> nb::object {
            const JobPtr& job = self.simulation.last_submitted();
            return job ? from_utf8(job->id) : nb::none();
        })
        .def_prop_ro("told", &told)
        .def_prop_ro("decided", &decided)
        .def("queue", [](nb::handle self) { return QueueView{{nb::borrow(self), &engine_of(self)}}; })
        .def("running", [](nb::handle self) { return RunningView{{nb::borrow(self), &engine_of(self)}}; })
        .def("on_end", &Engine::add_listener)
        .def("order_queue", [](Engine& self, bool ordered) {
            self.is_ordered = ordered;
            self.simulation.reorder();
        })
        // decisions, which the caller has checked
        .def("state", [](Engine& self, nb::handle id) -> std::string {
            JobPtr job = self.simulation.find(to_utf8(id));
            return job ? name_of(job->state) : "";
        })
        .def("break_rule", [](Engine& self, nb::handle rule) { self.simulation.break_rule(to_utf8(rule)); })
        .def("work", [](Engine& self, nb::handle id) {
            const Profile& profile = self.job_of(id).profile;
            return profile.kind == Profile::Kind::kComputation ? profile.amount : NAN;
        })
        .def("run_on", [](Engine& self, nb::handle id, nb::handle hosts, double seconds, nb::object decision) {
            JobPtr job(&self.job_of(id));
            job->seconds = seconds;
            if (!decision.is_none()) job->decision = handle_of(std::move(decision));
            self.simulation.start_on(job, runs_of(hosts));
            return running_view_of(job);
        }, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
        .def("are_free", [](Engine& self, nb::handle hosts) { return self.simulation.free.contains(runs_of(hosts)); })
        .def("job", [](Engine& self, nb::handle id) -> nb::object {
            JobPtr job = self.simulation.find(to_utf8(id));
            return job ? self.view(job) : nb::none();
        })
        .def("reject", [](Engine& self, nb::handle id) { self.simulation.reject(JobPtr(&self.job_of(id))); })
        .def("kill", [](Engine& self, nb::iterable ids, nb::object decision) {
            std::vector<std::string> named;
            for (nb::handle id : ids) named.push_back(to_utf8(id));
            self.simulation.kill(std::move(named), handle_of(std::move(decision)));
        })
        .def("call_at", [](Engine& self, double time, nb::object decision) {
            self.simulation.call_at(time, handle_of(std::move(decision)));
        })
        .def("note", [](Engine& self, nb::handle id, nb::handle text, nb::object decision) {
            self.simulation.note(to_utf8(id), to_utf8(text), handle_of(std::move(decision)));
        })
        .def("do_nothing", [](Engine& self, nb::object decision) {
            self.simulation.do_nothing(handle_of(std::move(decision)));
        })
        .def("expect", [](Engine& self, nb::handle id, double run_time) {
            self.simulation.expect(self.job_of(id), run_time);
        })
        .def("add_profile", [](Engine& self, const std::string& workload, const std::string& name, nb::handle profile) {
            self.simulation.registry.add_profile(workload, profile_of(profile, name, true));
        })
        .def("register_job", [](Engine& self, nb::handle object) {
            JobPtr job = job_from(object);
            job->profile.name = to_utf8(object.attr("profile"));
            self.simulation.register_job(job);
            if (job->told_submission == job->submission && job->told_walltime == job->walltime) {
                job->view = handle_of(nb::borrow(object));
            }
        })
        .def("finish_registration", [](Engine& self) { self.simulation.registry.accepts = false; })
        .def("reopen_registration", [](Engine& self) { self.simulation.registry.reopened = true; })
        // afterwards
        .def_prop_ro("registration_is_open", [](const Engine& self) { return self.simulation.registry.is_open(); })
        .def("left_waiting", [](Engine& self) {
            auto [count, first] = self.simulation.left_waiting();
            return nb::make_tuple(count, first ? from_utf8(first->id) : nb::object(nb::none()));
        })
        .def("flush", [](Engine& self) { self.simulation.rows.flush(); })
        .def_prop_ro("sums", [](const Engine& self) { return self.simulation.rows.sums; })
        .def_prop_ro("nb_computing", [](const Engine& self) { return self.simulation.machines.computing; })
        .def("seconds", [](Engine& self) { return self.simulation.machines.seconds(); },
             "Host-seconds of computing and of being idle.")
        .def("close", &Engine::close);
}

}  // namespace

void bind_slurm(nb::module_ module);  // slurm_binding.cpp

NB_MODULE(_native, module) {
    nb::set_leak_warnings(false);  // a process may end in the middle of a simulation
    Handle::release = [](void* object) { Py_DECREF(static_cast<PyObject*>(object)); };
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const RuleBroken& broken) {
            PyErr_SetObject(types.rule_broken.ptr(), from_utf8(broken.what()).ptr());
        } catch (const UserFault& fault) {
            PyErr_SetObject(types.policy_error.ptr(), from_utf8(fault.what()).ptr());
        }
    });
    bind_slurm(module.def_submodule("slurm"));
    module.def("prepare", [](nb::dict given) {
        std::pair<const char*, nb::handle*> wanted[] = {
            {"job", &types.job},           {"host_set", &types.host_set},
            {"submission", &types.submission}, {"withdrawal", &types.withdrawal},
            {"computation", &types.computation}, {"delay", &types.delay},
            {"states", &types.states},     {"rule_broken", &types.rule_broken},
            {"policy_error", &types.policy_error}, {"blame", &types.blame},
            {"next_time", &types.next_time}, {"actions", &types.actions},
            {"user_name", &types.user_name}, {"read_only", &types.read_only},
            {"running_job", &types.running_job}, {"reservation", &types.reservation},
            {"availability_profile", &types.availability_profile},
            {"check_job", &types.check_job}, {"check_name", &types.check_name},
            {"check_function", &types.check_function}, {"expected", &types.expected},
            {"number", &types.number}, {"count", &types.count},
            {"misused", &types.misused}, {"refuse_copy", &types.refuse_copy}};
        for (auto& [name, type] : wanted) {
            if (given.contains(name)) *type = nb::handle(given[name]).inc_ref();
        }
    }, "Python classes and functions that the engine makes, takes and calls.");
    bind_logs(module);
    bind_reservations(module);
    bind_profiles(module);
    bind_queue(module);
    bind_running(module);
    bind_plan(module);
    bind_engine(module);
}
