"""Generating logs: one model per file, found by name as schedulers are."""

from batsched_py.plugins import Registry
from batsched_py.workload.models.base import LearningModel, Model

#: The known models.
MODELS = Registry[Model](
    "model",
    Model,  # type: ignore[type-abstract]
    package="batsched_py.workload.models",
    group="batsched_py.models",
)

__all__ = ["MODELS", "LearningModel", "Model"]
