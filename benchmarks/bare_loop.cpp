// The same yardstick in C++: EASY on counts of hosts for a log on standard input.
//
// gzip -dc LOG.swf.gz | bare_loop HOSTS [ROWS.csv]
//
// With a file it writes a row for each job that ends: the times of jobs.csv, without the hosts, which it only counts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <vector>

struct Job {
    long number;
    double submission;
    long size;
    double run_time, walltime;
};

static std::vector<Job> read() {
    std::vector<Job> jobs;
    char line[4096];
    while (std::fgets(line, sizeof line, stdin)) {
        double fields[9];
        char *place = line, *end = line;
        int count = 0;
        for (; *line != ';' && count < 9; ++count, place = end) {
            fields[count] = std::strtod(place, &end);
            if (end == place) break;
        }
        if (count < 9) continue;
        long size = fields[4] > 0 ? fields[4] : fields[7];
        double walltime = std::max(fields[8], 2 * fields[3]);
        if (size > 0) jobs.push_back({long(fields[0]), fields[1], size, fields[3], walltime ? walltime : INFINITY});
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](auto& a, auto& b) { return a.submission < b.submission; });
    return jobs;
}

static void write_row(std::FILE* rows, const Job& job, double begun) {
    double seconds = std::max(std::min(job.run_time, job.walltime), 1e-5), waiting = begun - job.submission;
    std::fprintf(rows, "%ld,w0,run_%g,%.6f,%ld,%.6f,%d,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f\n", job.number, job.run_time,
                 job.submission, job.size, std::isinf(job.walltime) ? -1.0 : job.walltime, job.run_time <= job.walltime,
                 job.run_time <= job.walltime ? "COMPLETED_SUCCESSFULLY" : "COMPLETED_WALLTIME_REACHED", begun, seconds,
                 begun + seconds, waiting, waiting + seconds, (waiting + seconds) / seconds);
}

int main(int count, char** arguments) {
    std::FILE* rows = count > 2 ? std::fopen(arguments[2], "w") : nullptr;
    std::vector<Job> jobs = read();
    long hosts = std::atol(arguments[1]), free = hosts;
    using End = std::pair<double, size_t>;
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    std::set<std::tuple<double, size_t, long>> expected;
    std::vector<std::tuple<double, size_t, long>> entries(jobs.size());
    std::vector<double> starts(jobs.size());
    std::vector<size_t> queue, waiting;
    size_t arrived = 0, started = 0;
    double now = 0, sum = 0;
    auto start = [&](size_t job) {
        free -= jobs[job].size;
        sum += starts[job] = now;
        entries[job] = {now + jobs[job].walltime, ++started, jobs[job].size};
        expected.insert(entries[job]);
        ends.push({now + std::min(jobs[job].run_time, jobs[job].walltime), job});
    };
    while (arrived < jobs.size() || !ends.empty()) {
        now = arrived < jobs.size() ? jobs[arrived].submission : ends.top().first;
        if (!ends.empty()) now = std::min(now, ends.top().first);
        for (; !ends.empty() && ends.top().first == now; ends.pop()) {
            free += jobs[ends.top().second].size;
            expected.erase(entries[ends.top().second]);
            if (rows) write_row(rows, jobs[ends.top().second], starts[ends.top().second]);
        }
        for (; arrived < jobs.size() && jobs[arrived].submission == now; ++arrived) {
            if (jobs[arrived].size <= hosts) queue.push_back(arrived);
        }
        size_t heads = 0;
        while (heads < queue.size() && jobs[queue[heads]].size <= free) start(queue[heads++]);
        queue.erase(queue.begin(), queue.begin() + heads);
        if (queue.size() < 2 || !free) continue;
        long available = free, needed = jobs[queue[0]].size;
        double shadow_time = INFINITY;
        for (auto& [end, number, size] : expected) {
            available += size;
            shadow_time = end;
            if (available >= needed) break;
        }
        long extra = available - needed;
        waiting.clear();
        for (size_t job : queue) {
            bool in_time = now + jobs[job].walltime <= shadow_time;
            if (jobs[job].size <= free && (in_time || jobs[job].size <= extra)) {
                if (!in_time) extra -= jobs[job].size;
                start(job);
            } else {
                waiting.push_back(job);
            }
        }
        queue.swap(waiting);
    }
    std::printf("%.1f\n", sum);
    if (rows) std::fclose(rows);
}
