//! `initialize` and `server/discover`: the description of the gateway and of the client.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::Session;
use capstan_hub::catalog::{merged_instructions, own_instructions};
use capstan_hub::ports::{About, Caching, Lane, Listing};
use capstan_model::rpc_code::{INVALID_REQUEST, UNSUPPORTED_VERSION};
use capstan_model::{Caller, ServerName};
use capstan_wire::protocol::{META_CAPABILITIES, META_VERSION};
use capstan_wire::{Json, RequestId, compose, object};

use crate::client::described::FoundClient;
use crate::client::identity::{client_name, named};
use crate::client::{Client, ClientContext, View};
use crate::exchange::answer::{Answer, Payload};
use crate::fairness::client_names::{ClientNetwork, NameCount};
use crate::fairness::fair_share::{Peer, name};
use crate::gateway::Gateway;
use crate::methods::lists::Reader;
use crate::protocol::capabilities::{self, Others};
use crate::protocol::fault::Fault;
use crate::protocol::request_meta::RequestMeta;
use crate::protocol::revision::Revision;
use crate::protocol::server_info::{server_info, server_meta_of};

/// Longest wait for the description of a server that has not started yet.
const WAIT_FOR_ONE: Duration = Duration::from_secs(5);

impl Gateway {
    /// Handles `initialize` of a legacy client; returns no client if it is refused.
    pub async fn initialize(
        self: &Arc<Self>,
        id: &RequestId,
        params: Option<&Json>,
        context: ClientContext,
    ) -> (Answer, Option<Arc<Client>>) {
        let empty = Json::empty_object();
        let params = params.unwrap_or(&empty);
        let [version, capabilities, info] =
            object::peek(params, ["protocolVersion", "capabilities", "clientInfo"]);
        let Some(version) = version.and_then(|version| version.read::<String>().ok()) else {
            let fault = Fault::invalid("`protocolVersion` must be a string");
            return (Answer::fault(Some(id), &fault), None);
        };
        let revision = Revision::negotiate(&version);
        let capabilities = capabilities.unwrap_or_else(Json::empty_object);
        let (context, session) = self.known(context, info.as_ref());
        let client = Arc::new(Client::new(revision, capabilities, context, session));
        self.settle_own_tools(&client);
        let Greeting { capabilities, instructions, info, .. } = self.greeting(&client).await;
        let (version, server) = (compose::string(revision.as_str()), info);
        let mut members = vec![
            ("protocolVersion", &version),
            ("capabilities", &capabilities),
            ("serverInfo", &server),
        ];
        members.extend(instructions.as_ref().map(|text| ("instructions", text)));
        // Last, so that a client that disconnects before never counts.
        self.greet(&client);
        self.follow_lists(&client, &Listing::ALL);
        (Answer::result(id, &compose::object(&members)), Some(client))
    }

    /// The fair-share key of a caller whose client initializes with these params.
    pub(crate) fn peer(&self, caller: &Arc<Caller>, params: Option<&Json>) -> Peer {
        let info = params.and_then(|params| object::get(params, "clientInfo"));
        let context = self.stateless_context(Arc::clone(caller), View::All);
        let context = self.counted(named(context, info.as_ref()));
        Peer::counted(&context.caller, context.counted)
    }

    /// Returns the context with its client's name, and the session that holds its quota.
    fn known(&self, context: ClientContext, info: Option<&Json>) -> (ClientContext, Arc<Session>) {
        let context = self.counted(named(context, info));
        let session = self.session_of(&context, client_name(info));
        (context, session)
    }

    /// Returns the context with how its client name is counted.
    fn counted(&self, context: ClientContext) -> ClientContext {
        let Some(from) = context.caller.from else { return context };
        let counted = self.names.count(ClientNetwork::of(from), name(&context.caller), self.now());
        ClientContext { counted, ..context }
    }

    /// The answer to a legacy request before `initialize`.
    pub(crate) fn before_initialize(id: &RequestId, method: &str) -> Answer {
        match method {
            "ping" => Answer::result(id, &Json::empty_object()),
            _ => Answer::error(Some(id), INVALID_REQUEST, "send `initialize` first"),
        }
    }

    /// Creates the client of one modern request.
    ///
    /// # Errors
    /// Returns the answer if the request does not describe its client completely.
    pub fn modern(
        &self,
        id: &RequestId,
        params: Option<&Json>,
        context: ClientContext,
    ) -> Result<Arc<Client>, Answer> {
        let meta = params.and_then(|params| object::get(params, "_meta"));
        let meta = meta.map(|meta| context.read_meta(&meta));
        self.described(id, meta, context)
    }

    /// Creates the client of one modern request, whose `_meta` has been read.
    pub(crate) fn described(
        &self,
        id: &RequestId,
        meta: Option<Arc<RequestMeta>>,
        context: ClientContext,
    ) -> Result<Arc<Client>, Answer> {
        let client = match meta {
            Some(meta) => self.find_described(meta, context),
            None => Err(Fault::invalid("`_meta` is missing")),
        };
        client.map(Arc::new).map_err(|fault| Answer::fault(Some(id), &fault))
    }

