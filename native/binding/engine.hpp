// A simulation that Python has, and how Python looks at it.
#pragma once
#include <chrono>

#include "formula.hpp"
#include "free_nodes.hpp"
#include "predictions.hpp"
#include "python.hpp"
#include "sleeping.hpp"

namespace batsched {

// The queue in an order whose scores never change, so that each job is given one only once.
struct KeptOrder {
    int64_t last = 0;  // the arrival of the last job that has a score

    void add(double score, int64_t arrival) {
        jobs_.push({score, arrival});
        scores_[arrival] = score;
    }

    // The first of the waiting jobs, all of which have a score.
    JobPtr head(const Queue& queue) {
        for (; !jobs_.empty(); jobs_.pop()) {
            if (JobPtr job = queue.at(jobs_.top().second)) return job;
            scores_.erase(jobs_.top().second);
        }
        throw changed();
    }

    // Some waiting jobs in this order.
    std::vector<int64_t> sorted(std::vector<int64_t> arrivals) const {
        std::vector<Entry> entries;
        for (int64_t arrival : arrivals) {
            auto found = scores_.find(arrival);
            if (found == scores_.end()) throw changed();
            entries.push_back({found->second, arrival});
        }
        std::sort(entries.begin(), entries.end());
        std::transform(entries.begin(), entries.end(), arrivals.begin(), [](Entry entry) { return entry.second; });
        return arrivals;
    }

private:
    using Entry = std::pair<double, int64_t>;  // the score and the arrival of a job that may have left

    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> jobs_;
    std::unordered_map<int64_t, double> scores_;  // of these jobs

    static std::runtime_error changed() {
        return std::runtime_error("jobs have joined or left the queue while it was put into an order");
    }
};

// A simulation with the Python objects that it calls.
struct Engine {
    Simulation simulation;
    nb::object cluster;               // its attribute `now` is the time
    nb::object start_otherwise;       // starts a job where more is to be checked or chosen
    nb::object rank;                  // puts waiting jobs into an order
    nb::object scores;                // gives waiting jobs the scores of the queue's order
    bool is_ordered = false;          // whether the queue has one of its own
    std::shared_ptr<Formula> formula; // if it is one
    std::shared_ptr<KeptOrder> kept;  // if its scores never change
    std::shared_ptr<Use> use;         // of the machine by users, if an order asks for it
    std::unique_ptr<Sleeping> sleeping;  // if idle hosts sleep
    nb::object write, write_energy, write_states, write_power_states, estimate, demand_of;
    nb::object outside;               // gives what happens from outside
    nb::object bill;                  // for the energy, if anybody pays
    std::function<int32_t(nb::handle)> number_of = [](nb::handle) { return -1; };  // of what a job asks of nodes
    nb::object trace;                 // a Paje trace, if one is written
    std::vector<nb::object> listeners;
    nb::dict users;                   // whose jobs have waited, numbered
    JobPtr last;                      // the job that was last looked at, and the object it is known by
    PyObject* last_view = nullptr;
    bool has_ended = false;

    Engine(int64_t hosts, double speed) : simulation(hosts, speed) {
        simulation.user_numbers.name_of = locked([](Job& job) {
            nb::object name = view_of(job).attr("user");
            return name.is_none() ? std::nullopt : std::optional(to_utf8(name));
        });
    }
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

    JobPtr find_waiting(nb::handle object) { return waiting(find(object)); }

    // A job, if it is in the queue.
    JobPtr waiting(JobPtr job) const {
        return job && job->state == State::kWaiting && simulation.free->could_grant(job->request) ? job : nullptr;
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
        if (request.hosts > 0) request.demand = number_of(job);
        return request;
    }

    bool fits(nb::handle object) {
        Request request = request_of(object);
        if (request.hosts <= 0) return false;
        JobPtr job = find(object);
        return simulation.free->fits(request, job && job->state == State::kWaiting ? job->placement.get() : nullptr);
    }

