"""First come, first served, for a Batsim 4 or 5, in plain Python with pyzmq:

python fcfs.py tcp://127.0.0.1:28000
"""

import json
import sys

import zmq

BATSIM4 = {
    "type": "type",
    "data": "data",
    "begins": "SIMULATION_BEGINS",
    "hosts": "compute_resources",
    "submitted": "JOB_SUBMITTED",
    "size": "res",
    "completed": "JOB_COMPLETED",
    "ends": "SIMULATION_ENDS",
    "reject": "REJECT_JOB",
    "execute": "EXECUTE_JOB",
    "place": lambda hosts: {"alloc": hosts},
}
BATSIM5 = {
    "type": "event_type",
    "data": "event",
    "begins": "SimulationBeginsEvent",
    "hosts": "computation_hosts",
    "submitted": "JobSubmittedEvent",
    "size": "resource_request",
    "completed": "JobCompletedEvent",
    "ends": "SimulationEndsEvent",
    "reject": "RejectJobEvent",
    "execute": "ExecuteJobEvent",
    "place": lambda hosts: {
        "allocation": {
            "host_allocation": hosts,
            "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
            "executor_placement": {"strategy": "SpreadOverHostsFirst"},
        }
    },
}
HELLO = {"batprotocol_version": "1.0.0", "requested_simulation_features": {}}

context = zmq.Context()
socket = context.socket(zmq.REP)
socket.bind(sys.argv[1])
said, machine, free, queue, running, ended = BATSIM4, 0, [], [], {}, False
while not ended:
    request = socket.recv()
    if int.from_bytes(request[:4], "little") == len(request) - 4:  # a Batsim 5 begins: a size and a text
        said = BATSIM5
        hello = {"timestamp": 0.0, "event_type": "EDCHelloEvent", "event": HELLO}
        socket.send(b"\2\0\0\0" + json.dumps({"now": 0.0, "events": [hello]}).encode())  # 2 stands for JSON
        continue
    message = json.loads(request.rstrip(b"\0"))
    decisions = []
    for event in message["events"]:
        kind, data = event[said["type"]], event[said["data"]]
        if kind == said["begins"]:
            free = [host["id"] for host in data[said["hosts"]]]
            machine = len(free)
        elif kind == said["submitted"]:
            job, size = data["job_id"], data["job"][said["size"]]
            if size > machine:
                decisions.append((said["reject"], {"job_id": job}))
            else:
                queue.append((job, size))
        elif kind == said["completed"]:  # however it ended
            free = sorted(free + running.pop(data["job_id"]))
        ended |= kind == said["ends"]
    while queue and queue[0][1] <= len(free):
        job, size = queue.pop(0)
        running[job], free = free[:size], free[size:]
        decisions.append((said["execute"], {"job_id": job} | said["place"](" ".join(map(str, running[job])))))
    now = message["now"]
    events = [{"timestamp": now, said["type"]: kind, said["data"]: data} for kind, data in decisions]
    socket.send(json.dumps({"now": now, "events": events}).encode())
socket.close()
context.term()  # which waits until the last reply is sent
