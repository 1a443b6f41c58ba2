"""The lab's packages: real names, versions and dependencies, almost no files, and behaviour on demand."""

from __future__ import annotations

from pathlib import Path

from tests.lab.debs import Deb, File
from tests.lab.modules import DKMS, KERNEL, OPEN, module

NVIDIA_URL = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"
DEBIAN_URL = "https://deb.debian.org/debian/lab/"
_TABLE = Path(__file__).parent / "data" / "nvidia.tsv"

# /etc/lab/behave holds lines "PACKAGE VERB ARG": what the maintainer scripts of this machine shall do.
_BEHAVE = r"""
lab_behave() {
    [ -r /etc/lab/behave ] || return 0
    while read -r package verb argument; do
        [ "$package" = "$DPKG_MAINTSCRIPT_PACKAGE" ] || continue
        case $verb in
        fail) echo "lab: $package fails with $argument" >&2; exit "$argument" ;;
        sleep) i=0; while [ $i -lt "$argument" ]; do i=$((i+1)); echo "lab: working $i/$argument"; sleep 1; done ;;
        quiet) sleep "$argument" ;;
        flood) seq -f "lab: line %.0f of $argument" "$argument" ;;
        kill) kill -"$argument" $$ ;;
        esac
    done </etc/lab/behave
}
"""


def configure(body: str) -> str:
    """Return a postinst that first does what the tests asked for, then `body`."""
    return f'#!/bin/sh\nset -e\n{_BEHAVE}\nif [ "$1" = configure ]; then\nlab_behave\n{body}\nfi\nexit 0\n'


_DKMS_BUILD = r"""
k=$(ls /lib/modules 2>/dev/null | sort -V | tail -n 1); t=$(cat /etc/lab/pace 2>/dev/null || echo 0.2)
echo "Loading new nvidia-@VERSION@ DKMS files..."
mkdir -p /var/lib/dkms/nvidia/@VERSION@
ln -sfn /usr/src/nvidia-@VERSION@ /var/lib/dkms/nvidia/@VERSION@/source
if [ -z "$k" ] || [ ! -e "/lib/modules/$k/build" ]; then
    echo 'Building for '
    exit 0
fi
echo "Building for $k"; echo 'Building for architecture x86_64'; echo "Building initial module for $k"
sleep "$t"; echo 'Done.'
mkdir -p "/lib/modules/$k/updates/dkms" "/var/lib/dkms/nvidia/@VERSION@/$k/x86_64"
for m in nvidia nvidia-modeset nvidia-drm nvidia-uvm; do
    printf '\n%s.ko:\nRunning module version sanity check.\n - Installation\n   - Installing to /lib/modules/%s/updates/dkms/\n' "$m" "$k"
    cp /usr/src/nvidia-@VERSION@/nvidia.ko "/lib/modules/$k/updates/dkms/$m.ko"
done
echo; echo 'depmod....'; depmod "$k"; sleep "$t"
"""
_DKMS_REMOVE = r"""#!/bin/sh
set -e
for k in $(ls /lib/modules 2>/dev/null); do
    for m in nvidia nvidia-modeset nvidia-drm nvidia-uvm; do rm -f "/lib/modules/$k/updates/dkms/$m.ko"; done
    rmdir "/lib/modules/$k/updates/dkms" "/lib/modules/$k/updates" 2>/dev/null || true
    depmod "$k"
done
rm -rf /var/lib/dkms/nvidia/@VERSION@
rmdir /var/lib/dkms/nvidia 2>/dev/null || true
exit 0
"""
_NVCC = r"""#!/bin/sh
[ "$1" = --version ] || { echo "lab nvcc: only --version" >&2; exit 1; }
echo 'nvcc: NVIDIA (R) Cuda compiler driver'
echo 'Cuda compilation tools, release @RELEASE@, V@BUILD@'
"""
_SMI = r"""#!/bin/sh
# /etc/lab/smi: ok | mismatch | notloaded | nodevice
case $(cat /etc/lab/smi 2>/dev/null || echo notloaded) in
mismatch) echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18 ;;
nodevice) echo 'No devices were found'; exit 6 ;;
ok) echo '| NVIDIA-SMI @VERSION@    Driver Version: @VERSION@ |' ;;
*) echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9 ;;
esac
"""


def _program(text: str) -> File:
    return File(text.encode(), 0o755)


