// The names and profiles that jobs may use that are registered while a simulation runs (specification:
// batsched_py/ledger/registry.py).
#pragma once
#include <bitset>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "job.hpp"

namespace batsched {

// Names that are taken for ever. A thousand of them that differ in their last digits only take some hundred bytes.
class Names {
public:
    // Takes a name; whether nobody had it.
    bool insert(const std::string& name) {
        size_t begin = name.size();
        while (begin && name[begin - 1] >= '0' && name[begin - 1] <= '9' && name.size() - begin < kMostDigits) --begin;
        while (begin < name.size() && name[begin] == '0') ++begin;
        if (begin == name.size()) return others_.insert(name).second;
        uint64_t number = 0;
        std::from_chars(name.data() + begin, name.data() + name.size(), number);
        auto bit = numbered_[name.substr(0, begin)][number / kPage][number % kPage];
        if (bit) return false;
        bit = true;
        return true;
    }

private:
    static constexpr size_t kMostDigits = 18, kPage = 1024;

    // By what is before the digits and by pages of numbers, which of them are taken.
    std::unordered_map<std::string, std::unordered_map<uint64_t, std::bitset<kPage>>> numbered_;
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
        if (!profiles_[workload].try_emplace(profile.name, Registered{profile}).second) {
            throw RuleBroken("profile '" + profile.name + "' exists already in workload '" + workload + "'");
        }
    }

    // A profile that users name, which is made known when they do so first.
    const Profile& profile_of_users(const std::string& workload, const Profile& profile) {
        auto& profiles = profiles_[workload];
        auto found = profiles.find(profile.name);
        if (found == profiles.end()) {
            add_profile(workload, profile);
            found = profiles.find(profile.name);
            found->second.is_of_users = true;
        } else if (!found->second.is_of_users) {
            add_profile(workload, profile);
        }
        return found->second;
    }

    // Makes a job known that says the name of its profile; it gets the profile itself.
    void add_job(Job& job, const Profile* known = nullptr) {
        check_open();
        if (!names_.insert(job.id)) throw RuleBroken("job " + job.id + " exists already");
        if (known) {
            job.profile = *known;
            return;
        }
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
    struct Registered : Profile {
        bool is_of_users = false;
    };

    std::unordered_map<std::string, std::unordered_map<std::string, Registered>> profiles_;
    Names names_;

    void check_open() const {
        if (accepts) return;
        throw RuleBroken(dynamic ? "registration was declared finished"
                                 : "the simulator does not accept dynamic jobs (start it with --enable-dynamic-jobs)");
    }
};

}  // namespace batsched
