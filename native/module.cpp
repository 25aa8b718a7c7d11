// batsched_py._native: the parts of the ledger and of the simulator that every job passes, compiled.
//
// Each class here has a Python class as its specification, comes before it among the bases of a class of
// batsched_py that does both, and hands on to it what it does not do itself.
#include "replay.hpp"
#include "swf.hpp"
#include "world.hpp"

PyMODINIT_FUNC PyInit__native() {
    return guarded([] {
        static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "batsched_py._native",
                                         "What every job passes, compiled.", -1, nullptr};
        Ref module(checked(PyModule_Create(&definition)));
        prepare_hosts(module.get());
        prepare_jobs(module.get());
        prepare_names(module.get());
        prepare_running(module.get());
        prepare_columns(module.get());
        prepare_queue(module.get());
        prepare_ledger(module.get());
        prepare_cluster(module.get());
        prepare_agenda(module.get());
        prepare_broker(module.get());
        prepare_replay(module.get());
        prepare_desk(module.get());
        prepare_machines(module.get());
        prepare_outputs(module.get());
        prepare_world(module.get());
        prepare_swf(module.get());
        return module.release();
    });
}
