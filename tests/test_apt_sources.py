"""What apt reads, by its own files: a source that is turned off, or of another release, is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.managers import apt_sources

PPA = "https://ppa.launchpadcontent.net/graphics-drivers/ppa/ubuntu"
DEB822 = f"Types: deb\nURIs: {PPA}/\nSuites: noble\nComponents: main\n"
OTHER = "Types: deb\nURIs: http://archive.ubuntu.com/ubuntu\nSuites: noble noble-updates\nComponents: main\n"


@pytest.mark.parametrize(
    ("name", "text", "reads"),
    [
        ("a.list", f"deb {PPA}/ noble main\n", True),
        ("a.list", f"deb [arch=amd64 signed-by=/x.gpg] {PPA} noble main\n", True),
        ("a.list", f"deb {PPA.replace('https', 'http')} noble main\n", True),
        ("a.list", f"# deb {PPA}/ noble main\n", False),
        ("a.list", f"deb-src {PPA}/ noble main\n", False),
        ("a.list", f"deb {PPA}/ jammy main\n", False),
        ("a.list.save", f"deb {PPA}/ noble main\n", False),
        ("a.sources", DEB822, True),
        ("a.sources", f"{OTHER}\n{DEB822}", True),
        ("a.sources", DEB822.replace("Suites: noble", "Suites: jammy\n noble"), True),
        ("a.sources", f"{DEB822}Enabled: no\n", False),
        ("a.sources", f"enabled: No\n{DEB822}\n{OTHER}", False),
        ("a.sources", f"{OTHER}Enabled: no\n\n{DEB822}Enabled: yes\n", True),
        ("a.sources", DEB822.replace("noble", "jammy"), False),
        ("a.sources", DEB822.replace("Types: deb", "Types: deb-src"), False),
        ("a.sources", DEB822.replace("URIs", "# URIs"), False),
        ("a.sources", OTHER, False),
    ],
)
def test_only_what_is_turned_on_for_this_release_is_read(tmp_path: Path, name: str, text: str, reads: bool) -> None:
    file = tmp_path / "etc/apt/sources.list.d" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert apt_sources.reads(RootedHost(str(tmp_path), LocalHost()), PPA, suite="noble") is reads


def test_the_one_file_of_old_is_read_and_any_suite_counts_where_none_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "etc/apt").mkdir(parents=True)
    (tmp_path / "etc/apt/sources.list").write_text(f"deb {PPA} jammy main\n")
    assert apt_sources.reads(RootedHost(str(tmp_path), LocalHost()), "https://example.org/x", PPA)
    assert not apt_sources.reads(RootedHost(str(tmp_path), LocalHost()), "https://example.org/x")
