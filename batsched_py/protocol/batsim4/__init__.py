"""The dialect of Batsim 4: JSON over ZeroMQ, as in Batsim 4.2."""

from __future__ import annotations

from batsched_py.protocol.batsim4.codec import Batsim4Codec
from batsched_py.protocol.batsim4.jobs import job_from_json, job_to_json
from batsched_py.protocol.batsim4.profiles import PROFILE_TYPES, profile_from_json, profile_to_json
from batsched_py.protocol.clock import TICK
from batsched_py.protocol.dialect import Dialect

BATSIM4 = Dialect(
    name="batsim4",
    codec=Batsim4Codec,
    resolution=TICK,
    read_job=job_from_json,
    spell_job=job_to_json,
    read_profile=profile_from_json,
    spell_profile=profile_to_json,
    profile_types=PROFILE_TYPES,
)
