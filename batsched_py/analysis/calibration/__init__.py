"""How far a simulation may be trusted for a log: simulated beside recorded waits, and a verdict."""

from batsched_py.analysis.calibration.calibration import Calibration, calibration
from batsched_py.analysis.calibration.page import write_calibration_page

__all__ = ["Calibration", "calibration", "write_calibration_page"]
