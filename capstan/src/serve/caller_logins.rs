//! Logins of callers to servers with accounts of their own: begun by a call, finished in a browser.
//!
//! **Invariant:** the answer of an authorization server counts only in the browser whose user agreed
//! to connect an account for this caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_auth::resource::PublicAddress;
use capstan_authorization_server::{Response as Page, escape, page};
use capstan_config::Gateway;
use capstan_gateway::http::{Body, Bound, HttpRequest, PublicEndpoint, Routes};
use capstan_http::Url;
use capstan_hub::Outcome;
use capstan_hub::ports::{
    BoxFuture, CallerLogins, LoginPerson, LoginStep, PendingLogin, Principal,
};
use capstan_login::{
    CallbackRoutes, Login, LoginError, LoginRequest, Outcome as LoginOutcome, random_text, same,
};
use capstan_model::{Caller, ErrorCode, ServerName};
use futures::FutureExt;
use futures::future::Shared;
use hyper::Response;
use hyper::header::{COOKIE, HeaderMap, HeaderValue, LOCATION, ORIGIN, SET_COOKIE};
use hyper::http::{Method, StatusCode};
use tokio::sync::oneshot;

use super::auth::AuditLogins;
use crate::logins::ServerLogins;

/// How long a login waits for its user.
const WAIT: Duration = Duration::from_mins(10);

/// The largest number of logins that wait at the same time.
const MAX_PENDING: usize = 512;

/// The path of the callback.
const CALLBACK: &str = "/login/callback";

/// The cookie that ties a login to a browser.
const BROWSER: &str = "capstan_login";

/// The largest body of the form.
const MAX_FORM: usize = 4096;

/// The logins of callers that wait for their users.
pub(super) struct CallerSignIns {
    logins: Arc<ServerLogins>,
    audit: Arc<AuditLogins>,
    routes: Arc<CallbackRoutes>,
    /// The address of the gateway, as browsers reach it.
    base: String,
    pending: Mutex<HashMap<String, Pending>>,
}

/// A login that waits for its user.
struct Pending {
    subject: String,
    server: ServerName,
    /// The page of the authorization server.
    page: Url,
    /// The value that comes back with the browser.
    state: String,
    /// The browser whose user agreed.
    browser: Option<String>,
    done: Shared<BoxFuture<'static, bool>>,
}

/// Passes on the page that the user must visit.
struct PageTaker(Mutex<Option<oneshot::Sender<Url>>>);

/// The page on which a user agrees, and the callback.
struct AgreePage(Arc<CallerSignIns>);

struct CallbackPage(Arc<CallerSignIns>);

// === impl CallerSignIns ===

impl CallerSignIns {
    pub(super) fn new(
        logins: Arc<ServerLogins>,
        audit: Arc<AuditLogins>,
        gateway: &Gateway,
        bound: &Bound,
    ) -> Arc<Self> {
        let public = gateway.public_url.as_deref().and_then(PublicAddress::parse);
        let local = || format!("{}://{}", bound.scheme(), super::host(bound.address()));
        let base = public.map_or_else(local, |public| public.resource(""));
        let routes = CallbackRoutes::new(format!("{base}{CALLBACK}"));
        Arc::new(Self { logins, audit, routes, base, pending: Mutex::default() })
    }

    pub(super) fn mount(self: &Arc<Self>, routes: Routes) -> Routes {
        routes
            .open(CALLBACK, CallbackPage(Arc::clone(self)))
            .open("/login/{}", AgreePage(Arc::clone(self)))
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.retain(|_, login| login.done.peek().is_none());
        pending
    }

    fn told(&self, id: &str, done: Shared<BoxFuture<'static, bool>>) -> PendingLogin {
        PendingLogin {
            id: id.to_owned(),
            url: format!("{}/login/{id}", self.base),
            done: done.boxed(),
        }
    }