    /// The answer to `server/discover`.
    pub(crate) async fn discover(self: Arc<Self>, client: Arc<Client>) -> Result<Payload, Fault> {
        let Greeting { capabilities, instructions, info, caching } = self.greeting(&client).await;
        let versions = versions();
        // What a caller may use can depend on the caller.
        let is_private = self.hub().policy().binds(&client.caller);
        let is_public = caching.is_some_and(|caching| caching.is_public) && !is_private;
        let ttl = compose::number(caching.map_or(0, |caching| caching.ttl_ms));
        let scope = compose::string(if is_public { "public" } else { "private" });
        let kind = compose::string("complete");
        let meta = server_meta_of(&info);
        let mut members = vec![
            ("resultType", &kind),
            ("supportedVersions", &versions),
            ("capabilities", &capabilities),
            ("ttlMs", &ttl),
            ("cacheScope", &scope),
            ("_meta", &meta),
        ];
        members.extend(instructions.as_ref().map(|text| ("instructions", text)));
        Ok(Payload::from(compose::object(&members)))
    }

    /// Capabilities and instructions of the visible servers, as far as they are known.
    async fn greeting(&self, client: &Client) -> Greeting {
        let revision = client.revision;
        match &client.view {
            View::One(server) => {
                let about = self.about(server, client.lane()).await;
                let text = about.as_ref().and_then(|about| about.instructions.as_deref());
                let hub = self.hub();
                let text = text
                    .filter(|text| !text.trim().is_empty())
                    .and_then(|text| own_instructions(&hub.catalog().screens, server, text));
                let info = about.as_ref().and_then(|about| about.info.clone());
                Greeting {
                    info: info.unwrap_or_else(server_info),
                    caching: about.as_ref().and_then(|about| about.caching),
                    capabilities: capabilities::of_server(revision, about.as_ref()),
                    instructions: text.map(|text| compose::string(&text)),
                }
            }
            View::All => {
                // A server that has listed its tools by then has also described itself.
                let hub = self.hub();
                let gathered = self.gather(&hub, Listing::Tools, Reader::WarmUp).await;
                let reached =
                    |name: &&ServerName| hub.policy().out_of_reach(&client.caller, name).is_none();
                let lane = client.lane();
                let known = |name| Some((name, hub.about_in(name, lane)?));
                let abouts: Vec<(&ServerName, Arc<About>)> =
                    gathered.lists.keys().filter(reached).filter_map(known).collect();
                let texts = abouts.iter().filter_map(|(name, about)| {
                    about.instructions.as_deref().map(|text| (*name, text))
                });
                let merged = merged_instructions(&hub.catalog().screens, texts);
                let are_all_known = abouts.len() == hub.servers().filter(reached).count();
                let others = if are_all_known { Others::None } else { Others::Unknown };
                let abouts = abouts.iter().map(|(_, about)| about);
                Greeting {
                    info: server_info(),
                    caching: None,
                    capabilities: capabilities::of_servers(revision, abouts, others),
                    instructions: (!merged.is_empty()).then(|| compose::string(&merged)),
                }
            }
        }
    }

    fn find_described(
        &self,
        meta: Arc<RequestMeta>,
        context: ClientContext,
    ) -> Result<Client, Fault> {
        let (revision, capabilities) = check_described(&meta)?;
        let now = self.now();
        let last = context.described.as_ref();
        let client = last.and_then(|last| last.client(&meta, &context.caller, now));
        let client = client.unwrap_or_else(|| self.look_up(&meta, &context, now));
        Ok(Client::described(revision, capabilities, context, client, meta))
    }

    /// Looks up the limits of a client by the name that its request declares.
    fn look_up(
        &self,
        meta: &Arc<RequestMeta>,
        context: &ClientContext,
        now: Duration,
    ) -> FoundClient {
        let base = Arc::clone(&context.caller);
        let (found, session) = self.known(context.clone(), meta.client.as_ref());
        let peer = Peer::counted(&found.caller, found.counted);
        let client = FoundClient { base, caller: found.caller, peer, session, since: now };
        // Clients that are counted together get a session of their own for each request.
        if found.counted == NameCount::Alone
            && let Some(last) = &context.described
        {
            last.remember(meta, client.clone());
        }
        client
    }

    async fn about(&self, server: &ServerName, lane: Lane) -> Option<Arc<About>> {
        let hub = self.hub();
        let about = tokio::time::timeout(WAIT_FOR_ONE, hub.introduce(server, lane)).await;
        about.ok().and_then(Result::ok).or_else(|| hub.about(server))
    }
}

/// The description of the gateway that a client gets first.
struct Greeting {
    capabilities: Json,
    instructions: Option<Json>,
    /// The description of the only server that is shown, or of the gateway.
    info: Json,
    caching: Option<Caching>,
}

/// The supported revisions; those before 2026-07-28 start with `initialize`.
fn versions() -> Json {
    let versions = Revision::ALL.map(|revision| compose::string(revision.as_str()));
    compose::array(&versions)
}

/// The revision and the capabilities of a client, which its request must declare.
fn check_described(meta: &RequestMeta) -> Result<(Revision, Json), Fault> {
    let version = meta.version.as_ref().and_then(Json::text);
    let version =
        version.ok_or_else(|| Fault::invalid(format!("`_meta` must say `{META_VERSION}`")))?;
    let capabilities = meta.capabilities.clone();
    let capabilities = capabilities
        .filter(|capabilities| capabilities.as_bytes().starts_with(b"{"))
        .ok_or_else(|| Fault::invalid(format!("`_meta` must say `{META_CAPABILITIES}`")))?;
    let Some(revision) = Revision::parse_modern(&version) else {
        let data = compose::object(&[
            ("supported", &versions()),
            ("requested", &compose::string(&version)),
        ]);
        let message = format!(
            "protocol version `{version}` is not supported without a handshake; \
             clients before 2026-07-28 start with `initialize`"
        );
        return Err(Fault::new(UNSUPPORTED_VERSION, message).with_data(data));
    };
    Ok((revision, capabilities))
}
