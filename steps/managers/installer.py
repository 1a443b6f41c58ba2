"""How Python packages are fetched on this machine: pip's configuration, uv's variables, proxies, interpreters."""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from steps.errors import PreflightError
from steps.model.plan import Installer
from steps.model.profile import holds_credentials

if TYPE_CHECKING:
    from steps.host.base import Host

_LINES = tuple(f"3.{minor}" for minor in range(9, 16))
_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_EXTRA = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_TRUE = ("y", "yes", "t", "true", "on", "1")
"""What pip takes for yes."""
_INTERPRETER_FOLDERS = ("/usr/bin", "/usr/local/bin")


def settings(host: Host, environ: Mapping[str, str], *, home: str, user: str | None, uid: int) -> Installer:
    """Return the settings of the person whose environment `environ` is.

    Raises `PreflightError` for an address with credentials in one of pip's files: plans are shown and kept.
    """
    config = _pip_config(host, environ, home)

    def addresses(setting: str, *names: str) -> tuple[str, ...]:
        """Return the addresses of a setting: of the first variable that is set, else of pip's files."""
        said = _said(environ, names)
        return _public(setting, _split(config.get(setting, "") if said is None else said), carried=said is not None)

    index = addresses("index-url", *_INDEX)
    extra = addresses("extra-index-url", *_EXTRA)
    proxy = addresses("proxy", "PIP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
    # Folders and pages of wheels add up; an index takes the place of another.
    links = (*addresses("", "UV_FIND_LINKS"), *addresses("", "PIP_FIND_LINKS"), *addresses("find-links"))
    variables = (environ.get(name, "").strip() for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"))
    return Installer(
        uv=_uv(host, environ, home),
        managers=_managers(host, environ, home),
        pythons=_pythons(host, home),
        index_url=index[0] if index else None,
        extra_index_urls=extra,
        index_hidden=any(_hidden(environ, names) for names in (_INDEX, _EXTRA)),
        find_links=tuple(dict.fromkeys(links)),
        no_index=(_said(environ, ("UV_NO_INDEX", "PIP_NO_INDEX")) or config.get("no-index", "")).strip().lower() in _TRUE,
        proxy=proxy[0] if proxy else None,
        certificates=next(filter(None, variables), None) or config.get("cert"),
        home=home,
        homeless=host.exists(home) is False,
        user=user,
        environments="/opt/bringup/envs" if uid == 0 and user in (None, "root") else f"{home}/envs",
    )


def named_indexes(environ: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the main index and the further ones as the environment names them, credentials and all: to be kept nowhere."""
    main, extra = (_split(_said(environ, names) or "") for names in (_INDEX, _EXTRA))
    return main, extra


def _said(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the value of the first of these variables that is set."""
    return next((environ[name] for name in names if environ.get(name, "").strip()), None)


def _split(value: str) -> tuple[str, ...]:
    """Return the addresses of a setting."""
    return tuple(_plain_index(part) for part in re.split(r"[\s,]+", value.strip()) if part)


def _hidden(environ: Mapping[str, str], names: tuple[str, ...]) -> bool:
    """Return whether the environment names an index here whose address holds credentials."""
    return any(holds_credentials(one) for one in _split(_said(environ, names) or ""))


def _plain_index(address: str) -> str:
    """Return the address of uv's "name=address" form."""
    name, equals, rest = address.partition("=")
    return rest if equals and "/" not in name else address


def _public(setting: str, found: tuple[str, ...], *, carried: bool) -> tuple[str, ...]:
    """Return the addresses that hold no credentials, for these are shown and kept.

    Those of the environment reach the installer by the environment, which a run hands on and shows to nobody; those of a
    file would have to be written into a plan: `PreflightError`.
    """
    secret = [one for one in found if holds_credentials(one)]
    if secret and not carried:
        raise PreflightError("secret-in-address", setting=setting, host=urlsplit(secret[0]).hostname or "?")
    return tuple(one for one in found if one not in secret)


def _pip_config(host: Host, environ: Mapping[str, str], home: str) -> Mapping[str, str]:
    """Return pip's `[global]` and `[install]` settings, later files over earlier ones, as pip itself reads them."""
    if environ.get("PIP_CONFIG_FILE") == "/dev/null":
        return {}
    system = [f"{folder}/pip/pip.conf" for folder in reversed((environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"))]
    own = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    files = [*system, "/etc/pip.conf", f"{home}/.pip/pip.conf", f"{own}/pip/pip.conf", environ.get("PIP_CONFIG_FILE", "")]
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for file in files:
        text = host.read(file) if file else None
        if text is None:
            continue
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error:
            # pip says so itself when it runs; here an unreadable file just adds nothing.
            continue
        for section, values in found.items():
            if parser.has_section(section):
                values |= {key.replace("_", "-"): value.strip() for key, value in parser.items(section)}
    return {**found["global"], **found["install"]}


def _uv(host: Host, environ: Mapping[str, str], home: str) -> str | None:
    """Return the path of uv: on the person's PATH, else where its installer puts it, else what an earlier run of ours made."""
    folders = [
        *environ.get("PATH", "").split(":"),
        f"{home}/.local/bin",
        f"{home}/.cargo/bin",
        f"{home}/.local/share/bringup/uv/bin",
        # Root's own; another person's plan must not stand on what root may take away.
        *(["/opt/bringup/uv/bin"] if home == "/root" else []),
    ]
    return next((f"{folder}/uv" for folder in folders if folder.startswith("/") and host.exists(f"{folder}/uv")), None)


_CONDA_FOLDERS = ("miniforge3", "mambaforge", "miniconda3", "anaconda3", "conda")


def _managers(host: Host, environ: Mapping[str, str], home: str) -> Mapping[str, str]:
    """Return the paths of conda and its kin: on the person's PATH, as their shell set them up, else where they are usually put."""
    path = environ.get("PATH", "").split(":")
    bases = [f"{top}/{name}/bin" for name in _CONDA_FOLDERS for top in (home, "/opt")]
    said = (environ.get("CONDA_EXE", ""), environ.get("MAMBA_EXE", ""))
    found: dict[str, str] = {}
    for name, folders in (
        ("conda", bases),
        ("mamba", bases),
        ("micromamba", [f"{home}/.local/bin", f"{home}/bin", f"{home}/micromamba/bin", "/usr/local/bin"]),
        ("pixi", [f"{home}/.pixi/bin", f"{home}/.local/bin"]),
    ):
        places = [*(one for one in said if one.rpartition("/")[2] == name), *(f"{folder}/{name}" for folder in (*path, *folders))]
        at = next((place for place in places if place.startswith("/") and host.exists(place)), None)
        if at is not None:
            found[name] = at
    return found


def _pythons(host: Host, home: str) -> Mapping[str, str]:
    """Return installed interpreters by line: the system's, then the ones that uv manages."""
    found: dict[str, str] = {}
    for line in _LINES:
        places = [f"{folder}/python{line}" for folder in _INTERPRETER_FOLDERS]
        places += host.glob(f"{home}/.local/share/uv/python/cpython-{line}.*-linux-*/bin/python{line}")
        path = next((place for place in places if host.exists(place)), None)
        if path is not None:
            found[line] = path
    return found
