"""What the extension module gives to the classes that derive from its classes."""

from typing import Any

from batsched_py.ledger import free

class FreeHosts(free.FreeHosts): ...

class JobQueue:
    users: Any

class Running: ...

class Ledger:
    queue: Any
    running: Any
    free: Any
    registry: Any
    estimate: Any
    _for_files_only: Any
    _plain_estimate: Any
    _collects: bool

class Cluster: ...
