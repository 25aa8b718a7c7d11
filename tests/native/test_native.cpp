// Tests of the library by itself, without Python. Each prints its name; the first that fails ends the program.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>

#include "replay.hpp"
#include "simulation.hpp"
#include "swf.hpp"

using namespace batsched;

namespace {

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                       \
        }                                                                       \
    } while (false)

JobPtr new_job(int number, int64_t size, double submission, double walltime, double seconds) {
    JobPtr job(new Job);
    job->id = "w0!" + std::to_string(number);
    job->submission = submission;
    job->walltime = walltime;
    job->request = {size};
    job->profile = {"p", seconds};
    job->tell_in_ticks();
    return job;
}

// Jobs that are given one after another.
class Listed : public JobSource {
public:
    explicit Listed(std::vector<JobPtr> jobs) : jobs_(std::move(jobs)) {}
    JobPtr next() override { return place_ == jobs_.size() ? nullptr : jobs_[place_++]; }

private:
    std::vector<JobPtr> jobs_;
    size_t place_ = 0;
};

std::string text_of(const Runs& hosts) {
    std::string text;
    append_hosts(text, hosts);
    return text;
}

void free_hosts_are_a_set() {
    std::mt19937 random(1);
    HostPool free(40);
    std::set<int64_t> plain;
    for (int64_t host = 0; host < 40; ++host) plain.insert(host);
    std::vector<Runs> taken;
    for (int step = 0; step < 2000; ++step) {
        if (!taken.empty() && random() % 2) {
            size_t place = random() % taken.size();
            free.give(taken[place]);
            for (const Run& run : taken[place]) {
                for (int64_t host = run.first; host <= run.last; ++host) plain.insert(host);
            }
            taken.erase(taken.begin() + static_cast<ptrdiff_t>(place));
        } else if (!plain.empty()) {
            auto wanted = static_cast<int64_t>(1 + random() % plain.size());
            taken.push_back(free.take_lowest({wanted}));
            CHECK(count_hosts(taken.back()) == wanted);
            for (int64_t left = wanted; left; --left) plain.erase(plain.begin());
        }
        CHECK(free.available().hosts == static_cast<int64_t>(plain.size()));
        CHECK(count_hosts(free.runs()) == free.available().hosts);
        for (int64_t host = 0; host < 40; ++host) CHECK(free.contains({{host, host}}) == plain.contains(host));
    }
    CHECK(text_of({{0, 3}, {7, 7}}) == "0-3 7");
}

void times_are_told_in_ticks() {
    CHECK(to_tick(12.3456789) == 12.345679);
    CHECK(to_tick(5) == 5);
    CHECK(to_tick(INFINITY) == INFINITY);
    CHECK(spelled(3600) == "3600");
    CHECK(spelled(0.25) == "0.25");
    CHECK(spelled(5e-05) == "5e-05");
}

void the_queue_is_a_list_with_gaps() {
    std::mt19937 random(2);
    Queue queue;
    std::vector<JobPtr> plain;
    for (int number = 0; number < 3000; ++number) {
        plain.push_back(new_job(number, 1 + static_cast<int64_t>(random() % 9), number, 10, 5));
        queue.append(plain.back(), 10);
        while (!plain.empty() && random() % 20 < 9) {
            size_t place = random() % plain.size();
            queue.remove(*plain[place]);
            plain.erase(plain.begin() + static_cast<ptrdiff_t>(place));
        }
        CHECK(queue.size() == plain.size());
        if (plain.empty()) continue;
        CHECK(queue.head() == plain[0]);
        Request free{static_cast<int64_t>(random() % 10)};
        auto fits = [&](const JobPtr& job) { return job->request.fits(free); };
        auto found = std::find_if(plain.begin(), plain.end(), fits);
        JobPtr first = queue.find(0, INT64_MAX, [&](Request request, double) { return request.fits(free); });
        CHECK(first == (found == plain.end() ? JobPtr() : *found));
        CHECK(queue.some_fit(free) == (found != plain.end()));
        CHECK(queue.at(plain.back()->arrival) == plain.back());
        CHECK(queue.select(0, {INT64_MAX}, SIZE_MAX).arrivals.size() == plain.size());
    }
}