    async fn begin_login(
        &self,
        caller: &Caller,
        server: &ServerName,
    ) -> Result<PendingLogin, String> {
        let Principal::Caller(principal) = Principal::of(caller) else {
            return Err("this caller has not authenticated".to_owned());
        };
        let of_caller =
            |login: &Pending| login.subject == caller.subject && login.server == *server;
        {
            let pending = self.pending();
            if let Some((id, login)) = pending.iter().find(|(_, login)| of_caller(login)) {
                return Ok(self.told(id, login.done.clone()));
            }
            if pending.len() >= MAX_PENDING {
                return Err("too many users sign in at the moment; call again later".to_owned());
            }
        }
        let login = self.logins.of_caller(server, principal);
        let login = login.ok_or("its settings allow no login")?;
        let id = random_text().map_err(|error| error.to_string())?.reveal().clone();
        let (found, page) = oneshot::channel();
        let (ended, mut end) = oneshot::channel();
        let done = self.log_in(login, caller, server, found);
        let done = async move {
            let done = done.await;
            let is_done = done.is_ok();
            // Nobody may wait for the reason any more.
            drop(ended.send(done.err()));
            is_done
        };
        let done: Shared<BoxFuture<'static, bool>> = done.boxed().shared();
        // A task of its own: a client that leaves does not end what its user has begun.
        tokio::spawn(done.clone());
        let Ok(page) = page.await else {
            done.await;
            let reason = end.try_recv().ok().flatten();
            let reason = reason.map_or_else(String::new, |error| format!(": {error}"));
            return Err(format!("its sign-in cannot begin{reason}"));
        };
        let subject = caller.subject.clone();
        let state = page.query_pairs().find(|(key, _)| key == "state");
        let state = state.map(|(_, state)| state.into_owned()).unwrap_or_default();
        let told = self.told(&id, done.clone());
        let login = Pending { subject, server: server.clone(), page, state, browser: None, done };
        self.pending().insert(id, login);
        Ok(told)
    }

    /// Logs in, and records the result.
    fn log_in(
        &self,
        login: Login,
        caller: &Caller,
        server: &ServerName,
        found: oneshot::Sender<Url>,
    ) -> impl Future<Output = Result<(), LoginError>> + Send + 'static {
        let request = LoginRequest {
            scopes: None,
            browser: true,
            port: None,
            wait: WAIT,
            routes: Some(Arc::clone(&self.routes)),
        };
        let (audit, caller, name) =
            (Arc::clone(&self.audit), Arc::new(caller.clone()), server.clone());
        async move {
            let person = PageTaker(Mutex::new(Some(found)));
            let done = login.log_in(&request, &person).await;
            let outcome = match &done {
                Ok(_) => Outcome::Answered,
                Err(error) => {
                    tracing::warn!(server = %name, %error, "a caller could not sign in");
                    Outcome::Failed(ErrorCode::AuthFailure)
                }
            };
            audit.record(caller, "auth/account", name.to_string(), outcome);
            done.map(drop)
        }
    }

    fn agree(&self, id: &str, head: &hyper::http::request::Parts, form: &[u8]) -> Page {
        let pending = self.pending();
        let Some((subject, server, host)) = pending.get(id).map(|login| {
            let host = login.page.host_str().unwrap_or_default().to_owned();
            (login.subject.clone(), login.server.clone(), host)
        }) else {
            drop(pending);
            return problem(StatusCode::NOT_FOUND, "This sign-in has ended. Call the tool again.");
        };
        drop(pending);
        if head.method == Method::POST {
            return self.agreed(id, &head.headers, form);
        }
        let Ok(browser) = random_text() else {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "There are no random numbers.");
        };
        let browser = browser.reveal();
        let (who, server) = (escape(&subject), escape(server.as_str()));
        let title = format!("Connect your account at {server}?");
        let body = format!(
            "<h1>{title}</h1><p class=\"soft\">Calls of <b>{who}</b> at this gateway will then use \
             it.</p><dl><div><dt>Caller</dt><dd>{who}</dd></div><div><dt>Server</dt><dd>{server}\
             </dd></div><div><dt>You sign in at</dt><dd><b>{}</b></dd></div></dl>\
             <p class=\"note\">Continue only if you are {who} and have just used {server}. If \
             somebody sent you this address, close the page.</p>\
             <form method=\"post\"><input type=\"hidden\" name=\"browser\" value=\"{browser}\">\
             <div class=\"actions\"><button class=\"main\">Continue</button></div></form>",
            escape(&host)
        );
        let mut page = page(StatusCode::OK, &title, &body);
        let secure = if self.base.starts_with("https:") { "; Secure" } else { "" };
        let cookie = format!(
            "{BROWSER}={browser}; Path=/login; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
            WAIT.as_secs()
        );
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            page.headers.insert(SET_COOKIE, cookie);
        }
        page
    }

    /// Leads a user who agreed to the authorization server.
    fn agreed(&self, id: &str, headers: &HeaderMap, form: &[u8]) -> Page {
        let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
        let is_own = origin.is_none_or(|from| from == b"null" || from == self.base.as_bytes());
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_same = site.is_none_or(|site| site == b"same-origin" || site == b"none");
        let mut fields = std::str::from_utf8(form).unwrap_or_default().split('&');
        let given = fields.find_map(|field| field.strip_prefix("browser="));
        let cookie = browser_of(headers);
        let is_this = cookie.zip(given).is_some_and(|(cookie, given)| same(&cookie, given));
        if !is_own || !is_same || !is_this {
            let words = "The form was sent by another site or browser, or cookies are blocked.";
            return problem(StatusCode::FORBIDDEN, words);
        }
        let mut pending = self.pending();
        let target = pending.get_mut(id).and_then(|login| {
            login.browser = given.map(ToOwned::to_owned);
            HeaderValue::from_str(login.page.as_str()).ok()
        });
        drop(pending);
        let Some(target) = target else {
            return problem(StatusCode::NOT_FOUND, "This sign-in has ended. Call the tool again.");
        };
        let mut page = page(StatusCode::SEE_OTHER, "Continue", "");
        page.headers.insert(LOCATION, target);
        page
    }

    /// Takes the answer of an authorization server.
    async fn came_back(&self, query: &str, headers: &HeaderMap) -> Page {
        let other = "This is not the sign-in that was begun in this browser.";
        let pairs = Url::parse("http://callback").map(|mut url| {
            url.set_query(Some(query));
            url
        });
        let state = pairs.ok().and_then(|url| {
            let (_, state) = url.query_pairs().find(|(key, _)| key == "state")?;
            Some(state.into_owned())
        });
        let cookie = browser_of(headers).unwrap_or_default();
        let done = state.and_then(|state| {
            let pending = self.pending();
            let is_own = |login: &&Pending| {
                let browser = login.browser.as_deref();
                same(&login.state, &state) && browser.is_some_and(|browser| same(browser, &cookie))
            };
            pending.values().find(is_own).map(|login| login.done.clone())
        });
        let Some(done) = done else { return problem(StatusCode::BAD_REQUEST, other) };
        let brought = self.routes.bring(query).await;
        // The tokens are stored when the login ends, and the next call needs them.
        let is_done = brought == Some(LoginOutcome::LoggedIn) && done.await;
        match brought {
            Some(LoginOutcome::LoggedIn) if is_done => {
                let body = "<h1>Your account is connected</h1><p>The call that asked for it goes \
                            on. You can close this page.</p>";
                page(StatusCode::OK, "Your account is connected", body)
            }
            Some(LoginOutcome::LoggedIn | LoginOutcome::Failed) => {
                let words = "The server refused the sign-in. Call the tool again to retry.";
                problem(StatusCode::BAD_REQUEST, words)
            }
            None => problem(StatusCode::BAD_REQUEST, other),
        }
    }
}

