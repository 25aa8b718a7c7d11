// What happens to every job in a simulation, and the loop through all of it.
//
// The specification is batsched_py/simulator: `Submitter`, `World`, `Runner` and `Batsim.play`, and of the
// decision process what it does when nobody else takes part. A job runs here if nothing is to be known of it
// but how long it takes; all others are left to the Python classes.
#pragma once
#include <tuple>
#include <unordered_map>

#include "agenda.hpp"
#include "cluster.hpp"
#include "desk.hpp"
#include "machines.hpp"
#include "outputs.hpp"

inline PyObject *name_hear_end, *name_decide, *name_carry_out, *name_start, *name_fail, *name_take_over, *name_run, *name_apply;
inline PyObject *name_tell_users, *name_next_reply, *name_reject_unfit;
constexpr double kLeastCall = 1e-5;  // Batsim stretches shorter waits for a call to this
inline PyObject *state_success, *state_walltime, *zero, *minus_one;

inline bool is_whole(double time) { return std::isfinite(time) && time == std::floor(time); }

// A decision process of which all parts are known, so that its turns can be done without it.
struct Policy {
    Ref process, schedule, cluster, said, heard, listeners;
    Ref desk;  // if there may be users

    explicit operator bool() const { return static_cast<bool>(process); }
};

// What the policy has heard of: a submission, with a state the end of a running job, or else a call.
struct Told {
    Ref what;
    PyObject *state, *return_code;
    double now;
};

// How much work is in each of the profiles of a workload, of which none is dropped; nan if that is for Python to
// find out. Names are told apart by the objects they are first: jobs that do the same often share one.
class Works {
public:
    explicit Works(PyObject* profiles) : profiles_(Ref::to(profiles)) {
        size_t count = 2;
        for (; count < 2 * static_cast<size_t>(PyDict_GET_SIZE(profiles)); count *= 2) --shift_;
        works_.resize(count);
        PyObject *name, *profile;
        for (Py_ssize_t place = 0; PyDict_Next(profiles, &place, &name, &profile);) {
            works_[find(name)] = {name, work_in(profile)};
        }
    }

    double of(PyObject* name) const {
        const Work& work = works_[find(name)];
        if (work.name) return work.flops;
        PyObject* profile = PyDict_GetItemWithError(profiles_.get(), name);
        checked(!profile && PyErr_Occurred() ? -1 : 0);
        return profile ? work_in(profile) : NAN;
    }

private:
    struct Work {
        PyObject* name = nullptr;  // of the dictionary
        double flops = NAN;
    };

    Ref profiles_;
    std::vector<Work> works_;  // by their hashes, or behind others
    int shift_ = 63;

    static double work_in(PyObject* profile) {
        bool simple = Py_TYPE(profile) == homogeneous.type && !as_int(slot(profile, homogeneous.return_code));
        return simple ? as_double(slot(profile, homogeneous.work)) : NAN;
    }

    // Where a name is, or would be.
    size_t find(PyObject* name) const {
        size_t place = (reinterpret_cast<uintptr_t>(name) * 0x9E3779B97F4A7C15) >> shift_;
        while (works_[place].name && works_[place].name != name) place = (place + 1) % works_.size();
        return place;
    }
};

