"""Where Python packages come from and how they are reached: the profile's word first, else the person's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.catalog import frameworks as catalog
from steps.errors import PreflightError
from steps.model.base import Record
from steps.model.plan import Installer
from steps.model.profile import Profile

Program = Literal["uv", "pip", "conda"]
"""The kinds of programs that fetch: each is told by variables of its own."""
FORGE = "conda-forge"
"""The channel that is asked unless the profile names another: it has no terms to be accepted."""
OWN_CHANNELS = "defaults"
"""What the profile says for Anaconda's own channels: conda then asks the person about their terms."""


class Fetching(Record):
    """Where packages come from, in the spelling that uv and pip share, and how they are reached."""

    options: tuple[str, ...]
    proxy: str | None
    certificates: str | None
    cached: bool = True
    """Whether there is a home folder to keep in what was fetched."""
    channel: str = FORGE
    """Where conda and its kin take the Python from."""

    def environment(self, program: Program) -> Mapping[str, str]:
        """Return the variables of one program; without a named bundle, uv is told to trust what the system trusts."""
        env: dict[str, str]
        bundles: tuple[str, ...]
        match program:
            case "pip":
                env = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
                bundles = ("PIP_CERT",)
            case "uv":
                # The old name for releases that do not know the new one; with both, the new ones do not warn.
                env = {"UV_NO_PROGRESS": "1", "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
                bundles = ("SSL_CERT_FILE",)
            case "conda":
                # Whatever the person's own settings are, their terms are asked about, and nothing is agreed to unseen.
                env = {"CONDA_ALWAYS_YES": "false", "MAMBA_NO_BANNER": "1", "CONDA_PLUGINS_AUTO_ACCEPT_TOS": "false"}
                bundles = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
        if not self.cached:
            env |= {"UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}
        if self.proxy is not None:
            env |= {"HTTPS_PROXY": self.proxy, "HTTP_PROXY": self.proxy, "ALL_PROXY": self.proxy}
        if self.certificates is not None:
            env |= dict.fromkeys(bundles, self.certificates)
        return env


def address(kind: Literal["pypi", "torch", "conda"], named: str) -> str:
    """Return the address that a preset of the catalogue stands for; what is no preset is an address already.

    Raises `PreflightError` for a bare word that is no preset: as an address it would only fail later.
    """
    presets = {row.name: row.url for row in catalog.indexes() if row.kind == kind}
    if named not in presets and not ("/" in named or (kind == "conda" and named in (FORGE, OWN_CHANNELS))):
        raise PreflightError("mirror-unknown", name=named, known=", ".join(presets))
    return presets.get(named, named)


def fetching(profile: Profile, installer: Installer, indexes: tuple[str, ...]) -> Fetching:
    """Return where packages come from: the profile's word first, else the person's configuration, variant indexes before both."""
    options: list[str] = []
    network = profile.network
    index = address("pypi", network.pypi) if network.pypi else installer.index_url
    if installer.no_index and not (network.pypi or network.torch_index):
        options += ["--no-index"]
    else:
        options += ["--index-url", index] if index is not None else []
        options += [word for extra in (*indexes, *installer.extra_index_urls) for word in ("--extra-index-url", extra)]
    links = (network.find_links,) if network.find_links else installer.find_links
    for link in links:
        options += ["--find-links", link]
    return Fetching(
        options=tuple(options),
        cached=not installer.homeless,
        proxy=network.proxy or installer.proxy,
        certificates=network.ca_file or installer.certificates,
        channel=address("conda", network.conda) if network.conda else FORGE,
    )
