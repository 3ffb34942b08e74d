//! Makes a tool of a command: a name, a strict schema, and the mapping to a command line.

use capstan_wire::Json;
use serde_json::{Map, Value as JsonValue, json};

use crate::allowed::Allowed;
use crate::argv::{Argv, Slot, SlotKind, Times};
use crate::discover::{Command, Found};
use crate::forbidden_flags::{Of, is_offered, makes_write, runs_others};
use crate::help::{Flag, Kind, Positional, Program, Value, ValueType};
use crate::preset::preset;
use crate::read_only::may_read;
use crate::settings::CommandSettings;

/// Maximum number of flags of one tool.
const MAX_FLAGS: usize = 300;

/// Maximum length of an argument's description, in bytes.
const MAX_DESCRIPTION: usize = 200;

/// Programs that accept `--flag=value` although their help writes it differently.
const TAKES_EQUALS: &[&str] = &["git", "npm"];

/// Programs that read arguments from a file for `@FILE`, even if their help does not say so.
const RESPONSE_FILES: &[&str] = &[
    "ar", "as", "c++", "cc", "clang", "clang++", "g++", "gcc", "jar", "java", "javac", "javadoc",
    "ld", "nm", "objcopy", "objdump", "ranlib", "rustc", "strip",
];

/// The property for arguments if the positionals are unknown.
const REST: &str = "args";

/// A tool of a program.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its definition, in the protocol's format.
    pub definition: Json,
    pub(crate) argv: Argv,
}

/// The tools of a program: those of the configuration, else the discovered ones.
///
/// # Errors
/// If a preset uses a subcommand that is not allowed.
pub fn tools(settings: &CommandSettings, found: &Found) -> Result<Vec<Tool>, String> {
    if !settings.presets.is_empty() {
        return settings.presets.iter().map(|entry| preset(settings, entry)).collect();
    }
    // Checked again, because the commands may come from a cache file.
    let allowed = Allowed::new(settings.only.as_deref());
    let mut tools: Vec<Tool> = Vec::new();
    for command in found.commands.iter().filter(|command| allowed.runs(&command.path)) {
        // A word that begins with a dash is a flag, whatever its origin.
        if command.path.iter().any(|word| word.starts_with('-')) {
            continue;
        }
        let runs_others = runs_others(settings.binary(), &command.path, command.help.as_ref());
        if runs_others && !allowed.names(&command.path) {
            continue;
        }
        let taken = |name: &str| tools.iter().any(|tool| tool.name == name);
        let name = free(&name_of(settings.binary(), &command.path), &taken);
        tools.push(made(settings, command, name));
    }
    Ok(tools)
}

// === impl Tool ===

impl Tool {
    /// The command line of a call; an error says what is wrong with its arguments.
    pub fn command_line(&self, arguments: &Map<String, JsonValue>) -> Result<Vec<String>, String> {
        self.argv.build(arguments)
    }
}

/// `git remote set-url` → `git_remote_set_url`.
fn name_of(binary: &str, path: &[String]) -> String {
    let words = std::iter::once(binary).chain(path.iter().map(String::as_str));
    let joined = words.collect::<Vec<_>>().join("_");
    joined.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The name, with a number appended if it is taken.
fn free(name: &str, taken: &dyn Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_else(|| name.to_owned())
}

fn made(settings: &CommandSettings, command: &Command, name: String) -> Tool {
    let unknown = Program::default();
    let help = command.help.as_ref().unwrap_or(&unknown);
    let binary = settings.binary();
    let mut schema = Schema::default();
    let takes = help.conventional || TAKES_EQUALS.contains(&binary);
    let equals = if takes { Equals::Taken } else { Equals::AsWritten };
    let of = if command.path.is_empty() { Of::Program } else { Of::Subcommand };
    let offered = |flag: &&Flag| is_offered(flag, of) && !makes_write(binary, &command.path, flag);
    for flag in help.flags.iter().filter(offered).take(MAX_FLAGS) {
        schema.flag(flag, equals);
    }
    if help.has_usage {
        for (index, positional) in help.positionals.iter().enumerate() {
            schema.positional(index, positional, behind(help, index));
        }
    } else {
        schema.rest(behind(help, 0));
    }
    let argv = Argv {
        fixed: settings.args.iter().chain(&command.path).cloned().collect(),
        slots: schema.slots,
        separator: help.separator,
        response_files: help.response_files || RESPONSE_FILES.contains(&binary),
    };
    let runs = std::iter::once(binary).chain(command.path.iter().map(String::as_str));
    let runs = runs.collect::<Vec<_>>().join(" ");
    let summary = command.summary.trim();
    let description = match summary {
        "" => format!("Runs `{runs}`."),
        summary if summary.ends_with(['.', '…', '!']) => format!("{summary} Runs `{runs}`."),
        summary => format!("{summary}. Runs `{runs}`."),
    };
    let input = json!({
        "type": "object",
        "properties": schema.properties,
        "required": schema.required,
        "additionalProperties": false,
    });
    let hint = if may_read(binary, &command.path, summary) { Hint::None } else { Hint::Writes };
    let definition = define(&name, &description, &input, hint);
    Tool { name, definition, argv }
}

/// The effect that a definition declares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    None,
    Writes,
}