struct World {
    Ref agenda, ledger, machines, outputs;
    Ref runner, listener, metadata, acknowledged;
    Ref exact, profiles, mail;  // the runner's dictionaries
    Ref end_action;             // of jobs that run here
    Ref make_call;              // the action
    bool news = false, ready = true;
    double speed = 0;  // of all hosts; 0 where no job can run here
    Policy policy;
    std::vector<Told> told;  // to the policy since it was last asked, and not written down in Python yet
    std::string hosts_text;
    std::string workload_name;  // the last one that was looked up
    const Works* works = nullptr;
    std::unordered_map<std::string, Works> works_of_workloads;

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&agenda, &ledger, &machines, &outputs, &runner, &listener, &metadata, &acknowledged, &exact,
                         &profiles, &mail, &end_action, &policy.process, &policy.schedule, &policy.cluster, &policy.said,
                         &policy.heard, &policy.listeners, &policy.desk, &make_call}) {
            function(*ref);
        }
    }

    Agenda& calendar() { return of<Agenda>(agenda.get()); }
    Ledger& account() { return of<Ledger>(ledger.get()); }

    // Whether the policy has heard of a job without its process.
    bool tell_submission(PyObject* job) {
        if (!policy) return false;
        double now = calendar().now;
        of<Cluster>(policy.cluster.get()).now = now;
        if (!account().submit(job)) return false;
        told.push_back({Ref::to(job), nullptr, nullptr, now});
        return true;
    }

    bool tell_end(PyObject* running, PyObject* state, PyObject* return_code) {
        if (!policy || !account().is_simple()) return false;
        double now = calendar().now;
        of<Cluster>(policy.cluster.get()).now = now;
        Ref ended = Ref::to(running);
        account().release_running(running);
        told.push_back({ended, state, return_code, now});
        for (Py_ssize_t place = 0; place < PyList_GET_SIZE(policy.listeners.get()); ++place) {
            call(PyList_GET_ITEM(policy.listeners.get(), place), ended.get());
        }
        if (policy.desk) {
            PyObject* job = of<RunningJob>(running).job.get();
            job_ended(of<Desk>(policy.desk.get()).broker.get(), job_id(job), state, now);
        }
        return true;
    }

    // Somebody asks what the policy has heard, or is about to add to it.
    void write_down() {
        for (const Told& one : told) {
            Ref now = from_double(one.now);
            Ref heard(!one.what ? called(now.get()).release() :
                      one.state ? PyTuple_Pack(4, one.what.get(), one.state, one.return_code, now.get())
                                : PyTuple_Pack(2, one.what.get(), now.get()));
            checked(PyList_Append(policy.heard.get(), checked(heard.get())));
        }
        told.clear();
    }

    // What is told when a call that was asked for has come.
    Ref called(PyObject* now) {
        Ref module(checked(PyImport_ImportModule("batsched_py.protocol.events")));
        Ref event = call(attribute(module.get(), "RequestedCall").get());
        checked(PyObject_SetAttrString(event.get(), "time", now));
        return event;
    }

    // How much work a job does on each host; nan if that is for Python to find out.
    double work_of(PyObject* job) {
        std::string_view id = text_of(job_id(job));
        std::string_view workload = id.substr(0, std::min(id.find('!'), id.size()));
        if (!works || workload != workload_name) {
            Ref name(checked(PyUnicode_FromStringAndSize(workload.data(), static_cast<Py_ssize_t>(workload.size()))));
            PyObject* named = PyDict_GetItemWithError(profiles.get(), name.get());
            checked(PyErr_Occurred() ? -1 : 0);
            if (!named) return NAN;
            workload_name = workload;
            works = &works_of_workloads.try_emplace(workload_name, named).first->second;
        }
        return works->of(job_profile(job));
    }

    // Whether the job runs here.
    bool start(PyObject* started) {
        RunningJob& running = of<RunningJob>(started);
        if (!speed || running.decision.is_some()) return false;
        double work = work_of(running.job.get());
        if (std::isnan(work)) return false;
        running.executed = running.job;
        if (PyDict_GET_SIZE(exact.get())) {
            if (PyObject* job = PyDict_GetItemWithError(exact.get(), job_id(running.job.get()))) {
                running.executed = Ref::to(job);
                checked(PyDict_DelItem(exact.get(), job_id(running.job.get())));
            }
        }
        double now = calendar().clock, walltime = job_walltime(running.executed.get());
        double seconds = work / speed;
        running.begun = now;
        running.reaches_walltime = !(seconds <= walltime + 1e-9);
        of<Machines>(machines.get()).occupy(running.nb_hosts, now);
        double end = now + (running.reaches_walltime ? walltime : seconds);
        running.agenda_number = calendar().put(end, 0, end_action.get(), started);
        return true;
    }

    void end(PyObject* ended) {
        RunningJob& running = of<RunningJob>(ended);
        PyObject* job = running.executed.get();
        double now = calendar().clock;
        if (PyDict_GET_SIZE(mail.get())) take_out(mail.get(), job_id(job));
        Machines& hosts = of<Machines>(machines.get());
        if (hosts.unavailable) {
            call(attribute(machines.get(), "vacate").get(), running.host_set(), from_int(running.nb_hosts).get(),
                 from_double(now).get());
        } else {
            hosts.vacate(running.runs, running.nb_hosts, now);
        }
        Ref note;
        if (PyDict_GET_SIZE(metadata.get())) note = take_out(metadata.get(), job_id(job));
        write_hosts(hosts_text, running.runs);
        PyObject* state = running.reaches_walltime ? state_walltime : state_success;
        PyObject* return_code = running.reaches_walltime ? minus_one : zero;
        count_end(outputs.get(), {job, text_of(state), !running.reaches_walltime, hosts_text, running.begun, now, -1.0,
                                  note ? text_of(note.get()) : std::string_view()});
        news = true;
        if (!tell_end(ended, state, return_code)) {
            write_down();
            call_method(listener.get(), name_hear_end, job_id(job), state, return_code,
                        from_double(calendar().now).get());
        }
    }

