"""Validates an archive with roc-validator, which must be installed: ``python validate_crate.py ARCHIVE``.

Without a network, so the one context that the archive names comes from the package ``rocrate``.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import requests
import rocrate
import urllib3
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator import services
from rocrate_validator.models import Severity

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


def keep_context(cache: Path) -> None:
    """Put it where the validator looks for what it would download."""
    content = Path(rocrate.__file__).with_name("data").joinpath("ro-crate.jsonld").read_bytes()
    assert f'"@id": "{CONTEXT}"'.encode() in content
    raw = urllib3.HTTPResponse(
        io.BytesIO(content), {"Content-Type": "application/ld+json"}, 200, preload_content=False
    )
    raw._request_url = CONTEXT
    with CachedSession(str(cache)) as session:
        request = session.prepare_request(requests.Request("GET", CONTEXT))
        response = HTTPAdapter().build_response(request, raw)
        session.cache.save_response(response, cache_key=session.cache.create_key(request))


def main(archive: str) -> int:
    """Print every rule of the profile that must be kept and is not; how many."""
    with TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        keep_context(cache)
        result = services.validate(
            {
                "rocrate_uri": archive,
                "profile_identifier": "workflow-run-crate-0.5",
                "requirement_severity": Severity.REQUIRED,
                "offline": True,
                "cache_path": cache,
            }
        )
        issues = result.get_issues()
    for issue in issues:
        print(issue.message)
    return len(issues)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
