# How a private environment is made, for ./bringup and the checks: by uv or by venv, wherever pip works, or the reason why not.
#
# Sourced by a POSIX shell that has `tell`; `make_environment ENV LOG WHAT...` is what it is for.
# shellcheck shell=sh disable=SC2154  # language, base: set by who sources it

# --- what may be missing -----------------------------------------------------------------------------------------------

read_distribution() { # sets family, and sudo: the word before a command that needs root
    id='' like=''
    for release in "${BRINGUP_OS_RELEASE:-/etc/os-release}" /usr/lib/os-release; do
        [ -r "$release" ] || continue
        while IFS='=' read -r name value; do
            value=${value#[\"\']}
            value=${value%[\"\']}
            case $name in
                ID) id=$value ;;
                ID_LIKE) like=$value ;;
            esac
        done <"$release"
        break
    done
    case " $id $like " in
        *' fedora-asahi-remix '* | ' fedora '*) family=fedora ;;
        *' debian '* | *' ubuntu '*) family=debian ;;
        *' rhel '* | *' centos '* | *' fedora '* | *' amzn '*) family=rhel ;;
        *' opensuse-tumbleweed '*) family=tumbleweed ;;
        *' suse '* | *' sles '* | *' opensuse '*) family=suse ;;
        *' arch '*) family=arch ;;
        *' alpine '*) family=alpine ;;
        *) family=other ;;
    esac
    if [ "$(id -u)" = 0 ]; then sudo=''; else sudo='sudo '; fi
}

refuse() { # ENGLISH CHINESE, then pairs of lines that say what to do: ends with exit status 3
    while [ $# -ge 2 ]; do
        tell "$1" "$2"
        shift 2
    done
    exit 3
}

install_uv='curl -LsSf https://astral.sh/uv/install.sh | sh'

refuse_without_python() { # nothing here can carry bringup: says what to install on this distribution
    read_distribution
    or_uv="or install uv, which brings its own Python and needs no root:  $install_uv"
    or_uv_zh="或者安装 uv（自带 Python，无需 root）：$install_uv"
    case $family in
        debian) packages="${sudo}apt install python3 python3-venv" ;;
        fedora | tumbleweed) packages="${sudo}dnf install python3" ;;
        rhel) packages="${sudo}dnf install python3.11" ;;
        suse) packages="${sudo}zypper install python311" ;;
        arch) packages="${sudo}pacman -S python" ;;
        alpine) packages="${sudo}apk add python3" ;;
        *) packages='' ;;
    esac
    [ "$family" != tumbleweed ] || packages="${sudo}zypper install python3"
    if [ -n "$split" ]; then
        case $family in
            debian) packages="${sudo}apt install python3-venv" ;; # it brings the venv package of the default Python
        esac
        refuse "Python $split is here, but without its venv module (ensurepip), and there is no uv." \
            "此处有 Python $split，但缺少 venv 模块（ensurepip），也没有 uv。" \
            "install it:  ${packages:-the venv and pip packages of your Python}" "请安装：${packages:-所用 Python 的 venv 与 pip 软件包}" \
            "$or_uv" "$or_uv_zh"
    fi
    if [ -n "$old" ]; then
        what="Python $old is here, but bringup needs Python 3.10 or newer, and there is no uv."
        what_zh="此处的 Python 是 $old，而 bringup 需要 3.10 或更新版本，也没有 uv。"
        if [ "$family" = debian ]; then # its archive has no newer one beside the old one
            refuse "$what" "$what_zh" "install uv, which brings its own Python and needs no root:  $install_uv" \
                "请安装 uv（自带 Python，无需 root）：$install_uv"
        fi
    else
        what='There is neither Python 3 nor uv on this machine.'
        what_zh='这台机器上既没有 Python 3，也没有 uv。'
    fi
    refuse "$what" "$what_zh" "install Python:  ${packages:-Python 3.10 or newer, with venv and pip}" \
        "请安装 Python：${packages:-3.10 或更新版本，含 venv 与 pip}" "$or_uv" "$or_uv_zh"
}

