// Running jobs, reservations, availability profiles and plans.
#include "engine.hpp"

namespace batsched {
namespace {

struct RunningView : View {
    JobPtr find(nb::handle id) const {
        types.check_name(id);
        JobPtr job = engine->simulation.find(to_utf8(id));
        return job && job->state == State::kRunning ? job : nullptr;
    }
};

// The jobs that ran when they were asked for; an object is made of one when its turn has come.
struct RunningJobs : View {
    std::vector<JobPtr> jobs = {};
    size_t next = 0;
};

struct PlanView : View {
    std::unique_ptr<AnyPlan> plan;
};

// What Python says about a frozen struct.
int refuse_to_set(PyObject* self, PyObject*, PyObject*) {
    PyErr_Format(PyExc_AttributeError, "immutable type: '%s'", Py_TYPE(self)->tp_name);
    return -1;
}

PyType_Slot frozen_slots[] = {{Py_tp_setattro, reinterpret_cast<void*>(refuse_to_set)}, {0, nullptr}};
PyType_Slot running_slots[] = {visit_slot<RunningView>(), {0, nullptr}};
PyType_Slot running_jobs_slots[] = {
    visit_slot<RunningJobs>(),
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(+[](PyObject* self) {
         return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
             RunningJobs& running = inst<RunningJobs>(self);
             if (running.next == running.jobs.size()) return nullptr;
             return running_view_of(running.jobs[running.next++]).release().ptr();
         });
     })},
    {0, nullptr}};
PyType_Slot plan_slots[] = {visit_slot<PlanView>(), {0, nullptr}};

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
    for (auto [time, nb_free] : profile.steps()) {
        times.append(time);
        free.append(nb_free);
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
        return self.free_at(number_from(time));
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
    nb::class_<RunningJobs>(module, "RunningJobs", nb::type_slots(running_jobs_slots));
    nb::class_<RunningView> running(module, kind, nb::type_slots(running_slots), "The running jobs.");
    running.def("__len__", [](const RunningView& self) { return self.engine->simulation.running.by_end().size(); })
        .def("__contains__", [](const RunningView& self, nb::handle id) { return bool(self.find(id)); }, any("job_id"))
        .def("__iter__", [](const RunningView& self) {
            RunningJobs now{{self.owner, self.engine}};
            for (const Running::Place& place : self.engine->simulation.running.by_end()) now.jobs.push_back(place.job);
            return now;
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
        self.plan->advance(self.engine->simulation.now(), self.engine->simulation.queue);
    });
    method(plan, kind, "move_forward", [](PlanView& self) { self.plan->move_forward(); });
    method(plan, kind, "reserve_new", [](PlanView& self) {
        self.plan->reserve_new(self.engine->simulation.queue);
    });
    method(plan, kind, "due", [](PlanView& self) {
        nb::list jobs;
        for (const JobPtr& job : self.plan->due(self.engine->simulation.now())) jobs.append(self.engine->view(job));
        return jobs;
    });
    method(plan, kind, "job_started", [](PlanView& self, nb::handle running) {
        self.plan->job_started(running_from(running));
    }, any("running"));
    method(plan, kind, "job_ended", [](PlanView& self, nb::handle ended) {
        self.plan->job_ended(running_from(ended), self.engine->simulation.now());
    }, any("ended"));
    method(plan, kind, "reservations", [](PlanView& self) {
        nb::list made;
        for (const auto& [job, start] : self.plan->starts()) made.append(nb::make_tuple(self.engine->view(job), start));
        return made;
    });
}

// The turns of conservative backfilling (specification: batsched_py/schedulers/conservative.py).
void take_turns_of_conservative(Engine& engine, PlanView& view, bool is_looked_at) {
    Simulation& simulation = engine.simulation;
    Runs there = simulation.free->there().runs();
    take_turns(simulation, is_looked_at, [&] {
        if (there != simulation.free->there().runs()) {
            there = simulation.free->there().runs();
            view.plan = simulation.free->plan(simulation.now(), simulation.running);
        }
        AnyPlan& plan = *view.plan;
        plan.advance(simulation.now(), simulation.queue);
        plan.move_forward();
        plan.reserve_new(simulation.queue);
        for (const JobPtr& job : plan.due(simulation.now())) {
            if (!simulation.fits(*job)) continue;
            simulation.start(job);
            plan.job_started(*job);
        }
    });
}

}  // namespace

void bind_plans(nb::module_& module, nb::class_<Engine>& engine) {
    constexpr const char* kind = "Cluster";
    bind_reservations(module);
    bind_profiles(module);
    bind_running(module);
    bind_plan(module);
    engine.def("running", [](nb::handle self) { return RunningView{{nb::borrow(self), &engine_of(self)}}; });
    method(engine, kind, "reservation", [](Engine& self, nb::object object) {
        Request request = self.request_of(object);
        JobPtr job = self.find(object);
        int64_t arrival = job && view_of(*job).is(object) ? job->arrival : 0;
        return std::make_shared<HeldReservation>(self.simulation.reservation(request, arrival), object);
    }, any("job"));
    method(engine, kind, "profile", [](const Engine& self) {
        return self.simulation.free->profile(self.simulation.now(), self.simulation.running);
    });
    engine.def("take_turns_of_conservative", &take_turns_of_conservative);
    method(engine, kind, "plan", [](nb::handle self) {
        const Simulation& simulation = engine_of(self).simulation;
        return PlanView{{nb::borrow(self), &engine_of(self)}, simulation.free->plan(simulation.now(), simulation.running)};
    });
}

}  // namespace batsched
