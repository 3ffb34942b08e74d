//! Reads the effect from a tool's arguments.

use capstan_wire::{Json, object};

use super::name::{self, Verb};
use super::word_list::WordList;

/// The evidence in the arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// True if there is a readable schema.
    pub(super) is_known: bool,
    /// True if a part is not examined, so that anything may be there.
    pub(super) is_cut: bool,
    /// An argument that only changes have: `dry_run`, `overwrite`, `output_path`.
    pub(super) of_change: Option<String>,
    /// An argument that names a file.
    pub(super) of_file: Option<String>,
    /// An argument that contains a program.
    pub(super) of_code: Option<String>,
    /// The values of an enumerated action.
    pub(super) choices: Choices,
}

/// The effect of the values of `method`, `action` and the like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Choices {
    /// There is no such argument.
    #[default]
    None,
    /// All of them read.
    Read,
    /// One of them changes something.
    Write(String),
    /// Their effect is unknown.
    Unclear,
}

/// Limits of the examined schema: bytes, arguments, choices.
const MAX_BYTES: usize = 256 * 1024;
const MAX_ARGUMENTS: usize = 200;
const MAX_CHOICES: usize = 100;

static OF_CHANGE: WordList = WordList::new(
    "dry_run overwrite upsert if_not_exists if_exists commit_message confirm \
    confirmation confirmed skip_confirmation idempotency_key allow_overwrite create_if_missing \
    new_name new_value new_path new_title new_content new_text new_status mark_as_read mark_read",
);

/// Words that no argument of a reading tool contains: `delete_after`, `removeExisting`.
static TAKES_AWAY: WordList = WordList::new("delete remove erase purge wipe destroy");

/// First and last words of arguments that name the destination of a result.
static WHERE_TO: WordList =
    WordList::new("output out save download destination dest target export write result");
static PLACES: WordList =
    WordList::new("path paths file filepath filename dir directory folder to as location");

/// Words in the description of an argument that names a file, or puts something into one.
static DESTINATIONS: WordList = WordList::new("destination dest output out");
static FILES: WordList = WordList::new("file files filename path directory folder disk");
static FORMATS: WordList = WordList::new("format formats");
static PUT: WordList = WordList::new("save saves saved saving write writes written store stored");

/// Words in the description of such an argument.
const PUTS: [&str; 6] = ["save", "saving", "write", "written", "store", "output"];

static OF_FILE: WordList = WordList::new(
    "filename file_name file_path filepath path file output outfile directory folder \
    image_path input_path input_file source_path",
);

static OF_CODE: WordList = WordList::new(
    "sql statement command cmd script shell code javascript js python expression \
    function cypher mutation program shell_command sql_query bash",
);

static OF_CHOICE: WordList =
    WordList::new("method action operation op command subcommand verb http_method");

/// Examines a schema.
pub(super) fn read(schema: Option<&Json>) -> Shape {
    let mut shape = Shape::default();
    let Some(schema) = schema else { return shape };
    if schema.len() > MAX_BYTES {
        shape.is_cut = true;
        return shape;
    }
    let Some(properties) = object::get(schema, "properties") else {
        // An object without properties: the tool takes no arguments.
        let is_object = object::get_string(schema, "type").as_deref() == Some("object");
        let [one, two, three, four] = object::peek(schema, ["$ref", "allOf", "anyOf", "oneOf"]);
        shape.is_known = is_object && [one, two, three, four].iter().all(Option::is_none);
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
        let found = |list: &WordList| list.has(&name).then(|| key.chars().take(64).collect());
        shape.of_change = shape.of_change.or_else(|| found(&OF_CHANGE)).or_else(|| {
            let takes_away = name.split('_').any(|word| TAKES_AWAY.has(word));
            let changes = takes_away || takes_result(&name, value);
            changes.then(|| key.chars().take(64).collect())
        });
        shape.of_file =
            shape.of_file.or_else(|| found(&OF_FILE).filter(|_| !is_format(&name, value)));
        if OF_CHOICE.has(&name)
            && let Some(choices) = choices(value)
        {
            shape.choices = std::mem::take(&mut shape.choices).and(choices);
        } else {
            shape.of_code = shape.of_code.or_else(|| found(&OF_CODE));
        }
    }
    // A free choice of the HTTP method includes methods that change something.
    let has = |name: &str| properties.iter().any(|(key, _)| key == name);
    if shape.choices == Choices::None && has("method") && (has("headers") || has("body")) {
        shape.of_change = shape.of_change.or_else(|| Some("method".to_owned()));
    }
    shape
}

/// True if an argument names the destination of a result.
fn takes_result(name: &str, argument: &Json) -> bool {
    let mut words = name.split('_');
    let (first, last) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
    if WHERE_TO.has(first) && PLACES.has(last) {
        return true;
    }
    // `destination` may be a city, but not if it is a folder.
    if DESTINATIONS.has(name) && says(argument, &FILES) {
        return true;
    }
    let is_place = OF_FILE.has(name) || name.ends_with("file_path") || name.ends_with("dir_path");
    let text = || object::get_string(argument, "description").unwrap_or_default().to_lowercase();
    is_place && !is_format(name, argument) && PUTS.iter().any(|word| text().contains(word))
}

/// True if an argument chooses the format of the answer: "Output format. One of: json, yaml".
fn is_format(name: &str, argument: &Json) -> bool {
    let is_list = object::get(argument, "enum").is_some();
    let is_described = says(argument, &FORMATS) && !says(argument, &FILES);
    matches!(name, "output" | "out") && (is_list || is_described) && !says(argument, &PUT)
}

/// True if the description of an argument has one of these words.
fn says(argument: &Json, words: &WordList) -> bool {
    let text = object::get_string(argument, "description").unwrap_or_default().to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '-';
    text.split(|c| !is_part(c)).any(|word| words.has(word))
}

// === impl Choices ===

impl Choices {
    /// Combines two: a write wins, then unclear.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Write(word), _) | (_, Self::Write(word)) => Self::Write(word),
            (Self::Unclear, _) | (_, Self::Unclear) => Self::Unclear,
            (Self::Read, _) | (_, Self::Read) => Self::Read,
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// The effect of the values of one argument; `None` if they are not enumerated.
fn choices(argument: &Json) -> Option<Choices> {
    let values: Vec<serde_json::Value> = object::get(argument, "enum")?.read().ok()?;
    let of_one = |value: &serde_json::Value| {
        let Some(text) = value.as_str() else { return Choices::Unclear };
        match name::read(text) {
            Verb::Thing(word) if !text.eq_ignore_ascii_case(&word) => Choices::Unclear,
            Verb::Destroys(_) | Verb::Writes(_) | Verb::Acts(_) | Verb::Thing(_) => {
                Choices::Write(text.chars().take(64).collect())
            }
            Verb::Reads(_) | Verb::Looks(_) | Verb::ThingRead(_) => Choices::Read,
            Verb::Noun(_)
            | Verb::Torn(..)
            | Verb::Brings(_)
            | Verb::Computes(_)
            | Verb::Nothing
            | Verb::Odd => Choices::Unclear,
        }
    };
    if values.len() > MAX_CHOICES {
        return Some(Choices::Unclear);
    }
    Some(values.iter().map(of_one).fold(Choices::None, Choices::and))
}
