// The waiting jobs, as columns and in a search for those that fit.
#include <nanobind/ndarray.h>

#include "easy.hpp"
#include "engine.hpp"

namespace batsched {
namespace {

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
        using Number = std::invoke_result_t<Function, const Queue&, size_t>;
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
        if (job_) job_->forget_place();
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
        chosen = {};
        if (fits_only && engine->simulation.epoch() != epoch) {
            throw std::runtime_error("hosts may have become free since the jobs that fit were asked for; ask again");
        }
        const Reservation* reservation = beside ? &beside->reservation : nullptr;
        while (JobPtr job = is_ordered ? next_in_order(reservation) : next_in_queue(reservation)) {
            if (fits_only) chosen = ChosenPlace(job);
            if (meets(*job)) return job;
        }
        if (reservation && condition.is_none()) engine->simulation.note_tried(*reservation, nb_changes, last);
        return nullptr;
    }

    JobPtr next_in_order(const Reservation* reservation) {
        while (next < order.size()) {
            JobPtr job = engine->simulation.queue.at(order[next++]);
            if (job && (!fits_only || engine->simulation.free->finds_place(*job, reservation))) return job;
        }
        return nullptr;
    }

    JobPtr next_in_queue(const Reservation* reservation) {
        const Queue& queue = engine->simulation.queue;
        JobPtr job = fits_only ? engine->simulation.free->find(queue, behind, last, reservation)
                               : queue.find(behind, last, [](Request, double) { return true; });
        if (job) behind = job->arrival;
        return job;
    }

    // The condition is the policy's, which may do anything meanwhile.
    bool meets(const Job& job) const {
        if (condition.is_none()) return true;
        return is_true(condition(job.request.hosts, job.estimate)) && job.state == State::kWaiting;
    }
};

// What an order in Python asks of the use of users.
nb::object use_of(Use& use, const Waiting& waiting, bool in_seconds) {
    const Simulation& simulation = waiting.engine->simulation;
    double weight = use.weight(simulation.now());
    return waiting.column([&](const Queue& queue, size_t place) {
        double weighted = use.weighted(*Queue::JobAt()(queue, place), weight);
        return in_seconds ? use.seconds(weighted, weight) : weighted;
    });
}

struct QueueView : View {};

constexpr Request kAnything{INT64_MAX};

Waiting waiting_jobs(nb::handle self, int64_t behind, Request free, size_t most = SIZE_MAX) {
    Engine& engine = engine_of(self);
    return {{nb::borrow(self), &engine}, engine.simulation.queue.select(behind, free, most)};
}

// The arrivals of jobs in the order that Python gives them; only the first where that is enough.
std::vector<int64_t> in_order(Waiting waiting, nb::handle order, bool head_only) {
    std::shared_ptr<Formula> formula = waiting.engine->formula;
    if (order.is_none() ? bool(formula) : nb::try_cast(order, formula)) {
        const Simulation& simulation = waiting.engine->simulation;
        return formula->sorted(simulation.queue, waiting.jobs, simulation.now());
    }
    nb::object rank = waiting.engine->rank, shown = nb::cast(std::move(waiting));
    const std::vector<int64_t>& arrivals = nb::inst_ptr<Waiting>(shown)->jobs.arrivals;
    std::vector<int64_t> ranked;
    if (!rank) throw std::runtime_error("the simulation has ended, and the order of its queue with it");
    for (nb::handle place : rank(order, shown, head_only)) ranked.push_back(arrivals.at(nb::cast<size_t>(place)));
    return ranked;
}

// Gives the jobs that have joined the queue since then their scores.
void score_new(nb::handle self, KeptOrder& kept) {
    Engine& engine = engine_of(self);
    if (engine.formula) {
        const Simulation& simulation = engine.simulation;
        Queue::Selected jobs = simulation.queue.select(kept.last, kAnything, SIZE_MAX);
        const std::vector<double>& scores = engine.formula->scores(simulation.queue, jobs, simulation.now());
        for (size_t place = 0; place < scores.size(); ++place) kept.add(scores[place], jobs.arrivals[place]);
        kept.last = simulation.queue.nb_arrived();
        return;
    }
    if (!engine.scores) throw std::runtime_error("the simulation has ended, and the order of its queue with it");
    Waiting waiting = waiting_jobs(self, kept.last, kAnything);
    std::vector<int64_t> arrivals = waiting.jobs.arrivals;
    auto scores = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig>>(
        nb::object(engine.scores)(nb::cast(std::move(waiting))));
    if (scores.shape(0) != arrivals.size()) throw nb::value_error("an order gives one number for each job");
    for (size_t place = 0; place < arrivals.size(); ++place) kept.add(scores.data()[place], arrivals[place]);
    kept.last = engine.simulation.queue.nb_arrived();
}