/// Composes a definition in the protocol's format.
pub(crate) fn define(name: &str, description: &str, input: &JsonValue, hint: Hint) -> Json {
    let mut whole = json!({ "name": name, "description": description, "inputSchema": input });
    if hint == Hint::Writes {
        add(&mut whole, "annotations", json!({ "readOnlyHint": false }));
    }
    // This serialization cannot fail; an empty object would be harmless.
    Json::from_value(&whole).unwrap_or_else(|_| Json::empty_object())
}

/// Tells if values of this positional may begin with a dash.
fn behind(help: &Program, index: usize) -> Dash {
    match help.separator {
        Some(separator) if index >= separator => Dash::Fine,
        Some(_) | None => Dash::Refused,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dash {
    Fine,
    Refused,
}

/// Tells if a program accepts `--flag=value` where its help writes `--flag value`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equals {
    Taken,
    AsWritten,
}

/// A schema under construction.
#[derive(Default)]
struct Schema {
    properties: Map<String, JsonValue>,
    required: Vec<String>,
    slots: Vec<Slot>,
}

// === impl Schema ===

impl Schema {
    fn flag(&mut self, flag: &Flag, equals: Equals) {
        let name = flag.name().to_owned();
        let long = name.starts_with("--");
        let joined = match &flag.value {
            Value::None => false,
            Value::Required(kind) => kind.joined || (long && equals == Equals::Taken),
            // An optional value can only follow `=`.
            Value::Optional(kind) => kind.joined || long,
        };
        let value = match &flag.value {
            // A short flag with an optional value can only be used without it.
            Value::Optional(_) if !joined => Value::None,
            Value::None | Value::Required(_) | Value::Optional(_) => flag.value.clone(),
        };
        let key = self.key(name.trim_start_matches('-'));
        let mut schema = of_value(&value);
        if flag.repeatable && matches!(value, Value::Required(_)) {
            schema = json!({ "type": "array", "items": schema });
        }
        describe(&mut schema, &flag.summary);
        let (negation, repeatable) = (flag.negation.clone(), flag.repeatable);
        let place = SlotKind::Flag { name, negation, value, repeatable, joined };
        self.properties.insert(key.clone(), schema);
        self.slots.push(Slot { key, required: false, place });
    }

    fn positional(&mut self, index: usize, positional: &Positional, dash: Dash) {
        let name = if positional.name.is_empty() { "arg" } else { positional.name.as_str() };
        let key = if self.properties.contains_key(name) {
            self.key(&format!("{name}_arg"))
        } else {
            self.key(name)
        };
        let mut text = json!({ "type": "string" });
        if !positional.choices.is_empty() {
            add(&mut text, "enum", json!(positional.choices));
        }
        let (times, mut schema) = if positional.repeated {
            (Times::Many, json!({ "type": "array", "items": text }))
        } else {
            (Times::One, text)
        };
        if positional.repeated && positional.required {
            add(&mut schema, "minItems", json!(1));
        }
        let note = match dash {
            Dash::Fine => "",
            Dash::Refused => "May not begin with `-`.",
        };
        describe(&mut schema, &format!("{} {note}", positional.summary));
        if positional.required {
            self.required.push(key.clone());
        }
        self.properties.insert(key.clone(), schema);
        let place = SlotKind::Positional { index, times };
        self.slots.push(Slot { key, required: positional.required, place });
    }

    /// Adds a list of arguments, if the help does not describe them.
    fn rest(&mut self, dash: Dash) {
        let summary =
            "The arguments after the subcommand; its help could not be parsed.".to_owned();
        let name = REST.to_owned();
        let rest = Positional { name, repeated: true, summary, ..Positional::default() };
        self.positional(0, &rest, dash);
    }

    /// A key that is not taken.
    fn key(&self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        free(&name, &|name| self.properties.contains_key(name))
    }
}

/// The schema of a value.
fn of_value(value: &Value) -> JsonValue {
    match value {
        Value::None => json!({ "type": "boolean" }),
        Value::Required(kind) => of_kind(kind),
        Value::Optional(kind) if kind.choices.is_empty() => {
            json!({ "type": ["boolean", "string"] })
        }
        Value::Optional(kind) => {
            let words = kind.choices.iter().map(|choice| json!(choice));
            json!({ "enum": std::iter::once(json!(true)).chain(words).collect::<Vec<_>>() })
        }
    }
}

fn of_kind(kind: &Kind) -> JsonValue {
    let (word, default) = match kind.value_type {
        ValueType::Text => ("string", kind.default.as_ref().map(|text| json!(text))),
        ValueType::Integer => ("integer", parsed::<i64>(kind)),
        ValueType::Number => ("number", parsed::<f64>(kind)),
        ValueType::Boolean => ("boolean", parsed::<bool>(kind)),
    };
    let mut schema = json!({ "type": word });
    if !kind.choices.is_empty() {
        add(&mut schema, "enum", json!(kind.choices));
    }
    if let Some(default) = default {
        add(&mut schema, "default", default);
    }
    schema
}

fn parsed<T: std::str::FromStr + serde::Serialize>(kind: &Kind) -> Option<JsonValue> {
    kind.default.as_ref()?.parse::<T>().ok().map(|value| json!(value))
}

fn describe(schema: &mut JsonValue, summary: &str) {
    let summary = summary.trim();
    let cut = summary.get(..summary.floor_char_boundary(MAX_DESCRIPTION)).unwrap_or_default();
    if !cut.is_empty() {
        add(schema, "description", json!(cut));
    }
}

fn add(schema: &mut JsonValue, key: &str, value: JsonValue) {
    if let JsonValue::Object(members) = schema {
        members.insert(key.to_owned(), value);
    }
}
