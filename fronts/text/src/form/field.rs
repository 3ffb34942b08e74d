//! Reads the fields of a form from its schema.

use capstan_model::secret::is_secret_name;
use capstan_wire::{Json, object};
use serde_json::Value;

use super::rule::{Choice, Format, Kind, Lengths, Range};
use super::{FormError, shown};
use crate::clean::one_line;

/// Maximum length of a displayed description.
const MAX_DESCRIPTION: usize = 500;

/// One question of a form.
#[derive(Debug)]
pub(super) struct Field {
    /// The member of the answer.
    pub(super) name: String,
    /// The text that is shown instead of the name; safe to show.
    pub(super) label: String,
    /// The server's description; safe to show.
    pub(super) description: Option<String>,
    /// True if the field is required.
    pub(super) required: bool,
    /// The default answer; always valid.
    pub(super) default: Option<Json>,
    /// True if the answer is likely a secret.
    pub(super) secret: bool,
    /// The kind of answer.
    pub(super) kind: Kind,
}

/// Reads the fields of a form in the server's order. Optional fields of an unknown kind are left
/// out.
pub(super) fn read(schema: &Json) -> Result<Vec<Field>, FormError> {
    let properties = object::get(schema, "properties").ok_or(FormError::NotAForm)?;
    let members = object::members(&properties).map_err(|_| FormError::NotAForm)?;
    let required = match object::get(schema, "required") {
        Some(list) => list.read::<Vec<String>>().map_err(|_| FormError::NotAForm)?,
        None => Vec::new(),
    };
    let mut fields: Vec<Field> = Vec::new();
    for (name, property) in members {
        // A duplicate name is ambiguous.
        if fields.iter().any(|field| field.name == name) {
            return Err(FormError::NotAForm);
        }
        let must = required.contains(&name);
        let field = Field::read(name, &property);
        fields.extend(field.map(|field| Field { required: must, ..field }));
    }
    match required.into_iter().find(|name| !fields.iter().any(|field| field.name == *name)) {
        Some(name) => Err(FormError::Unsupported { name: shown(&name) }),
        None => Ok(fields),
    }
}

// === impl Field ===

impl Field {
    fn read(name: String, property: &Json) -> Option<Self> {
        let value: Value = property.read().ok()?;
        let kind = kind(&value)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let title = text("title").filter(|title| !title.trim().is_empty());
        let tells = |word: &str| is_secret_name(&word.replace(' ', "_"));
        let secret = tells(&name) || title.is_some_and(tells) || text("format") == Some("password");
        let default = object::get(property, "default").filter(|value| kind.check(value).is_ok());
        Some(Self {
            label: shown(title.unwrap_or(&name)),
            description: text("description").map(|text| one_line(text, MAX_DESCRIPTION)),
            required: false,
            name,
            default,
            secret,
            kind,
        })
    }
}

/// The kind of answer that a property takes.
fn kind(property: &Value) -> Option<Kind> {
    if let Some(options) = options(property) {
        return Some(Kind::Choice(options));
    }
    let number = |key: &str| property.get(key).and_then(Value::as_f64);
    let range = Range { min: number("minimum"), max: number("maximum") };
    match type_word(property)? {
        "string" => Some(Kind::Text {
            lengths: lengths(property, "minLength", "maxLength"),
            format: property.get("format").and_then(Value::as_str).and_then(Format::from_word),
        }),
        "integer" => Some(Kind::Integer(range)),
        "number" => Some(Kind::Number(range)),
        "boolean" => Some(Kind::Boolean),
        "array" => Some(Kind::Choices {
            options: options(property.get("items")?)?,
            lengths: lengths(property, "minItems", "maxItems"),
        }),
        _ => None,
    }
}

/// The type, or the first of several that is not null.
fn type_word(property: &Value) -> Option<&str> {
    let word = property.get("type")?;
    match word.as_array() {
        Some(words) => words.iter().filter_map(Value::as_str).find(|word| *word != "null"),
        None => word.as_str(),
    }
}

fn lengths(property: &Value, min: &str, max: &str) -> Lengths {
    let limit = |key: &str| property.get(key).and_then(Value::as_u64);
    let count = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    Lengths { min: limit(min).map(count), max: limit(max).map(count) }
}

/// The choices of a property, in any of the notations that servers use.
fn options(property: &Value) -> Option<Vec<Choice>> {
    let list = |key: &str| property.get(key).and_then(Value::as_array);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let options: Vec<Choice> = if let Some(values) = list("enum") {
        let names = list("enumNames").cloned().unwrap_or_default();
        let titles = names.iter().map(text).chain(std::iter::repeat(None));
        values.iter().zip(titles).filter_map(|(value, title)| choice(value, title)).collect()
    } else {
        let titled = list("oneOf").or_else(|| list("anyOf"))?;
        let read =
            |option: &Value| choice(option.get("const")?, option.get("title").and_then(text));
        titled.iter().map(read).collect::<Option<_>>()?
    };
    (!options.is_empty()).then_some(options)
}

fn choice(value: &Value, title: Option<String>) -> Option<Choice> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let json = Json::from_value(value).ok()?;
    let title = title.filter(|title| !title.trim().is_empty()).unwrap_or(text);
    Some(Choice { value: json, title: shown(&title) })
}
