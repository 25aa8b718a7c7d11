"""What a simulator allows and promises."""

from typing import Annotated, ClassVar

from msgspec import Struct

from batsched_py.settings import Option


class Settings(Struct, frozen=True):
    """What the simulator allows and promises; each with the option by which Batsim is told."""

    group: ClassVar[str] = "Rules of Batsim"

    dynamic_jobs: Annotated[
        bool, Option("--enable-dynamic-jobs", "Let the decision process register jobs.", "schedulers")
    ] = False
    acknowledge_dynamic_jobs: Annotated[
        bool, Option("--acknowledge-dynamic-jobs", "Announce registered jobs as submitted.", "schedulers")
    ] = False
    profile_reuse: Annotated[
        bool, Option("--enable-profile-reuse", "Keep the profiles of jobs that are over.", "schedulers")
    ] = False
    forward_profiles: Annotated[
        bool,
        Option(
            "--forward-profiles-on-submission", "Send each job's profile with its submission.", "schedulers"
        ),
    ] = False
    forward_unknown_events: Annotated[
        bool,
        Option(
            "--forward-unknown-events",
            "Pass on events of unknown types to the decision process; otherwise they are refused.",
            "platforms",
        ),
    ] = False
    compute_sharing: Annotated[
        bool,
        Option("--enable-compute-sharing", "Let several jobs run on a host, which they share.", "platforms"),
    ] = False
    storage_sharing: Annotated[
        bool, Option("--disable-storage-sharing", "Let no more than one job use a storage host.", "platforms")
    ] = True
    scheduler_config: Annotated[
        str,
        Option(
            "--sched-cfg TEXT",
            "A text for the decision process.",
            "schedulers.config",
            from_file=Option("--sched-cfg-file FILE", "The same, from a file."),
        ),
    ] = ""
