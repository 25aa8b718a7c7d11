// batsched_py._native: a simulation step by step, what has happened in it, and what a policy decides.
#include "engine.hpp"

namespace batsched {
namespace {

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
            case Told::Kind::kNoMoreOutside: made.append(nb::make_tuple("no more outside", one.time)); break;
            case Told::Kind::kOutside:
                made.append(nb::make_tuple("outside", one.time, object_of(one.outside->event)));
                break;
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
            case Effect::Kind::kCall:
                if (!one.decision.get()) {
                    made.append(nb::make_tuple("call", one.time));
                    break;
                }
                [[fallthrough]];
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

int visit_engine(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Engine& engine = inst<Engine>(self);
    for (nb::object* each : {&engine.cluster, &engine.start_otherwise, &engine.rank, &engine.scores, &engine.write,
                             &engine.write_energy, &engine.write_states, &engine.write_power_states, &engine.estimate, &engine.demand_of,
                             &engine.outside, &engine.bill}) {
        Py_VISIT(each->ptr());
    }
    for (nb::object& listener : engine.listeners) Py_VISIT(listener.ptr());
    return 0;
}

PyType_Slot engine_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_engine)},
                              {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) {
                                   inst<Engine>(self).close();
                                   return 0;
                               })},
                              {0, nullptr}};

