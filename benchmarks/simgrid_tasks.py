"""Tasks on 4 of 64 hosts with SimGrid's Python binding, by Debian's Python: PLATFORM TASKS."""

import sys

LANES = 16


def main():
    """Run the tasks in lanes of four hosts, one after another in each."""
    import simgrid

    engine = simgrid.Engine(["tasks", "--cfg=host/model:ptask_L07", "--log=root.thresh:critical"])
    engine.load_platform(sys.argv[1])
    flops = [1e9] * 4
    sent = [0.0 if place % 5 == 0 else 1e7 for place in range(16)]

    def work(lane):
        hosts = [engine.host_by_name(f"n{4 * lane + place}") for place in range(4)]
        for _ in range(int(sys.argv[2]) // LANES):
            simgrid.this_actor.parallel_execute(hosts, flops, sent)

    for lane in range(LANES):
        simgrid.Actor.create(f"lane {lane}", engine.host_by_name(f"n{4 * lane}"), work, lane)
    engine.run()


if __name__ == "__main__":
    main()