proxy_in_use() { # sets proxy_name and proxy_shown (without a password): the first proxy setting that an HTTPS index meets
    proxy_name=''
    for proxy_name in https_proxy HTTPS_PROXY ALL_PROXY all_proxy http_proxy HTTP_PROXY; do
        eval "proxy_shown=\${$proxy_name:-}"
        [ -z "$proxy_shown" ] || break
        proxy_name=''
    done
    if [ -z "$proxy_name" ]; then
        proxy_shown=$(pip_setting proxy)
        [ -z "$proxy_shown" ] || proxy_name="pip's setting proxy"
    fi
    case $proxy_shown in
        *@*) proxy_shown="${proxy_shown%%//*}//***@${proxy_shown##*@}" ;;
    esac
}

disk_is_full() { # FOLDER: succeeds when less than 20 MB is left there; what the installer would have said had no room either
    left=$(df -Pk "$1" 2>/dev/null | { read -r _ && read -r _ _ _ left _ && echo "$left"; })
    case $left in '' | *[!0-9]*) return 1 ;; esac
    [ "$left" -lt 20480 ]
}

explain_failure() { # LOG: says why an installer failed, and what to set
    text=$(tail -c 30000 "$1")
    index=$(pip_setting index-url)
    index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-${index:-https://pypi.org/simple}}}
    case $index in *@*) index="${index%%//*}//***@${index##*@}" ;; esac
    proxy_in_use
    if disk_is_full "$base"; then text='No space left on device'; fi
    case $text in
        *'No space left on device'* | *'os error 28'* | *'Disk quota exceeded'* | *'os error 122'*)
            refuse "The disk is full below $base." "$base 所在磁盘已满。" \
                'free 200 MB there, or set BRINGUP_CACHE to a folder with room' '请在该处腾出 200 MB，或将 BRINGUP_CACHE 设为有空间的目录' ;;
        *'ensurepip is not available'* | *'No module named ensurepip'* | *'No module named venv'* | *"No module named 'ensurepip'"*)
            split=${version:-3}
            refuse_without_python ;;
        *'ertificate verify failed'* | *CERTIFICATE_VERIFY_FAILED* | *'invalid peer certificate'* | *UnknownIssuer* | *'TLS CA'*)
            read_distribution
            refuse "The certificate of the package index ($index) is not trusted here." "软件包索引（$index）的证书在此不受信任。" \
                'behind a company proxy, set SSL_CERT_FILE and PIP_CERT to its CA file (PEM); otherwise install ca-certificates and check the clock' \
                '若经公司代理，请将 SSL_CERT_FILE 与 PIP_CERT 设为其 CA 文件（PEM）；否则请安装 ca-certificates 并检查系统时间' ;;
    esac
    case $text in
        *[Pp]roxy* | *tunnel* | *'error sending request'* | *onnect* | *'timed out'* | *'dns error'* | *resol* | *'from versions: none'*)
            if [ -n "$proxy_name" ]; then
                refuse "The proxy that $proxy_name names ($proxy_shown) does not let us reach the package index ($index)." \
                    "$proxy_name 指定的代理（$proxy_shown）无法访问软件包索引（$index）。" \
                    "correct or unset $proxy_name" "请更正或取消 $proxy_name"
            fi ;;
    esac
    case $text in
        *'error sending request'* | *'dns error'* | *'onnection'* | *'timed out'* | *'name resolution'* | *'unreachable'* | *'Failed to fetch'* | *'from versions: none'*)
            if [ "${python_wanted:-}" = download ]; then
                what="${old:+Python $old is too old, and }uv could not download a newer Python (no network, or its server is blocked)."
                what_zh="${old:+Python $old 版本过旧，}uv 无法下载新版 Python（无网络或其服务器被屏蔽）。"
                read_distribution
                case $family in
                    rhel) hint="${sudo}dnf install python3.11" ;;
                    suse) hint="${sudo}zypper install python311" ;;
                    *) hint='install Python 3.10 or newer, or set UV_PYTHON_INSTALL_MIRROR' ;;
                esac
                refuse "$what" "$what_zh" "$hint" "$hint"
            fi
            refuse "The package index ($index) cannot be reached." "无法访问软件包索引（$index）。" \
                'connect this machine, set HTTPS_PROXY=http://HOST:PORT, or name a mirror with PIP_INDEX_URL=URL' \
                '请联网，或设置 HTTPS_PROXY=http://主机:端口，或用 PIP_INDEX_URL=URL 指定镜像' \
                'without any network, copy bringup.pyz here: it carries everything (see README)' '完全离线时，请拷贝 bringup.pyz：它自带一切（见 README）' ;;
    esac
    tail -n 12 "$1" >&2
    refuse "The private environment could not be made; the lines above are the installer's ($1)." \
        "无法建立私有环境；以上为安装程序的输出（$1）。"
}

