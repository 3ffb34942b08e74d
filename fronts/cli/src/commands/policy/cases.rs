//! The file of `capstan policy test`: calls and their expected verdicts.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use capstan_app::AppError;
use capstan_hub::EntryPoint;
use capstan_model::{Effect, Kind, Target, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

/// Maximum size of a file of cases, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// One case.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Written")]
pub(super) struct Case {
    pub(super) name: Option<String>,
    pub(super) target: Target,
    pub(super) door: EntryPoint,
    pub(super) caller: Option<String>,
    pub(super) roles: Vec<String>,
    pub(super) arguments: Option<Map<String, Value>>,
    pub(super) effect: Option<Effect>,
    pub(super) expect: Verdict,
    pub(super) rule: Option<String>,
}

/// The whole file; `T` is a case, with or without its position.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases<T> {
    #[serde(default = "Vec::new")]
    case: Vec<T>,
}

/// A case as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    front: Option<String>,
    caller: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
    arguments: Option<Map<String, Value>>,
    effect: Option<Effect>,
    expect: String,
    rule: Option<String>,
}

/// Reads the cases of a file; at least one.
pub(super) fn read(path: &Path) -> Result<Vec<Case>, AppError> {
    let shown = path.display().to_string();
    let cannot = |error: std::io::Error| AppError::usage(format!("cannot read `{shown}`: {error}"));
    let mut text = String::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > MAX_FILE {
        return Err(broken(&shown, None, &format!("is larger than {MAX_FILE} bytes")));
    }
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let cases = if is_json { parse_json(&shown, &text) } else { parse_toml(&shown, &text) }?;
    if cases.is_empty() {
        let failure = broken(&shown, None, "has no cases");
        return Err(failure.hint("`capstan policy test --help` shows one"));
    }
    Ok(cases)
}

fn parse_toml(shown: &str, text: &str) -> Result<Vec<Case>, AppError> {
    let line = |start: usize| text.get(..start).map(|before| before.matches('\n').count() + 1);
    let cases: Result<Cases<Spanned<Written>>, toml::de::Error> = toml::from_str(text);
    let cases = cases.map_err(|error| {
        broken(shown, error.span().and_then(|span| line(span.start)), error.message())
    })?;
    let case = |case: Spanned<Written>| {
        let start = case.span().start;
        Case::try_from(case.into_inner()).map_err(|problem| broken(shown, line(start), &problem))
    };
    cases.case.into_iter().map(case).collect()
}

fn parse_json(shown: &str, text: &str) -> Result<Vec<Case>, AppError> {
    let cases: Result<Cases<Case>, serde_json::Error> = serde_json::from_str(text);
    let cases = cases.map_err(|error| {
        let message = error.to_string();
        // The line is reported in our own format.
        let message = message.split(" at line ").next().unwrap_or_default();
        broken(shown, Some(error.line()), message)
    })?;
    Ok(cases.case)
}

fn broken(shown: &str, line: Option<usize>, problem: &str) -> AppError {
    let problem = problem.lines().next().unwrap_or_default();
    let message = match line {
        Some(line) => format!("{shown}:{line}: {problem}"),
        None => format!("{shown} {problem}"),
    };
    AppError::config(message)
}

// === impl Case ===

impl TryFrom<Written> for Case {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let target = match (written.tool, written.resource, written.prompt) {
            (Some(tool), None, None) => Target::tool(tool),
            (None, Some(uri), None) => Target::resource(uri.strip_prefix('@').unwrap_or(&uri)),
            (None, None, Some(prompt)) => Target::prompt(prompt),
            _ => {
                return Err(
                    "a case needs exactly one of `tool`, `resource` and `prompt`".to_owned()
                );
            }
        };
        match target.kind {
            Kind::Resource if written.arguments.is_some() => {
                return Err("a resource has no `arguments`".to_owned());
            }
            Kind::Resource | Kind::Prompt if written.effect.is_some() => {
                return Err(
                    "only tools have an `effect`; resources and prompts always read".to_owned()
                );
            }
            Kind::Tool | Kind::Resource | Kind::Prompt => {}
        }
        let named = written.caller.is_some() || !written.roles.is_empty();
        let door = match written.front {
            Some(word) => one_of(&EntryPoint::ALL, EntryPoint::as_str, "front", &word)?,
            None if named => EntryPoint::Gateway,
            None => EntryPoint::Cli,
        };
        let verdicts = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
        Ok(Self {
            name: written.name,
            target,
            door,
            caller: written.caller,
            roles: written.roles,
            arguments: written.arguments,
            effect: written.effect,
            expect: one_of(&verdicts, Verdict::as_str, "expect", &written.expect)?,
            rule: written.rule,
        })
    }
}

