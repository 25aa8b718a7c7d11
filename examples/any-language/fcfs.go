// First come, first served, for a Batsim 4 or 5, in Go with libzmq and nothing but the standard library:
//
//	go build -o fcfs fcfs.go && ./fcfs tcp://127.0.0.1:28000
package main

// #cgo LDFLAGS: -lzmq
// #include <errno.h>
// #include <zmq.h>
import "C"

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"sort"
	"strconv"
	"strings"
	"unsafe"
)

type object = map[string]any
type dialect struct{ kind, data, begins, hosts, submitted, size, completed, ends, reject, execute string }
type job struct {
	id   string
	size int
}

var batsim4 = dialect{"type", "data", "SIMULATION_BEGINS", "compute_resources", "JOB_SUBMITTED", "res",
	"JOB_COMPLETED", "SIMULATION_ENDS", "REJECT_JOB", "EXECUTE_JOB"}
var batsim5 = dialect{"event_type", "event", "SimulationBeginsEvent", "computation_hosts", "JobSubmittedEvent",
	"resource_request", "JobCompletedEvent", "SimulationEndsEvent", "RejectJobEvent", "ExecuteJobEvent"}

const hello = "\x02\x00\x00\x00" + `{"now":0.0,"events":[{"timestamp":0.0,"event_type":"EDCHelloEvent",` + // 2 is JSON
	`"event":{"batprotocol_version":"1.0.0","requested_simulation_features":{}}}]}`

func main() {
	context := C.zmq_ctx_new()
	socket := C.zmq_socket(context, C.ZMQ_REP)
	if len(os.Args) != 2 || C.zmq_bind(socket, C.CString(os.Args[1])) != 0 {
		os.Exit(2)
	}
	said, machine, free, queue, running := batsim4, 0, []int{}, []job{}, map[string][]int{}
	for ended := false; !ended; {
		var message C.zmq_msg_t
		C.zmq_msg_init(&message)
		again(func() C.int { return C.zmq_msg_recv(&message, socket, 0) })
		text := C.GoBytes(C.zmq_msg_data(&message), C.int(C.zmq_msg_size(&message)))
		C.zmq_msg_close(&message)
		if len(text) >= 4 && int(binary.LittleEndian.Uint32(text)) == len(text)-4 { // a Batsim 5 begins: a size and a text
			said = batsim5
			answer([]byte(hello), socket)
			continue
		}
		var request struct {
			Now    json.Number
			Events []object
		}
		if json.Unmarshal(bytes.TrimRight(text, "\x00"), &request) != nil {
			os.Exit(1)
		}
		decisions := []object{}
		decide := func(kind string, data object) {
			decisions = append(decisions, object{"timestamp": request.Now, said.kind: kind, said.data: data})
		}
		for _, event := range request.Events {
			data := event[said.data].(object)
			id, _ := data["job_id"].(string)
			switch event[said.kind] {
			case said.begins:
				for _, host := range data[said.hosts].([]any) {
					free = append(free, int(host.(object)["id"].(float64)))
				}
				machine = len(free)
			case said.submitted:
				if size := int(data["job"].(object)[said.size].(float64)); size > machine {
					decide(said.reject, object{"job_id": id})
				} else {
					queue = append(queue, job{id, size})
				}
			case said.completed: // however it ended
				free = append(free, running[id]...)
				sort.Ints(free)
				delete(running, id)
			case said.ends:
				ended = true
			}
		}
		for ; len(queue) > 0 && queue[0].size <= len(free); queue = queue[1:] {
			first := queue[0]
			running[first.id] = append([]int{}, free[:first.size]...)
			free = free[first.size:]
			hosts := make([]string, first.size)
			for n, host := range running[first.id] {
				hosts[n] = strconv.Itoa(host)
			}
			decide(said.execute, said.place(first.id, strings.Join(hosts, " ")))
		}
		reply, _ := json.Marshal(object{"now": request.Now, "events": decisions})
		answer(reply, socket)
	}
	C.zmq_close(socket)
	again(func() C.int { return C.zmq_ctx_term(context) }) // which waits until the last reply is sent
}

func (said dialect) place(id, hosts string) object {
	if said.kind == "type" {
		return object{"job_id": id, "alloc": hosts}
	}
	return object{"job_id": id, "allocation": object{"host_allocation": hosts,
		"executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
		"executor_placement":      object{"strategy": "SpreadOverHostsFirst"}}}
}

func answer(reply []byte, socket unsafe.Pointer) {
	again(func() C.int { return C.zmq_send(socket, unsafe.Pointer(&reply[0]), C.size_t(len(reply)), 0) })
}

// Go sends itself signals, and libzmq then asks to be called again.
func again(call func() C.int) {
	for call() < 0 {
		if C.zmq_errno() != C.EINTR {
			os.Exit(1)
		}
	}
}
