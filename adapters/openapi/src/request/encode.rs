//! Encodes values so that none can be mistaken for more than a value.
//!
//! **Invariant:** an encoded value contains only letters, digits and `-._~%`, besides the
//! separators of the style itself. So no value ends the segment, the parameter or the query that
//! contains it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::operation::parameter::{Members, Parameter, Style};

/// Percent-encodes every character that could have a meaning in a URL.
pub(crate) fn percent(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                written.push(char::from(byte));
            }
            other => {
                let _ = write!(written, "%{other:02X}");
            }
        }
    }
    written
}

/// The text of a value that is neither a list nor an object.
///
/// # Errors
/// If it is a list or an object.
pub(crate) fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Null => Ok(String::new()),
        Value::Array(_) | Value::Object(_) => {
            Err("a list or an object is not possible here".to_owned())
        }
    }
}

/// Encodes a parameter for a path. A parameter in JSON style is passed as text.
///
/// # Errors
/// The reason why the value cannot be used there.
pub(crate) fn in_path(parameter: &Parameter, value: &Value) -> Result<String, String> {
    let name = percent(&parameter.name);
    match parameter.style {
        Style::Label(members) => {
            let between = if members == Members::Pairs { "." } else { "," };
            Ok(format!(".{}", listed(value, between, members, &segment)?))
        }
        Style::Matrix(members) => match (value, members) {
            (Value::Array(items), Members::Pairs) => {
                let items = items.iter().map(|item| Ok(format!(";{name}={}", segment(item)?)));
                items.collect::<Result<String, String>>()
            }
            (Value::Object(_), Members::Pairs) => {
                Ok(format!(";{}", listed(value, ";", members, &segment)?))
            }
            (value, members) => Ok(format!(";{name}={}", listed(value, ",", members, &segment)?)),
        },
        Style::Simple(members) => listed(value, ",", members, &segment),
        Style::Repeated | Style::Joined(_) | Style::Deep => {
            listed(value, ",", Members::Listed, &segment)
        }
        Style::Json => segment(value),
    }
}

/// Encodes a parameter as `name=value` pairs for a query. No member of an object may have one of
/// the names that are `taken`.
///
/// # Errors
/// The reason why the value cannot be used there.
pub(crate) fn in_query(
    parameter: &Parameter,
    value: &Value,
    taken: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    let name = percent(&parameter.name);
    let escaped = |value: &Value| plain(value).map(|text| percent(&text));
    match (parameter.style, value) {
        (Style::Json, value) => Ok(vec![format!("{name}={}", escaped(value)?)]),
        (Style::Repeated, Value::Array(items)) => {
            items.iter().map(|item| Ok(format!("{name}={}", escaped(item)?))).collect()
        }
        (Style::Repeated, Value::Object(members)) => {
            let pair = |(key, value): (&String, &Value)| {
                // Its members appear beside the other parameters, and must not replace them.
                if taken(key) {
                    return Err(format!("`{key}` is another parameter"));
                }
                Ok(format!("{}={}", percent(key), escaped(value)?))
            };
            members.iter().map(pair).collect()
        }
        (Style::Deep, Value::Object(members)) => {
            let pair = |(key, value): (&String, &Value)| {
                let key = format!("{name}%5B{}%5D", percent(key));
                match value {
                    Value::Array(items) => {
                        items.iter().map(|item| Ok(format!("{key}={}", escaped(item)?))).collect()
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Object(_) => Ok(vec![format!("{key}={}", escaped(value)?)]),
                }
            };
            let pairs: Result<Vec<Vec<String>>, String> = members.iter().map(pair).collect();
            Ok(pairs?.concat())
        }
        (Style::Deep, _) => Err("it must be an object".to_owned()),
        (Style::Joined(between), value) => {
            Ok(vec![format!("{name}={}", listed(value, between, Members::Listed, &escaped)?)])
        }
        (Style::Repeated | Style::Simple(_) | Style::Label(_) | Style::Matrix(_), value) => {
            Ok(vec![format!("{name}={}", listed(value, ",", Members::Listed, &escaped)?)])
        }
    }
}

/// Encodes a parameter for a header.
///
/// # Errors
/// The reason why a header cannot carry it.
pub(crate) fn in_header(parameter: &Parameter, value: &Value) -> Result<String, String> {
    let text = match parameter.style {
        Style::Json => plain(value)?,
        Style::Simple(members) => listed(value, ",", members, &plain)?,
        Style::Label(_) | Style::Matrix(_) | Style::Repeated | Style::Joined(_) | Style::Deep => {
            listed(value, ",", Members::Listed, &plain)?
        }
    };
    // A line break would add headers; text that is not ASCII is decoded inconsistently.
    if text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
        Ok(text)
    } else {
        Err("a header can contain only printable ASCII".to_owned())
    }
}

/// Encodes a parameter for a cookie.
///
/// # Errors
/// The reason why a cookie cannot carry it.
pub(crate) fn in_cookie(parameter: &Parameter, value: &Value) -> Result<String, String> {
    let escaped = |value: &Value| plain(value).map(|text| percent(&text));
    Ok(format!("{}={}", parameter.name, listed(value, "%2C", Members::Listed, &escaped)?))
}

/// Joins the values of a list, or the members of an object, with a separator.
fn listed(
    value: &Value,
    between: &str,
    members: Members,
    one: &dyn Fn(&Value) -> Result<String, String>,
) -> Result<String, String> {
    let parts: Result<Vec<String>, String> = match value {
        Value::Array(items) => items.iter().map(one).collect(),
        Value::Object(object) => {
            let sign = if members == Members::Pairs { "=" } else { between };
            let pair = |(key, value): (&String, &Value)| {
                Ok(format!("{}{sign}{}", one(&Value::from(key.as_str()))?, one(value)?))
            };
            object.iter().map(pair).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return one(value),
    };
    Ok(parts?.join(between))
}

/// Encodes a value within a path. Servers and proxies decode escapes and resolve `..`, some of them
/// more than once; so a value that could lead to another path is rejected.
fn segment(value: &Value) -> Result<String, String> {
    let text = plain(value)?;
    let is_step = |part: &str| matches!(part, "." | "..");
    if text.is_empty() {
        return Err("it is empty, and would shorten the path".to_owned());
    }
    if text.split(['/', '\\']).any(is_step) || text.chars().any(char::is_control) {
        return Err("it could mean another path".to_owned());
    }
    Ok(percent(&text))
}
