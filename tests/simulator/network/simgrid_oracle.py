"""When tasks end, says SimGrid itself: Debian's ``python3-simgrid``, which Debian's own Python runs.

Reads scenarios as JSON from its standard input, and writes the ends of their tasks in the same order: the
time, or nothing for a task that was killed. Each scenario has a process of its own, because SimGrid allows
one engine a process, and gets no answer if SimGrid finds none within seconds.
"""

import json
import os
import signal
import sys


def run(scenario):
    import simgrid

    engine = simgrid.Engine(["oracle", "--cfg=host/model:ptask_L07", "--log=root.thresh:critical"])
    engine.load_platform(scenario["platform"])
    ends = [None] * len(scenario["tasks"])

    def act(number, task):
        simgrid.this_actor.sleep_until(task["start"])
        hosts = [simgrid.Engine.instance.host_by_name(name) for name in task["hosts"]]
        activity = simgrid.this_actor.exec_init(hosts, task["flops"], task["bytes"])
        activity.start()
        try:
            if task["patience"] is None:
                activity.wait()
            else:
                activity.wait_for(task["patience"])
            ends[number] = simgrid.Engine.clock
        except simgrid.TimeoutException:
            activity.cancel()

    for number, task in enumerate(scenario["tasks"]):
        host = engine.host_by_name(task["hosts"][0])
        simgrid.Actor.create(f"task {number}", host, act, number, task)
    engine.run()
    return ends


def main():
    for scenario in json.load(sys.stdin):
        reading, writing = os.pipe()
        if os.fork() == 0:
            signal.alarm(5)
            os.close(reading)
            with os.fdopen(writing, "w") as result:
                json.dump(run(scenario), result)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as result:
            print(result.read() or "null", flush=True)
        os.wait()


if __name__ == "__main__":
    main()
