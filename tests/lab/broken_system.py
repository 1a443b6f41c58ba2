"""Broken package managers, repositories, disks and settings."""

from __future__ import annotations

from tests.lab.broken import TORCH, Broken, trusting
from tests.lab.catalogue import NVIDIA_URL
from tests.lab.debs import Deb, File

_CONF = Deb("lab-half", "1.0", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 1\n")})
_KEYRING = "/usr/share/keyrings/lab-debian.gpg"


def _source(url: str, key: str) -> bytes:
    return f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {key}\n".encode()


SYSTEM = (
    Broken(
        "interrupted",
        "dpkg-interrupted",
        debs=(_CONF,),
        script="dpkg --unpack /var/cache/apt/archives/lab-half_1.0_all.deb",
        proves="dpkg -s lab-half | grep -q 'install ok installed'",
        long=False,
    ),
    Broken(
        "wrong-key",
        "apt-repo-key-rotated",
        files={"/etc/apt/sources.list.d/cuda.sources": _source(NVIDIA_URL, "/usr/share/keyrings/other.gpg")},
        script="cp /usr/share/keyrings/debian-archive-bookworm-stable.gpg /usr/share/keyrings/other.gpg",
        log="apt-get update",
        proves="apt-get -o APT::Update::Error-Mode=any update",
        long=False,
    ),
    Broken(
        "signed-by-twice",
        "apt-signed-by-conflict",
        files={
            "/etc/apt/sources.list.d/a.list": f"deb [signed-by={_KEYRING}] {NVIDIA_URL} /\n".encode(),
            "/etc/apt/sources.list.d/b.sources": _source(NVIDIA_URL, "/etc/apt/keyrings/gone.gpg"),
        },
        proves="apt-get check",
        long=False,
    ),
    Broken(
        "held-library",
        "held-package-blocks-install",
        files=trusting(),
        script="apt-get -q update; apt-get -qy install libnccl2=2.26.2-1+cuda12.8; apt-mark hold libnccl2",
        log="apt-get -s install libnccl-dev=2.28.3-1+cuda13.0",
        proves="apt-get -s install libnccl-dev=2.28.3-1+cuda13.0",
    ),
    Broken(
        "other-release",
        "repo-for-other-distro",
        files={"/etc/apt/sources.list.d/cuda.sources": _source(NVIDIA_URL.replace("debian12", "ubuntu2204"), _KEYRING)},
        proves="grep -rq repos/debian12 /etc/apt/sources.list.d/ && ! ls /etc/apt/sources.list.d/cuda.sources",
    ),
    Broken(
        "library-path",
        "ld-library-path-shadows-bundled-libs",
        files={"/etc/profile.d/cuda.sh": b"export PATH=/usr/local/cuda/bin:$PATH\nexport LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"},
        log="echo 'ImportError: /opt/e/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: cublasLtGetVersion, "
        "version libcublasLt.so.12'; echo 'env: LD_LIBRARY_PATH=/usr/local/cuda/lib64'",
        proves='[ -z "$(. /etc/profile.d/cuda.sh; echo $LD_LIBRARY_PATH)" ]',
        unproven=TORCH,
    ),
    Broken(
        "hidden-cards",
        "cuda-visible-devices-hides-gpus",
        files={"/etc/environment": b'PATH="/usr/bin"\nCUDA_VISIBLE_DEVICES=""\n'},
        log="echo '$ echo \"[$CUDA_VISIBLE_DEVICES]\"'; echo 'CUDA_VISIBLE_DEVICES='; "
        "echo 'RuntimeError: No CUDA GPUs are available'",
        proves="! grep -q ^CUDA_VISIBLE /etc/environment",
        unproven=TORCH,
    ),
    Broken(
        "pinned-memory",
        "memlock-limit-too-low",
        log="echo 'node1:12:34 [0] misc/ibvwrap.cc:184 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory'; "
        "echo '$ ulimit -l'; echo 64",
        proves="grep -q memlock /etc/security/limits.d/*",
        unproven="prlimit --memlock",
    ),
    Broken(
        "cache-on-the-way",
        "http-cache-corrupts-repo-data",
        log="echo 'W: GPG error: http://deb.debian.org/debian lab InRelease: The following signatures were "
        "invalid: BADSIG 871920D1991BC93C Lab'",
        proves="grep -q No-Cache /etc/apt/apt.conf.d/*",
    ),
    Broken(
        "no-terminal",
        "conffile-question-unanswered",
        debs=(Deb("lab-half", "1.0", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 1\n")}),
              Deb("lab-half", "1.1", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 2\n")})),
        script="dpkg -i /var/cache/apt/archives/lab-half_1.0_all.deb; echo 'level = 9' >/etc/lab-half.conf",
        log="dpkg -i /var/cache/apt/archives/lab-half_1.1_all.deb </dev/null",
        proves="dpkg -s lab-half | grep -q 'install ok installed' && grep -q 9 /etc/lab-half.conf",
    ),
    Broken(
        "other-key-and-file",
        "apt-repo-key-rotated",
        # The source stands in the one file for all, beside another archive that has to stay.
        files={"/etc/apt/sources.list": f"deb [signed-by={_KEYRING}] https://deb.debian.org/debian/lab/ /\ndeb {NVIDIA_URL} /\n".encode()},
        script="rm /etc/apt/sources.list.d/debian.sources",
        log="apt-get update",
        proves="apt-get -o APT::Update::Error-Mode=any update && grep -q '^deb .*lab' /etc/apt/sources.list",
    ),
    Broken(
        "interrupted-upgrade",
        "dpkg-interrupted",
        debs=(_CONF, Deb("lab-half", "1.1", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 2\n")})),
        script="cd /var/cache/apt/archives; dpkg -i lab-half_1.0_all.deb; dpkg --unpack lab-half_1.1_all.deb",
        log="apt-get -s install lab-ok",
        proves="dpkg -s lab-half | grep -q 'install ok installed' && grep -q 2 /etc/lab-half.conf",
    ),
    Broken(
        "full-disk",
        "disk-full-during-install",
        debs=(Deb("lab-large", "1.0", "all", 8_000, {}, {"/usr/share/lab/zeros": File(size=8 << 20)}),),
        script="mkdir -p /usr/share/lab; mount -t tmpfs -o size=1M tmpfs /usr/share/lab",
        log="dpkg -i /var/cache/apt/archives/lab-large_1.0_all.deb",
        proves='[ -z "$(ls /var/cache/apt/archives/*.deb 2>/dev/null)" ]',
    ),
    Broken(
        "mirror-in-between",
        "repo-inconsistent-on-server",
        script="rm -rf /var/lib/apt/lists/*",
        log="echo 'E: Failed to fetch https://deb.debian.org/debian/lab/Packages.gz  File has unexpected size (1234 != 5678). "
        "Mirror sync in progress? [IP: 127.0.0.1 443]'",
        proves="ls /var/lib/apt/lists/*_Packages*",
    ),
)  # fmt: skip
