"""What tells the way to a server, the driver's files that programs take, and lines that a terminal broke, as events."""

from __future__ import annotations

from typing import Any

import pytest

from steps.doctor.events.base import Event
from steps.doctor.events.builds import CompilerRefused
from steps.doctor.events.cleaning import unwrapped
from steps.doctor.events.containers import NoGpuRuntime
from steps.doctor.events.cuda import DriverOld
from steps.doctor.events.driver_files import DriverFile
from steps.doctor.events.libraries import LibraryThere
from steps.doctor.events.proxies import ProxySet, TlsFailed
from tests.doctor import kit

TABLE: tuple[tuple[str, type[Event], dict[str, Any]], ...] = (
    ("$ export HTTPS_PROXY=http://10.1.2.3:3128", ProxySet, {"peer": "10.1.2.3:3128"}),
    ("ENV https_proxy http://proxy.example:8080", ProxySet, {"peer": "proxy.example:8080"}),
    ('Acquire::http::Proxy "http://me:word@proxy.example:8080/";', ProxySet, {"peer": "proxy.example:8080"}),
    ("[proxychains] Strict chain  ...  127.0.0.1:1080  ...  pypi.org:443  ...  OK", ProxySet, {"peer": "127.0.0.1:1080"}),
    ("$ proxychains4 sudo apt install cuda", ProxySet, {"peer": "proxychains4"}),
    (
        "  Invalid response from proxy: HTTP/1.0 403 CONNECT denied (ask the admin to allow HTTPS tunnels)     [IP: 10.0.0.2 3142]",
        TlsFailed,
        {"url": None, "address": "10.0.0.2", "port": 3142, "proxy": True},
    ),
    ("curl: (35) Recv failure: Connection reset by peer", TlsFailed, {"url": None, "reset": True}),
    (
        "proxyconnect tcp: read tcp 10.0.0.30:38392->10.0.0.100:3128: read: connection reset by peer",
        TlsFailed,
        {"url": None, "address": "10.0.0.100", "port": 3128, "proxy": True},
    ),
    ("curl: (35) error:0A000126:SSL routines::unexpected eof while reading.", TlsFailed, {"url": None}),
    ("curl: (52) Empty reply from server", TlsFailed, {"url": None, "reset": True}),
    (
        "ERROR: LoadError: CUDA 10.0 is not supported by\nyour driver (which supports up to 9.0)",
        DriverOld,
        {"found": "9.0", "wanted": "10.0"},
    ),
    ("only supports NVIDIA drivers for CUDA 11.x or 12.x (yours is for CUDA 10.2.0)", DriverOld, {"found": "10.2", "wanted": "11.0"}),
    ('could not select device driver "cdi" with capabilities: []', NoGpuRuntime, {"cdi": True}),
    ('could not select device driver "" with capabilities: [[gpu]]', NoGpuRuntime, {}),
    (
        "LD_LIBRARY_PATH=/opt/cuDNN/8.9.2.26-CUDA-12.1.1/lib:/usr/lib",
        LibraryThere,
        {"name": "libcudnn.so.8", "major": 8, "kind": "cudnn", "path": "/opt/cuDNN/8.9.2.26-CUDA-12.1.1/lib"},
    ),
    (
        'level=INFO msg="no nvidia devices detected by library /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01"',
        DriverFile,
        {"path": "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01", "version": "535.183.01", "refused": True},
    ),
    ("Loading /usr/lib/wsl/lib/libcuda.so.1 now", DriverFile, {"path": "/usr/lib/wsl/lib/libcuda.so.1"}),
    ("  132 | #error -- unsupported GNU version! gcc versions later than 12 are", CompilerRefused, {"header": None, "newest": 12}),
    ("  88 | #error -- unsupported GNU version! gcc 4.9 and up are not supported!", CompilerRefused, {"header": None, "newest": 4}),
    ("  90 | #error -- unsupported clang version! clang version must be less than 17", CompilerRefused, {"header": None, "newest": 16}),
)  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "wanted"), TABLE, ids=[f"{kind.__name__}-{number}" for number, (_, kind, _) in enumerate(TABLE)])
def test_a_text_becomes_its_event(text: str, kind: type[Event], wanted: dict[str, Any]) -> None:
    assert kit.fields(text, kind) == [wanted]


def test_the_password_of_a_proxy_is_not_kept() -> None:
    (told,) = kit.events("$ export https_proxy=http://me:word@proxy.example:3128\n").all(ProxySet)
    assert "word" not in told.place.text


MESSAGE = (
    'starting container process caused "process_linux.go:368: container init caused "process_linux.go:351: running prestart hook 1 caused '
    '"error running hook: exit status 1, stdout: , stderr: exec command: [/usr/bin/nvidia-container-cli --load-kmods configure '
    "--ldconfig=@/sbin/ldconfig --device=all --compute --utility --require=cuda>=9.0 --pid=36229 /data/dockerdata/devicemapper/mnt/rootfs]"
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda >= 9.0"
)


def cut(text: str, columns: int) -> list[str]:
    return [text[at : at + columns] for at in range(0, len(text), columns)]


@pytest.mark.parametrize("columns", [132, 120])
def test_a_message_that_a_wide_terminal_broke_is_whole_again(columns: int) -> None:
    broken = "\n".join(("$ docker run nvidia/cuda", *cut(MESSAGE, columns)))
    assert unwrapped(broken) == f"$ docker run nvidia/cuda\n{MESSAGE}\n"


def test_rows_of_a_table_stay_lines() -> None:
    rows = [
        f"ii  {name:<60} {number}.0-1  amd64 {'a library of the driver':<50.50}".rstrip().ljust(118, "x")
        for number, name in enumerate("abcdefgh")
    ]
    narrow = [row[:90] for row in rows]
    assert unwrapped("\n".join(rows)) == "\n".join(rows)
    assert unwrapped("\n".join(narrow)) == "\n".join(narrow)
