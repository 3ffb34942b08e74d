//! The networks in which a new server may be reached: only addresses that a person types or
//! confirms.

use std::net::IpAddr;

use capstan_app::{AppError, UrlAddresses};
use capstan_config::edit::{NewServer, NewTarget};
use capstan_model::ServerName;
use capstan_safety::address::{AddressClass, AddressPolicy, AddressRefusal, Loopback, Network};
use capstan_text::screen::stdin_is_terminal;

use crate::context::Context;

/// Allows the addresses behind the URL of a server that a person adds: a literal address because it
/// was typed, the addresses of a name after a question.
///
/// # Errors
/// If an address cannot be allowed this way, or if no person can be asked.
pub(super) async fn allow(
    context: &Context,
    name: &str,
    server: &mut NewServer,
) -> Result<(), AppError> {
    // The values of variables are not known here.
    let Some(url) = url_of(server).filter(|url| !url.contains("${")) else { return Ok(()) };
    let check = |address: &IpAddr| {
        let (server, networks) = (ServerName::from_display(name), server.networks.clone());
        let policy = AddressPolicy { server, networks, ..AddressPolicy::default() };
        policy.check(*address, Loopback::Refused).err()
    };
    let (host, refusals): (_, Vec<AddressRefusal>) =
        match context.app.addresses.addresses(url).await? {
            UrlAddresses::Here => return Ok(()),
            UrlAddresses::Literal(address) => (None, check(&address).into_iter().collect()),
            UrlAddresses::Name(name, found) => {
                (Some(name), found.iter().filter_map(check).collect())
            }
        };
    if refusals.is_empty() {
        return Ok(());
    }
    for refusal in &refusals {
        let refusal = AddressRefusal { name: host.clone(), ..refusal.clone() };
        possible(&refusal)?;
    }
    let networks: Vec<Network> =
        refusals.iter().map(|refusal| Network::single(refusal.address)).collect();
    let listed: Vec<String> = networks.iter().map(Network::to_string).collect();
    if let Some(host) = &host {
        confirm(context, host, &listed)?;
    }
    let line = listed.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
    context.print.note(&format!(
        "{} is not public; the entry gets `networks = [{line}]`, which allows only this",
        listed.join(", ")
    ));
    server.networks.extend(networks);
    Ok(())
}

/// Refuses an entry from a third party if its URL leads to this machine or into a private network.
///
/// # Errors
/// If it does.
pub(super) async fn refuse_private(context: &Context, server: &NewServer) -> Result<(), AppError> {
    let Some(url) = url_of(server) else { return Ok(()) };
    let hint = "if the address is right, add it yourself: `capstan add NAME URL`";
    if place_of(url).contains("${") {
        let reason = "its host depends on a variable";
        return Err(blocked(format!("its address is refused: {reason}")).hint(hint));
    }
    let refusal = |address| AddressPolicy::default().check(address, Loopback::Refused).err();
    let reason = match context.app.addresses.addresses(url).await? {
        UrlAddresses::Here => Some("it leads to this machine".to_owned()),
        UrlAddresses::Literal(address) => refusal(address).map(|refusal| refusal.to_string()),
        // The check at connection time decides.
        UrlAddresses::Name(..) => None,
    };
    let Some(reason) = reason else { return Ok(()) };
    Err(blocked(format!("its address is refused: {reason}")).hint(hint))
}

/// The part of a URL that decides which server it leads to: scheme, login, host and port.
///
/// For a text that is not a plain URL, the whole text.
fn place_of(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return url };
    // URL parsers skip additional slashes and control characters here.
    let skipped = |sign: char| matches!(sign, '/' | '\\') || sign.is_ascii_control();
    let authority = rest.trim_start_matches(skipped);
    let tail = authority.find(['/', '?', '#', '\\']).map_or(0, |end| authority.len() - end);
    url.get(..url.len() - tail).unwrap_or(url)
}

/// The URL of a server, if it has one.
fn url_of(server: &NewServer) -> Option<&str> {
    match &server.target {
        NewTarget::Http(remote) | NewTarget::Sse(remote) => Some(remote.url.as_str()),
        NewTarget::OpenApi(api) => Some(api.document.as_str()).filter(|url| url.contains("://")),
        NewTarget::Stdio(_) | NewTarget::Cli(_) => None,
    }
}

/// Parses the networks that `--network` names.
///
/// # Errors
/// If one is invalid or link-local; a link-local network must be written to the file by hand.
pub(super) fn read(texts: &[String]) -> Result<Vec<Network>, AppError> {
    let read = |text: &String| {
        let network: Network =
            text.parse().map_err(|error| AppError::usage(format!("`--network {text}` {error}")))?;
        if network.is_only(AddressClass::LinkLocal) {
            return Err(blocked(format!("{network} is link-local"))
                .hint(format!("write `networks = [\"{network}\"]` into the file yourself")));
        }
        Ok(network)
    };
    texts.iter().map(read).collect()
}

/// Checks whether a command may allow a refused address.
fn possible(refusal: &AddressRefusal) -> Result<(), AppError> {
    match refusal.class {
        AddressClass::Public | AddressClass::Private => Ok(()),
        AddressClass::Loopback => {
            let address = refusal.address;
            let message = match &refusal.name {
                Some(name) => format!("`{name}` resolves to {address}, which is this machine"),
                None => format!("{address} is another spelling of this machine"),
            };
            Err(blocked(message).hint("write `127.0.0.1`, `[::1]` or `localhost`"))
        }
        AddressClass::LinkLocal => {
            Err(blocked(refusal.to_string()).hint("add the server to the file by hand"))
        }
    }
}

/// Asks the person to confirm the addresses of a name.
fn confirm(context: &Context, host: &str, addresses: &[String]) -> Result<(), AppError> {
    let found = addresses.join(", ");
    let message = format!("`{host}` resolves to {found}, which is not public");
    if !stdin_is_terminal() {
        let flags: Vec<String> = addresses.iter().map(|one| format!("--network {one}")).collect();
        return Err(blocked(message).hint(format!("to allow it, add `{}`", flags.join(" "))));
    }
    context.print.note(&message);
    let question = "Allow the server to be reached there?";
    match inquire::Confirm::new(question).with_default(false).prompt() {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(blocked("not added".to_owned())),
    }
}

fn blocked(message: String) -> AppError {
    AppError::denied(message)
}