void an_availability_profile_finds_the_earliest_time() {
    AvailabilityProfile profile(0, {4});
    profile.take(10, 20, {3});
    CHECK(profile.earliest({2}, 10) == 0);
    CHECK(profile.earliest({2}, 11) == 20);
    CHECK(profile.free_at(15) == 1);
    profile.give(10, 20, {3});
    CHECK(profile.steps().size() == 1);
    CHECK(profile.earliest({5}, 1) == INFINITY);
    profile.advance(30);
    CHECK(profile.steps()[0].first == 30);
}

void names_can_be_taken_once() {
    Registry registry;
    registry.dynamic = registry.accepts = true;
    registry.add_profile("w0", {"p", 7});
    JobPtr job = new_job(1, 1, 0, 1, 1);
    registry.add_job(*job);
    CHECK(job->profile.amount == 7);
    try {
        registry.add_job(*job);
    } catch (const RuleBroken& broken) {
        CHECK(std::string(broken.what()) == "job w0!1 exists already");
        return;
    }
    CHECK(false);
}

// Starts what fits, in the order of submission.
std::string run_first_fit(std::vector<JobPtr> jobs, int64_t hosts) {
    Simulation simulation(hosts, 1.0);
    std::string rows;
    simulation.rows.write = [&](const std::string& text) { rows += text; };
    simulation.add_source(std::make_unique<Listed>(std::move(jobs)));
    while (simulation.advance()) {
        int64_t behind = 0;
        while (JobPtr job = simulation.queue.find(behind, INT64_MAX, [&](Request request, double) {
                   return request.fits(simulation.free->available());
               })) {
            behind = job->arrival;
            simulation.start(job);
        }
    }
    simulation.rows.flush();
    CHECK(simulation.left_waiting().first == 0);
    return rows;
}

void jobs_run_end_and_are_rejected() {
    std::string rows = run_first_fit({new_job(1, 2, 0, 100, 10), new_job(2, 2, 1, 3, 10), new_job(3, 5, 2, 9, 1)}, 4);
    CHECK(rows ==
          "3,w0,p,2.000000,5,9.000000,0,REJECTED,,,,,,,,,\"\"\n"
          "2,w0,p,1.000000,2,3.000000,0,COMPLETED_WALLTIME_REACHED,1.000000,3.000000,4.000000,0.000000,3.000000,"
          "1.000000,2-3,-1.000000,\"\"\n"
          "1,w0,p,0.000000,2,100.000000,1,COMPLETED_SUCCESSFULLY,0.000000,10.000000,10.000000,0.000000,10.000000,"
          "1.000000,0-1,-1.000000,\"\"\n");
}

void a_killed_job_leaves_its_hosts() {
    Simulation simulation(2, 1.0);
    simulation.add_source(std::make_unique<Listed>(std::vector{new_job(1, 2, 0, 100, 50), new_job(2, 2, 5, 9, 1)}));
    int nb_ended = 0;
    simulation.on_end.push_back([&](const JobPtr& job) { nb_ended += job->state == State::kKilled; });
    while (simulation.advance()) {
        if (simulation.queue.empty()) continue;
        JobPtr head = simulation.queue.head();
        if (simulation.fits(*head)) {
            simulation.start(head);
        } else {
            CHECK(simulation.reservation(head->request, head->arrival).shadow_time == 100);
            simulation.kill({"w0!1"});
        }
    }
    CHECK(nb_ended == 1);
    CHECK(simulation.rows.sums.nb_jobs == 2 && simulation.rows.sums.nb_success == 1);
    CHECK(simulation.free->available().hosts == 2);
}

std::optional<SwfReader::Line> nothing(std::string_view, size_t) { return std::nullopt; }

