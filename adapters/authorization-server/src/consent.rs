//! The pages that a user sees: the question about a client, and problems with a request.
//!
//! They contain no script, load nothing, and cannot be framed. Every text of others is escaped.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_http::StatusCode;
use capstan_http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use sha2::{Digest, Sha256};

use crate::http::Response;

/// The style of all pages.
const STYLE: &str = include_str!("page.css");

/// The question about a client.
pub(crate) struct Question<'a> {
    /// The name that the client gives itself.
    pub(crate) client_name: Option<&'a str>,
    /// The host of the client's document, which cannot be made up.
    pub(crate) client_host: Option<&'a str>,
    /// The host that the answer goes to.
    pub(crate) redirect_host: &'a str,
    /// True if the answer goes to a program on the user's own machine.
    pub(crate) is_local: bool,
    pub(crate) scopes: &'a [String],
    /// The gateway, or the one server of it, that is asked for.
    pub(crate) resource: &'a str,
    /// The user that a proxy names; otherwise, the page asks for a password.
    pub(crate) user: Option<&'a str>,
    /// The host of the provider at which the user signs in after agreeing.
    pub(crate) provider: Option<&'a str>,
    /// The name that was typed before.
    pub(crate) typed_name: &'a str,
    /// The query that the form sends again.
    pub(crate) query: &'a str,
    /// The token of the form.
    pub(crate) token: &'a str,
    /// The problem with the last attempt.
    pub(crate) problem: Option<&'a str>,
}

// === impl Question ===

impl Question<'_> {
    /// Writes the page.
    pub(crate) fn response(&self, status: StatusCode) -> Response {
        let name = escape(self.client_name.unwrap_or("An app without a name"));
        let mut body = format!("<h1>Allow {name}?</h1>");
        let _ = write!(
            body,
            "<p class=\"soft\">It will be able to use the tools that you may use at this \
             gateway.</p><dl>"
        );
        let mut row = |title: &str, html: &str| {
            let _ = write!(body, "<div><dt>{title}</dt><dd>{html}</dd></div>");
        };
        if let Some(host) = self.client_host {
            row("App published by", &escape(host));
        }
        row("After you agree, you are sent to", &format!("<b>{}</b>", escape(self.redirect_host)));
        row("Access to", &escape(self.resource));
        if !self.scopes.is_empty() {
            let items = self.scopes.iter().map(|scope| format!("<li>{}</li>", escape(scope)));
            row("Permissions", &format!("<ul>{}</ul>", items.collect::<String>()));
        }
        if let Some(user) = self.user {
            row("Signed in as", &escape(user));
        }
        if let Some(provider) = self.provider {
            row("You sign in at", &escape(provider));
        }
        body.push_str("</dl>");
        body.push_str(if self.is_local {
            "<p class=\"note\">The answer goes to a program on your own computer. Agree only if \
             you have just started signing in from it.</p>"
        } else if self.client_host.is_none() {
            "<p class=\"note\">Anyone can give an app this name. Check the address above.</p>"
        } else {
            ""
        });
        self.write_form(&mut body);
        page(status, &format!("Allow {name}?"), &body)
    }

    fn write_form(&self, body: &mut String) {
        let query = escape(self.query);
        let _ = write!(body, "<form method=\"post\" action=\"/authorize?{query}\">");
        let token = escape(self.token);
        let _ = write!(body, "<input type=\"hidden\" name=\"form_token\" value=\"{token}\">");
        if let Some(problem) = self.problem {
            let _ = write!(body, "<p class=\"note\" role=\"alert\">{}</p>", escape(problem));
        }
        if self.user.is_none() && self.provider.is_none() {
            let typed = escape(self.typed_name);
            let _ = write!(
                body,
                "<label>Name<input name=\"user\" autocomplete=\"username\" autocapitalize=\"none\" \
                 spellcheck=\"false\" maxlength=\"256\" value=\"{typed}\"></label>\
                 <label>Password<input name=\"password\" type=\"password\" \
                 autocomplete=\"current-password\" maxlength=\"1024\"></label>"
            );
        }
        let _ = write!(
            body,
            "<div class=\"actions\">\
             <button class=\"main\" name=\"decision\" value=\"allow\">Allow</button>\
             <button name=\"decision\" value=\"deny\">Cancel</button></div></form>"
        );
    }
}

/// A page that says what is wrong with a request. Nothing is sent to the client.
pub(crate) fn problem(status: StatusCode, code: &str, words: &str) -> Response {
    let body = format!(
        "<h1>This sign-in cannot continue</h1><p>{}</p><p class=\"soft\">Go back to the app and \
         start again. For its developers: <code>{}</code></p>",
        escape(words),
        escape(code)
    );
    page(status, "This sign-in cannot continue", &body)
}

/// A page with this title and these HTML elements. It runs no script and cannot be framed.
pub fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>"
    );
    let mut response = Response::new(status);
    response.body = html.into();
    response = response
        .with(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
        .with(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"))
        .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    match HeaderValue::from_str(&policy()) {
        Ok(policy) => response.with(CONTENT_SECURITY_POLICY, policy),
        Err(_) => response,
    }
}

/// What a page may do: show itself, with its own style.
///
/// It has no `form-action`: browsers apply that to the redirects after the form too, and the client
/// may redirect further, to an origin that nobody here knows.
fn policy() -> String {
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'; base-uri 'none'"
    )
}

/// Escapes a text for HTML, inside elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
