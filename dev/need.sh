# Sourced by the scripts beside it: sees to the tools of the system that they need.

# need COMMAND PACKAGE: installs the Debian package when the command is missing.
need() {
    command -v "$1" >/dev/null 2>&1 || install_package "$2"
}

# install_package PACKAGE: as root, or through sudo where there is one.
install_package() {
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "error: \`$1\` is missing, and there is no apt-get to install it with" >&2
        return 1
    fi
    echo "installing $1" >&2
    if [[ $(id -u) == 0 ]]; then
        apt_install "$1"
    elif command -v sudo >/dev/null 2>&1; then
        apt_install "$1" sudo
    else
        echo "error: \`$1\` is missing; run \`apt-get install $1\` as root" >&2
        return 1
    fi
}

# apt_install PACKAGE [sudo]: the lists are fetched only when the package is not in them.
apt_install() {
    local as_root=(${2:+"$2"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -y)
    "${as_root[@]}" install --no-install-recommends "$1" >&2 || {
        "${as_root[@]}" update >&2
        "${as_root[@]}" install --no-install-recommends "$1" >&2
    }
}

# need_nextest: builds it when it is missing, which takes minutes.
need_nextest() {
    cargo nextest --version >/dev/null 2>&1 && return
    echo "installing cargo-nextest" >&2
    cargo install cargo-nextest --locked
}

# need_npm FOLDER PACKAGE...: installs these very versions into `.dev/FOLDER`, unless they are there.
need_npm() {
    # Written last, so that an installation that broke off is begun again.
    local prefix=.dev/$1 stamp=.dev/$1/stamp wanted
    shift
    wanted=$(printf '%s\n' "$@")
    [[ -e $stamp && $(<"$stamp") == "$wanted" ]] && return
    need npm npm
    rm -rf "$prefix"
    mkdir -p "$prefix"
    echo "installing $*" >&2
    npm install --prefix "$prefix" --no-audit --no-fund --loglevel error "$@" >&2
    printf '%s\n' "$wanted" >"$stamp"
}