private:
    // What stands under a key, which is then empty.
    static Ref take_out(PyObject* dictionary, PyObject* key) {
        Ref value = Ref::to(PyDict_GetItemWithError(dictionary, key));
        if (value) checked(PyDict_DelItem(dictionary, key));
        else checked(PyErr_Occurred() ? -1 : 0);
        return value;
    }
};

// A job of a workload file is submitted.
inline void submit(PyObject* self, PyObject* job) {
    World& world = of<World>(self);
    double walltime = job_walltime(job);
    if (is_whole(job_submission(job)) && (is_whole(walltime) || walltime == INFINITY) && world.tell_submission(job)) {
        world.news = true;
    } else {
        world.write_down();
        call(above(Box<World>::type, self, "_submit").get(), job);
    }
}

inline void start(PyObject* self, PyObject* started) {
    World& world = of<World>(self);
    if (!is_a<RunningJob>(started) || !world.start(started)) call_method(world.runner.get(), name_start, started);
}

// The jobs that run here are handed over to the runner, which makes executions of them.
inline void hand_over(PyObject* self) {
    World& world = of<World>(self);
    world.calendar().replace(world.end_action.get(), [&](PyObject* running) {
        RunningJob& job = of<RunningJob>(running);
        Ref pair = call_method(world.runner.get(), name_take_over, running, job.executed.get(),
                               from_double(job.begun).get(), from_int(job.agenda_number).get(),
                               job.reaches_walltime ? state_walltime : state_success);
        return std::pair(Ref::to(PyTuple_GET_ITEM(pair.get(), 0)), Ref::to(PyTuple_GET_ITEM(pair.get(), 1)));
    });
}

// What the policy, or a user who breaks a rule, has raised.
inline void fail(World& world) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError();
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    Ref owned[] = {Ref(type), Ref(error), Ref(traceback)};
    call_method(world.policy.process.get(), name_fail, error, from_double(world.calendar().now).get());
}

// The policy is asked.
inline void ask(World& world) {
    Policy& policy = world.policy;
    Ref answer(PyObject_CallOneArg(policy.schedule.get(), policy.cluster.get()));
    if (answer) {
        PyObject* broken = slot(policy.said.get(), said_slots.broken);
        if (broken != Py_None) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(broken)), broken);
    }
    if (PyErr_Occurred()) fail(world);
    world.account().settle();
    world.told.clear();
    if (PyList_GET_SIZE(policy.heard.get())) {
        checked(PyList_SetSlice(policy.heard.get(), 0, PY_SSIZE_T_MAX, nullptr));
    }
}

// What the policy has decided; nothing of it is left.
inline Ref take_decisions(World& world) {
    PyObject*& decisions = slot(world.policy.said.get(), said_slots.decisions);
    if (!PyList_GET_SIZE(decisions)) return Ref::to(decisions);
    return Ref(std::exchange(decisions, checked(PyList_New(0))));
}

inline void extend(PyObject* list, PyObject* more) {
    checked(PyList_SetSlice(list, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, more));
}

