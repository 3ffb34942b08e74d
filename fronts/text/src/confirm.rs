//! Asks a person on the terminal whether a call may run.

use capstan_hub::Ground;
use capstan_hub::approvals::{Extent, Layout, Masks, ShownArguments, Span, Width};
use capstan_hub::ports::{Approval, Question};
use capstan_model::Kind;

use crate::clean::{one_line, wrap};
use crate::form::{Closed, Prompter};
use crate::panel::{self, After, Room, Seen};

/// Maximum length of a name.
const MAX_NAME: usize = 120;

/// Columns of the label before a fact.
const LABEL: usize = 10;

/// Minimum columns of a fact, so that a digest is never broken.
const MIN_FACT: usize = 64;

/// Minimum columns of the first line.
const MIN_LINE: usize = 20;

/// Maximum number of choices that a terminal shows at the same time.
const MAX_CHOICES: usize = 7;

/// A call that a person is asked about, in display form.
pub struct Shown<'a> {
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The server of the item.
    pub server: &'a str,
    /// The server's own name for the item.
    pub name: &'a str,
    /// Labels and their texts.
    pub facts: Vec<(&'static str, String)>,
    /// The arguments, with secrets masked.
    pub arguments: &'a ShownArguments,
    /// The arguments without masks; set only if something is masked in `arguments`.
    pub unmasked: Option<ShownArguments>,
}

/// Asks a person to approve a call.
///
/// Closing the question is a refusal, and so is the preselected answer.
pub fn ask(prompter: &mut dyn Prompter, question: &Question) -> Approval {
    let Question { id, kind, effect, rule, offers, caller, .. } = question;
    let (server, name) = (id.server.as_str(), id.item.as_str());
    let facts = vec![
        ("effect", effect.as_str().to_owned()),
        ("caller", caller.subject.clone()),
        ("rule", rule.clone()),
    ];
    let arguments = &question.shown_arguments(Layout::Full);
    let unmasked = || {
        let sha256 = arguments.sha256.clone();
        ShownArguments::of(&question.arguments, sha256, Layout::Full, Masks::Nothing)
    };
    let unmasked = (arguments.masked > 0).then(unmasked);
    let shown = Shown { kind: *kind, server, name, facts, arguments, unmasked };
    let mut choices: Vec<String> =
        offers.iter().map(|extent| choice(*extent, server, &quotable(name, '`'))).collect();
    choices.extend(["no", "cancel"].map(str::to_owned));
    match run_it(prompter, &shown, &choices, offers.len()).and_then(|place| offers.get(place)) {
        Some(extent) => Approval::Yes(Ground::Asked, *extent),
        None => Approval::No(Ground::Refused),
    }
}

/// Shows a call with all of its arguments and asks the person to choose; the refusal is
/// preselected.
///
/// Returns the index of the choice; `no` is the index of the refusal. `None` if the question is
/// closed.
pub fn run_it(
    prompter: &mut dyn Prompter,
    shown: &Shown<'_>,
    choices: &[String],
    no: usize,
) -> Option<usize> {
    let mut choices: Vec<&str> = choices.iter().map(String::as_str).collect();
    let more = choices.len();
    choices.extend(shown.unmasked.as_ref().map(|_| "show the masked values"));
    let below = choices.len().min(MAX_CHOICES) + 2;
    let mut seen = present(prompter, shown, below, After::Question);
    loop {
        match seen {
            Ok(Seen::Enough) => {}
            Ok(Seen::Refused) => return Some(no),
            Err(Closed) => return None,
        }
        let chosen = prompter.select("Run it?", &choices, no).ok()?;
        let Some(unmasked) = shown.unmasked.as_ref().filter(|_| chosen == more) else {
            return Some(chosen);
        };
        let (columns, _) = prompter.size();
        let room = Room { above: 0, below, after: After::Question };
        seen = panel::show(prompter, &panel::lines(&unmasked.text, columns), room);
    }
}

/// Shows a call with all of its arguments; `below` more lines must fit on the screen.
pub fn present(
    prompter: &mut dyn Prompter,
    shown: &Shown<'_>,
    below: usize,
    after: After,
) -> Result<Seen, Closed> {
    let (columns, _) = prompter.size();
    let head = head(shown, columns);
    prompter.say(&head.join("\n"));
    let room = Room { above: head.len(), below, after };
    panel::show(prompter, &panel::lines(&shown.arguments.text, columns), room)
}