void bind_engine(nb::module_& module, nb::class_<Engine>& engine) {
    nb::class_<Distribution>(module, "Distribution", "How often numbers occur.")
        .def_prop_ro("count", &Distribution::count)
        .def("quantile", &Distribution::quantile)
        .def("part_of_top", &Distribution::part_of_top);
    nb::class_<Sums>(module, "Sums", "Sums over the jobs that are over.")
        .def_ro("nb_jobs", &Sums::nb_jobs)
        .def_ro("nb_rejected", &Sums::nb_rejected)
        .def_ro("nb_success", &Sums::nb_success)
        .def_ro("nb_grouped_switches", &Sums::nb_grouped_switches)
        .def_ro("nb_machine_switches", &Sums::nb_machine_switches)
        .def_ro("makespan", &Sums::makespan)
        .def_ro("sum_waiting", &Sums::sum_waiting)
        .def_ro("max_waiting", &Sums::max_waiting)
        .def_ro("sum_turnaround", &Sums::sum_turnaround)
        .def_ro("max_turnaround", &Sums::max_turnaround)
        .def_ro("sum_slowdown", &Sums::sum_slowdown)
        .def_ro("max_slowdown", &Sums::max_slowdown)
        .def_ro("sum_bounded_slowdown", &Sums::sum_bounded_slowdown)
        .def_ro("waitings", &Sums::waitings)
        .def_ro("bounded_slowdowns", &Sums::bounded_slowdowns);
    nb::class_<Nodes>(module, "Nodes", "The nodes of a machine, and what jobs ask of them.")
        .def("add", [](Nodes& self, int64_t tasks, int64_t cores, int64_t least, int64_t most, int64_t per_node,
                       bool exclusive, Amounts by_task, Amounts by_node, std::vector<std::vector<size_t>> alternatives,
                       std::vector<std::pair<size_t, int64_t>> licences) {
            return self.add({tasks, cores, least, most, per_node, exclusive, std::move(by_task), std::move(by_node),
                             std::move(alternatives), std::move(licences)});
        });
    constexpr const char* kind = "Cluster";
    method(engine, kind, "fits", [](Engine& self, nb::handle job) { return self.fits(job); }, any("job"));
    method(engine, kind, "start", &start, any("job"), any("hosts") = nb::none());
    engine.def(nb::init<int64_t, double>())
        // before it begins
        .def("set_cluster", [](Engine& self, nb::object cluster, nb::object start_otherwise, nb::object rank,
                               nb::object scores) {
            self.cluster = std::move(cluster);
            self.start_otherwise = std::move(start_otherwise);
            self.rank = std::move(rank);
            self.scores = std::move(scores);
        })
        .def("set_speeds", [](Engine& self, std::vector<double> speeds, std::vector<double> capacities) {
            self.simulation.speeds.set(std::move(speeds), std::move(capacities));
        })
        .def("set_energy", &Engine::set_energy, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
        .def("set_bill", &Engine::set_bill)
        .def("set_sleep_kinds", &Engine::set_sleep_kinds, nb::arg(), nb::arg(), nb::arg().none())
        .def("let_idle_hosts_sleep", [](Engine& self, double after) {
            self.sleeping = std::make_unique<Sleeping>(self.simulation, after);
        })
        .def("set_write", [](Engine& self, nb::object function) {
            Engine::set_write(self.simulation.rows, self.write, std::move(function));
        })
        .def("set_write_states", [](Engine& self, nb::object function) {
            Engine::set_write(self.simulation.states, self.write_states, std::move(function));
        })
        .def("set_trace", &Engine::set_trace)
        .def("set_procedures", [](Engine& self, double launch_time, double cleaning_time, bool late_jobs_stay) {
            self.simulation.launch_time = launch_time;
            self.simulation.cleaning_time = cleaning_time;
            self.simulation.late_jobs_stay = late_jobs_stay;
        })
        .def("set_outside", &Engine::set_outside)
        .def("resubmit_after_failures", [](Engine& self, bool resubmits) {
            self.simulation.restarts.have_rule = true;
            self.simulation.restarts.resubmits = resubmits;
        })
        .def("set_estimate", &Engine::set_estimate)
        .def("set_nodes", [](Engine& self, size_t columns, Amounts has, Amounts licences, std::vector<int64_t> firsts,
                             std::vector<size_t> switches, int choice, bool are_hosts, nb::object demand_of) {
            FreeAmounts amounts{std::move(has), std::move(licences)};
            auto nodes = std::make_shared<Nodes>(columns, std::move(amounts), std::move(firsts), std::move(switches),
                                                 static_cast<Nodes::Choice>(choice), are_hosts);
            self.set_nodes(nodes, std::move(demand_of));
            return nodes;
        })
        .def("free_amounts", [](const Engine& self) {
            const FreeAmounts& free = self.simulation.free->amounts();
            return std::pair(free.nodes, free.licences);
        })
        .def("only_starts_jobs", [](Engine& self) { self.simulation.only_starts_jobs = true; })
        .def("count_all_ends", [](Engine& self) {
            self.simulation.free->counts_all_ends = true;
            self.simulation.free->ends_change();
        })
        // while it goes on
        .def("advance", [](Engine& self) -> nb::object {
            return self.simulation.advance() ? nb::float_(self.simulation.now()) : nb::object(nb::none());
        })
        .def("ask_again", [](Engine& self) { self.simulation.ask_again(); })
        .def("check_not_ended", [](const Engine& self) { self.check_not_ended(); })
        .def_prop_ro("now", [](const Engine& self) { return self.simulation.now(); })
        .def_prop_ro("clock", [](const Engine& self) { return self.simulation.agenda.clock; })
        .def_prop_ro("quiet", [](const Engine& self) { return self.simulation.quiet(); })
        .def_prop_ro("nb_free", [](const Engine& self) { return self.simulation.free->available().hosts; })
        .def_prop_ro("free", [](const Engine& self) { return host_set(self.simulation.free->runs()); })
        .def_prop_ro("all_there", [](const Engine& self) { return self.simulation.free->all_there(); })
        .def_prop_ro("there", [](const Engine& self) { return host_set(self.simulation.free->there().runs()); })
        .def_prop_ro("last_submitted", [](const Engine& self) -> nb::object {
            const JobPtr& job = self.simulation.last_submitted();
            return job ? from_utf8(job->id) : nb::none();
        })
        .def_prop_ro("told", &told)
        .def_prop_ro("decided", &decided)
        .def("on_end", &Engine::add_listener)
        // decisions, which the caller has checked
        .def("state", [](Engine& self, nb::handle id) -> std::string {
            JobPtr job = self.simulation.find(to_utf8(id));
            return job ? name_of(job->state) : "";
        })
        .def("break_rule", [](Engine& self, nb::handle rule) { self.simulation.break_rule(to_utf8(rule)); })
        .def("run_on", [](Engine& self, nb::handle id, nb::handle hosts, std::vector<int64_t> executors, nb::object decision) {
            JobPtr job(&self.job_of(id));
            job->executors = std::move(executors);
            if (!decision.is_none()) job->decision = handle_of(std::move(decision));
            self.simulation.start_on(job, runs_of(hosts));
            return running_view_of(job);
        }, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
        .def("are_free", [](Engine& self, nb::handle hosts) { return self.simulation.free->contains(runs_of(hosts)); })
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
            Job& job = self.job_of(id);
            self.simulation.expect(job, run_time);
            if (self.kept && job.state == State::kWaiting) self.kept = std::make_shared<KeptOrder>();
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
        .def("flush", [](Engine& self) { self.simulation.flush(); })
        .def_prop_ro("drawn_joules", [](const Engine& self) {
            return self.simulation.energy->meter.total(self.simulation.agenda.clock);
        })
        .def_prop_ro("consumed_joules", [](const Engine& self) { return self.simulation.energy->consumed(); })
        .def_prop_ro("sums", [](const Engine& self) -> const Sums& { return self.simulation.rows.sums; })
        .def("busy_until", [](Engine& self, double percent, int64_t nb_hosts) -> nb::object {
            auto found = self.simulation.rows.busy.until(percent, nb_hosts);
            return found ? nb::make_tuple(found->first, found->second) : nb::object(nb::none());
        })
        .def_prop_ro("nb_computing", [](const Engine& self) { return self.simulation.machines.computing; })
        .def("nb_away", [](const Engine& self, int state) { return self.simulation.machines.nb(static_cast<Away>(state)); })
        .def("seconds", [](Engine& self) {
            Machines::Seconds seconds = self.simulation.machines.seconds();
            std::vector<double> away(seconds.away.begin(), seconds.away.end());
            return nb::make_tuple(away, seconds.computing, seconds.all);
        }, "Host-seconds of being away in each state, of computing, and of all with those of being idle.")
        .def("close", &Engine::close);
}

}  // namespace
}  // namespace batsched