// What the policy has decided, after users have heard of it what concerns them.
inline void tell_users(World& world, PyObject* effects) {
    Policy& policy = world.policy;
    PyObject* decisions = slot(policy.said.get(), said_slots.decisions);
    bool all_started = !of<Desk>(policy.desk.get()).users().hears_starts;
    for (Py_ssize_t place = 0; all_started && place < PyList_GET_SIZE(decisions); ++place) {
        all_started = is_a<RunningJob>(PyList_GET_ITEM(decisions, place));
    }
    Ref told = all_started ? take_decisions(world)
                           : call_method(policy.process.get(), name_tell_users, policy.desk.get());
    extend(effects, told.get());
}

// Users act and the policy decides, and again while what it decides makes users act at once. Whether anything
// was decided that is not among the effects, because it is done.
inline bool ask_with_users(World& world, PyObject* effects, double now) {
    Policy& policy = world.policy;
    PyObject* desk = policy.desk.get();
    Broker& users = of<Desk>(desk).users();
    bool registered = false;
    call_method(of<Desk>(desk).registry.get(), name_next_reply);
    extend(effects, take_decisions(world).get());
    while (true) {
        while (users.next_time <= now) {
            Ref acts = actions(of<Desk>(desk).broker.get(), now);
            for (Py_ssize_t place = 0; place < PyList_GET_SIZE(acts.get()); ++place) {
                PyObject* action = PyList_GET_ITEM(acts.get(), place);
                Ref job = is_submission(action) ? register_job(desk, action, now) : Ref();
                if (!job) {
                    extend(effects, call_method(desk, name_take, action, from_double(now).get()).get());
                } else {
                    registered = true;
                    PyObject* note = slot(action, submission_slots.note);
                    if (PyUnicode_GET_LENGTH(note)) checked(PyDict_SetItem(world.metadata.get(), job_id(job.get()), note));
                }
                if (PyDict_GET_SIZE(world.account().unfit.get())) {
                    call_method(policy.process.get(), name_reject_unfit);
                    tell_users(world, effects);
                }
            }
        }
        ask(world);
        if (PyList_GET_SIZE(slot(policy.said.get(), said_slots.decisions))) tell_users(world, effects);
        if (users.next_time > now) return registered;
    }
}

inline void carry_out(PyObject* self, PyObject* effects) {
    World& world = of<World>(self);
    Agenda& agenda = world.calendar();
    if (agenda.now > agenda.clock) {
        call_method(self, name_carry_out, effects);
        return;
    }
    if (!world.news) agenda.give_notices();
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(effects); ++place) {
        PyObject* effect = PyList_GET_ITEM(effects, place);
        if (is_a<RunningJob>(effect)) {
            start(self, effect);
        } else {
            call_method(self, name_apply, effect);
        }
    }
}

// The turn of a decision process with users, and what comes of it.
inline void take_turn_with_users(PyObject* self) {
    World& world = of<World>(self);
    Agenda& agenda = world.calendar();
    PyObject* desk = world.policy.desk.get();
    double now = agenda.now;
    of<Cluster>(world.policy.cluster.get()).now = now;
    Ref effects(checked(PyList_New(0)));
    bool registered = false;
    try {
        registered = ask_with_users(world, effects.get(), now);
    } catch (const PythonError&) {
        if (PyErr_ExceptionMatches(of<Desk>(desk).rule_broken.get())) fail(world);
        throw;
    }
    Broker& users = of<Desk>(desk).users();
    double call_at = NAN;
    if (users.done() || agenda.now > agenda.clock) {
        extend(effects.get(), call_method(desk, name_closing, from_double(now).get()).get());
    } else {
        call_at = users.call_to_ask(now);
    }
    if (PyList_GET_SIZE(effects.get()) || registered || !std::isnan(call_at) || agenda.now > agenda.clock) {
        carry_out(self, effects.get());
    }
    if (!std::isnan(call_at)) {
        agenda.put(std::max(call_at, agenda.clock + kLeastCall), 0, world.make_call.get(), Py_None);
    }
}

