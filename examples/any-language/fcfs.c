/* First come, first served, for a Batsim 4 or 5, in C with libzmq:
 *
 *     cc -o fcfs fcfs.c -lzmq && ./fcfs tcp://127.0.0.1:28000
 *
 * Fields are found by their names, which is enough for what is read here; for more, use a JSON library. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

typedef const char *text;
struct dialect { text type, begins, hosts, submitted, size, completed, ends, reject, execute, placed; };
static const struct dialect BATSIM4 = {
    "type", "SIMULATION_BEGINS", "nb_compute_resources", "JOB_SUBMITTED", "res", "JOB_COMPLETED", "SIMULATION_ENDS",
    "%s{\"timestamp\":%s,\"type\":\"REJECT_JOB\",\"data\":{\"job_id\":\"%s\"}}",
    "%s{\"timestamp\":%s,\"type\":\"EXECUTE_JOB\",\"data\":{\"job_id\":\"%s\",\"alloc\":\"", "\"}}"};
static const struct dialect BATSIM5 = {
    "event_type", "SimulationBeginsEvent", "computation_host_number", "JobSubmittedEvent", "resource_request",
    "JobCompletedEvent", "SimulationEndsEvent",
    "%s{\"timestamp\":%s,\"event_type\":\"RejectJobEvent\",\"event\":{\"job_id\":\"%s\"}}",
    "%s{\"timestamp\":%s,\"event_type\":\"ExecuteJobEvent\",\"event\":{\"job_id\":\"%s\",\"allocation\":"
    "{\"host_allocation\":\"", "\",\"executor_placement_type\":\"PredefinedExecutorPlacementStrategyWrapper\","
    "\"executor_placement\":{\"strategy\":\"SpreadOverHostsFirst\"}}}}"};
static const char HELLO[] = "\2\0\0\0{\"now\":0.0,\"events\":[{\"timestamp\":0.0,\"event_type\":\"EDCHelloEvent\","
    "\"event\":{\"batprotocol_version\":\"1.0.0\",\"requested_simulation_features\":{}}}]}"; /* 2 stands for JSON */

/* A copy of the value of a field: of a text what is between its quotes, or else up to a comma or a bracket. */
static char *field(text from, text name) {
    char key[64];
    size_t length = 0, width = snprintf(key, sizeof key, "\"%s\":", name);
    if ((from = strstr(from, key)) == NULL) return strdup("");
    from += width + strspn(from + width, " ");
    if (*from != '"') return strndup(from, strcspn(from, ",}]"));
    for (from++; from[length] && from[length] != '"'; length++) length += from[length] == '\\';
    return strndup(from, length);
}

int main(int argc, char **argv) {
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REP);
    if (argc != 2 || zmq_bind(socket, argv[1])) return fprintf(stderr, "usage: fcfs ENDPOINT\n"), 2;
    const struct dialect *said = &BATSIM4;
    struct { char *id; int size; } *jobs = NULL;
    int known = 0, head = 0, hosts = 0, idle = 0, ended = 0, *owner = NULL; /* of each host its job, or -1 */
    while (!ended) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, socket, 0) < 0) return 1;
        uint32_t length = 0;
        size_t size = zmq_msg_size(&message), reply_size;
        char *request = strndup(zmq_msg_data(&message), size), *reply, *now = field(request, "now"), *next;
        if (size >= 4) memcpy(&length, zmq_msg_data(&message), 4);
        zmq_msg_close(&message);
        if (size >= 4 && length == size - 4) { /* a Batsim 5 begins: the size of a text, and that text */
            said = &BATSIM5;
            zmq_send(socket, HELLO, sizeof HELLO - 1, 0);
            continue;
        }
        FILE *out = open_memstream(&reply, &reply_size);
        fprintf(out, "{\"now\":%s,\"events\":[", now);
        text comma = "";
        for (char *event = strstr(request, "{\"timestamp\""); event; event = next) {
            if ((next = strstr(event + 1, "{\"timestamp\"")) != NULL) next[-1] = 0;
            char *kind = field(event, said->type), *id = field(event, "job_id"), *number;
            if (!strcmp(kind, said->begins)) {
                hosts = idle = atoi(number = field(event, said->hosts));
                free(number);
                owner = memset(malloc(hosts * sizeof *owner), -1, hosts * sizeof *owner);
            } else if (!strcmp(kind, said->submitted)) {
                int wanted = atoi(number = field(event, said->size));
                free(number);
                if (wanted > hosts) fprintf(out, said->reject, comma, now, id), comma = ",";
                else {
                    jobs = realloc(jobs, (known + 1) * sizeof *jobs);
                    jobs[known].size = wanted, jobs[known++].id = strdup(id);
                }
            } else if (!strcmp(kind, said->completed)) { /* however it ended */
                for (int host = 0; host < hosts; host++)
                    if (owner[host] >= 0 && !strcmp(jobs[owner[host]].id, id)) owner[host] = -1, idle++;
            } else if (!strcmp(kind, said->ends)) ended = 1;
            free(kind), free(id);
        }
        for (; head < known && jobs[head].size <= idle; head++, comma = ",") {
            fprintf(out, said->execute, comma, now, jobs[head].id);
            for (int host = 0, left = jobs[head].size; left; host++)
                if (owner[host] < 0) owner[host] = head, idle--, fprintf(out, --left ? "%d " : "%d", host);
            fputs(said->placed, out);
        }
        fputs("]}", out);
        fclose(out);
        zmq_send(socket, reply, reply_size, 0);
        free(request), free(now), free(reply);
    }
    zmq_close(socket);
    return zmq_ctx_term(context); /* which waits until the last reply is sent */
}
