//! Labels a question with the server that asks, so that no server can pose as another.

use capstan_hub::ports::Asking;
use capstan_model::ServerName;
use capstan_wire::{Json, compose, object};

use crate::client::View;
use crate::questions::operator::ClientOperator;

impl ClientOperator {
    /// Prefixes a question with the name of its server if the client cannot tell which server asks.
    ///
    /// No server may pose as another.
    pub(crate) fn signed(&self, server: &ServerName, asking: Asking, params: Json) -> Json {
        if !self.could_be_another() || asking != Asking::Elicit {
            return params;
        }
        let message = object::get_string(&params, "message").unwrap_or_default();
        let message = compose::string(&format!("[{server}] {message}"));
        object::with_member(&params, "message", &message).unwrap_or(params)
    }

    fn could_be_another(&self) -> bool {
        self.client.view == View::All && self.context.servers > 1
    }

    /// Prefixes every question of an `input_required` result with the name of its server.
    pub(crate) fn signed_requests(&self, server: &ServerName, result: &Json) -> Json {
        let requests = object::get(result, "inputRequests").filter(|_| self.could_be_another());
        let Some(requests) = requests.and_then(|all| object::members(&all).ok()) else {
            return result.clone();
        };
        let sign = |(key, request): (String, Json)| {
            let method = object::get_string(&request, "method").unwrap_or_default();
            let (asking, params) = (Asking::of_method(&method), object::get(&request, "params"));
            let signed = asking.zip(params).and_then(|(asking, params)| {
                let params = self.signed(server, asking, params);
                object::with_member(&request, "params", &params).ok()
            });
            (key, signed.unwrap_or(request))
        };
        let signed: Vec<(String, Json)> = requests.into_iter().map(sign).collect();
        let signed: Vec<(&str, &Json)> = signed.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let all = object::with_member(result, "inputRequests", &compose::object(&signed));
        all.unwrap_or_else(|_| result.clone())
    }
}

/// Removes `elicitationId`: modern questions have no ids.
pub(crate) fn without_id(params: Json) -> Json {
    match object::get(&params, "elicitationId") {
        Some(_) => object::without_member(&params, "elicitationId").unwrap_or(params),
        None => params,
    }
}

/// Adds an `elicitationId`: 2025-11-25 requires it for URLs, and modern servers no longer send it.
pub(crate) fn for_legacy(params: Json, asking: Asking, id: u64) -> Json {
    let is_visit = asking == Asking::Elicit
        && object::get_string(&params, "mode").as_deref() == Some("url")
        && object::get(&params, "elicitationId").is_none();
    if !is_visit {
        return params;
    }
    let own = compose::string(&format!("capstan-{id}"));
    object::with_member(&params, "elicitationId", &own).unwrap_or(params)
}
