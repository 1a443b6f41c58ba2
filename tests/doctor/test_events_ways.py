"""What tells the way to a server, the driver's files that programs take, and lines that a terminal broke, as events."""

from __future__ import annotations

from typing import Any

import pytest

from steps.doctor.events.base import Event
from steps.doctor.events.builds import CompilerRefused
from steps.doctor.events.cleaning import unwrapped
from steps.doctor.events.containers import NoGpuRuntime
from steps.doctor.events.cuda import ContextForbidden, DriverOld
from steps.doctor.events.driver_files import DriverFile
from steps.doctor.events.heat import HeatTold
from steps.doctor.events.libraries import LibraryThere
from steps.doctor.events.nccl import MulticastFailed
from steps.doctor.events.peers import P2pSwitch
from steps.doctor.events.proxies import IndexAsked, NoRoots, ProxySet, TlsFailed
from tests.doctor import kit

TABLE: tuple[tuple[str, type[Event], dict[str, Any] | None], ...] = (
    ("$ export HTTPS_PROXY=http://10.1.2.3:3128", ProxySet, {"peer": "10.1.2.3:3128"}),
    ("ENV https_proxy http://proxy.example:8080", ProxySet, {"peer": "proxy.example:8080"}),
    ('Acquire::http::Proxy "http://me:word@proxy.example:8080/";', ProxySet, {"peer": "proxy.example:8080"}),
    ("[proxychains] Strict chain  ...  127.0.0.1:1080  ...  pypi.org:443  ...  OK", ProxySet, {"peer": "127.0.0.1:1080"}),
    ("$ proxychains4 sudo apt install cuda", ProxySet, {"peer": "proxychains4"}),
    (" HTTPS Proxy: http://proxy.example:3128/", ProxySet, {"peer": "proxy.example:3128"}),
    ("Https Proxy: http://me:word@proxy.example:3128/", ProxySet, {"peer": "proxy.example:3128"}),
    ("$ git config --global http.proxy http://10.1.2.3:8080", ProxySet, {"peer": "10.1.2.3:8080"}),
    ("$ pip install --proxy http://10.1.2.3:8080 torch", ProxySet, {"peer": "10.1.2.3:8080"}),
    ("$ conda config --set proxy_servers.https http://10.1.2.3:8080", ProxySet, {"peer": "10.1.2.3:8080"}),
    ("$ curl -sSL -x 10.1.2.3:8080 https://pypi.org", ProxySet, {"peer": "10.1.2.3:8080"}),
    ("$ curl -x http://me:1234@10.1.2.3:8080 https://pypi.org", ProxySet, {"peer": "10.1.2.3:8080"}),
    ("$ git config --global --unset http.proxy", ProxySet, None),
    ("Looking in indexes: https://me:word@nexus.lab.example/simple", IndexAsked, {"host": "nexus.lab.example"}),
    ("Looking in links: /tmp/wheels", IndexAsked, None),
    (
        'Get "https://nvcr.io/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority',
        TlsFailed,
        {"url": "https://nvcr.io/v2/", "trust": True},
    ),
    (
        "fatal: unable to access 'https://github.com/NVIDIA/nccl/': server certificate verification failed. CAfile: none CRLfile: none",
        TlsFailed,
        {"url": "https://github.com/NVIDIA/nccl/", "trust": True},
    ),
    (
        "ERROR: cannot verify nvidia.github.io's certificate, issued by 'CN=Example Web Gateway CA':",
        TlsFailed,
        {"url": None, "trust": True, "proxy": True},
    ),
    ('[Errno 14] curl#60 - "Peer\'s Certificate issuer is not recognized."', TlsFailed, {"url": None, "trust": True}),
    (
        ("Curl error (60): SSL peer certificate or SSH remote key was not OK for https://a.example/x [SSL certificate problem: self "
        "signed certificate in certificate chain]"),
        TlsFailed,
        {"url": "https://a.example/x"},
    ),
    (
        'Get "https://registry-1.docker.io/v2/": Proxy Authentication Required',
        TlsFailed,
        {"url": "https://registry-1.docker.io/v2/", "proxy": True},
    ),
    (
        ("  Certificate verification failed: The certificate is NOT trusted. The certificate chain uses expired certificate.  "
        "Could not handshake: Error in the certificate verification. [IP: 192.0.2.9 443]"),
        TlsFailed,
        None,
    ),
    ("x509: certificate has expired or is not yet valid", TlsFailed, None),
    ("W: https://a.example/x: No system certificates available. Try installing ca-certificates.", NoRoots, {}),
    ("curl: (77) error setting certificate file: /etc/ssl/certs/ca-certificates.crt", NoRoots, {}),
    (
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152:\nCUDA error 401 'the operation cannot be performed'",
        MulticastFailed,
        {"code": 401},
    ),
    ("NCCL INFO NVLS multicast support is available on dev 3\nCuda failure 2 'out of memory'", MulticastFailed, None),
    ("the new Titan V was running rather hot, at 95C", HeatTold, {"degrees": 95.0, "rests": False}),
    ("after the reboot the GPU sits at 79 °C idle", HeatTold, {"degrees": 79.0, "rests": True}),
    ("the GPU throttles at 95C", HeatTold, None),
    ("GPU memory junction at 96 C", HeatTold, None),
    ("the CPU beside the card was at 95C", HeatTold, None),
    ("compiled 100 C++ files for the GPU", HeatTold, None),
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
    ("$ NCCL_P2P_DISABLE=1 torchrun train.py", P2pSwitch, {"helps": None}),
    ("$ NCCL_P2P_DISABLE=1 mpirun ./run.sh --ok", P2pSwitch, {"helps": None}),
    ("with NCCL_P2P_DISABLE=1 it works.", P2pSwitch, {"helps": True}),
    ("cuCtxCreate took 800 us", ContextForbidden, None),
    ("cuCtxCreate_v2 returned error 800", ContextForbidden, {}),
    ("LD_LIBRARY_PATH=/usr/local/cudnn-10.1/lib64", LibraryThere, None),
    (
        'Get "https://10.0.0.5:5000/v2/": read tcp 10.0.0.2:5555->10.0.0.5:5000: TLS handshake timeout',
        TlsFailed,
        {"url": "https://10.0.0.5:5000/v2/"},
    ),
    ("  132 | #error -- unsupported GNU version! gcc versions later than 12 are", CompilerRefused, {"header": None, "newest": 12}),
    ("  88 | #error -- unsupported GNU version! gcc 4.9 and up are not supported!", CompilerRefused, {"header": None, "newest": 4}),
    ("  90 | #error -- unsupported clang version! clang version must be less than 17", CompilerRefused, {"header": None, "newest": 16}),
)  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "wanted"), TABLE, ids=[f"{kind.__name__}-{number}" for number, (_, kind, _) in enumerate(TABLE)])
def test_a_text_becomes_its_event(text: str, kind: type[Event], wanted: dict[str, Any] | None) -> None:
    assert kit.fields(text, kind) == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    "typed",
    [
        "$ export https_proxy=http://me:word@proxy.example:3128",
        "$ curl -x me:word@proxy.example:3128 https://pypi.org",
        "$ curl -U me:word -x proxy.example:3128 https://pypi.org",
        "$ curl --proxy-user me:word --proxy http://proxy.example:3128 https://pypi.org",
    ],
)
def test_the_password_of_a_proxy_is_not_kept(typed: str) -> None:
    (told,) = kit.events(f"{typed}\n").all(ProxySet)
    assert told.peer == "proxy.example:3128"
    assert "word" not in told.place.text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/systemd/system/docker.service.d/proxy.conf", '[Service]\nEnvironment="HTTPS_PROXY=http://me:12345@proxy.example:3128"\n'),
        ("/etc/docker/daemon.json", '{"proxies": {"https-proxy": "http://me:12345@proxy.example:3128"}}\n'),
        ("/etc/gitconfig", "[http]\n\tproxy = me:12345@proxy.example:3128\n"),
    ],
)
def test_a_proxy_that_a_file_names_is_its_server_and_not_the_login_before_it(path: str, text: str) -> None:
    broken = "curl: (35) Recv failure: Connection reset by peer\n"
    (cause,) = [one for one in kit.judged(files={path: text}, logs={"terminal.log": broken}).diagnoses if one.id == "proxy-breaks-tls"]
    assert cause.because.params["peer"] == "proxy.example:3128"
    assert not any("12345" in place.text for place in cause.evidence)


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


KERNEL = """\
[    3.200000] nvidia-nvlink: Nvlink Core is being initialized, major device number 511
[    3.300000] NVRM: API mismatch: the client has the version 535.129.03, but this kernel module has the version 535.104.05
[    3.400000] NVRM: The NVIDIA GPU 0000:01:00.0 has fallen off the bus and is not responding to commands.
[    3.500000] nvidia 0000:01:00.0: probe with driver nvidia failed with error -1, as the one before it
[    3.600000] NVRM: None of the NVIDIA devices were initialized, and nothing is left to try.
"""


@pytest.mark.parametrize("columns", [60, 72])
def test_lines_that_all_begin_with_a_stamp_are_no_table(columns: int) -> None:
    broken = "\n".join(part for line in KERNEL.splitlines() for part in cut(line, columns))
    assert unwrapped(broken) == KERNEL