/// The description of a call, without its arguments.
pub fn head(shown: &Shown<'_>, columns: usize) -> Vec<String> {
    let Shown { kind, server, name, facts, arguments, .. } = shown;
    let first = format!("may the {} `{}` of `{server}` run?", kind.as_str(), quotable(name, '`'));
    let mut head = Vec::new();
    for line in wrap(&first, columns.saturating_sub(5).max(MIN_LINE)) {
        // Without indentation, a later line could look like one of ours.
        let indent = if head.is_empty() { "" } else { "    " };
        head.push(format!("{indent}{line}"));
    }
    let summary = [("arguments", arguments.summary()), ("sha256", arguments.sha256.clone())];
    for (label, text) in facts.iter().chain(&summary) {
        let mut label = *label;
        for line in wrap(text, columns.saturating_sub(LABEL + 4).max(MIN_FACT)) {
            head.push(format!("  {label:<LABEL$} {line}"));
            label = "";
        }
    }
    head
}

/// Escapes a name that another program chose and shortens it to one line within `quote`s.
pub fn quotable(name: &str, quote: char) -> String {
    one_line(&name.replace(quote, &quote.escape_unicode().to_string()), MAX_NAME)
}

/// The text of a choice for a person.
pub fn choice(extent: Extent, server: &str, item: &str) -> String {
    let Extent::Wider(width, span) = extent else { return "yes, this once".to_owned() };
    let what = match width {
        Width::Item => format!("`{item}`"),
        Width::Arguments => format!("`{item}` with these arguments"),
        Width::ServerReads => format!("all reads of `{server}`"),
        Width::Server => format!("all calls of `{server}`"),
    };
    match span {
        Span::Session => format!("yes, and {what} for this session"),
        Span::Saved => format!("yes, and {what} from now on"),
    }
}

/// The extent of an approval, from the options of the command line.
pub fn extent(width: Option<Width>, span: Option<Span>) -> Extent {
    match (width, span) {
        (None, _) => Extent::Once,
        (Some(width), span) => Extent::Wider(width, span.unwrap_or(Span::Session)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test prompter that picks these indices and records what was shown.
    struct Person {
        picks: Vec<usize>,
        shown: Vec<String>,
    }

    impl Prompter for Person {
        fn say(&mut self, line: &str) {
            self.shown.push(line.to_owned());
        }

        fn text(&mut self, _: &str) -> Result<String, Closed> {
            Err(Closed)
        }

        fn secret(&mut self, _: &str) -> Result<String, Closed> {
            Err(Closed)
        }

        fn confirm(&mut self, _: &str, _: Option<bool>) -> Result<bool, Closed> {
            Err(Closed)
        }

        fn select(&mut self, _: &str, options: &[&str], _: usize) -> Result<usize, Closed> {
            self.shown.push(options.join("/"));
            self.picks.pop().ok_or(Closed)
        }

        fn multi_select(&mut self, _: &str, _: &[&str], _: &[usize]) -> Result<Vec<usize>, Closed> {
            Err(Closed)
        }
    }

    fn arguments(text: &str) -> ShownArguments {
        ShownArguments { text: text.to_owned(), ..ShownArguments::default() }
    }

    fn shown<'a>(name: &'a str, arguments: &'a ShownArguments) -> Shown<'a> {
        let facts = vec![("rule", "default".to_owned())];
        Shown { kind: Kind::Tool, server: "f", name, facts, arguments, unmasked: None }
    }

    #[test]
    fn a_long_name_stays_within_the_columns_and_begins_no_line() {
        for name in ["x".repeat(120), "may the tool `a` run? ".repeat(6)] {
            let arguments = arguments("{}");
            let head = head(&shown(&name, &arguments), 80);
            let first = head.iter().position(|line| line.starts_with("  rule")).unwrap();
            assert!(first > 1, "{head:?}");
            assert!(head.iter().take(first).all(|line| line.chars().count() < 80), "{head:?}");
            let later = head.iter().take(first).skip(1);
            assert!(later.into_iter().all(|line| line.starts_with("    ")), "{head:?}");
        }
    }

    #[test]
    fn masked_values_are_shown_to_who_asks_for_them_and_the_question_comes_again() {
        let masked = arguments("***");
        let unmasked = Some(arguments("rm -rf ~"));
        let shown = Shown { unmasked, ..shown("t", &masked) };
        let choices = ["yes", "no"].map(str::to_owned);
        let mut person = Person { picks: vec![0, 2], shown: Vec::new() };
        assert_eq!(run_it(&mut person, &shown, &choices, 1), Some(0));
        let said = person.shown.join("\n");
        let (before, after) = said.split_once("yes/no/show the masked values").unwrap();
        assert!(!before.contains("rm -rf") && after.contains("│ rm -rf ~"), "{said}");
    }

    #[test]
    fn there_is_nothing_more_to_show_where_nothing_is_masked() {
        let arguments = arguments("{}");
        let choices = ["yes", "no"].map(str::to_owned);
        let mut person = Person { picks: vec![1], shown: Vec::new() };
        assert_eq!(run_it(&mut person, &shown("t", &arguments), &choices, 1), Some(1));
        assert_eq!(person.shown.last().map(String::as_str), Some("yes/no"));
    }
}
