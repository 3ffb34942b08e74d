//! What the arguments of a tool say about its effect.

use capstan_wire::{Json, object};

use super::name::{self, Said};

/// What the arguments say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether there is a schema that could be read.
    pub(super) is_known: bool,
    /// Whether some of it is not looked at; anything may be there.
    pub(super) is_cut: bool,
    /// An argument that only a change has: `dry_run`, `overwrite`, `output_path`.
    pub(super) of_change: Option<String>,
    /// An argument that names a file.
    pub(super) of_file: Option<String>,
    /// An argument that takes a program.
    pub(super) of_code: Option<String>,
    /// What can be chosen from.
    pub(super) choices: Choices,
}

/// What the values of `method`, `action` and the like do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Choices {
    /// There is no such argument.
    #[default]
    None,
    /// All of them read.
    Read,
    /// One of them changes something.
    Write(String),
    /// It is not known what they do.
    Unclear,
}

/// Largest schema that is looked at, and most arguments of it.
const MAX_BYTES: usize = 256 * 1024;
const MAX_ARGUMENTS: usize = 200;
const MAX_CHOICES: usize = 100;

const OF_CHANGE: &str = "dry_run overwrite upsert if_not_exists if_exists commit_message confirm \
    confirmation confirmed skip_confirmation idempotency_key allow_overwrite create_if_missing \
    new_name new_value new_path new_title new_content new_text new_status mark_as_read mark_read";

/// Words that are in no argument of what only reads: `delete_after`, `removeExisting`.
const TAKES_AWAY: &str = "delete remove erase purge wipe destroy";

/// Arguments that say where a result is put: one of these, and then one of those.
const WHERE_TO: &str = "output out save download destination dest target export write result";
const PLACES: &str = "path paths file filepath filename dir directory folder to as location";

/// What the description of such an argument says of it.
const PUTS: [&str; 6] = ["save", "saving", "write", "written", "store", "output"];

const OF_FILE: &str = "filename file_name file_path filepath path file output outfile directory folder \
    image_path input_path input_file source_path";

const OF_CODE: &str = "sql statement command cmd script shell code javascript js python expression \
    function cypher mutation program shell_command sql_query bash";

const OF_CHOICE: &str = "method action operation op command subcommand verb http_method";

/// Reads a schema.
pub(super) fn read(schema: Option<&Json>) -> Shape {
    let mut shape = Shape::default();
    let Some(schema) = schema else { return shape };
    if schema.len() > MAX_BYTES {
        shape.is_cut = true;
        return shape;
    }
    let Some(properties) = object::get(schema, "properties") else {
        return shape;
    };
    let Ok(properties) = object::members(&properties) else {
        shape.is_cut = true;
        return shape;
    };
    shape.is_known = properties.len() <= MAX_ARGUMENTS;
    shape.is_cut = !shape.is_known;
    for (key, value) in properties.iter().take(MAX_ARGUMENTS) {
        let name = name::tokens(key.chars().take(64)).join("_");
        let found = |list: &str| among(list, &name).then(|| key.chars().take(64).collect());
        shape.of_change = shape.of_change.or_else(|| found(OF_CHANGE)).or_else(|| {
            let takes_away = name.split('_').any(|word| among(TAKES_AWAY, word));
            let changes = takes_away || takes_result(&name, value);
            changes.then(|| key.chars().take(64).collect())
        });
        shape.of_file = shape.of_file.or_else(|| found(OF_FILE));
        if among(OF_CHOICE, &name)
            && let Some(choices) = choices(value)
        {
            shape.choices = std::mem::take(&mut shape.choices).and(choices);
        } else {
            shape.of_code = shape.of_code.or_else(|| found(OF_CODE));
        }
    }
    // Who chooses the method of a request can choose one that changes something.
    let has = |name: &str| properties.iter().any(|(key, _)| key == name);
    if shape.choices == Choices::None && has("method") && (has("headers") || has("body")) {
        shape.of_change = shape.of_change.or_else(|| Some("method".to_owned()));
    }
    shape
}

/// Whether an argument says where a result is put.
fn takes_result(name: &str, argument: &Json) -> bool {
    let mut words = name.split('_');
    let (first, last) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
    if among(WHERE_TO, first) && among(PLACES, last) {
        return true;
    }
    let is_place =
        among(OF_FILE, name) || name.ends_with("file_path") || name.ends_with("dir_path");
    let says = || object::get_string(argument, "description").unwrap_or_default().to_lowercase();
    is_place && PUTS.iter().any(|word| says().contains(word))
}

// === impl Choices ===

impl Choices {
    /// Both together: a change wins, then doubt.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Write(word), _) | (_, Self::Write(word)) => Self::Write(word),
            (Self::Unclear, _) | (_, Self::Unclear) => Self::Unclear,
            (Self::Read, _) | (_, Self::Read) => Self::Read,
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// What the values of one argument do; `None` when they are not listed.
fn choices(argument: &Json) -> Option<Choices> {
    let values: Vec<serde_json::Value> = object::get(argument, "enum")?.read().ok()?;
    let of_one = |value: &serde_json::Value| {
        let Some(text) = value.as_str() else { return Choices::Unclear };
        match name::read(text) {
            Said::Thing(word) if !text.eq_ignore_ascii_case(&word) => Choices::Unclear,
            Said::Destroys(_) | Said::Writes(_) | Said::Acts(_) | Said::Thing(_) => {
                Choices::Write(text.chars().take(64).collect())
            }
            Said::Reads(_) | Said::Looks(_) | Said::ThingRead(_) => Choices::Read,
            Said::Noun(_)
            | Said::Torn(..)
            | Said::Brings(_)
            | Said::Computes(_)
            | Said::Nothing
            | Said::Odd => Choices::Unclear,
        }
    };
    if values.len() > MAX_CHOICES {
        return Some(Choices::Unclear);
    }
    Some(values.iter().map(of_one).fold(Choices::None, Choices::and))
}

fn among(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_whitespace().any(|one| one == word)
}
