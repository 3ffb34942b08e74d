//! Builds a command line from the arguments of a call.
//!
//! **Invariant:** a caller's value is one complete argument after `--`, or an argument that does
//! not begin with `-`, or the part after the `=` of an offered flag. There is no fourth way. If a
//! value after `--` begins with `-`, the argument right before `--` cannot be a switch.

use serde_json::{Map, Value as Json};

use crate::help::{Kind, Value, ValueType};

/// Maximum length of a value, in bytes; the kernel accepts no longer argument.
const MAX_VALUE: usize = 100 * 1024;

/// Maximum length of all arguments together, in bytes.
const MAX_LINE: usize = 1024 * 1024;

/// The mapping from the arguments of a tool to a command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Argv {
    /// The first arguments, which a caller cannot change.
    pub(crate) fixed: Vec<String>,
    /// The arguments that a caller may give.
    pub(crate) slots: Vec<Slot>,
    /// The first positional after `--`, if the program supports that.
    pub(crate) separator: Option<usize>,
    /// True if the program reads a value that begins with `@` as a file of arguments.
    pub(crate) response_files: bool,
}

/// The position of one argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    /// The name of the argument in a call.
    pub(crate) key: String,
    pub(crate) required: bool,
    pub(crate) place: SlotKind,
}

/// The kind of position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SlotKind {
    /// A flag.
    Flag {
        /// The flag as typed.
        name: String,
        /// The flag that switches it off.
        negation: Option<String>,
        value: Value,
        repeatable: bool,
        /// True if its value is written after `=`.
        joined: bool,
    },
    /// A positional argument.
    Positional {
        /// The number of the position.
        index: usize,
        times: Times,
    },
}

/// The number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    One,
    Many,
}

/// Flags, in the order in which they are typed.
///
/// Help may be wrong about a switch that does take a value; such a switch must not consume the
/// `--`.
#[derive(Default)]
struct Flags {
    /// `--switch`
    switches: Vec<String>,
    /// `-f value`
    parted: Vec<String>,
    /// `--flag=value`
    joined: Vec<String>,
}

/// The kind of the last flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It cannot consume the next argument.
    Safe,
    /// A switch, according to the help.
    Switch,
}

/// The values of one positional.
struct PositionalValues<'a> {
    index: usize,
    key: &'a str,
    values: Vec<String>,
}

// === impl Flags ===

impl Flags {
    fn end(&self) -> End {
        let only = self.parted.is_empty() && self.joined.is_empty();
        if only && !self.switches.is_empty() { End::Switch } else { End::Safe }
    }
}

// === impl Argv ===

impl Argv {
    /// Builds the command line for these arguments; an error says what is wrong with them.
    pub(crate) fn build(&self, arguments: &Map<String, Json>) -> Result<Vec<String>, String> {
        for key in arguments.keys() {
            if !self.slots.iter().any(|slot| slot.key == *key) {
                return Err(format!("`{key}` is not one of its arguments"));
            }
        }
        let (mut flags, mut places) = (Flags::default(), Vec::new());
        for slot in &self.slots {
            let given = arguments.get(&slot.key).filter(|value| !value.is_null());
            let Some(given) = given else {
                if slot.required {
                    return Err(format!("`{}` is missing", slot.key));
                }
                continue;
            };
            match &slot.place {
                SlotKind::Flag { .. } => self.flag(slot, given, &mut flags)?,
                SlotKind::Positional { index, times } => {
                    let values = values(&slot.key, given, *times)?;
                    if values.is_empty() && slot.required {
                        return Err(format!("`{}` is empty", slot.key));
                    }
                    places.push(PositionalValues { index: *index, key: &slot.key, values });
                }
            }
        }
        let end = flags.end();
        let mut line = [self.fixed.clone(), flags.switches, flags.parted, flags.joined].concat();
        self.positionals(&mut line, places, end)?;
        let size: usize = line.iter().map(|word| word.len() + 1).sum();
        if size > MAX_LINE {
            return Err(format!("the arguments have {size} bytes; the limit is {MAX_LINE}"));
        }
        Ok(line)
    }