    // Hosts are the cores of nodes; the function numbers what jobs ask of them.
    void set_nodes(std::shared_ptr<Nodes> nodes, nb::object function) {
        simulation.free = std::make_unique<FreeNodes>(simulation.machines.count, std::move(nodes));
        demand_of = std::move(function);
        number_of = [this](nb::handle job) { return nb::cast<int32_t>(demand_of(job)); };
        simulation.demand_of = locked([this](Job& job) { return number_of(view_of(job)); });
    }

    void check_not_ended(const std::string& decision = "") const {
        if (has_ended) throw RuleBroken(decision + "the simulation has ended, nothing can be decided any more");
    }

    void set_estimate(nb::object function) {
        estimate = std::move(function);
        simulation.estimate = locked([this](Job& job) {
            tell_time();
            return nb::cast<double>(estimate(view_of(job)));
        });
    }

    void add_listener(nb::object listener) {
        listeners.push_back(listener);
        simulation.on_end.push_back(locked([this, number = listeners.size() - 1](const JobPtr& job) {
            tell_time();
            nb::object listener = listeners[number];
            listener(running_view_of(job));
        }));
    }

    // Some lines are written by a function of Python, if there is one.
    static void set_write(Lines& lines, nb::object& write, nb::object function) {
        write = std::move(function);
        if (!write.is_none()) lines.write = locked([&write](const std::string& text) { write(from_utf8(text)); });
    }

    // The energy that hosts draw is accounted for: the power of each host, idle, at almost no load and at full load.
    void set_energy(const std::vector<double>& idle, const std::vector<double>& epsilon, const std::vector<double>& full,
                    nb::object function) {
        std::vector<Power> powers;
        for (size_t host = 0; host < idle.size(); ++host) powers.push_back({idle[host], epsilon[host], full[host]});
        simulation.energy = std::make_unique<EnergyTrace>(std::move(powers));
        set_write(simulation.energy->lines, write_energy, std::move(function));
    }

    // How hosts fall asleep and wake up: the kinds, and the number of that of each host.
    void set_sleep_kinds(nb::list given_kinds, std::vector<int32_t> kind_of, nb::object function) {
        std::vector<SleepKind> kinds;
        auto power = [](nb::handle watts) {
            return Power{nb::cast<double>(watts[0]), nb::cast<double>(watts[1]), nb::cast<double>(watts[2])};
        };
        auto way = [&](nb::handle given) {
            return SleepKind::Way{nb::cast<int64_t>(given[0]), nb::cast<double>(given[1]), power(given[2])};
        };
        for (nb::handle kind : given_kinds) {
            kinds.push_back({nb::cast<int64_t>(kind.attr("pstate_asleep")), nb::cast<int64_t>(kind.attr("pstate_awake")),
                            power(kind.attr("asleep")), power(kind.attr("awake")), way(kind.attr("to_sleep")),
                            way(kind.attr("back")), nb::cast<double>(kind.attr("load"))});
        }
        simulation.power_states = std::make_unique<PowerStates>(std::move(kinds), std::move(kind_of));
        set_write(simulation.power_states->lines, write_power_states, std::move(function));
    }

    // What the energy costs is added up by Python.
    void set_bill(nb::object object) {
        bill = std::move(object);
        simulation.energy->meter.draw = locked([this](double since, double now, double watts) {
            bill.attr("draw")(since, now, watts);
        });
        simulation.energy->on_end = locked([this] { bill.attr("job_ends")(); });
    }

    // What happens from outside, as pairs of the event and of what it does to its hosts: they go, come back, or neither.
    void set_outside(nb::iterable events) {
        outside = nb::iter(events);
        simulation.next_outside = locked([this] {
            nb::object next = nb::steal(PyIter_Next(outside.ptr()));
            if (!next && PyErr_Occurred()) throw nb::python_error();
            if (!next) return std::shared_ptr<Outside>();
            nb::object event = next[0];
            auto kind = static_cast<Outside::Kind>(nb::cast<int>(next[1]));
            Runs hosts = kind == Outside::Kind::kOther ? Runs() : runs_of(event.attr("hosts"));
            double time = nb::cast<double>(event.attr("time"));
            return std::make_shared<Outside>(Outside{kind, time, std::move(hosts), handle_of(std::move(event))});
        });
    }

