// The names and profiles that jobs may use that are registered while a simulation runs (specification:
// batsched_py/ledger/registry.py).
#pragma once
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "job.hpp"

namespace batsched {

// A decision that Batsim would not accept.
struct RuleBroken : std::runtime_error {
    using runtime_error::runtime_error;
};

class Registry {
public:
    bool dynamic = false;   // whether jobs may ever be registered
    bool accepts = false;   // whether they may be now
    bool reopened = false;  // or from the next reply on

    bool is_open() const { return accepts || reopened; }

    void next_reply() {
        if (std::exchange(reopened, false)) accepts = true;
    }

    void add_profile(const std::string& workload, const Profile& profile) {
        check_open();
        if (!profiles_[workload].try_emplace(profile.name, profile).second) {
            throw RuleBroken("profile '" + profile.name + "' exists already in workload '" + workload + "'");
        }
    }

    // Makes a job known that says the name of its profile; it gets the profile itself.
    void add_job(Job& job) {
        check_open();
        if (!names_.insert(job.id).second) throw RuleBroken("job " + job.id + " exists already");
        std::string workload(workload_in(job.id));
        auto profiles = profiles_.find(workload);
        if (profiles == profiles_.end()) {
            throw RuleBroken("workload '" + workload + "' does not exist; register a profile in it first");
        }
        auto profile = profiles->second.find(job.profile.name);
        if (profile == profiles->second.end()) {
            throw RuleBroken("profile '" + job.profile.name + "' does not exist in workload '" + workload + "'");
        }
        job.profile = profile->second;
    }

private:
    std::unordered_map<std::string, std::unordered_map<std::string, Profile>> profiles_;
    std::unordered_set<std::string> names_;  // that are taken

    void check_open() const {
        if (accepts) return;
        throw RuleBroken(dynamic ? "registration was declared finished"
                                 : "the simulator does not accept dynamic jobs (start it with --enable-dynamic-jobs)");
    }
};

}  // namespace batsched
