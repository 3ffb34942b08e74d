//! `capstan serve`: serves all servers to other programs at one endpoint.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use capstan_app::{AppError, ErrorKind, Selection, Setup};
use capstan_config::{Auth, Confirm, Gateway, Problem};
use capstan_hub::Hub;
use capstan_hub::catalog::{Ask, Gathered, Patience};
use capstan_hub::ports::Listing;
use capstan_model::{Caller, Expose};
use capstan_text::clean::one_line;
use capstan_text::screen::{stderr_is_terminal, stderr_width, stdin_is_terminal};
use capstan_text::table::table;
use serde_json::json;

use crate::args::{LogFormat, ServeArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::log_as_json;
use crate::serving::{Face, HttpFace, Protection, Ready, Serving, TlsFiles};

/// The default address to listen on.
pub(super) const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Maximum number of tools that are shown.
const SHOWN: usize = 20;

/// Time to wait for the tools that are shown at the start.
const ANNOUNCE_WAIT: Duration = Duration::from_secs(2);

/// Maximum width of a description, in columns.
const DESCRIPTION: usize = 72;

pub(crate) async fn run(context: &Context, args: &ServeArgs) -> Result<Exit, AppError> {
    if args.log_format == LogFormat::Json {
        log_as_json();
    }
    let expose = args.expose.map(Expose::from);
    let selection = Selection { expose, ..context.selection.clone() };
    let setup = context.setup_of(&selection)?;
    let face = match &args.http {
        None => Face::Stdio { confirm: args.confirm.map(Confirm::from) },
        Some(address) => Face::Http(http(&setup, address.as_deref(), args)?),
    };
    if args.http.is_none() && stdin_is_terminal() {
        context.print.note("serving one client on stdin and stdout, until Ctrl-D");
        context.print.hint("`capstan serve --http` listens on an address instead");
    }
    let public_url = setup.loaded.config.gateway.public_url.clone();
    let serving = Serving {
        face,
        stop: || Box::pin(crate::interrupted()),
        ready: Box::new(move |ready| Box::pin(announce(context, ready, public_url))),
    };
    context.app.serve.serve(&setup, &selection, serving).await?;
    Ok(Exit::Ok)
}

/// The HTTP settings, from the command line, else from the configuration.
fn http(setup: &Setup, address: Option<&str>, args: &ServeArgs) -> Result<HttpFace, AppError> {
    refuse_unsupported(setup)?;
    let gateway = &setup.loaded.config.gateway;
    let listen = match address {
        Some(address) => parse(address)?,
        None => configured(setup)?,
    };
    let metrics = match &gateway.metrics_listen {
        Some(address) => Some(parse(address).map_err(|failure| at("metrics_listen", failure))?),
        None => None,
    };
    if gateway.auth.as_ref().is_none_or(Auth::is_open) {
        refuse_exposed(listen, args)?;
    }
    // The metrics are public at an address of their own.
    if let Some(metrics) = metrics {
        refuse_exposed(metrics, args)?;
    }
    Ok(HttpFace { listen, metrics, insecure: args.insecure, tls: tls(gateway, args) })
}

/// Refuses an address that other machines can reach, unless the command line allows it.
fn refuse_exposed(address: SocketAddr, args: &ServeArgs) -> Result<(), AppError> {
    if address.ip().to_canonical().is_loopback() || args.insecure {
        return Ok(());
    }
    let message =
        format!("{address} can be reached from other machines, and callers are not authenticated");
    Err(AppError::usage(message).hint(
        "authenticate callers with `[gateway.auth]`; or listen on 127.0.0.1, behind a proxy that \
         does; or add `--insecure` to give everyone who can reach the address access to all \
         servers",
    ))
}

/// The configured address to listen on.
pub(super) fn configured(setup: &Setup) -> Result<SocketAddr, AppError> {
    let address = &setup.loaded.config.gateway.listen;
    parse(address).map_err(|failure| at("listen", failure))
}

/// Adds the configuration key to an error about its address.
fn at(key: &str, failure: AppError) -> AppError {
    let message = format!("`gateway.{key}`: {}", failure.message);
    AppError { message, kind: ErrorKind::Config, ..failure }
}

/// Refuses unsupported keys: a file that requires auth must not lead to a gateway without it.
fn refuse_unsupported(setup: &Setup) -> Result<(), AppError> {
    let unsupported = setup.loaded.gateway.iter().filter(|problem| setup.counts(problem));
    let problems: Vec<Problem> = unsupported.cloned().collect();
    if problems.is_empty() {
        return Ok(());
    }
    let failure = AppError::problems(problems, setup.files.to_vec());
    let message =
        "the configuration asks for restrictions that this gateway does not support".to_owned();
    Err(AppError { message, ..failure })
}

fn tls(gateway: &Gateway, args: &ServeArgs) -> Option<TlsFiles> {
    let files = |cert: &PathBuf, key: &PathBuf| TlsFiles { cert: cert.clone(), key: key.clone() };
    match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(files(cert, key)),
        _ => match (&gateway.tls_cert, &gateway.tls_key) {
            (Some(cert), Some(key)) => Some(files(&cert.into(), &key.into())),
            _ => None,
        },
    }
}

