//! The two eras of the protocol: which one a request belongs to, and all that differs.

use bytes::Bytes;
use capstan_hub::Shape;
use capstan_hub::ports::{self, Lane};
use capstan_model::Kind;
use capstan_wire::protocol::META_VERSION;
use capstan_wire::{Json, compose, object};

use crate::exchange::answer::{Payload, Text};
use crate::protocol::log_level::{Level, LogFilter};
use crate::protocol::request_meta::RequestMeta;
use crate::protocol::server_info::server_meta;

/// An era: revisions in which a conversation has the same form.
///
/// It is chosen at first contact with a client. Its methods are the differences between eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25: a client initializes, and the server may send it requests.
    Legacy,
    /// From 2026-07-28 on: each request describes its client, and answers carry questions.
    Modern,
}

/// Information about the era of a request from outside of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The transport has no information.
    None,
    /// A client has initialized on this connection. Requests of the other era may follow.
    Initialized,
    /// The headers of the request, or its endpoint, declare the era.
    Declared(Era),
}

/// The kind of contact that a request makes, which decides the era of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// The request initializes a legacy client.
    Initialize,
    /// The request belongs to the legacy client that has initialized, if one has.
    Legacy,
    /// The request describes its own client.
    Modern,
}

// === impl Contact ===

impl Contact {
    /// Detects the era of a request. All transports use this function.
    pub(crate) fn of(hint: Hint, method: &str, params: Option<&Json>) -> Self {
        match hint {
            Hint::Declared(Era::Modern) => Self::Modern,
            Hint::None | Hint::Initialized if describes_client(params) => Self::Modern,
            Hint::None if method == "server/discover" => Self::Modern,
            Hint::None | Hint::Initialized | Hint::Declared(Era::Legacy) => {
                if method == "initialize" { Self::Initialize } else { Self::Legacy }
            }
        }
    }
}

/// True if params name the revision of their request, as in the modern era.
fn describes_client(params: Option<&Json>) -> bool {
    let meta = params.and_then(|params| object::get(params, "_meta"));
    meta.is_some_and(|meta| object::get(&meta, META_VERSION).is_some())
}

/// The callers that may see one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// All callers.
    All,
    /// Only the caller that requested it.
    Caller,
}

// === impl Era ===

impl Era {
    /// True if a client is known from one request to the next.
    pub(crate) fn has_sessions(self) -> bool {
        self == Self::Legacy
    }

    /// The connections of servers that suit clients of this era: without a translation, if the
    /// server speaks it.
    pub(crate) fn lane(self) -> Lane {
        Lane::of(match self {
            Self::Legacy => ports::Era::Legacy,
            Self::Modern => ports::Era::Modern,
        })
    }

    /// True if an answer carries questions to the client, and its next request the replies.
    ///
    /// In the other era, the gateway sends requests to the client.
    pub(crate) fn asks_in_answers(self) -> bool {
        self == Self::Modern
    }

    /// True if only clients that declare the tasks extension may use tasks.
    pub(crate) fn requires_tasks_extension(self) -> bool {
        self == Self::Modern
    }

