//! Finds the environment variable that a failed server lacks.

use capstan_model::ServerName;

use crate::settings::Withheld;

/// Phrases with which programs say that a variable is missing.
const MISSING: [&str; 9] = [
    "not set",
    "missing",
    "required",
    "must be set",
    "must set",
    "undefined",
    "not defined",
    "environment variable",
    "keyerror",
];

/// The line of configuration that passes the variable on which the server's output complains about.
///
/// A variable of the shell that the server names is enough evidence; one that nobody has set counts
/// only where the output says that it is missing.
pub(crate) fn remedy(
    server: &ServerName,
    withheld: &Withheld,
    output: &[String],
) -> Option<String> {
    let kept_back =
        |line: &String| words(line).find(|word| withheld.names.contains(*word)).map(str::to_owned);
    let unset = |line: &String| {
        let text = line.to_lowercase();
        let says_so = MISSING.iter().any(|phrase| text.contains(phrase));
        let mut names =
            words(line).filter(|word| word.contains('_') && !withheld.given.contains(*word));
        names.find(|_| says_so).map(str::to_owned)
    };
    let (name, state) = match output.iter().rev().find_map(kept_back) {
        Some(name) => (name, "is set in your shell but not passed on"),
        None => (output.iter().rev().find_map(unset)?, "is not set; set it in your shell"),
    };
    let names = withheld.passed.iter().chain([&name]).map(|name| format!("\"{name}\""));
    let list = names.collect::<Vec<_>>().join(", ");
    Some(format!(
        "`{name}` {state}; to pass it on, write `env_passthrough = [{list}]` under `[servers.{server}]`"
    ))
}

/// The words of a line that can be names of variables.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(move |word| {
        word.len() > 2
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let withheld = Withheld {
            names: names(&["WEATHER_TOKEN", "KEY"]),
            given: names(&["MY_MODE"]),
            passed: vec!["LANG".to_owned()],
        };
        let told = remedy(&"w".parse().unwrap(), &withheld, &["start".to_owned(), line.to_owned()]);
        assert_eq!(told.as_deref(), expected, "{line}");
    }

    #[test]
    fn a_variable_that_the_server_asks_for_is_named_with_its_line() {
        let line = "to pass it on, write `env_passthrough = [\"LANG\", \"WEATHER_TOKEN\"]` under `[servers.w]`";
        let told = format!("`WEATHER_TOKEN` is set in your shell but not passed on; {line}");
        check("Error: WEATHER_TOKEN is not set", Some(&told));
        check("KeyError: 'WEATHER_TOKEN'", Some(&told));
        check("process.env.WEATHER_TOKEN is undefined", Some(&told));
        let line = "to pass it on, write `env_passthrough = [\"LANG\", \"OTHER_KEY\"]` under `[servers.w]`";
        let told = format!("`OTHER_KEY` is not set; set it in your shell; {line}");
        check("OTHER_KEY environment variable is required", Some(&told));
    }

    #[test]
    fn other_words_in_capitals_are_no_variables() {
        for line in [
            "ERROR required file is missing",
            "MY_MODE is required to be fast",
            "OTHER_KEY was accepted",
            "the key is missing",
            "",
        ] {
            check(line, None);
        }
    }
}