// The arrivals of the jobs behind another that could be given what is free, in the order of the queue, which is kept.
std::vector<int64_t> in_kept_order(nb::handle self, int64_t behind, Request free) {
    Engine& engine = engine_of(self);
    const Queue& queue = engine.simulation.queue;
    std::shared_ptr<KeptOrder> kept = engine.kept;  // the order is a policy's, and may do anything meanwhile
    if (kept->last < queue.nb_arrived()) score_new(self, *kept);
    return kept->sorted(queue.select(behind, free, SIZE_MAX).arrivals);
}

// Of the jobs that fit and do not delay a reservation, in an order.
Search search(nb::handle self, nb::object condition, nb::object order, bool only_new,
              std::shared_ptr<HeldReservation> beside) {
    Engine& engine = engine_of(self);
    const Simulation& simulation = engine.simulation;
    if (beside && !simulation.free->may_have_made(beside->reservation)) {
        throw nb::value_error("the reservation is not of this simulation");
    }
    Search made{{nb::borrow(self), &engine}, std::move(condition), std::move(beside)};
    made.epoch = simulation.epoch();
    made.last = simulation.queue.nb_arrived();
    made.nb_changes = simulation.nb_changes();
    if (only_new) made.behind = simulation.queue.newest_settled();
    if (made.beside) made.behind = std::max(made.behind, simulation.tried(made.beside->reservation));
    made.is_ordered = engine.is_ordered || !order.is_none();
    if (!made.is_ordered) return made;
    Request free = simulation.free->available();
    made.order = order.is_none() && engine.kept && !engine.formula ? in_kept_order(self, made.behind, free)
                                                : in_order(waiting_jobs(self, made.behind, free), order, false);
    return made;
}

void check_order(nb::handle order) {
    if (!order.is_none() && !nb::isinstance<Formula>(order)) types.check_function(order);
}

std::shared_ptr<HeldReservation> reservation_from(nb::handle given) {
    std::shared_ptr<HeldReservation> reservation;
    if (!given.is_none() && !nb::try_cast(given, reservation)) throw_expected("a Reservation", given);
    return reservation;
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

// The first of the waiting jobs, of which there are some.
JobPtr head_of(nb::handle self) {
    Engine& engine = engine_of(self);
    const Queue& queue = engine.simulation.queue;
    if (!engine.is_ordered) return queue.head();
    if (!engine.kept && engine.formula) return engine.formula->head(queue, engine.simulation.now());
    if (!engine.kept) return queue.at(in_order(waiting_jobs(self, 0, kAnything), nb::none(), true).at(0));
    std::shared_ptr<KeptOrder> kept = engine.kept;  // the order is a policy's, and may do anything meanwhile
    if (kept->last < queue.nb_arrived()) score_new(self, *kept);
    return kept->head(queue);
}

nb::object head(QueueView& view) {
    if (view.engine->simulation.queue.empty()) throw nb::index_error("no job waits");
    return view.engine->view(head_of(view.owner));
}

// Starts jobs from the head of the queue while they fit: the first that does not, if any is left.
JobPtr start_heads(nb::handle self) {
    Simulation& simulation = engine_of(self).simulation;
    while (!simulation.queue.empty()) {
        JobPtr job = head_of(self);
        if (!simulation.fits(*job)) return job;
        simulation.start(job);
    }
    return nullptr;
}

nb::object start_from_head(nb::handle self) {
    Engine& engine = engine_of(self);
    engine.check_not_ended();
    JobPtr head = start_heads(self);
    return head ? engine.view(head) : nb::none();
}

// Starts the jobs that fit, in an order and beside a reservation that they do not delay, if there is one.
void start_fitting(nb::handle self, nb::object order, nb::handle only_new, nb::handle beside) {
    engine_of(self).check_not_ended();
    check_order(order);
    Search jobs = search(self, nb::none(), std::move(order), is_true(only_new), reservation_from(beside));
    while (JobPtr job = jobs.next_job()) {
        jobs.engine->simulation.start(job);
        if (jobs.beside) jobs.beside->reservation.admit(*job);
    }
}

// The turns of a policy made of EASY whose orders are formulas, if it has any.
void take_turns_of_easy(nb::handle self, std::shared_ptr<Formula> order, std::shared_ptr<Predictions> predictions,
                        bool is_looked_at) {
    Engine& engine = engine_of(self);
    Simulation& simulation = engine.simulation;
    take_turns(simulation, is_looked_at, [&] {
        if (predictions) predictions->correct();
        JobPtr head = start_heads(self);
        if (head && simulation.queue.size() > 1) backfill(simulation, *head, (order ? order : engine.formula).get());
        if (predictions) predictions->call_at_next_expiry();
        if (engine.sleeping) engine.sleeping->take_turn();
    });
}

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

PyType_Slot waiting_slots[] = {visit_slot<Waiting>(), {0, nullptr}};

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

}  // namespace

