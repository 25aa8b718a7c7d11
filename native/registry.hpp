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

// Names that are taken. Most are numbers, of which a bit is kept.
class Names {
public:
    // Whether the name was still to be had.
    bool take(const std::string& id) {
        std::string_view name = name_in(id);
        uint32_t number = 0;
        auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        bool plain = error == std::errc() && end == name.data() + name.size() && number < kLargest &&
                     (name.size() == 1 || name[0] != '0');
        if (!plain) return others_.insert(id).second;
        std::vector<bool>& taken = numbers_[std::string(workload_in(id))];
        if (taken.size() <= number) taken.resize(std::max<size_t>(number + 1, 2 * taken.size()));
        bool is_new = !taken[number];
        taken[number] = true;
        return is_new;
    }

private:
    static constexpr uint32_t kLargest = 1 << 26;
    std::unordered_map<std::string, std::vector<bool>> numbers_;
    std::unordered_set<std::string> others_;
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
        if (!names_.take(job.id)) throw RuleBroken("job " + job.id + " exists already");
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
    Names names_;

    void check_open() const {
        if (accepts) return;
        throw RuleBroken(dynamic ? "registration was declared finished"
                                 : "the simulator does not accept dynamic jobs (start it with --enable-dynamic-jobs)");
    }
};

}  // namespace batsched