/// Finds the value that a word names.
fn one_of<T: Copy>(
    values: &[T],
    as_str: impl Fn(T) -> &'static str,
    key: &str,
    word: &str,
) -> Result<T, String> {
    values.iter().copied().find(|value| as_str(*value) == word).ok_or_else(|| {
        let words: Vec<String> =
            values.iter().map(|value| format!("`{}`", as_str(*value))).collect();
        format!("`{key}` is `{word}`, but must be one of {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(parsed: Result<Vec<Case>, AppError>, place: &str, word: &str) {
        let message = parsed.unwrap_err().message;
        assert!(message.starts_with(place) && message.contains(word), "{message}");
    }

    #[test]
    fn a_broken_file_is_refused_with_its_line() {
        let good = "[[case]]\ntool = \"linear__x\"\nexpect = \"ask\"\n\n";
        assert_eq!(parse_toml("f", good).unwrap().len(), 1);
        for (text, line, word) in [
            ("[[case]]\ntool = \"a__b\"\nexpect = \n", 7, "value"),
            ("[[case]]\ntool = \"a__b\"\nexpect = \"no\"", 5, "one of `allow`, `ask`, `deny`"),
            ("[[case]]\ntool = \"a__b\"\nexpct = \"ask\"", 7, "unknown field `expct`"),
            ("[[case]]\nexpect = \"ask\"", 5, "one of `tool`, `resource` and `prompt`"),
            ("[[case]]\ntool = \"a__b\"", 5, "missing field `expect`"),
            ("[[cases]]\n", 5, "unknown field `cases`"),
        ] {
            refused(parse_toml("f", &format!("{good}{text}")), &format!("f:{line}: "), word);
        }
        let json = "{\"case\": [\n{\"tool\": \"a__b\", \"expect\": \"ask\"}\n]}";
        assert_eq!(parse_json("f", json).unwrap().len(), 1);
        refused(parse_json("f", &json.replace("ask", "no")), "f:", "one of `allow`");
        refused(parse_json("f", &json.replace("expect", "x")), "f:2: ", "unknown field `x`");
        refused(parse_json("f", "{\"case\": [\n"), "f:2: ", "EOF");
    }

    #[test]
    fn a_case_that_makes_no_sense_is_refused() {
        for (text, word) in [
            ("resource = \"s:x://y\"\narguments = {}", "no `arguments`"),
            ("resource = \"s:x://y\"\neffect = \"read\"", "only tools have an `effect`"),
            ("prompt = \"s:x\"\neffect = \"write\"", "only tools have an `effect`"),
            ("tool = \"s__x\"\nprompt = \"s:x\"", "one of"),
            ("tool = \"s__x\"\nfront = \"window\"", "`cli`, `terminal`, `gateway`, `stdio`"),
            ("tool = \"s__x\"\neffect = \"delete\"", "`delete`"),
            ("tool = \"s__x\"\narguments = [1]", "map"),
        ] {
            refused(parse_toml("f", &format!("[[case]]\nexpect = \"ask\"\n{text}\n")), "f:", word);
        }
    }

    #[test]
    fn whoever_names_a_caller_means_the_gateway() {
        for (text, door) in [
            ("", EntryPoint::Cli),
            ("caller = \"bob\"", EntryPoint::Gateway),
            ("roles = [\"dev\"]", EntryPoint::Gateway),
            ("caller = \"bob\"\nfront = \"stdio\"", EntryPoint::Stdio),
        ] {
            let text = format!("[[case]]\ntool = \"s__x\"\nexpect = \"ask\"\n{text}");
            assert_eq!(parse_toml("f", &text).unwrap()[0].door, door, "{text}");
        }
    }
}