// The turn of a decision process that nobody else takes part in, or that is not known.
inline void take_turn(PyObject* self, PyObject* process) {
    World& world = of<World>(self);
    Agenda& agenda = world.calendar();
    Ref effects;
    if (world.policy) {
        of<Cluster>(world.policy.cluster.get()).now = agenda.now;
        ask(world);
        effects = take_decisions(world);
    } else {
        effects = call_method(process, name_decide, from_double(agenda.now).get());
    }
    if (PyList_GET_SIZE(effects.get()) || agenda.now > agenda.clock) carry_out(self, effects.get());
}

// Goes through a simulation that has begun, until nothing else will happen.
inline void go_on(PyObject* self, PyObject* process, PyObject* on_decisions) {
    World& world = of<World>(self);
    Agenda& agenda = world.calendar();
    while (!agenda.empty() || world.news) {
        if (!(world.news && world.ready && agenda.instant_is_over())) {
            agenda.happen();
            continue;
        }
        world.news = false;
        if (PySet_GET_SIZE(world.acknowledged.get())) checked(PySet_Clear(world.acknowledged.get()));
        if (world.policy.desk) {
            take_turn_with_users(self);
        } else {
            take_turn(self, process);
        }
        if (on_decisions != Py_None) call(on_decisions);
    }
}

struct Submitter {
    Ref jobs, next, last, agenda, submit, done, run;  // jobs is an iterator

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&jobs, &next, &last, &agenda, &submit, &done, &run}) function(*ref);
    }
};

inline void plan_submission(PyObject* self, double now) {
    Submitter& submitter = of<Submitter>(self);
    Agenda& agenda = of<Agenda>(submitter.agenda.get());
    if (submitter.next.is_some()) {
        double time = job_submission(checked_job(submitter.next.get()));
        if (!submitter.run) submitter.run = Ref(checked(PyObject_GetAttr(self, name_run)));
        agenda.put(std::max(time, now), 0, submitter.run.get(), Py_None);
    } else {
        agenda.put(now, 1, submitter.done.get(), Py_None);
    }
}

inline void run_submissions(PyObject* self) {
    Submitter& submitter = of<Submitter>(self);
    double time = job_submission(checked_job(submitter.next.get()));
    while (submitter.next.is_some() && job_submission(checked_job(submitter.next.get())) == time) {
        submitter.last = submitter.next;
        call(submitter.submit.get(), submitter.last.get());
        Ref next(PyIter_Next(submitter.jobs.get()));
        if (!next && PyErr_Occurred()) throw PythonError();
        submitter.next = next ? next : Ref::to(Py_None);
    }
    plan_submission(self, time);
}