    /// The member of tools that only this era has. A server that speaks both eras lists it on its
    /// connection for this era alone.
    pub(crate) fn tool_member_of_lane(self) -> Option<&'static str> {
        match self {
            // Whether a call of the tool may become a task.
            Self::Legacy => Some("execution"),
            Self::Modern => None,
        }
    }

    /// True if structured content and its schema may have any type, and not only an object's.
    pub(crate) fn allows_any_structure(self) -> bool {
        self == Self::Modern
    }

    /// The log level that a request carries. Legacy clients send `logging/setLevel` instead.
    pub(crate) fn level_in(self, meta: Option<&RequestMeta>) -> Option<Level> {
        if self == Self::Legacy { None } else { meta?.level }
    }

    /// The log level that a modern server gets with a call, given the level that the client has set.
    ///
    /// A legacy client that has set none receives everything, as from a server of its own era. A
    /// modern client's requests name the level themselves.
    pub(crate) fn level_for(self, set: Option<Level>) -> Option<&'static str> {
        match self {
            Self::Legacy => Some(set.unwrap_or(Level::Debug).as_str()),
            Self::Modern => None,
        }
    }

    /// The log messages for a client, by the level of its request or else of its session.
    ///
    /// A client that sets no level receives all of them, or none if each request must ask.
    pub(crate) fn log_filter(
        self,
        request: Option<Level>,
        session: impl FnOnce() -> Option<Level>,
    ) -> LogFilter {
        match self {
            Self::Legacy => session().map_or(LogFilter::All, LogFilter::From),
            Self::Modern => request.map_or(LogFilter::Nothing, LogFilter::From),
        }
    }

    /// The result of a completion, with the type that this era requires.
    pub(crate) fn completion(self, result: Json) -> Json {
        if self == Self::Legacy || object::get(&result, "resultType").is_some() {
            return result;
        }
        let complete = compose::string("complete");
        object::with_member(&result, "resultType", &complete).unwrap_or(result)
    }

    /// The members after the items of a list: those of the only server that is shown, as it sent
    /// them, and others that this era requires.
    ///
    /// A list that depends on the caller is private, whatever the server says.
    pub(crate) fn list_members(
        self,
        mut members: String,
        own: Option<&Json>,
        readers: Readers,
    ) -> String {
        const REQUIRED: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];
        let own = own.and_then(|own| object::members(own).ok()).unwrap_or_default();
        let has = |key: &str| own.iter().any(|(name, _)| name == key);
        for (key, value) in &own {
            // Legacy clients have no use for these.
            if REQUIRED.contains(&key.as_str()) && self == Self::Legacy {
                continue;
            }
            let value = if key == "cacheScope" && readers == Readers::Caller {
                r#""private""#
            } else {
                value.as_str()
            };
            members.push(',');
            members.push_str(compose::string(key).as_str());
            members.push(':');
            members.push_str(value);
        }
        if self == Self::Legacy {
            return members;
        }
        let meta = format!(r#","_meta":{}"#, server_meta());
        for (key, text) in [
            ("resultType", r#","resultType":"complete""#),
            ("ttlMs", r#","ttlMs":0"#),
            ("cacheScope", r#","cacheScope":"private""#),
            ("_meta", &meta),
        ] {
            if !has(key) {
                members.push_str(text);
            }
        }
        members
    }

    /// The result of a call in the form that clients of this era accept. Existing bytes stay.
    pub(crate) fn result(self, result: &Json, shape: &Shape, kind: Kind) -> Payload {
        if self == Self::Legacy {
            if !shape.odd_structure {
                return Payload::from(result.clone());
            }
            // A legacy client accepts only an object as structured content. The text remains.
            let plain = object::without_member(result, "structuredContent");
            return Payload::from(plain.unwrap_or_else(|_| result.clone()));
        }
        let missing = Missing::of(shape, kind);
        let bytes = result.bytes();
        let rest = bytes.get(1..).filter(|_| bytes.starts_with(b"{"));
        let (Some(rest), true) = (rest, missing != Missing::Nothing) else {
            return Payload::from(result.clone());
        };
        let is_empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
        let before = if is_empty {
            Bytes::from(format!("{{{}", missing.members()))
        } else {
            Bytes::from_static(missing.beginning().as_bytes())
        };
        Payload { before, body: Text::Bytes(bytes.slice_ref(rest)), after: Bytes::new() }
    }

    /// Members that this era requires of a result and that this result does not have.
    pub(crate) fn missing_members(self, shape: &Shape, kind: Kind) -> &'static str {
        match self {
            Self::Legacy => "",
            Self::Modern => Missing::of(shape, kind).members(),
        }
    }
}

/// The members that the modern era requires of a result and that a result does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Nothing,
    Type,
    Caching,
    TypeAndCaching,
}

// === impl Missing ===

impl Missing {
    fn of(shape: &Shape, kind: Kind) -> Self {
        let lacks_caching = kind == Kind::Resource && !shape.has_ttl;
        match (shape.result_type.is_none(), lacks_caching) {
            (false, false) => Self::Nothing,
            (true, false) => Self::Type,
            (false, true) => Self::Caching,
            (true, true) => Self::TypeAndCaching,
        }
    }

