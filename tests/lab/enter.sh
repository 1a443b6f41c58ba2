#!/bin/bash
# enter.sh [OPTIONS] ROOT -- COMMAND... - run a command in a lab root, in namespaces of its own.
#
#   --write         write into ROOT itself instead of an overlay in memory
#   --size SIZE     of the memory that the overlay may fill (default 16G)
#   --serve DIR     serve these repositories under their real names
#   --network       keep this machine's network: the real archive can be asked
#   --outside       run COMMAND on this machine's file system, with LAB_ROOT set
#   --hold          print "ready LAB_ROOT", then wait until standard input ends; COMMAND is not given
#
# Mounts, processes, network and host name are private: all of it ends with COMMAND. In these
# namespaces /var/lib, /opt, /root and /run of this machine are copies too, so that a run below
# LAB_ROOT leaves its folders there and not here.
set -euo pipefail

# One function, so that bash has read everything before it runs anything.
main() {
    local self root write='' size=16G serve='' outside='' hold='' online='' net=--net lab=/tmp/bringup-lab
    self=$(readlink -f "$0")
    if [ "${1:-}" != --inner ]; then
        [[ " $* " != *" --network "* ]] || net=''
        exec unshare --mount --pid --ipc --uts $net --fork --kill-child=KILL --propagation private -- /bin/bash "$self" --inner "$@"
    fi
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --write) write=1; shift ;;
        --size) size=$2; shift 2 ;;
        --serve) serve=$(readlink -f "$2"); shift 2 ;;
        --outside) outside=1; shift ;;
        --hold) hold=1; shift ;;
        --network) online=1; shift ;;
        --*) echo "enter.sh: unknown option $1" >&2; exit 2 ;;
        *) break ;;
        esac
    done
    root=$(readlink -f "$1"); shift
    [ "${1:-}" = -- ] && shift
    [ -d "$root/etc/lab" ] || { echo "enter.sh: $root is not a lab root" >&2; exit 2; }

    mount -t proc proc /proc
    hostname lab
    [ -n "$online" ] || network
    mkdir -p "$lab"
    mount -t tmpfs -o "size=$size,mode=755" lab "$lab"
    # Before the copies below: the root itself may lie under one of those folders.
    if [ -n "$write" ]; then
        mkdir "$lab/root"
        mount --bind "$root" "$lab/root"
    else
        overlay "$root" "$lab/root" "$lab/of"
    fi
    root=$lab/root
    local folder
    for folder in /var/lib /opt /root; do overlay "$folder" "$folder" "$lab/of${folder//\//-}"; done
    mount -t tmpfs -o mode=755 lab /run
    mkdir -p /run/lock "$lab/empty"
    : >"$lab/empty/file"
    if [ -n "$online" ]; then
        mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
    else
        mount --bind "$lab/empty/file" /etc/resolv.conf
    fi
    inhabit "$root"

    if [ -n "$serve" ]; then
        python3 -I "$(dirname "$self")/serve.py" "$serve" </dev/null >/dev/null 2>&1 &
        until (exec 3<>/dev/tcp/127.0.0.1/443) 2>/dev/null; do sleep 0.05; done
    fi
    export LAB_ROOT=$root
    if [ -n "$hold" ]; then
        echo "ready $root"
        # Ends when the one who started it does; until then this shell is process 1 and buries orphans.
        cat >/dev/null || true
    elif [ -n "$outside" ]; then
        "$@"
    else
        chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
    fi
}

network() {
    ip link set lo up
    # A link that is up and leads nowhere: the machine looks connected, and only loopback answers.
    if ip link add eth0 type dummy 2>/dev/null; then
        ip addr add 192.0.2.10/24 dev eth0
        ip link set eth0 up
    fi
}

overlay() { # LOWER TARGET STORE
    mkdir -p "$2" "$3/upper" "$3/work"
    chmod --reference="$1" "$3/upper"
    mount -t overlay -o "lowerdir=$1,upperdir=$3/upper,workdir=$3/work" lab "$2"
}

inhabit() { # ROOT: its own /proc, /sys, /dev and /run
    local root=$1 name major minor link
    mkdir -p "$root"/{proc,sys,dev,run,tmp}
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro,nosuid,nodev,noexec sys "$root/sys"
    mount -t tmpfs -o mode=755,size=4M lab "$root/dev"
    while read -r name major minor; do
        mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done <<<$'null 1 3\nzero 1 5\nfull 1 7\nrandom 1 8\nurandom 1 9\ntty 5 0\nptmx 5 2'
    ln -s /proc/self/fd "$root/dev/fd"
    for link in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${link%%:*}" "$root/dev/${link#*:}"; done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount --bind /dev/pts "$root/dev/pts"
    mount -t tmpfs lab "$root/dev/shm"
    mount -t tmpfs -o mode=755 lab "$root/run"
    mkdir -p "$root/run/lock"
}

main "$@"
exit