void a_log_is_read_but_for_what_cannot_be_used() {
    std::string line = "1 5 3 10 4 -1 -1 4 20 -1 1 7 1 -1 2 1 -1 -1\n";
    SwfReader reader("w0", 2.0, 1.0);
    reader.read("; MaxProcs: 9\n" + line + "2 6.25 -1 30 0 -1 -1 2 20 -1 1 8 1 -1 2 1 -1 -1\n", nothing);
    std::shared_ptr<Log> log = reader.finish();
    CHECK(log && log->size() == 2 && reader.comments.size() == 1);
    JobPtr job = log->job(1);
    CHECK(job->id == "w0!2" && job->submission == 1.25 && job->walltime == 30 && job->request.hosts == 2);
    CHECK(job->profile.name == "run_30" && job->profile.amount == 60);
    CHECK(log->records[0].finish == 13);
    CHECK(log->by_user().size() == 2 && log->by_user()[0].first == "7");
    SwfReader bad("w0", 1, 1);
    size_t judged = 0;
    bad.read(line + "1 2 3\n" + line, [&](std::string_view text, size_t number) {
        judged += text == "1 2 3" && number == 2;
        return std::optional<SwfReader::Line>();
    });
    CHECK(judged == 1 && bad.nb_records == 2 && bad.nb_repeated == 1 && bad.first_repeated[0] == 3);
    CHECK(bad.finish()->size() == 1);
    SwfReader unknown("w0", 1, 1);
    unknown.read("1 5 3 -1 4 -1 -1 4 20 -1 1 7 1 -1 2 1 -1 -1\n" + line, nothing);
    CHECK(unknown.nb_unknown == 1 && unknown.nb_repeated == 1 && !unknown.finish());
}

void names_differ_in_their_last_digits() {
    Names names;
    for (const char* name : {"w!7", "w!07", "w!70", "w!0", "w!00", "w!", "v!7", "w!99999999999999999999999", "w!7#1"}) {
        CHECK(names.insert(name) && !names.insert(name));
    }
    for (int number = 1000; number < 3000; ++number) CHECK(names.insert("w!" + std::to_string(number)));
    CHECK(!names.insert("w!1000") && !names.insert("w!2999") && names.insert("w!3000"));
}

// A session that another one's user waited for starts its think time after that one's end, however late it is.
void think_times_are_kept() {
    SwfReader reader("w0", 1.0, 1.0);
    reader.read("1 0 0 10 1 -1 -1 1 9999 -1 1 7 1 -1 2 1 -1 -1\n"
                "2 5000 0 10 1 -1 -1 1 9999 -1 1 7 1 -1 2 1 -1 -1\n",
                nothing);
    std::shared_ptr<Log> log = reader.finish();
    Simulation simulation(1, 0.5);
    simulation.accept_users();
    Delimiter delimiter{Delimiter::Rule::kArrival, 3600};
    for (auto& [name, places] : log->by_user()) {
        simulation.users.add(std::make_unique<ThinkTimeUser>(log, name, "user=" + name, places, delimiter, true));
    }
    std::string rows;
    simulation.rows.write = [&](const std::string& text) { rows += text; };
    while (simulation.advance()) {
        while (!simulation.queue.empty() && simulation.fits(*simulation.queue.head())) {
            simulation.start(JobPtr(simulation.queue.head()));
        }
    }
    simulation.rows.flush();
    CHECK(rows.find("\"user=7 session=1 recorded=5000\"") != rows.npos);
    CHECK(rows.find("2,w0,run_10,5010.000000,") != rows.npos);
    CHECK(!simulation.registry.is_open());
}

void a_rule_that_is_broken_ends_the_simulation() {
    Simulation simulation(1, 1.0);
    CHECK(simulation.advance());
    simulation.break_rule("no");
    try {
        simulation.advance();
    } catch (const RuleBroken& broken) {
        CHECK(std::string(broken.what()) == "no");
        return;
    }
    CHECK(false);
}

}  // namespace

int main() {
    const std::pair<const char*, std::function<void()>> tests[] = {
        {"free hosts are a set", free_hosts_are_a_set},
        {"times are told in ticks", times_are_told_in_ticks},
        {"the queue is a list with gaps", the_queue_is_a_list_with_gaps},
        {"an availability profile finds the earliest time", an_availability_profile_finds_the_earliest_time},
        {"names can be taken once", names_can_be_taken_once},
        {"jobs run, end and are rejected", jobs_run_end_and_are_rejected},
        {"a killed job leaves its hosts", a_killed_job_leaves_its_hosts},
        {"names differ in their last digits", names_differ_in_their_last_digits},
        {"a log is read but for what cannot be used", a_log_is_read_but_for_what_cannot_be_used},
        {"think times are kept", think_times_are_kept},
        {"a rule that is broken ends the simulation", a_rule_that_is_broken_ends_the_simulation},
    };
    for (const auto& [name, test] : tests) {
        test();
        std::printf("%s\n", name);
    }
}