    // From now on it is counted how much each user uses the machine.
    std::shared_ptr<Use> count_use(double half_life, double scale) {
        if (use) return use;
        use = std::make_shared<Use>(half_life, scale, simulation.user_numbers, simulation.running);
        simulation.on_start.push_back([this](Job& job) { use->started(job); });
        simulation.on_end.push_back([this](const JobPtr& job) { use->ended(*job, simulation.now()); });
        return use;
    }

    // Run times are predicted from now on.
    std::shared_ptr<Predictions> predict(double shortest, std::vector<double> corrections) {
        auto made = std::make_shared<Predictions>(simulation, shortest, std::move(corrections));
        simulation.on_end.push_back([made](const JobPtr& job) { made->learn(*job); });
        return made;
    }

    // What happens to jobs on their hosts is written to a Paje trace.
    void set_trace(nb::object object) {
        trace = std::move(object);
        simulation.trace = locked([this](const Job& job, Step step) {
            nb::object hosts = host_set(job.hosts), clock = nb::float_(simulation.agenda.clock);
            switch (step) {
                case Step::kLaunches: trace.attr("job_launches")(hosts, clock); break;
                case Step::kBegins: trace.attr("job_begins")(from_utf8(job.id), hosts, clock); break;
                case Step::kEnds: {
                    bool is_killed = job.outcome == State::kWalltimeReached ||
                                     (job.outcome == State::kKilled && job.profile.kind == Profile::Kind::kComputation);
                    nb::object away = host_set(without(job.hosts, simulation.free->there().runs()));
                    trace.attr("job_ends")(from_utf8(job.id), hosts, clock, is_killed, away);
                    break;
                }
            }
        });
    }

    // Lets go of all that Python has given, when the simulation is over.
    void close() {
        has_ended = true;
        simulation.trace = nullptr;
        trace.reset();
        cluster.reset();
        start_otherwise.reset();
        rank.reset();
        scores.reset();
        estimate.reset();
        demand_of.reset();
        outside.reset();
        simulation.holds.reset();
        simulation.next_outside = nullptr;
        simulation.estimate = nullptr;
        simulation.demand_of = nullptr;
        simulation.on_start.clear();
        simulation.on_end.clear();
        listeners.clear();
    }
};

// Goes through all turns of a policy, which the library takes. Python's lock is needed only where Python is asked, so
// other threads go on meanwhile; if they look at this simulation, now and then only. In a pause, a signal may end it.
// The first turns keep the lock: to let go of it costs more than a short simulation gains.
template <class Turn>
void take_turns(Simulation& simulation, bool is_looked_at, Turn take_turn) {
    using Clock = std::chrono::steady_clock;
    constexpr int kMany = 256;
    constexpr auto kPause = std::chrono::milliseconds(50);
    std::optional<nb::gil_scoped_release> unlocked;
    Clock::time_point next_pause;
    for (int turn = 1; simulation.advance(); ++turn) {
        take_turn();
        if (turn % kMany || Clock::now() < next_pause) continue;
        locked([] { types.pause(); })();
        if (is_looked_at) {
            nb::gil_scoped_release others_look;
        } else {
            if (!unlocked) unlocked.emplace();
            next_pause = Clock::now() + kPause;
        }
    }
}

// Something of an engine that Python looks at, which keeps the engine alive.
struct View {
    nb::object owner;
    Engine* engine;
};

inline Engine& engine_of(nb::handle self) { return *nb::inst_ptr<Engine>(self); }

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

// Lets the collector of garbage see what a view holds.
template <class Kind>
int visit_view(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(inst<Kind>(self).owner.ptr());
    if constexpr (requires { &Kind::condition; }) Py_VISIT(inst<Kind>(self).condition.ptr());
    return 0;
}

template <class Kind>
PyType_Slot visit_slot() { return {Py_tp_traverse, reinterpret_cast<void*>(visit_view<Kind>)}; }

// What each file of the binding adds.
void bind_sources(nb::module_& module, nb::class_<Engine>& engine);
void bind_queue(nb::module_& module, nb::class_<Engine>& engine);
void bind_plans(nb::module_& module, nb::class_<Engine>& engine);
void bind_slurm(nb::module_ module);
void bind_tables(nb::module_& module);

}  // namespace batsched