    fn positionals(
        &self,
        line: &mut Vec<String>,
        places: Vec<PositionalValues<'_>>,
        end: End,
    ) -> Result<(), String> {
        let (mut next, mut parted, mut safe) = (0, false, end == End::Safe);
        for PositionalValues { index, key, values } in places {
            if values.is_empty() {
                continue;
            }
            let behind = self.separator.is_some_and(|separator| index >= separator);
            // Without the previous positional, this value would take its position.
            let from = if behind { next.max(self.separator.unwrap_or_default()) } else { next };
            if index > from
                && let Some(missing) = self.positional(from)
            {
                return Err(format!("`{key}` cannot be given without `{missing}`"));
            }
            next = index + 1;
            if behind && !parted {
                parted = true;
                line.push("--".to_owned());
            }
            for value in values {
                self.check(key, &value)?;
                if !behind {
                    refuse_dash(key, &value)?;
                    // From here on a value precedes the `--`.
                    safe = true;
                } else if !safe && is_dashed(&value) {
                    return Err(format!(
                        "`{key}` begins with `-`, which is not possible for a program that has only switches"
                    ));
                }
                line.push(value);
            }
        }
        Ok(())
    }

    /// The key of the positional with this number.
    fn positional(&self, number: usize) -> Option<&str> {
        let at = |slot: &&Slot| matches!(slot.place, SlotKind::Positional { index, .. } if index == number);
        self.slots.iter().find(at).map(|slot| slot.key.as_str())
    }

    /// Adds the arguments of a flag.
    fn flag(&self, slot: &Slot, given: &Json, flags: &mut Flags) -> Result<(), String> {
        let SlotKind::Flag { name, negation, value, repeatable, joined } = &slot.place else {
            return Ok(());
        };
        let kind = match (value, given) {
            (Value::None | Value::Optional(_), Json::Bool(true)) => {
                flags.switches.push(name.clone());
                return Ok(());
            }
            (Value::None | Value::Optional(_), Json::Bool(false)) => {
                flags.switches.extend(negation.clone());
                return Ok(());
            }
            (Value::None, _) => return Err(format!("`{}` must be true or false", slot.key)),
            (Value::Required(kind) | Value::Optional(kind), _) => kind,
        };
        let values: Vec<&Json> = match given.as_array().filter(|_| *repeatable) {
            Some(values) => values.iter().collect(),
            None => vec![given],
        };
        for value in values {
            let text = written(&slot.key, value, kind)?;
            self.check(&slot.key, &text)?;
            if *joined {
                flags.joined.push(format!("{name}={text}"));
            } else {
                refuse_dash(&slot.key, &text)?;
                flags.parted.extend([name.clone(), text]);
            }
        }
        Ok(())
    }

    /// Refuses values that no program can receive, and references to files of arguments.
    fn check(&self, key: &str, value: &str) -> Result<(), String> {
        if value.contains('\0') {
            return Err(format!("`{key}` contains a NUL character"));
        }
        if value.len() > MAX_VALUE {
            return Err(format!("`{key}` has {} bytes; the limit is {MAX_VALUE}", value.len()));
        }
        if self.response_files && value.starts_with('@') {
            return Err(format!("`{key}` begins with `@`, which stands for a file of arguments"));
        }
        Ok(())
    }
}

/// True if a value looks like a flag. A single dash does not.
fn is_dashed(value: &str) -> bool {
    value.starts_with('-') && value != "-"
}

/// Refuses a value that would be read as a flag.
fn refuse_dash(key: &str, value: &str) -> Result<(), String> {
    if is_dashed(value) {
        return Err(format!("`{key}` begins with `-` and would be read as a flag"));
    }
    Ok(())
}

/// The values of a positional.
fn values(key: &str, given: &Json, times: Times) -> Result<Vec<String>, String> {
    let kind = Kind::default();
    match (given, times) {
        (Json::Array(values), Times::Many) => {
            values.iter().map(|value| written(key, value, &kind)).collect()
        }
        (one, Times::One | Times::Many) => Ok(vec![written(key, one, &kind)?]),
    }
}

/// Formats a value as typed, if it is valid for the flag.
fn written(key: &str, value: &Json, kind: &Kind) -> Result<String, String> {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        Json::Bool(flag) => flag.to_string(),
        Json::Null | Json::Array(_) | Json::Object(_) => {
            return Err(format!("`{key}` is neither a string nor a number"));
        }
    };
    let fits = match kind.value_type {
        ValueType::Text => true,
        ValueType::Integer => text.parse::<i128>().is_ok(),
        ValueType::Number => text.parse::<f64>().is_ok_and(f64::is_finite),
        ValueType::Boolean => matches!(text.as_str(), "true" | "false"),
    };
    if !fits {
        return Err(format!("`{key}` is not {}", kind.value_type.article()));
    }
    if !kind.choices.is_empty() && !kind.choices.contains(&text) {
        return Err(format!("`{key}` is not one of {}", kind.choices.join(", ")));
    }
    Ok(text)
}

// === impl ValueType ===

impl ValueType {
    fn article(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
        }
    }
}