inline void prepare_world(PyObject* module) {
    auto name = [](const char* text) { return checked(PyUnicode_InternFromString(text)); };
    name_hear_end = name("hear_end");
    name_decide = name("decide");
    name_carry_out = name("carry_out");
    name_start = name("start");
    name_fail = name("fail");
    name_take_over = name("take_over");
    name_apply = name("apply");
    name_run = name("_run");
    name_tell_users = name("_tell_users");
    name_next_reply = name("next_reply");
    name_reject_unfit = name("_reject_unfit");
    zero = checked(PyLong_FromLong(0));
    minus_one = checked(PyLong_FromLong(-1));
    Ref jobs(checked(PyImport_ImportModule("batsched_py.protocol.jobs")));
    Ref states = attribute(jobs.get(), "JobState");
    state_success = attribute(states.get(), "SUCCESS").release();
    state_walltime = attribute(states.get(), "WALLTIME_REACHED").release();

    static PyMethodDef methods[] = {
        {"_submit",
         [](PyObject* self, PyObject* job) {
             return guarded([&] {
                 submit(self, checked_job(job));
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "A job is submitted."},
        {"_start",
         [](PyObject* self, PyObject* started) {
             return guarded([&] {
                 start(self, started);
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "A job begins to run."},
        {"_end",
         [](PyObject* self, PyObject* running) {
             return guarded([&] {
                 checked_of<RunningJob>(running);
                 of<World>(self).end(running);
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "A job that runs here is over."},
        {"write_down",
         [](PyObject* self, PyObject*) {
             return guarded([&] {
                 of<World>(self).write_down();
                 return Py_NewRef(Py_None);
             });
         },
         METH_NOARGS, "Let Python see what the policy has heard."},
        {"hand_over",
         [](PyObject* self, PyObject*) {
             return guarded([&] {
                 hand_over(self);
                 return Py_NewRef(Py_None);
             });
         },
         METH_NOARGS, "The jobs that run here are from now on the runner's."},
        {"_listen_to",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject *process, *schedule, *cluster, *said, *heard, *listeners, *desk;
                 if (!PyArg_ParseTuple(arguments, "OOOOO!O!O", &process, &schedule, &cluster, &said, &PyList_Type,
                                       &heard, &PyList_Type, &listeners, &desk)) {
                     throw PythonError();
                 }
                 checked_of<Cluster>(cluster);
                 checked_said(said);
                 if (desk != Py_None) checked_of<Desk>(desk);
                 of<World>(self).policy = {Ref::to(process), Ref::to(schedule),  Ref::to(cluster),
                                           Ref::to(said),    Ref::to(heard),     Ref::to(listeners),
                                           desk == Py_None ? Ref() : Ref::to(desk)};
                 of<World>(self).make_call = attribute(self, "_make_call");
                 of<Cluster>(cluster).write_down = attribute(self, "write_down");
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "All that take part in deciding: do their process's turns here."},
        {"_make_call",
         [](PyObject* self, PyObject* nothing) {
             return guarded([&] {
                 World& world = of<World>(self);
                 if (!world.policy) return call(above(Box<World>::type, self, "_make_call").get(), nothing).release();
                 world.told.push_back({Ref(), nullptr, nullptr, world.calendar().now});
                 world.news = true;
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "A call that was asked for has come."},
        {"_go_on",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject *process, *on_decisions;
                 if (!PyArg_ParseTuple(arguments, "OO", &process, &on_decisions)) throw PythonError();
                 go_on(self, process, on_decisions);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "Go through a simulation that has begun."},
        {}};
    static PyMemberDef members[] = {MEMBER(World, runner, "runner", T_OBJECT_EX),
                                    MEMBER(World, listener, "listener", T_OBJECT_EX),
                                    MEMBER(World, metadata, "_metadata", T_OBJECT_EX),
                                    MEMBER(World, acknowledged, "_acknowledged", T_OBJECT_EX),
                                    MEMBER(World, exact, "_exact", T_OBJECT_EX),
                                    MEMBER(World, profiles, "_profiles", T_OBJECT_EX),
                                    MEMBER(World, mail, "_mail", T_OBJECT_EX),
                                    MEMBER(World, end_action, "_end_action", T_OBJECT_EX),
                                    MEMBER(World, news, "news", T_BOOL),
                                    MEMBER(World, ready, "ready", T_BOOL),
                                    MEMBER(World, speed, "_speed", T_DOUBLE),
                                    {}};
    static PyGetSetDef getset[] = {TYPED(World, agenda, Agenda, "agenda"), TYPED(World, ledger, Ledger, "ledger"),
                                   TYPED(World, outputs, Outputs, "_native_outputs"),
                                   TYPED(World, machines, Machines, "_native_machines"), {}};
    checked(PyModule_AddType(module, &box_type<World>("batsched_py._native.World", "The simulated world.", methods,
                                                      members, getset)));

    static PyMethodDef submitter_methods[] = {
        {"_run",
         [](PyObject* self, PyObject*) {
             return guarded([&] {
                 run_submissions(self);
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "Submit the jobs of this instant."},
        {}};
    static PyMemberDef submitter_members[] = {MEMBER(Submitter, jobs, "_jobs", T_OBJECT_EX),
                                              MEMBER(Submitter, submit, "_submit", T_OBJECT_EX),
                                              MEMBER(Submitter, done, "_done", T_OBJECT_EX),
                                              MEMBER(Submitter, next, "_next", T_OBJECT_EX),
                                              MEMBER(Submitter, last, "_last", T_OBJECT_EX),
                                              {}};
    static PyGetSetDef submitter_getset[] = {TYPED(Submitter, agenda, Agenda, "_agenda"), {}};
    checked(PyModule_AddType(module, &box_type<Submitter>("batsched_py._native.Submitter", "Submits static jobs.",
                                                          submitter_methods, submitter_members, submitter_getset)));
}