fn browser_of(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|all| all.to_str().ok());
    let found = cookies
        .flat_map(|all| all.split(';'))
        .find_map(|one| one.trim().strip_prefix(BROWSER)?.strip_prefix('=').map(ToOwned::to_owned));
    found.filter(|browser| !browser.is_empty())
}

fn problem(status: StatusCode, words: &str) -> Page {
    let title = "This sign-in cannot continue";
    page(status, title, &format!("<h1>{title}</h1><p>{}</p>", escape(words)))
}

fn response(page: Page) -> Response<Body> {
    let mut response = Response::new(Body::from(page.body));
    *response.status_mut() = page.status;
    *response.headers_mut() = page.headers;
    response
}

impl CallerLogins for CallerSignIns {
    fn begin<'a>(
        &'a self,
        caller: &'a Caller,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<PendingLogin, String>> {
        Box::pin(self.begin_login(caller, server))
    }
}

// === impl PageTaker ===

impl LoginPerson for PageTaker {
    fn show(&self, step: LoginStep<'_>) {
        if let LoginStep::Visit { url, .. } = step
            && let Ok(url) = Url::parse(url)
            && let Some(found) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // The call may have been given up.
            drop(found.send(url));
        }
    }

    fn open<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn paste(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }
}

// === impl AgreePage ===

impl PublicEndpoint for AgreePage {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            if ![Method::GET, Method::HEAD, Method::POST].contains(&request.head.method) {
                return response(problem(StatusCode::METHOD_NOT_ALLOWED, "Open the page instead."));
            }
            let id = request.segment.clone();
            match request.read_body(MAX_FORM).await {
                Ok((head, form)) => response(self.0.agree(&id, &head, &form)),
                Err(_) => response(problem(StatusCode::BAD_REQUEST, "The form is not complete.")),
            }
        })
    }
}

// === impl CallbackPage ===

impl PublicEndpoint for CallbackPage {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            if request.head.method != Method::GET {
                return response(problem(StatusCode::METHOD_NOT_ALLOWED, "Open the page instead."));
            }
            let query = request.head.uri.query().unwrap_or_default();
            response(self.0.came_back(query, &request.head.headers).await)
        })
    }
}
