# Sourced by dev/conformance: runs the suite against servers on other SDKs, directly and behind `capstan serve`.

# The servers. Each speaks both eras where its SDK can.
SDK_SERVERS=(typescript python-mcp python-fastmcp everything)
SDK_RUNS=("--requirements 2025-11-25" "--requirements 2026-07-28")
# Scenarios of extensions, of the newest revision, which the suite does not require and we do.
EXTENSIONS=(sep-2640-skills-enumeration sep-2640-skills-directory sep-2640-skills-manifest)

# Scenarios that pass directly and cannot pass behind Capstan: `SERVER REVISION WAY SCENARIO`, where WAY is the
# endpoint, `one` for `/servers/SERVER/mcp` and `all` for `/mcp`; `*` stands for any. docs/conformance.md has the
# reasons. A row that passes does not belong here.
SDK_DIFFERENT=(
    "everything 2025-11-25 * tools-call-simple-text"
    "everything 2025-11-25 * tools-call-error"
    "everything 2025-11-25 all resources-subscribe"
    "everything 2025-11-25 all resources-unsubscribe"
    "* 2025-11-25 * server-sse-polling"
)
# Those that Capstan is to carry and does not yet: rows as above, to be emptied.
SDK_DEFECTS=()

# run_sdk SERVER...: all of them side by side; what one does is in a log of its own until it is done.
run_sdk() {
    local name at running=()
    ./dev/servers >&2
    printf '%s\n' "${SDK_DIFFERENT[@]}" "${SDK_DEFECTS[@]}" >"$work/known"
    for run in "${sdk_runs[@]}"; do
        suite list --server "${run%% *}" "${run#* }" | scenarios server >"$work/scenarios-${run#* }"
        [[ $(era "${run#* }") == legacy ]] ||
            printf 'required %s\n' "${EXTENSIONS[@]}" >>"$work/scenarios-${run#* }"
    done
    for name in "$@"; do
        (
            started=()
            trap stop EXIT
            play_sdk "$name"
        ) >"$work/sdk-$name" 2>&1 &
        running+=($!)
    done
    for at in "${!running[@]}"; do
        wait "${running[at]}" || failed=$((failed + 1))
        name=${*:at+1:1}
        grep -v '^counts ' "$work/sdk-$name" || true
        while read -r _ more_passed more_failed more_known _; do
            passed=$((passed + more_passed)) failed=$((failed + more_failed))
            known=$((known + more_known))
        done < <(grep '^counts ' "$work/sdk-$name")
    done
}

# play_sdk SERVER: one run after the other, so that none meets what another one does at the server.
play_sdk() {
    local name=$1 run revision direct results
    start_sdk "$name" || return
    direct=$url
    start_gateway "$name" "$direct" || return
    local gateway=${url%/mcp}
    for run in "${sdk_runs[@]}"; do
        revision=${run#* } results=$work/results-$name-${run#* }
        url=$direct suite_sdk "$run" "$results/direct"
        url=$gateway/servers/$name/mcp suite_sdk "$run" "$results/one"
        url=$gateway/mcp suite_sdk "$run" "$results/all"
        printf '\n=== %s %s %s, behind capstan as directly ===\n' "$name" "${run%% *}" "$revision"
        "$home/node_modules/node/bin/node" dev/conformance-servers/compare.mjs "$name" "$revision" \
            "$work/scenarios-$revision" "$work/known" "$results/direct" \
            "one=$results/one" "all=$results/all"
    done
}

# suite_sdk RUN FOLDER: what failed is found there.
suite_sdk() {
    local scenario
    suite_server "${1%% *}" "${1#* }" "$2" || true
    [[ $(era "${1#* }") == modern ]] || return 0
    for scenario in "${EXTENSIONS[@]}"; do
        suite server --url "$url" --scenario "$scenario" --spec-version "${1#* }" --force --output-dir "$2" \
            >/dev/null 2>&1 || true
    done
}

# start_sdk SERVER: sets url to its endpoint.
start_sdk() {
    local here=dev/conformance-servers
    case $1 in
    typescript) start "$work/log-$1" env "SDK=$PWD/.dev/sdk" node "$here/typescript.mjs" ;;
    python-mcp) start "$work/log-$1" .dev/py/bin/python -B "$here/python_mcp.py" ;;
    python-fastmcp) start "$work/log-$1" .dev/py/bin/python -B "$here/python_fastmcp.py" ;;
    everything)
        # It would listen on every interface.
        start "$work/log-$1" env NOTES=/dev/null node -r ./capstan/tests/real_servers/loopback.cjs \
            .dev/npm/node_modules/.bin/mcp-server-everything streamableHttp && url=$url/mcp
        ;;
    esac
}

# start_gateway SERVER URL: `capstan serve` with everything as it is by default, but names as the suite calls them, and
# with another server beside, so that lists at `/mcp` are made of two. Sets url to its merged endpoint.
start_gateway() {
    local folder=$work/home-$1 beside=everything
    [[ $1 != everything ]] || beside=memory
    mkdir -p "$folder"
    cat >"$folder/capstan.toml" <<TOML
[servers.$1]
url = "$2"
naming = "bare"

[servers.beside]
command = "$PWD/.dev/npm/node_modules/.bin/mcp-server-$beside"

[permissions]
allow = ["*"]
TOML
    start "$work/capstan-$1" env -i "PATH=$PATH" "HOME=$folder" "${CAPSTAN_BIN:-$bin/capstan}" \
        serve --http 127.0.0.1:0 --config "$folder/capstan.toml"
}
