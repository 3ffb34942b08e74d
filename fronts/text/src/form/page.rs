//! Asks a person to visit an address, and shows where it leads. Capstan never opens it.
//!
//! A person decides by the host, so an address whose host two parsers could read differently
//! (`https://good\@evil`, hosts with `%`, numbers in unusual notations) is declined.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capstan_hub::ports::Reply;
use capstan_model::ServerName;
use capstan_safety::clean::clean;

use super::ask::{Decision, decide, say_message};
use super::prompt::{Closed, Prompter};
use crate::clean::one_line;
use crate::panel::{self, Seen};

/// Maximum length of an address that a refusal repeats.
const MAX_SHOWN: usize = 200;

/// The destination of an address.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    /// The host, with every character outside ASCII escaped.
    host: String,
    /// Warnings to show before the visit.
    warnings: Vec<&'static str>,
}

pub(super) fn visit(
    prompter: &mut dyn Prompter,
    server: &ServerName,
    message: &str,
    url: &str,
) -> Result<Reply, Closed> {
    prompter.say(&format!("`{server}` asks you to visit a page:"));
    if say_message(prompter, message)? == Seen::Refused {
        return Ok(Reply::Decline);
    }
    let Some(page) = Page::read(url) else {
        let (columns, _) = prompter.size();
        prompter.say(&panel::lines(&one_line(url, MAX_SHOWN), columns).join("\n"));
        prompter.say("declined: the host of this address cannot be determined reliably");
        return Ok(Reply::Decline);
    };
    prompter.say(&format!("host: {}", page.host));
    // Printed unbroken, so that it can be copied; it was checked above, and has no blanks to
    // imitate our output with.
    prompter.say(url);
    for warning in page.warnings {
        prompter.say(&format!("warning: {warning}"));
    }
    let question = format!("For `{server}`: have you finished there?");
    Ok(match decide(prompter, &question, "yes, I have finished")? {
        Decision::Yes => Reply::Accept(None),
        Decision::Decline => Reply::Decline,
        Decision::Cancel => Reply::Cancel,
    })
}

// === impl Page ===

impl Page {
    /// Parses an address; `None` if it is not certain where a browser would go.
    fn read(url: &str) -> Option<Self> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
        if clean(url) != url || url.contains(odd) {
            return None;
        }
        let (scheme, rest) = url.split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        // After the host, a well-formed address is ASCII; blanks of other scripts could pad it.
        if !rest.strip_prefix(authority)?.is_ascii() {
            return None;
        }
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let host = without_port(address)?.to_lowercase();
        let place = HostLocation::read(&host)?;
        let mut warnings = Vec::new();
        if user.is_some() {
            warnings.push("the text before the `@` is not the host");
        }
        if !host.is_ascii() || host.split('.').any(|label| label.starts_with("xn--")) {
            warnings.push("the host has letters that can look like others");
        }
        if !secure && place == HostLocation::Elsewhere {
            warnings.push("the connection is not encrypted; others can read what you enter");
        }
        Some(Self { host: spelled_out(&host), warnings })
    }
}

/// The location of a host: this machine or another.
#[derive(Debug, PartialEq, Eq)]
enum HostLocation {
    Here,
    Elsewhere,
}

impl HostLocation {
    /// Classifies a host; `None` if parsers could read it differently.
    fn read(host: &str) -> Option<Self> {
        let here = |here: bool| if here { Self::Here } else { Self::Elsewhere };
        if let Some(inner) = host.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(here(IpAddr::V6(address).is_loopback()));
        }
        let fits =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') || is_letter(c);
        if host.is_empty() || host.starts_with('.') || !host.chars().all(fits) {
            return None;
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let last = name.rsplit('.').next()?;
        // Browsers read a last label that begins with a digit as a number, in any notation.
        if last.starts_with(|c: char| c.is_ascii_digit()) {
            let address: Ipv4Addr = name.parse().ok()?;
            return Some(here(address.is_loopback()));
        }
        Some(here(last == "localhost"))
    }
}

fn is_letter(c: char) -> bool {
    !c.is_ascii() && c.is_alphanumeric()
}

/// The host of `host:port`, brackets included.
fn without_port(address: &str) -> Option<&str> {
    let (host, port) = match address.rfind(']') {
        Some(end) => address.split_at_checked(end + 1)?,
        None => address.split_at_checked(address.find(':').unwrap_or(address.len()))?,
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let fits = port.is_empty() || (port.starts_with(':') && digits.parse::<u16>().is_ok());
    fits.then_some(host)
}

/// Escapes every character of a host outside ASCII, so that look-alikes can be distinguished.
fn spelled_out(host: &str) -> String {
    let mut out = String::with_capacity(host.len());
    for c in host.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(url: &str) -> usize {
        Page::read(url).unwrap().warnings.len()
    }

    #[track_caller]
    fn leads_to(url: &str, host: &str) {
        assert_eq!(Page::read(url).map(|page| page.host).as_deref(), Some(host), "{url}");
    }

    #[test]
    fn the_host_is_what_a_browser_would_visit() {
        leads_to("https://Example.com/login?to=https://bank.com", "example.com");
        leads_to("https://bank.com@evil.example/x", "evil.example");
        leads_to("https://bank.com:443@evil.example", "evil.example");
        leads_to("https://bank.com#@evil.example", "bank.com");
        leads_to("https://bank.com.evil.example:8443?x", "bank.com.evil.example");
        leads_to("http://[::1]:8080/", "[::1]");
        leads_to("https://b\u{430}nk.com", "b\\u{430}nk.com");
    }

    #[test]
    fn what_should_make_a_person_hesitate_is_said() {
        for quiet in
            ["https://example.com", "http://localhost:1/", "http://127.0.0.2", "http://[::1]"]
        {
            assert_eq!(warnings(quiet), 0, "{quiet}");
        }
        for loud in [
            "http://example.com",
            "http://10.0.0.1",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "https://xn--bnk-6cd.com",
            "https://login.XN--bnk-6cd.com",
            "https://b\u{430}nk.com",
            "https://bank.com@evil.example",
        ] {
            assert_eq!(warnings(loud), 1, "{loud}");
        }
        assert_eq!(warnings("http://a@xn--x.com"), 3);
    }

    #[test]
    fn an_address_that_can_be_read_in_two_ways_is_declined() {
        for url in [
            "",
            "example.com",
            "https:example.com",
            "https:/example.com",
            "https:///example.com",
            "https://",
            "https://@",
            "https://good.com\\@evil.example",
            "https://good.com\u{202e}/",
            "https://go\u{200b}od.com",
            "https://good.com\t.evil.example",
            "https://good.com .evil.example",
            "https://good%2ecom",
            "https://good.com\u{ff0f}x.evil.example",
            "https://2130706433",
            "http://0x7f.1",
            "http://127.1",
            "http://1.2.3.4.5",
            "https://good.com:port",
            "https://good.com:99999",
            "https://good.com/\u{2800}",
            "https://[::1",
            "https://[::1]x",
            "https://.com",
            "javascript:alert(1)",
            "javascript://good.com/%0aalert(1)",
            "file:///etc/passwd",
            "ftp://good.com",
            "\u{1b}]8;;https://evil.example\u{7}https://good.com",
        ] {
            assert_eq!(Page::read(url), None, "{url:?}");
        }
    }
}