def _upstream(version: str) -> str:
    return version.rsplit("-", 1)[0]


def _dressed(deb: Deb) -> Deb:
    """Return the package with the files and scripts that its name calls for."""
    files, scripts = dict(deb.files), dict(deb.scripts)
    version = _upstream(deb.version)
    if deb.name in ("nvidia-kernel-dkms", "nvidia-kernel-open-dkms"):
        scripts["postinst"] = configure(_DKMS_BUILD.replace("@VERSION@", version))
        scripts["prerm"] = _DKMS_REMOVE.replace("@VERSION@", version)
        source = f"/usr/src/nvidia-{version}"
        files[f"{source}/dkms.conf"] = File(f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'.encode())
        files[f"{source}/nvidia.ko"] = File(module(version, OPEN if "open" in deb.name else "NVIDIA"))
    elif deb.name == "nvidia-driver-cuda":
        files["/usr/bin/nvidia-smi"] = _program(_SMI.replace("@VERSION@", version))
    elif deb.name == "nvidia-kernel-support":
        files["/etc/modprobe.d/nvidia-blacklists-nouveau.conf"] = File(b"blacklist nouveau\n")
    elif deb.name.startswith("cuda-nvcc-"):
        release = deb.name[len("cuda-nvcc-") :].replace("-", ".")
        files[f"/usr/local/cuda-{release}/bin/nvcc"] = _program(_NVCC.replace("@RELEASE@", release).replace("@BUILD@", version))
        scripts["postinst"] = configure("")
    elif deb.name.startswith("cuda-cudart-") and "dev" not in deb.name:
        release = deb.name[len("cuda-cudart-") :].replace("-", ".")
        files[f"/usr/local/cuda-{release}/version.json"] = File(b'{"cuda": {"version": "%s"}}\n' % version.encode())
    elif deb.name.startswith("cuda-toolkit-") and deb.name.endswith("-config-common") and deb.name.count("-") == 5:
        release = ".".join(deb.name.split("-")[2:4])
        link = f"update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-{release} {release.replace('.', '')}"
        scripts["postinst"] = configure(link)
        scripts["prerm"] = f'#!/bin/sh\nset -e\n[ "$1" = remove ] && update-alternatives --remove cuda /usr/local/cuda-{release}\nexit 0\n'
    elif deb.name == "cuda-toolkit-config-common":
        files["/etc/ld.so.conf.d/000_cuda.conf"] = File(b"/usr/local/cuda/targets/x86_64-linux/lib\n")
        scripts["postinst"] = configure("ldconfig")
    elif deb.name == "libnccl2":
        files[f"/usr/lib/x86_64-linux-gnu/libnccl.so.{_upstream(deb.version)}"] = File()
    elif deb.name.startswith(("libcudnn9-cuda", "libcublas-1")):
        scripts["postinst"] = configure("ldconfig")
    return Deb(deb.name, deb.version, deb.architecture, deb.installed, deb.relations, files, scripts)


def nvidia() -> list[Deb]:
    """Return what NVIDIA's repository for Debian 12 has, as far as the lab needs it."""
    found: list[Deb] = []
    for line in _TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        name, version, architecture, size, *relations = line.split("\t")
        named = dict(zip(("Depends", "Provides", "Conflicts"), relations, strict=False))
        found.append(_dressed(Deb(name, version, architecture, int(size), {key: value for key, value in named.items() if value})))
    for branch, version in (("570", "570.124.06-1"), ("580", "580.82.07-1")):
        pin = f"Package: *nvidia* cuda-drivers* libcuda1*\nPin: version {branch}.*\nPin-Priority: 1000\n".encode()
        relations_ = {"Provides": "nvidia-driver-pinning", "Conflicts": "nvidia-driver-pinning"}
        found.append(
            Deb(f"nvidia-driver-pinning-{branch}", version, "all", 10, relations_, {f"/etc/apt/preferences.d/nvidia-{branch}": File(pin)})
        )
    return found


def keyring(key: bytes) -> Deb:
    """Return the keyring package, its key unarmoured under its real name."""
    source = f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {NVIDIA_URL} /\n"
    pin = "Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n"
    files = {
        "/etc/apt/sources.list.d/cuda-debian12-x86_64.list": File(source.encode()),
        "/etc/apt/preferences.d/cuda-repository-pin-600": File(pin.encode()),
        "/usr/share/keyrings/cuda-archive-keyring.gpg": File(key),
    }
    return Deb("cuda-keyring", "1.1-1", "all", 20, {}, files)


def debian() -> list[Deb]:
    """Return the few packages that a driver needs from Debian itself, and a kernel to build for."""
    modules = f"/lib/modules/{KERNEL}"
    headers = {
        f"{modules}/build": File(b"stand-in for the link to the headers\n"),
        f"/usr/src/linux-headers-{KERNEL}/Makefile": File(b"VERSION = 6\n"),
    }
    image = {
        f"{modules}/modules.builtin": File(),
        f"{modules}/kernel/drivers/gpu/drm/nouveau/nouveau.ko": File(),
        f"/boot/vmlinuz-{KERNEL}": File(),
    }
    version = "6.1.129-1"
    found = [
        Deb(f"linux-image-{KERNEL}", version, "amd64", 400_000, {}, image),
        Deb("linux-image-amd64", version, "amd64", 12, {"Depends": f"linux-image-{KERNEL}"}),
        Deb(f"linux-headers-{KERNEL}", version, "amd64", 6_000, {}, headers),
        Deb("linux-headers-amd64", version, "amd64", 12, {"Depends": f"linux-headers-{KERNEL}"}),
        Deb("dkms", "3.0.10-8+deb12u1", "all", 200, {}, {"/usr/sbin/dkms": _program(DKMS)}),
    ]
    for name, plain in (
        ("build-essential", "12.9"),
        ("gcc", "4:12.2.0-3"),
        ("g++", "4:12.2.0-3"),
        ("make", "4.3-4.1"),
        ("libc6-dev", "2.36-9+deb12u10"),
        ("python3-venv", "3.11.2-1+b1"),
        ("pciutils", "1:3.9.0-4"),
        ("mokutil", "0.6.0-2"),
        ("nvtop", "3.0.1-1"),
        ("linux-cpupower", version),
    ):
        found.append(Deb(name, plain, "amd64", 100))
    return found


def misbehaving() -> list[Deb]:
    """Return the packages that go wrong in one way each."""

    def odd(
        name: str, body: str = "", *, version: str = "1.0", depends: str = "", files: dict[str, File] | None = None, size: int = 60
    ) -> Deb:
        scripts = {"postinst": configure(body)} if body else {}
        return Deb(name, version, "all", size, {"Depends": depends} if depends else {}, files or {}, scripts)

    count = 'i=0; while [ $i -lt "$n" ]; do i=$((i+1)); echo "working $i/$n"; sleep 1; done'
    ask = "printf 'Do you accept the EULA? [y/N] ' >/dev/tty; read -r a </dev/tty; [ \"$a\" = y ] || exit 1"
    return [
        odd("lab-ok"),
        odd("lab-old", version="1.0", files={"/etc/lab-old.conf": File(b"version = 1\n")}),
        odd("lab-old", version="2.0", files={"/etc/lab-old.conf": File(b"version = 2\n")}),
        odd("lab-fail", "echo 'Error! Bad return status for module build' >&2; exit 10"),
        odd("lab-dep-of-fail", depends="lab-fail"),
        odd("lab-sleep", f"n=$(cat /etc/lab/seconds 2>/dev/null || echo 60); {count}"),
        odd("lab-flood", "seq -f 'CC [M]  /var/lib/dkms/nvidia/build/file%.0f.o' \"$(cat /etc/lab/lines 2>/dev/null || echo 200000)\""),
        odd("lab-tty", ask),
        odd("lab-conffile", version="1.0", files={"/etc/lab-conffile.conf": File(b"level = 1\n")}),
        odd("lab-conffile", version="1.1", files={"/etc/lab-conffile.conf": File(b"level = 2\n")}),
        odd("lab-overwrite", files={"/etc/lab-conffile.conf": File(b"mine\n")}),
        odd("lab-unmet", depends="lab-does-not-exist (>= 2.0)"),
        odd("lab-big", size=900_000_000),
        odd("lab-unpack", files={"/usr/share/lab/zeros": File(size=64 << 20)}, size=66_000),
        Deb("lab-evicts-ssh", "1.0", "all", 10, {"Conflicts": "openssh-server", "Depends": "lab-ok"}),
        Deb("openssh-server", "1:9.2p1-2+deb12u5", "amd64", 10),
    ]
