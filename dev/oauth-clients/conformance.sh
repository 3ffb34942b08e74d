#!/usr/bin/env bash
# Runs the authorization scenarios of the conformance suite against the gateway's own authorization server, and agrees
# on the consent page in a headless Chromium. Called by `./dev/conformance authorization`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. dev/need.sh
. dev/oauth-clients/run.sh

SCENARIOS=(authorization-server-metadata-endpoint authorization-code-grant)

main() {
    need_npm conformance "${NPM[@]}"
    prepare
    start_with_users
    local issuer=${url%/mcp} callback client scenario passed=0 failed=0
    callback=$(free_port)
    client=$("$node" -e '
        const [issuer, port] = process.argv.slice(1);
        const body = JSON.stringify({ client_name: "Conformance", redirect_uris: [`http://127.0.0.1:${port}/callback`] });
        fetch(`${issuer}/register`, { method: "POST", body, headers: { "content-type": "application/json" } })
            .then((answer) => answer.json()).then((client) => console.log(client.client_id));' "$issuer" "$callback")
    agree "$work/log" &
    started+=($!)
    "$node" .dev/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js authorization --url "$issuer" \
        --client-id "$client" --resource "$url" --port "$callback" --output-dir "$work/checks" >"$work/log" 2>&1 || true
    echo "=== authorization ==="
    for scenario in "${SCENARIOS[@]}"; do
        if is_passed "$scenario"; then
            printf '%-7s %s\n' passed "$scenario"
            passed=$((passed + 1))
        else
            printf '%-7s %s\n' FAILED "$scenario"
            failed=$((failed + 1))
        fi
    done
    [[ $failed == 0 ]] || sed 's/^/        /' "$work/log"
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [[ $failed == 0 ]]
}

# agree LOG: opens the page that the suite prints, when it does.
agree() {
    local tenth page
    for ((tenth = 0; tenth < PATIENCE; tenth++)); do
        page=$(sed -n 's/^\(http[^ ]*\/authorize?[^ ]*\).*/\1/p' "$1" 2>/dev/null | head -n 1)
        if [[ -n $page ]]; then
            PERSON=ann PASSWORD=$password "$node" dev/oauth-clients/browser.mjs "$page"
            return
        fi
        sleep 0.1
    done
}

# is_passed SCENARIO: whether it has a check, and every one succeeded.
is_passed() {
    "$node" -e '
        const { globSync, readFileSync } = require("fs");
        const [folder, scenario] = process.argv.slice(1);
        const checks = globSync(`${folder}/**/*${scenario}*/**/checks.json`).flatMap((at) => JSON.parse(readFileSync(at)));
        process.exit(checks.length > 0 && checks.every(({ status }) => status === "SUCCESS") ? 0 : 1);' "$work/checks" "$1"
}

main "$@"
