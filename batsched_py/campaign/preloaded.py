"""What the process has loaded from which workers are forked, so that they start at once.

Besides modules, this is what the modules of a simulation import: each worker asks whether the code is still
what it was when the campaign began, and to parse all of it takes some tenths of a second.
"""

import batsched_py.analysis.metrics
import batsched_py.campaign.executors  # noqa: F401
from batsched_py.campaign.files import ROOT, reachable_modules

reachable_modules([ROOT])
