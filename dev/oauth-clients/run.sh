# Sourced by dev/oauth and dev/conformance: starts a gateway with its own authorization server.

NPM=(
    @modelcontextprotocol/conformance@0.2.0-alpha.12
    node@22.23.3
)
PROFILE=ci
# How many tenths of a second the gateway may take until it listens.
PATIENCE=300

# prepare: builds the gateway, and adds a user to an empty home.
prepare() {
    need chromium chromium
    need nginx nginx
    need openssl openssl
    if [[ -z ${CAPSTAN_BIN:-} ]]; then
        # As ./dev/test builds it, so that nothing is built twice.
        CARGO_INCREMENTAL=0 cargo build --quiet --profile "$PROFILE" --locked --workspace --bins
        CAPSTAN_BIN=target/$PROFILE/capstan
    fi
    capstan=$(realpath "$CAPSTAN_BIN")
    node=$PWD/.dev/conformance/node_modules/node/bin/node
    work=$(mktemp -d)
    started=()
    trap 'stop; rm -rf "$work"' EXIT
    mkdir -p "$work/home"
    password=$(openssl rand -hex 12)
    as_operator user add ann --role dev <<<"$password" 2>/dev/null
}

# as_operator ARGUMENT...: runs `capstan` in a home of its own.
as_operator() {
    env -i "PATH=$PATH" "HOME=$work/home" "$capstan" "$@"
}

# start_with_users: sets url to a gateway at which users type a password.
start_with_users() {
    port=$(free_port)
    start_gateway "http://127.0.0.1:$port" "$port" ""
}

# start_with_proxy: sets url to nginx before a gateway, which names the user.
start_with_proxy() {
    local front
    port=$(free_port)
    front=$(free_port)
    start_gateway "http://127.0.0.1:$front" "$port" 'trusted_source_cidrs = ["127.0.0.1/32"]'
    mkdir -p "$work/nginx"
    cat >"$work/nginx/nginx.conf" <<END
daemon off;
pid $work/nginx/pid;
error_log $work/nginx/error.log;
events {}
http {
    access_log off;
    client_body_temp_path $work/nginx/body;
    proxy_temp_path $work/nginx/proxy;
    fastcgi_temp_path $work/nginx/fastcgi;
    uwsgi_temp_path $work/nginx/uwsgi;
    scgi_temp_path $work/nginx/scgi;
    server {
        listen 127.0.0.1:$front;
        location / {
            proxy_pass http://127.0.0.1:$port;
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_set_header Host \$http_host;
            # Whatever the client sends, the proxy alone names the user.
            proxy_set_header X-Forwarded-User ann;
            proxy_set_header X-Forwarded-Groups dev;
        }
    }
}
END
    nginx -c "$work/nginx/nginx.conf" -p "$work/nginx" 2>"$work/nginx/log" &
    started+=($!)
    wait_for "$front"
    url=http://127.0.0.1:$front/mcp
}

# start_gateway ISSUER PORT LINE
start_gateway() {
    cat >"$work/capstan.toml" <<END
[gateway]
listen = "127.0.0.1:$2"

[gateway.auth]
providers = ["oauth_as"]

[gateway.auth.oauth_as]
issuer_url = "$1"
redirect_uri_allowlist = ["http://127.0.0.1/*", "http://localhost/*"]
scopes_supported = ["mcp"]
$3

[servers.time]
command = "$capstan"
args = ["__demo", "time", "$work", "$work"]
END
    # Not through a function: its shell would be ended, and the gateway would go on.
    env -i "PATH=$PATH" "HOME=$work/home" "$capstan" serve --http --config "$work/capstan.toml" \
        </dev/null >"$work/gateway" 2>&1 &
    started+=($!)
    wait_for "$2"
    url=http://127.0.0.1:$2/mcp
}

# wait_for PORT: until something listens there.
wait_for() {
    local tenth
    for ((tenth = 0; tenth < PATIENCE; tenth++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    echo "error: nothing listens on port $1" >&2
    cat "$work/gateway" >&2
    return 1
}

# free_port: a port that nothing listens on now.
free_port() {
    "$node" -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

# stop: ends what was started, the last first.
stop() {
    local at
    for ((at = ${#started[@]} - 1; at >= 0; at--)); do
        kill "${started[at]}" 2>/dev/null || true
        wait "${started[at]}" 2>/dev/null || true
    done
    started=()
}