void bind_queue(nb::module_& module, nb::class_<Engine>& engine) {
    nb::class_<Waiting> waiting(module, "Waiting", nb::type_slots(waiting_slots),
                                "Some waiting jobs as columns of numbers, in submission order.");
    waiting.def("__len__", [](const Waiting& self) { return self.jobs.arrivals.size(); })
        .def_prop_ro("size", [](const Waiting& self) { return self.column(Queue::SizeAt()); })
        .def_prop_ro("estimate", [](const Waiting& self) { return self.column(Queue::EstimateAt()); })
        .def_prop_ro("submission", [](const Waiting& self) { return self.column(Queue::SubmissionAt()); })
        .def_prop_ro("user", &Waiting::users);
    refuse_copies(waiting, "Waiting");
    nb::class_<Formula>(module, "Formula", "An order that is a formula.");
    nb::class_<Use>(module, "Use", "How much users have used the machine.")
        .def("__call__", [](Use& self, const Waiting& waiting, double) { return use_of(self, waiting, true); })
        .def("weighted", [](Use& self, const Waiting& waiting, double) { return use_of(self, waiting, false); });
    nb::class_<Predictions>(module, "Predictions", "Run times as users' earlier jobs predict them.")
        .def("estimate", [](Predictions& self, nb::handle job) {
            check_job(job);
            nb::object user = job.attr("user");
            return self.estimate(user.is_none() ? std::nullopt : std::optional(to_utf8(user)),
                                 nb::cast<double>(job.attr("walltime")));
        })
        .def("correct", &Predictions::correct)
        .def("call_at_next_expiry", &Predictions::call_at_next_expiry);
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
        JobPtr job = self.engine->waiting(self.engine->simulation.find(to_utf8(id)));
        return job ? self.engine->view(job) : nb::none();
    }, any("job_id"));
    method(queue, kind, "estimate", [](const QueueView& self, nb::handle object) {
        JobPtr job = self.engine->find_waiting(object);
        if (!job) throw nb::key_error(to_utf8(object.attr("id")).c_str());
        return job->estimate;
    }, any("job"));
    engine.def("queue", [](nb::handle self) { return QueueView{{nb::borrow(self), &engine_of(self)}}; })
        .def("formula", [](const Engine& self, const std::vector<std::pair<std::string, double>>& named) {
            std::vector<Formula::Step> steps;
            for (const auto& [name, number] : named) steps.push_back({Formula::kind_of(name), number});
            return std::make_shared<Formula>(std::move(steps), self.use);
        })
        .def("order_queue", [](Engine& self, bool ordered, bool is_kept, std::shared_ptr<Formula> formula) {
            self.is_ordered = ordered;
            self.formula = std::move(formula);
            self.kept = is_kept ? std::make_shared<KeptOrder>() : nullptr;
            self.simulation.reorder();
        }, nb::arg(), nb::arg(), nb::arg().none())
        .def("take_turns_of_easy", &take_turns_of_easy, nb::arg().none(), nb::arg().none(), nb::arg())
        .def("start_from_head", &start_from_head)
        .def("start_fitting", &start_fitting, nb::arg().none(), nb::arg(), nb::arg().none())
        .def("count_use", &Engine::count_use, nb::keep_alive<0, 1>())
        .def("predict", &Engine::predict, nb::keep_alive<0, 1>())
        .def("estimate_by", [](Engine& self, std::shared_ptr<Predictions> predictions) {
            self.simulation.estimate = [predictions](Job& job) { return predictions->estimate(job); };
        })
        .def("check_current", [](const Engine&, const Waiting& jobs) { jobs.check_current(); });
    method(engine, "Cluster", "fitting",
           [](nb::handle self, nb::object condition, nb::object order, nb::handle only_new, nb::handle beside) {
               if (!condition.is_none()) types.check_function(condition);
               check_order(order);
               auto reservation = reservation_from(beside);
               return search(self, std::move(condition), std::move(order), is_true(only_new), std::move(reservation));
           }, any("condition") = nb::none(), any("order") = nb::none(),
           any("only_new") = false, any("beside") = nb::none());
}

}  // namespace batsched