    fn members(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Type => r#""resultType":"complete""#,
            Self::Caching => r#""ttlMs":0,"cacheScope":"private""#,
            Self::TypeAndCaching => r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#,
        }
    }

    /// The beginning of a result that has other members.
    fn beginning(self) -> &'static str {
        match self {
            Self::Nothing => "{",
            Self::Type => r#"{"resultType":"complete","#,
            Self::Caching => r#"{"ttlMs":0,"cacheScope":"private","#,
            Self::TypeAndCaching => r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","#,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_transports_detect_the_era_of_a_request_alike() {
        let modern = format!(r#"{{"_meta":{{"{META_VERSION}":"2026-07-28"}}}}"#);
        let modern = Json::parse(modern).unwrap();
        let declared = |era| Hint::Declared(era);
        for (hint, method, params, expected) in [
            (Hint::None, "initialize", None, Contact::Initialize),
            (Hint::None, "initialize", Some(&modern), Contact::Modern),
            (Hint::None, "server/discover", None, Contact::Modern),
            (Hint::None, "tools/list", Some(&modern), Contact::Modern),
            (Hint::None, "tools/list", None, Contact::Legacy),
            (Hint::Initialized, "tools/list", Some(&modern), Contact::Modern),
            (Hint::Initialized, "tools/list", None, Contact::Legacy),
            (Hint::Initialized, "server/discover", None, Contact::Legacy),
            (Hint::Initialized, "initialize", None, Contact::Initialize),
            (declared(Era::Legacy), "initialize", None, Contact::Initialize),
            (declared(Era::Legacy), "tools/list", Some(&modern), Contact::Legacy),
            (declared(Era::Modern), "initialize", None, Contact::Modern),
            (declared(Era::Modern), "tools/list", None, Contact::Modern),
        ] {
            assert_eq!(Contact::of(hint, method, params), expected, "{hint:?} {method}");
        }
    }

    fn delivered(text: &str, shape: &Shape, kind: Kind) -> String {
        let result = Json::parse(text.to_owned()).unwrap();
        let Payload { before, body, after } = Era::Modern.result(&result, shape, kind);
        let Text::Bytes(body) = body else { panic!("a result is no page") };
        String::from_utf8([before, body, after].concat()).unwrap()
    }

    #[test]
    fn a_legacy_result_gets_what_modern_clients_expect_and_keeps_its_bytes() {
        let none = Shape::default();
        let cases = [
            (
                r#"{ "content":[1.00]}"#,
                Kind::Tool,
                r#"{"resultType":"complete", "content":[1.00]}"#,
            ),
            ("{}", Kind::Tool, r#"{"resultType":"complete"}"#),
            ("{ }", Kind::Prompt, r#"{"resultType":"complete" }"#),
            (
                r#"{"contents":[]}"#,
                Kind::Resource,
                r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#,
            ),
            ("[1]", Kind::Tool, "[1]"),
        ];
        for (before, kind, after) in cases {
            assert_eq!(delivered(before, &none, kind), after);
        }
    }

    #[test]
    fn what_the_only_server_says_about_its_list_stays() {
        let own =
            r#"{"resultType":"complete","ttlMs":60000,"cacheScope":"public","_meta":{"a": 1}}"#;
        let own = Json::parse(own).unwrap();
        let of = |era: Era, own: Option<&Json>, readers| {
            era.list_members(r#","nextCursor":"p1""#.to_owned(), own, readers)
        };
        let all = r#","nextCursor":"p1","resultType":"complete","ttlMs":60000,"cacheScope":"public","_meta":{"a": 1}"#;
        assert_eq!(of(Era::Modern, Some(&own), Readers::All), all);
        assert_eq!(of(Era::Modern, Some(&own), Readers::Caller), all.replace("public", "private"));
        assert_eq!(
            of(Era::Legacy, Some(&own), Readers::All),
            r#","nextCursor":"p1","_meta":{"a": 1}"#
        );
        let ours = of(Era::Modern, None, Readers::All);
        assert!(ours.contains(r#""ttlMs":0,"cacheScope":"private","_meta":{"io."#), "{ours}");
        assert_eq!(of(Era::Legacy, None, Readers::Caller), r#","nextCursor":"p1""#);
    }

    #[test]
    fn a_modern_result_is_left_as_it_is() {
        let shape = Shape { result_type: Some("complete".to_owned()), ..Shape::default() };
        let text = r#"{"resultType":"complete","content":[]}"#;
        assert_eq!(delivered(text, &shape, Kind::Tool), text);
    }
}