# --- what pip was told holds for uv too -------------------------------------------------------------------

ini_value() { # FILE KEY: prints the value of KEY in [install], else in [global]; lines of one value become words
    section='' wanted='' in_global='' in_install='' tab='	'
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
            '' | '#'* | ';'*) continue ;;
            [' '"$tab"]*)
                [ -n "$wanted" ] && eval "in_$section=\"\$in_$section \$line\""
                continue ;;
            '['*)
                section=${line#?}
                section=${section%%]*}
                wanted=''
                continue ;;
        esac
        wanted=''
        name=${line%%[=:]*}
        name=$(printf %s "$name" | tr 'A-Z_' 'a-z-' | tr -d " $tab")
        case $section:${name#--} in
            "global:$2" | "install:$2")
                wanted=yes
                value=${line#*[=:]}
                eval "in_$section=\$value" ;;
        esac
    done <"$1"
    printf '%s\n' "${in_install:-$in_global}"
}

words() { # joins the words of its input with one blank
    set -f
    # shellcheck disable=SC2046,SC2116  # splitting is the purpose
    set -- $(cat)
    set +f
    printf '%s' "$*"
}

pip_setting() { # NAME: prints what pip would use for NAME, or nothing: PIP_NAME, else the configuration files, the last one wins
    variable=PIP_$(printf %s "$1" | tr 'a-z-' 'A-Z_')
    eval "found=\${$variable:-}"
    if [ -z "$found" ] && [ "${PIP_CONFIG_FILE:-}" != /dev/null ]; then
        set -f
        saved_ifs=$IFS
        IFS=:
        # shellcheck disable=SC2086  # splitting is the purpose
        set -- "$1" ${XDG_CONFIG_DIRS:-/etc/xdg}
        IFS=$saved_ifs
        set +f
        setting=$1
        shift
        for folder in "$@"; do
            set -- "$@" "$folder/pip/pip.conf"
            shift
        done
        set -- "$@" /etc/pip.conf
        if [ -r "${PIP_CONFIG_FILE:-}" ]; then
            set -- "$@" "$PIP_CONFIG_FILE"
        else
            set -- "$@" "$HOME/.pip/pip.conf" "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf"
        fi
        for conf in "$@"; do
            [ -r "$conf" ] || continue
            one=$(ini_value "$conf" "$setting" | words)
            found=${one:-$found}
        done
    fi
    printf '%s' "$found" | words
}

present() { # WORDS: prints those that are not a local path or file: URL without a file behind it
    set -f
    # shellcheck disable=SC2086  # splitting is the purpose
    set -- $1
    set +f
    for place in "$@"; do
        case $place in
            file://*) [ -e "${place#file://}" ] && printf '%s ' "$place" ;;
            *://*) printf '%s ' "$place" ;;
            *) [ -e "$place" ] && printf '%s ' "$place" ;;
        esac
    done | words
}

give() { # NAME VALUE: exports NAME unless it is set already or VALUE is empty
    eval "already=\${$1:-}"
    [ -n "$already" ] || [ -z "$2" ] || { eval "$1=\$2" && export "${1?}"; }
}

teach_uv() { # uv reads no pip.conf and carries its own certificates: exports what makes it work where pip works
    export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 UV_NO_PROGRESS=1
    give SSL_CERT_FILE "$(pip_setting cert)"
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_INDEX:-}${UV_EXTRA_INDEX_URL:-}" ]; then
        give UV_DEFAULT_INDEX "$(pip_setting index-url)"
        extra=$(present "$(pip_setting extra-index-url)")
        give UV_INDEX "$extra"
        [ -z "$extra" ] || give UV_INDEX_STRATEGY unsafe-best-match # pip too takes the best of all indexes
    fi
    give UV_FIND_LINKS "$(present "$(pip_setting find-links)" | tr ' ' ,)"
    give UV_CONSTRAINT "$(present "$(pip_setting constraint)")"
    give UV_INSECURE_HOST "$(pip_setting trusted-host)"
    proxy=$(pip_setting proxy)
    [ -n "${https_proxy:-}${HTTPS_PROXY:-}${ALL_PROXY:-}${all_proxy:-}" ] || give ALL_PROXY "$proxy"
    case $(pip_setting no-index) in
        1 | [Tt]rue | yes | on) offline=--no-index ;;
        *) offline='' ;;
    esac
}