/// Parses an address: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080`, `8080`, `0.0.0.0`.
pub(super) fn parse(text: &str) -> Result<SocketAddr, AppError> {
    let text = text.trim();
    let here = |port: &str| port.parse().ok().map(|port| SocketAddr::new(USUAL.ip(), port));
    let local = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    let alone = |text: &str| text.parse().ok().map(|ip| SocketAddr::new(ip, USUAL.port()));
    let address = text.parse().ok().or_else(|| here(local)).or_else(|| alone(text));
    let address = address.or_else(|| (text == "localhost").then_some(USUAL));
    address.ok_or_else(|| {
        AppError::usage(format!("`{text}` is not an address to listen on"))
            .hint("write `127.0.0.1:8080`, `:8080` for a port of this machine, or `:0` for any")
    })
}

/// Prints the address of the gateway and, on a terminal or with `--demo`, its tools and how to use
/// it.
async fn announce(context: &Context, ready: Ready, public_url: Option<String>) {
    let address = ready.exposed.as_ref().unwrap_or(&ready.url);
    context.print.note(&format!("listening on {address}"));
    if let Some(metrics) = &ready.metrics {
        context.print.note(&format!("metrics at {metrics}"));
    }
    tell_protection(context, &ready);
    if !stderr_is_terminal() && !context.selection.demo {
        return;
    }
    let hub = &ready.hub;
    let patience = Patience::UntilFirstOr(ANNOUNCE_WAIT);
    let gathered = hub.gather_from(Listing::Tools, patience, &|_| Ask::Glance).await;
    let tools = hub.visible_tools(&gathered, &Caller::anonymous());
    let rows: Vec<Vec<String>> = tools
        .iter()
        .take(SHOWN)
        .map(|tool| {
            let first = tool.description.lines().next().unwrap_or_default();
            vec![tool.id.to_string(), tool.effect.as_str().to_owned(), one_line(first, DESCRIPTION)]
        })
        .collect();
    if !rows.is_empty() {
        let headers = ["TOOL", "EFFECT", "DESCRIPTION"];
        context.print.note(&format!("\n{}", table(&headers, &rows, stderr_width())));
    }
    if let Some(more) = tools.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        context.print.note(&format!("… and {more} more; `capstan tools` shows all"));
    }
    tell_pending(context, &gathered);
    tell_how(context, hub, &public_url.as_deref().map_or(ready.url, endpoint));
}

/// Prints who may connect.
fn tell_protection(context: &Context, ready: &Ready) {
    let Protection { ways, encrypted } = &ready.protection;
    if ways.is_empty() {
        if ready.exposed.is_some() {
            context.print.warning("everyone who can reach this address can use all servers");
        }
        return;
    }
    context.print.note(&format!("callers authenticate with {}", ways.join(", or ")));
    if ready.exposed.is_some() && !encrypted {
        context.print.warning("tokens travel unencrypted to this address");
        context
            .print
            .hint("set `gateway.tls_cert` and `tls_key`, or put a proxy with TLS in front");
    }
}

/// Warns about servers that have not answered yet; failed servers are reported in the log.
fn tell_pending(context: &Context, gathered: &Gathered) {
    let names: Vec<String> = gathered.pending.iter().map(|name| format!("`{name}`")).collect();
    if !names.is_empty() {
        context.print.warning(&format!("no answer yet from {}", names.join(", ")));
    }
}

/// Prints how to configure clients for the gateway.
fn tell_how(context: &Context, hub: &Hub, url: &str) {
    let server = json!({ "mcpServers": { "capstan": { "type": "http", "url": url } } });
    let text = serde_json::to_string_pretty(&server).unwrap_or_default();
    context.print.note(&format!("\nfor the configuration of a client:\n\n{text}\n"));
    context.print.note("or, for Claude Code:\n");
    context.print.note(&format!("  claude mcp add --transport http capstan {url}\n"));
    if let Some(server) = hub.servers().next()
        && let Some(base) = url.strip_suffix("/mcp")
    {
        context.print.note(&format!("a single server is at {base}/servers/{server}/mcp"));
    }
    context.print.note("stop with Ctrl-C");
}

/// The endpoint for a URL that may or may not include its path.
pub(super) fn endpoint(url: &str) -> String {
    let base = url.trim_end_matches('/');
    if base.ends_with("/mcp") { base.to_owned() } else { format!("{base}/mcp") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_can_be_written_in_many_ways_and_is_of_this_machine_unless_it_says_otherwise() {
        for (text, expected) in [
            ("127.0.0.1:9090", "127.0.0.1:9090"),
            (":9090", "127.0.0.1:9090"),
            ("9090", "127.0.0.1:9090"),
            (":0", "127.0.0.1:0"),
            ("localhost:9090", "127.0.0.1:9090"),
            ("localhost", "127.0.0.1:8080"),
            ("0.0.0.0", "0.0.0.0:8080"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:1", "[::1]:1"),
            ("::1", "[::1]:8080"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", ":", "example.com:80", ":99999", "http://127.0.0.1:80", "1.2.3:4", "-1"] {
            assert_eq!(parse(text).unwrap_err().kind, ErrorKind::Usage, "{text}");
        }
    }

    #[test]
    fn a_public_address_need_not_name_the_endpoint() {
        for url in ["https://h", "https://h/", "https://h/mcp", "https://h/mcp/"] {
            assert_eq!(endpoint(url), "https://h/mcp", "{url}");
        }
    }
}
