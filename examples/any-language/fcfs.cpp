// First come, first served, for a Batsim 4 or 5, in C++ with libzmq:
//
//     c++ -std=c++17 -o fcfs fcfs.cpp -lzmq && ./fcfs tcp://127.0.0.1:28000
//
// Fields are found by their names, which is enough for what is read here; for more, use a JSON library.
#include <zmq.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using std::string;

struct Dialect { string type, begins, hosts, submitted, size, completed, ends, reject, execute, placed; };
const Dialect BATSIM4{
    "type", "SIMULATION_BEGINS", "nb_compute_resources", "JOB_SUBMITTED", "res", "JOB_COMPLETED", "SIMULATION_ENDS",
    R"("type":"REJECT_JOB","data":{"job_id":")", R"("type":"EXECUTE_JOB","data":{"alloc":")", R"(","job_id":")"};
const Dialect BATSIM5{
    "event_type", "SimulationBeginsEvent", "computation_host_number", "JobSubmittedEvent", "resource_request",
    "JobCompletedEvent", "SimulationEndsEvent", R"("event_type":"RejectJobEvent","event":{"job_id":")",
    R"("event_type":"ExecuteJobEvent","event":{"allocation":{"host_allocation":")",
    R"(","executor_placement_type":"PredefinedExecutorPlacementStrategyWrapper",)"
    R"("executor_placement":{"strategy":"SpreadOverHostsFirst"}},"job_id":")"};
const string HELLO = string("\2\0\0\0", 4) +  // 2 stands for JSON
    R"({"now":0.0,"events":[{"timestamp":0.0,"event_type":"EDCHelloEvent",)"
    R"("event":{"batprotocol_version":"1.0.0","requested_simulation_features":{}}}]})";

// The value of a field: of a text what is between its quotes, or else all up to a comma or a bracket.
string field(const string& text, const string& name) {
    auto from = text.find('"' + name + "\":");
    if (from == string::npos) return "";
    from = text.find_first_not_of(' ', from + name.size() + 3);
    if (text[from] != '"') return text.substr(from, text.find_first_of(",}]", from) - from);
    auto to = ++from;
    while (to < text.size() && text[to] != '"') to += text[to] == '\\' ? 2 : 1;
    return text.substr(from, to - from);
}

int main(int argc, char** argv) {
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REP);
    if (argc != 2 || zmq_bind(socket, argv[1])) return 2;
    auto said = &BATSIM4;
    std::set<int> idle;
    std::deque<std::pair<string, std::size_t>> queue;
    std::map<string, std::vector<int>> running;
    std::size_t machine = 0;
    for (bool ended = false; !ended;) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, socket, 0) < 0) return 1;
        string request(static_cast<char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
        zmq_msg_close(&message);
        std::uint32_t length = 0;
        if (request.size() >= 4) std::memcpy(&length, request.data(), 4);
        if (request.size() >= 4 && length == request.size() - 4) {  // a Batsim 5 begins: a size and a text
            said = &BATSIM5;
            zmq_send(socket, HELLO.data(), HELLO.size(), 0);
            continue;
        }
        string now = field(request, "now"), decisions, before = R"({"timestamp":)" + now + ",", mark = R"({"timestamp")";
        for (auto at = request.find(mark), next = at; at != string::npos; at = next) {
            next = request.find(mark, at + 1);
            string event = request.substr(at, next - at), kind = field(event, said->type), job = field(event, "job_id");
            if (kind == said->begins)
                for (machine = std::stoi(field(event, said->hosts)); idle.size() < machine;) idle.insert(idle.size());
            else if (kind == said->submitted) {
                std::size_t size = std::stoi(field(event, said->size));
                if (size > machine) decisions += before + said->reject + job + "\"}},";
                else queue.emplace_back(job, size);
            } else if (kind == said->completed)  // however it ended
                idle.insert(running[job].begin(), running[job].end()), running.erase(job);
            ended |= kind == said->ends;
        }
        for (; !queue.empty() && queue.front().second <= idle.size(); queue.pop_front()) {
            auto& [job, size] = queue.front();
            decisions += before + said->execute;
            for (std::size_t n = 0; n < size; n++, idle.erase(idle.begin()))
                running[job].push_back(*idle.begin()), decisions += std::to_string(*idle.begin()) + " ";
            decisions.back() = '"', decisions.pop_back();
            decisions += said->placed + job + "\"}},";
        }
        if (!decisions.empty()) decisions.pop_back();
        string reply = R"({"now":)" + now + R"(,"events":[)" + decisions + "]}";
        zmq_send(socket, reply.data(), reply.size(), 0);
    }
    zmq_close(socket);
    return zmq_ctx_term(context);  // which waits until the last reply is sent
}
