//! Composes requests whose large params are not copied.

use bytes::Bytes;
use capstan_http::Payload;
use capstan_wire::{Json, compose};

/// The size up to which params are copied, which is cheaper than three pieces.
const SMALL: usize = 16 * 1024;

/// Composes a request with one of our own ids.
pub(crate) fn request(id: u64, method: &str, params: &Json) -> Payload {
    pieces(id, method, params).into()
}

fn pieces(id: u64, method: &str, params: &Json) -> [Bytes; 3] {
    if params.len() <= SMALL {
        return [compose::request(id, method, Some(params)).into(), Bytes::new(), Bytes::new()];
    }
    let (before, after) = compose::around_params(id, method);
    [before.into(), params.bytes().clone(), Bytes::from_static(after)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_params_are_not_copied_and_the_request_is_the_same() {
        for size in [10, SMALL, SMALL + 1, 1 << 20] {
            let params = Json::parse(format!(r#"{{"x":"{}"}}"#, "y".repeat(size))).unwrap();
            let pieces = pieces(7, "tools/\"call", &params);
            let payload = Payload::from(pieces.clone());
            assert_eq!(payload.whole(), compose::request(7, "tools/\"call", Some(&params)));
            assert_eq!(payload.len(), payload.whole().len());
            let is_shared = pieces.iter().any(|p| p.as_ptr() == params.as_bytes().as_ptr());
            assert_eq!(is_shared, params.len() > SMALL, "{size}");
        }
    }
}
