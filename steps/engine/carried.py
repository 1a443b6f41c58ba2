"""What a run takes along of the person's environment, and where of it the credentials lie: in no run's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from steps.engine.durable import write_whole
from steps.engine.folder import Owner, socket_folder
from steps.engine.server import prepare_folder
from steps.model.plan import Plan, sha256
from steps.model.profile import holds_credentials

_PREFIXES = ("PIP_", "UV_")
_NAMES = frozenset(
    (
        *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HF_ENDPOINT"),
        "BRINGUP_LANG",
    )
)
_UVS_WORD_FOR = {
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "PIP_EXTRA_INDEX_URL": ("UV_INDEX", "UV_EXTRA_INDEX_URL"),
    "PIP_FIND_LINKS": ("UV_FIND_LINKS",),
}
"""uv does not know pip's variables; an address with credentials is in no plan, so it can reach uv only this way."""
_NEVER = frozenset(
    (
        "UV_PYTHON",
        "UV_PROJECT",
        "UV_PROJECT_ENVIRONMENT",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_USER",
        "PIP_REQUIRE_VIRTUALENV",
        "PIP_NO_INDEX",
        "UV_NO_INDEX",
    )
)
"""They would send the packages somewhere else than the plan says, or fetch them from elsewhere."""


def carried_environment(plan: Plan) -> dict[str, str]:
    """Return what of the person's environment an installer honours: proxies, certificates, package indexes.

    The plan's own proxy goes before the environment's; apt and every other program of the run reads it from there.
    """
    carried = honoured(os.environ)
    for pips, uvs in _UVS_WORD_FOR.items():
        if pips in carried and not any(name in carried for name in uvs):
            carried[uvs[0]] = ",".join(carried[pips].split()) if uvs[0] == "UV_FIND_LINKS" else carried[pips]
    proxy = plan.profile.network.proxy
    return carried | dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy) if proxy else carried


def honoured(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables among these that a run takes along: none of them turns a program of root's into another one."""
    return {name: value for name, value in environment.items() if (name in _NAMES or name.startswith(_PREFIXES)) and name not in _NEVER}


def digest_of(environment: Mapping[str, str]) -> str:
    """Return what names an environment on the launcher's command line, without saying what is in it."""
    return sha256(msgspec.json.encode(dict(environment), order="sorted"))


def parted(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what may be written down with the run, and what names credentials."""
    hidden = {name: value for name, value in environment.items() if any(holds_credentials(one) for one in re.split(r"[\s,]+", value))}
    return {name: value for name, value in environment.items() if name not in hidden}, hidden


def hide(run: str, owner: Owner, hidden: Mapping[str, str]) -> None:
    """Keep the credentials of a run where its socket is, which is no disk: a run goes on with them until the next boot.

    After that they are taken from the environment of whoever goes on with it.
    """
    if hidden:
        path = _file(run, owner)
        prepare_folder(path.parent, owner)
        write_whole(path, msgspec.json.encode(hidden), 0o600)


def hidden(run: str, owner: Owner) -> Mapping[str, str]:
    """Return the credentials of a run; empty when it has none, or a reboot has taken them."""
    try:
        return msgspec.json.decode(_file(run, owner).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}


def forget(run: str, owner: Owner) -> None:
    """Let go of the credentials of a run that needs them no more."""
    _file(run, owner).unlink(missing_ok=True)


def _file(run: str, owner: Owner) -> Path:
    return socket_folder(root=os.geteuid() == 0, owner=owner) / f"{run}.env"
