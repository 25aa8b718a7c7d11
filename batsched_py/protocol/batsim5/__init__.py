"""The dialect of Batsim 5: JSON over ZeroMQ, as in its release candidates and PyBatsim 4."""

from __future__ import annotations

from batsched_py.protocol.batsim5.codec import Batsim5Codec
from batsched_py.protocol.batsim5.jobs import job_from_file, job_to_file
from batsched_py.protocol.batsim5.profiles import PROFILE_TYPES, profile_from_file, profile_to_file
from batsched_py.protocol.clock import TICK
from batsched_py.protocol.dialect import Dialect

BATSIM5 = Dialect(
    name="batsim5",
    codec=Batsim5Codec,
    resolution=TICK,
    read_job=job_from_file,
    spell_job=job_to_file,
    read_profile=profile_from_file,
    spell_profile=profile_to_file,
    profile_types=PROFILE_TYPES,
)