# --- who can make an environment --------------------------------------------------------------------------

find_uv() { # sets uv: a uv that answers, or ''
    for uv in "$(command -v uv)" "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv"; do
        [ -n "$uv" ] && [ -x "$uv" ] && "$uv" --version >/dev/null 2>&1 && return
    done
    uv=''
}

probe='import os, sys
version = "%d.%d" % sys.version_info[:2]
kind = "good"
try:
    import ensurepip, venv
except ImportError:
    kind = "split"
if sys.version_info < (3, 10):
    kind = "old" if kind == "good" else "older"
print(kind, version, os.path.realpath(sys.executable))'

find_python() { # sets python (3.10 or newer, with venv), split_python (without), old_python (older, with venv), and split, old: versions
    python='' split_python='' old_python='' split='' old='' version=''
    for candidate in ${BRINGUP_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 python}; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        answer=$("$candidate" -I -c "$probe" 2>/dev/null) || answer=''
        case $answer in
            good\ * | split\ * | old\ * | older\ *) ;;
            *) # not a Python that runs a program; it may still say which one it is
                answer=$("$candidate" --version 2>/dev/null)
                case $answer in
                    Python\ 3.[0-9].* | Python\ 3.[0-9]) answer="older ${answer#Python } -" ;;
                    Python\ 3.*) answer="split ${answer#Python } -" ;;
                    *) continue ;;
                esac ;;
        esac
        kind=${answer%% *}
        answer=${answer#* }
        case $kind in
            good)
                version=${answer%% *}
                python=${answer#* }
                return ;;
            split)
                split=${split:-${answer%% *}}
                [ "${answer#* }" = - ] || split_python=${split_python:-${answer#* }} ;;
            *)
                old=${old:-${answer%% *}}
                [ "$kind" = older ] || old_python=${old_python:-${answer#* }} ;;
        esac
    done
}

bootstrap_uv() { # FOLDER: an old Python with venv can still fetch uv, and uv a newer Python; sets uv when that worked
    [ -n "$old_python" ] || return
    "$old_python" -I -m venv "$1" && "$1/bin/python" -I -m pip install -q uv && uv=$1/bin/uv && "$uv" --version
}

install_with_uv() { # ENV WHAT...: an environment by uv, with the packages WHAT
    target=$1
    shift
    if [ -n "$python$split_python" ]; then
        "$uv" venv --no-project --python "${python:-$split_python}" "$target" || return
    else
        python_wanted=download
        "$uv" venv --no-project --python "${BRINGUP_PYTHON:->=3.10,<3.15}" --python-preference only-managed "$target" || return
        python_wanted=''
    fi
    # shellcheck disable=SC2086  # one option or none
    "$uv" pip install $offline --compile-bytecode --python "$target/bin/python" "$@"
}

install_with_pip() { # ENV WHAT...: an environment by venv, with the packages WHAT
    target=$1
    shift
    "$python" -I -m venv "$target" || return
    case $* in
        *--group*) "$target/bin/python" -I -m pip install -q --upgrade 'pip>=25.1' || return ;; # older ones know no groups
    esac
    "$target/bin/python" -I -m pip install --no-input "$@"
}

make_environment() { # ENV LOG WHAT...: makes ENV with the packages WHAT, or says what is missing and exits 3
    made=$1
    log=$2
    shift 2
    offline='' python_wanted=''
    export PIP_USER=0 PIP_RETRIES="${PIP_RETRIES:-2}" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_WARN_SCRIPT_LOCATION=1
    unset PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV UV_SYSTEM_PYTHON UV_PROJECT_ENVIRONMENT PIP_TARGET PIP_PREFIX
    find_uv
    find_python
    : >"$log"
    if [ -z "$uv$python" ] && [ -n "$old_python" ]; then
        tell "Python $old is too old for bringup; fetching uv, which brings a newer one" "Python $old 版本过旧，正在获取 uv（自带新版 Python）"
    fi
    if [ -z "$uv$python" ] && ! bootstrap_uv "$made-uv" >>"$log" 2>&1; then
        rm -rf "$made-uv"
        refuse_without_python
    fi
    if [ -n "$uv" ]; then
        teach_uv
        install_with_uv "$made" "$@" >>"$log" 2>&1 </dev/null || explain_failure "$log"
    else
        install_with_pip "$made" "$@" >>"$log" 2>&1 </dev/null || explain_failure "$log"
    fi
    rm -rf "$made-uv"
}
