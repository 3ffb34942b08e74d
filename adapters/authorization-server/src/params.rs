//! Parameters of queries and forms.

use std::collections::HashMap;

use url::form_urlencoded;

/// Most parameters of a request.
const MAX_PARAMS: usize = 64;

/// Longest query or form, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// Parameters, each of which occurs once. Empty ones count as missing.
#[derive(Debug, Default)]
pub(crate) struct Params(HashMap<String, String>);

/// The reason why parameters are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadParams {
    #[error("the parameter `{0}` is repeated")]
    Repeated(String),
    #[error("there are too many parameters")]
    TooMany,
}

// === impl Params ===

impl Params {
    /// Reads a query or the body of a form.
    ///
    /// A repeated parameter is refused: a proxy or a page before us may have read the other one.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, BadParams> {
        if text.len() > MAX_TEXT {
            return Err(BadParams::TooMany);
        }
        let mut params = HashMap::new();
        for (name, value) in form_urlencoded::parse(text) {
            if params.len() >= MAX_PARAMS {
                return Err(BadParams::TooMany);
            }
            let name = name.into_owned();
            if params.insert(name.clone(), value.into_owned()).is_some() {
                let shown: String = name.chars().filter(char::is_ascii_graphic).take(64).collect();
                return Err(BadParams::Repeated(shown));
            }
        }
        Ok(Self(params))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_occurs_once_and_an_empty_one_is_missing() {
        let params = Params::parse(b"a=1&b=&c=x%20y").unwrap();
        assert_eq!(params.get("a"), Some("1"));
        assert_eq!(params.get("b"), None);
        assert_eq!(params.get("c"), Some("x y"));
        let repeated = |text: &[u8]| Params::parse(text).unwrap_err();
        assert_eq!(repeated(b"a=1&a=2"), BadParams::Repeated("a".to_owned()));
        assert_eq!(repeated(b"a=1&%61=1"), BadParams::Repeated("a".to_owned()));
        let many = (0..65).map(|n| format!("p{n}=1")).collect::<Vec<_>>().join("&");
        assert_eq!(repeated(many.as_bytes()), BadParams::TooMany);
        assert_eq!(repeated(&vec![b'a'; MAX_TEXT + 1]), BadParams::TooMany);
    }
}
