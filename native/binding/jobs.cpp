// Where jobs come from: logs, workloads that Python has, and users.
#include "engine.hpp"
#include "replay.hpp"
#include "swf.hpp"

namespace batsched {
namespace {

// The jobs of a workload, one after another.
class PythonSource : public JobSource {
public:
    PythonSource(nb::object jobs, nb::dict profiles) : jobs_(nb::iter(jobs)), profiles_(std::move(profiles)) {}

    JobPtr next() override {
        nb::gil_scoped_acquire lock;
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

    ~PythonUser() override {
        nb::gil_scoped_acquire lock;
        user_.reset();
        refusal_.reset();
    }

    std::string name() const override {
        nb::gil_scoped_acquire lock;
        return to_utf8(types.user_name(user_));
    }
    bool hears_starts() const override { return hears_starts_; }

    double next_time() override {
        nb::gil_scoped_acquire lock;
        return blamed("next_time", [&] { return nb::cast<double>(types.next_time(user_)); });
    }

    void submit(double now, Actions& actions) override {
        nb::gil_scoped_acquire lock;
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
        nb::gil_scoped_acquire lock;
        blamed("job_started", [&] { return user_.attr("job_started")(object_of(job.source), now); });
    }

    void job_ended(Job& job, double now) override {
        nb::gil_scoped_acquire lock;
        nb::object submitted = object_of(job.as_submitted().source);
        blamed("job_ended", [&] { return user_.attr("job_ended")(submitted, state_of(job), now); });
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

// Holds that Python has. It is asked what has become of them whenever something was done.
class PythonHolds : public Holds {
public:
    PythonHolds(nb::object holds, Engine& engine) : holds_(std::move(holds)), engine_(engine) {}

    bool submitted(Job& job, bool could_be_granted) override {
        nb::gil_scoped_acquire lock;
        return nb::cast<bool>(call("submitted", view_of(job), could_be_granted));
    }
    void started(Job& job) override {
        nb::gil_scoped_acquire lock;
        call("started", view_of(job));
    }
    void over(Job& job, bool success) override {
        nb::gil_scoped_acquire lock;
        call("over", view_of(job), success);
    }
    void comes_back(Job& ended) override {
        nb::gil_scoped_acquire lock;
        Job& first = ended.execution->first ? *ended.execution->first : ended;
        call("comes_back", view_of(first), from_utf8(ended.id), from_utf8(Restarts::name_of_next(ended)));
    }
    void wake() override {
        nb::gil_scoped_acquire lock;
        call("wake");
    }
    bool settle() override {
        nb::gil_scoped_acquire lock;
        return nb::cast<bool>(call("settle"));
    }
    void look_after(bool more_may_come) override {
        nb::gil_scoped_acquire lock;
        call("look_after", more_may_come);
    }

private:
    nb::object holds_;
    Engine& engine_;

    template <class... Arguments>
    nb::object call(const char* method, Arguments&&... arguments) {
        engine_.tell_time();
        nb::object given = holds_.attr(method)(std::forward<Arguments>(arguments)...);
        std::tie(hold_any, are_unsettled, next_time) = nb::cast<std::tuple<bool, bool, double>>(holds_.attr("state"));
        return given;
    }
};

// Reads whole lines. Of a line that is not in plain digits, `judge` says what its fields are, if it can be used.
void read_lines(SwfReader& reader, nb::bytes lines, nb::callable judge) {
    reader.read({lines.c_str(), lines.size()}, [&](std::string_view line, size_t number) -> std::optional<SwfReader::Line> {
        nb::object found = judge(nb::bytes(line.data(), line.size()), number);
        if (found.is_none()) return std::nullopt;
        SwfReader::Line fields;
        for (size_t place = 0; place < fields.size(); ++place) fields[place] = nb::cast<double>(found[place]);
        return fields;
    });
}

nb::list comments_of(const SwfReader& reader) {
    nb::list comments;
    for (const std::string& comment : reader.comments) comments.append(nb::bytes(comment.data(), comment.size()));
    return comments;
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
        log->profile_of.push_back(known->second);
        auto [number, is_new_extra] = known_extras.try_emplace(extra.ptr(), static_cast<uint32_t>(log->users.size()));
        if (is_new_extra) {
            nb::object user = object.attr("user");
            log->users.push_back(user.is_none() ? std::nullopt : std::optional(to_utf8(user)));
            log->waits.push_back(says_dependencies(extra));
            log->extra_objects.push_back(handle_of(extra));
        }
        log->names.emplace_back(name_in(to_utf8(object.attr("id"))));
        log->records.push_back({nb::cast<double>(object.attr("submission_time")), nb::cast<double>(object.attr("walltime")),
                                nb::cast<double>(*finish), 0, 0, nb::cast<int64_t>(object.attr("size")),
                                number->second});
        ++finish;
    }
    if (std::find(log->waits.begin(), log->waits.end(), true) == log->waits.end()) log->waits.clear();
    return log;
}

Log::Record record_of(const Log& log, size_t place) {
    if (place >= log.size()) throw nb::index_error();
    return log.records[place];
}

nb::object log_job(const Log& log, size_t place) {
    Log::Record record = record_of(log, place);
    return new_job(log.id(place), record.submission, record.size, record.walltime, log.profile(place).name,
                   extra_of(log, record.extra));
}

nb::object log_column(const Column<double>& column) {
    auto* numbers = PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(column.size() * sizeof(double)));
    if (!numbers) throw nb::python_error();
    auto* values = reinterpret_cast<double*>(PyByteArray_AS_STRING(numbers));
    for (size_t place = 0; place < column.size(); ++place) values[place] = column[place];
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

}  // namespace

void bind_sources(nb::module_& module, nb::class_<Engine>& engine) {
    nb::class_<Log>(module, "Log", "The jobs of a workload as columns, in the order of their submission.")
        .def("__len__", &Log::size)
        .def("job", &log_job)
        .def("id", [](const Log& log, size_t place) { return from_utf8(log.id(place)); })
        .def("submissions", [](const Log& log) { return log_column(log.records.submission); })
        .def("nb_larger_than",
             [](const Log& log, int64_t hosts) {
                 size_t count = 0;
                 for (size_t place = 0; place < log.size(); ++place) count += log.records.hosts[place] > hosts;
                 return count;
             })
        .def("finish", [](const Log& log, size_t place) { return record_of(log, place).finish; })
        .def("finishes", [](const Log& log) { return log_column(log.records.finish); })
        .def("run_times", [](const Log& log) { return log_column(log.records.run_time); })
        .def("in_submission_order", &Log::in_submission_order)
        .def_prop_ro("has_dependencies", [](const Log& log) { return !log.waits.empty(); })
        .def("has_jobs_without_user", &Log::has_jobs_without_user)
        .def("users",
             [](const Log& log) {
                 nb::list users;
                 for (uint32_t extra : log.records.extra) {
                     const auto& user = log.users[extra];
                     users.append(user ? from_utf8(*user) : nb::object(nb::none()));
                 }
                 return users;
             },
             "For each job, the name of its user.");
    nb::class_<SwfReader>(module, "SwfReader", "Reads a log in the Standard Workload Format, piece by piece.")
        .def(nb::init<std::string, double, double, bool>())
        .def("read", &read_lines)
        .def("finish", &SwfReader::finish)
        .def_prop_ro("comments", &comments_of)
        .def_ro("nb_comment_bytes", &SwfReader::nb_comment_bytes)
        .def_ro("nb_records", &SwfReader::nb_records)
        .def_ro("nb_repeated", &SwfReader::nb_repeated)
        .def_ro("first_repeated", &SwfReader::first_repeated)
        .def_ro("nb_unknown", &SwfReader::nb_unknown)
        .def_ro("nb_unsized", &SwfReader::nb_unsized)
        .def_ro("nb_cancelled", &SwfReader::nb_cancelled)
        .def_ro("nb_unrequested", &SwfReader::nb_unrequested)
        .def_ro("nb_raised", &SwfReader::nb_raised)
        .def_ro("nb_equal", &SwfReader::nb_equal);
    module.def("new_log", &new_log, "A log of jobs in the order of their submission.");
    engine
        .def("add_log", [](Engine& self, std::shared_ptr<Log> log) {
            self.simulation.add_source(std::make_unique<LogSource>(std::move(log)));
        })
        .def("add_jobs", [](Engine& self, nb::object jobs, nb::dict profiles) {
            self.simulation.add_source(std::make_unique<PythonSource>(std::move(jobs), std::move(profiles)));
        })
        .def("set_holds", [](Engine& self, nb::object holds, bool hear_of_all) {
            auto made = std::make_unique<PythonHolds>(std::move(holds), self);
            made->hears_of_all = hear_of_all;
            self.simulation.holds = std::move(made);
        })
        .def("join", [](Engine& self, nb::handle id) { self.simulation.join(JobPtr(&self.job_of(id))); })
        .def("accept_users", [](Engine& self) { self.simulation.accept_users(); })
        .def("add_user", [](Engine& self, nb::object user, bool hears_starts, nb::object refusal) {
            self.simulation.users.add(
                std::make_unique<PythonUser>(std::move(user), hears_starts, std::move(refusal), self.simulation));
        })
        .def("add_think_time_users", &add_think_time_users)
        .def("add_rigid_user", &add_rigid_user);
}

}  // namespace batsched