using namespace batsched;

NB_MODULE(_native, module) {
    nb::set_leak_warnings(false);  // a process may end in the middle of a simulation
    module.attr("SOURCES") = BATSCHED_PY_SOURCES;
    Handle::release = [](void* object) { locked(Py_DecRef)(static_cast<PyObject*>(object)); };
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const RuleBroken& broken) {
            PyErr_SetObject(types.rule_broken.ptr(), from_utf8(broken.what()).ptr());
        } catch (const UserFault& fault) {
            PyErr_SetObject(types.policy_error.ptr(), from_utf8(fault.what()).ptr());
        } catch (const EventFault& fault) {
            PyErr_SetObject(types.event_broken.ptr(), from_utf8(fault.what()).ptr());
        }
    });
    bind_slurm(module.def_submodule("slurm"));
    bind_tables(module);
    module.def("prepare", [](nb::dict given) {
        std::pair<const char*, nb::handle*> wanted[] = {
            {"job", &types.job},           {"host_set", &types.host_set},
            {"submission", &types.submission}, {"withdrawal", &types.withdrawal},
            {"computation", &types.computation}, {"delay", &types.delay},
            {"states", &types.states},     {"rule_broken", &types.rule_broken},
            {"policy_error", &types.policy_error}, {"event_broken", &types.event_broken},
            {"without_dependencies", &types.without_dependencies}, {"blame", &types.blame},
            {"next_time", &types.next_time}, {"actions", &types.actions},
            {"user_name", &types.user_name}, {"read_only", &types.read_only},
            {"running_job", &types.running_job}, {"reservation", &types.reservation},
            {"availability_profile", &types.availability_profile},
            {"check_job", &types.check_job}, {"check_name", &types.check_name},
            {"check_function", &types.check_function}, {"expected", &types.expected},
            {"number", &types.number}, {"count", &types.count},
            {"misused", &types.misused}, {"refuse_copy", &types.refuse_copy},
            {"pause", &types.pause}};
        for (auto& [name, type] : wanted) {
            if (given.contains(name)) *type = nb::handle(given[name]).inc_ref();
        }
    }, "Python classes and functions that the engine makes, takes and calls.");
    nb::class_<Engine> engine(module, "Engine", nb::type_slots(engine_slots), "A simulation of plain jobs on equal hosts.");
    bind_engine(module, engine);
    bind_sources(module, engine);
    bind_queue(module, engine);
    bind_plans(module, engine);
}
