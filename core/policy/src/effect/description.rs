//! Reads the effect from a tool's description.
//!
//! It uses the first verb of the first sentence, the verbs joined to it, and statements of later
//! sentences about the tool.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::foreign;
use super::sentence::{lower, sentences, without_label};
use super::word_list::{Phrases, WordList, mentions};
use super::words::{self, Form, Sense};

/// The evidence in a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DescriptionEvidence {
    /// The verb of the first sentence.
    pub(super) head: Option<Head>,
    /// A verb of change that is joined to it: "get or *update*".
    pub(super) joined: Option<String>,
    /// A change that a later sentence mentions.
    pub(super) later: Option<String>,
    /// True if it claims that nothing is changed.
    pub(super) claims_read: bool,
    /// True if it mentions a query language that can also express changes.
    pub(super) speaks_sql: bool,
    /// The words of the first sentence that are no verbs of change: "information about a deploy".
    nouns: Vec<String>,
}

/// The verb of the first sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The kind of action.
    pub(super) does: Action,
    /// The verb as written.
    pub(super) word: String,
}

/// The kind of action in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Changes something.
    Writes,
    /// Makes something happen.
    Acts,
    /// Changes something, if the word is a verb and not a noun.
    Thing,
    /// Fetches something.
    Brings,
    /// Reads something.
    Reads,
    /// Searches or the like.
    Looks,
    /// Computes something.
    Computes,
    /// Takes a picture of a page or a screen.
    Pictures,
}

/// The connection of a verb to the head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VerbDistance {
    /// Only verbs and joints in between: "list, create or close".
    Chain,
    /// Other words in between.
    Apart,
}

/// Maximum distance of the verb from the start of the first sentence, in words.
const MAX_BEFORE_HEAD: usize = 16;

/// Words before a verb that carry no meaning: "This tool allows you to …".
static LEAD_INS: WordList = WordList::new(
    "this tool tools the a an that which use used using to for you your user users \
    agent agents assistant model llm ai function command api endpoint method utility allows allow \
    lets let helps help can will may it is be simple mcp server also please optionally and or \
    description summary purpose important note step simply only claude able always either both \
    deprecated beta experimental preferred primary main",
);

/// First words of a later sentence that is about the tool.
static ABOUT_ITSELF: WordList = WordList::new(
    "this tool it also will then automatically optionally the function command \
    operation action call can may be used to if needed and",
);

/// Verbs whose meaning depends on their noun, and nouns that make them reads.
static LIGHT: WordList =
    WordList::new("perform run execute conduct do make initiate carry submit issue");
static READING_NOUNS: WordList = WordList::new(
    "search searches query queries lookup lookups analysis comparison \
    research",
);
static COMPUTING_NOUNS: WordList = WordList::new(
    "arithmetic calculation calculations computation computations \
    conversion conversions validation estimation",
);

/// Objects that someone is given, and objects that are handed in: "Gives a role to a member".
static GIVEN: WordList = WordList::new(
    "role roles permission permissions access credit credits points item items \
    reward kudos money gift award badge feedback consent approval",
);
static HANDED_IN: WordList =
    WordList::new("feedback consent rating input answer approval credentials");

/// Words after "reports" when it announces a result: "Reports the slowest queries".
static REPORTED: WordList = WordList::new("the on which how whether all");

/// First words of a description that names information: "Latest exchange rates".
static STATES: WordList =
    WordList::new("current latest recent available upcoming historical live number");

/// Words before which a change is a verb: "to deploy", "and deploy".
static BEFORE_VERBS: WordList = WordList::new("to will can may and or then also , / & you");

/// Objects for which "check" means to click.
static BOXES: WordList = WordList::new("checkbox checkboxes radio box boxes toggle");

static NEGATIONS: WordList = WordList::new(
    "not never without no cannot don't doesn't won't nor neither avoid instead \
    isn't before after unless when once",
);

/// Words that follow a noun.
static AFTER_NOUNS: WordList =
    WordList::new("of in for from on with by and or , / that which to as at are is were");

/// Verbs of change that later sentences use for a tool's input: "Accepts a name".
const TAKES: [&str; 8] =
    ["accept", "enable", "handle", "appl", "combine", "follow", "extend", "authenticat"];

/// Phrases that claim that nothing is changed.
const CLAIMS: [&str; 14] = [
    "read-only",
    "read only",
    "readonly",
    "does not modify",
    "doesn't modify",
    "does not change",
    "does not alter",
    "without modifying",
    "without changing",
    "without altering",
    "no side effects",
    "nothing is changed",
    "nothing is modified",
    "never modifies",
];

/// Parses a description.
pub(super) fn read(description: &str) -> DescriptionEvidence {
    let text = lower(description);
    let sentences = sentences(without_label(&text));
    let Some((first, rest)) = sentences.split_first() else {
        return DescriptionEvidence::default();
    };
    let head = head(first);
    let mut evidence = DescriptionEvidence {
        joined: head.as_ref().and_then(|(at, _)| joined(first, *at)),
        head: head.and_then(|(at, does)| Some(Head::new(does, first.get(at)?))),
        later: later(first, rest),
        claims_read: claims_read(&text),
        speaks_sql: words::names_language(&text),
        nouns: nouns(first),
    };
    if evidence.head.is_none() && is_information(first) {
        evidence.head = Some(Head::new(Action::Looks, "information"));
    }
    if evidence.head.is_none() {
        match foreign::read(&text) {
            Some(foreign::VerbEffect::Writes(word)) => {
                evidence.head = Some(Head::new(Action::Writes, word));
            }
            Some(foreign::VerbEffect::Reads(word)) => {
                evidence.head = Some(Head::new(Action::Reads, word));
            }
            None => {}
        }
    }
    evidence
}

// === impl DescriptionEvidence ===

impl DescriptionEvidence {
    /// True if the first sentence uses a verb of change as a noun: "Get a delegate's statement".
    pub(super) fn uses_as_noun(&self, change: &str) -> bool {
        let is_form = |rest: &str| matches!(rest, "" | "ment" | "'s" | "ments");
        self.nouns.iter().any(|word| word.strip_prefix(change).is_some_and(is_form))
    }
}

// === impl Head ===

impl Head {
    fn new(does: Action, word: &str) -> Self {
        Self { does, word: word.to_owned() }
    }
}

/// The verb of the first sentence, and its position.
fn head(words: &[&str]) -> Option<(usize, Action)> {
    let mut is_inside = false;
    for (at, word) in words.iter().enumerate().take(MAX_BEFORE_HEAD) {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).copied().unwrap_or_default();
        let after = words.get(at + 1).copied().unwrap_or_default();
        if is_lead_in(word, words.get(at + 1..).unwrap_or_default()) {
            continue;
        }
        if words::tells(word) && (!is_inside || word.ends_with('s')) {
            let mut objects = words.iter().skip(at + 1).take(3);
            let hands_over = match word.trim_end_matches('s') {
                "give" => objects.any(|object| GIVEN.has(object)),
                "provide" => objects.any(|object| HANDED_IN.has(object)),
                _ => false,
            };
            return Some((at, if hands_over { Action::Acts } else { Action::Reads }));
        }
        if let Some((sense, form)) = words::verb(word) {
            let is_verb = match form {
                Form::Base => !is_inside || matches!(before, "to" | "will" | "can" | "may"),
                // "Records changes", but "Records of a person".
                Form::Third if sense == Sense::Thing => {
                    words::leads_to_object(after) || !(is_inside || AFTER_NOUNS.has(after))
                }
                Form::Third if sense == Sense::Looks => !is_inside || words::leads_to_object(after),
                // Within a sentence, a plural is more likely than a verb.
                Form::Third if is_inside => sense == Sense::Reads || words::leads_to_object(after),
                Form::Third => true,
                Form::Ing => before == "for",
            };
            if is_verb {
                let rest = words.get(at + 1..).unwrap_or_default();
                return Some((at, taken(word, sense, rest)));
            }
        }
        is_inside = true;
    }
    None
}

/// The words of a sentence that do not stand where a verb stands.
fn nouns(words: &[&str]) -> Vec<String> {
    let pairs = words.iter().zip(words.iter().skip(1));
    let leads_verb = |before: &str| BEFORE_VERBS.has(before) || words::verb(before).is_some();
    let inner = pairs.filter(|(before, _)| !leads_verb(before)).map(|(_, word)| *word);
    inner.map(str::to_owned).collect()
}

/// True if a sentence without a verb names information: "Map meta data for a season".
fn is_information(words: &[&str]) -> bool {
    let changes = |word: &&str| words::verb(word).is_some_and(|(sense, _)| sense.is_change());
    let phrase = words.iter().position(|word| AFTER_NOUNS.has(word)).unwrap_or(words.len());
    let noun = phrase.checked_sub(1).and_then(|at| words.get(at));
    let is_named = noun.is_some_and(|noun| words::is_information(noun))
        || words.first().is_some_and(|first| STATES.has(first));
    is_named && !words.iter().any(changes)
}

/// True if a word before the verb carries no meaning.
fn is_lead_in(word: &str, rest: &[&str]) -> bool {
    match word {
        "enable" | "enables" => rest.iter().take(4).any(|word| *word == "to"),
        "set" => rest.first() == Some(&"of"),
        _ => {
            let is_adverb = word.len() > 4 && word.ends_with("ly") && words::base(word).is_none();
            is_adverb || LEAD_INS.has(word) || !word.starts_with(char::is_alphabetic)
        }
    }
}

/// The kind of action of the verb at the head.
fn taken(word: &str, sense: Sense, rest: &[&str]) -> Action {
    let stem = word.strip_suffix('s').unwrap_or(word);
    let near = || rest.iter().take(6).copied();
    if LIGHT.has(stem) && near().any(|word| READING_NOUNS.has(word)) {
        return Action::Looks;
    }
    if LIGHT.has(stem) && near().any(|word| COMPUTING_NOUNS.has(word)) {
        return Action::Computes;
    }
    if words::changes_object(stem, near()) {
        return Action::Acts;
    }
    match stem {
        "resolve" if words::is_looked_up(rest.iter().take(12).copied()) => return Action::Reads,
        "report" if word == "reports" && near().next().is_some_and(|next| REPORTED.has(next)) => {
            return Action::Reads;
        }
        "print" if words::is_printed(near()) => return Action::Reads,
        "generate" if near().take(4).any(words::is_computed) => return Action::Computes,
        "track" if words::is_tracked(near()) => return Action::Looks,
        "test" if near().any(|word| matches!(word, "connection" | "connectivity")) => {
            return Action::Looks;
        }
        _ => {}
    }
    // Checking a box changes it.
    if stem == "check" && rest.iter().take(6).any(|word| BOXES.has(word)) {
        return Action::Acts;
    }
    match sense {
        Sense::Destroys | Sense::Writes => Action::Writes,
        Sense::Acts | Sense::Brings if takes_picture(stem, rest) => Action::Pictures,
        Sense::Acts => Action::Acts,
        Sense::Thing => match rest.first() {
            Some(next) if words::leads_to_object(next) => Action::Acts,
            Some(_) | None => Action::Thing,
        },
        Sense::Brings => Action::Brings,
        Sense::Reads | Sense::Looks => Action::Reads,
        Sense::Computes => Action::Computes,
    }
}

/// True if a page or a screen is pictured, not a volume or a machine.
fn takes_picture(verb: &str, rest: &[&str]) -> bool {
    static SEEN: WordList = WordList::new(
        "page webpage screen browser window element accessibility dom viewport tab \
        desktop display app",
    );
    let has = |found: &dyn Fn(&str) -> bool| rest.iter().take(12).any(|word| found(word));
    let is_picture = |word: &str| word.starts_with("screenshot") || word.starts_with("snapshot");
    let is_memory = has(&|word| matches!(word, "heap" | "memory" | "heapsnapshot"));
    matches!(verb, "take" | "make" | "grab" | "capture" | "screenshot")
        && !is_memory
        && (verb == "screenshot" || has(&is_picture))
        && has(&|word| SEEN.has(word))
}

/// Finds a verb of change that is joined to the head: "get or update", "finds a mail and marks it".
fn joined(words: &[&str], head: usize) -> Option<String> {
    let mut link = VerbDistance::Chain;
    let is_third = words.get(head).is_some_and(|word| word.ends_with('s'));
    let mut before = words.get(head).copied().unwrap_or_default();
    for (at, word) in words.iter().enumerate().skip(head + 1) {
        let is_joint = |word: &str| words::is_joint(word) || matches!(word, "," | "/" | "&");
        let follows_joint = is_joint(before) || (before == "then") || (before == "also");
        if follows_joint && !is_joint(word) && !is_negated(words, at) {
            let next = words.get(at + 1).copied().unwrap_or_default();
            if let Some((sense, form)) = words::verb(word)
                // Joined verbs have the same form; otherwise it is the plural of a noun.
                && (form != Form::Third || is_third)
                && is_joined_verb(word, sense, form, next, link)
            {
                return Some((*word).to_owned());
            }
        }
        let is_chained = is_joint(word) || (follows_joint && words::verb(word).is_some());
        if !is_chained {
            link = VerbDistance::Apart;
        }
        before = word;
    }
    stored(words, head)
}

/// Detects that the result is stored: "Scrapes a page *into* the knowledge base".
fn stored(words: &[&str], head: usize) -> Option<String> {
    static KEPT: WordList = WordList::new(
        "knowledge database memory index store storage workspace file files folder \
        directory collection table disk clipboard",
    );
    let at = words.iter().skip(head).position(|word| *word == "into")?;
    let target = words.iter().skip(head + at + 1).take(5).find(|word| KEPT.has(word))?;
    Some(format!("into … {target}"))
}

fn is_joined_verb(word: &str, sense: Sense, form: Form, next: &str, link: VerbDistance) -> bool {
    let is_chain = link == VerbDistance::Chain;
    let has_object = words::leads_to_object(next);
    match (sense, form) {
        (Sense::Destroys | Sense::Writes, Form::Base) => {
            is_chain || has_object || !words::is_noun_too(word)
        }
        (Sense::Destroys | Sense::Writes, Form::Third) => {
            is_chain || has_object || matches!(next, "to" | "into")
        }
        (Sense::Acts | Sense::Thing, Form::Base) => is_chain || has_object,
        (Sense::Acts | Sense::Thing, Form::Third) => has_object,
        // A tool that waits for something to end has started it.
        (Sense::Looks, Form::Base | Form::Third) => word.starts_with("wait"),
        (_, Form::Ing) | (Sense::Brings | Sense::Reads | Sense::Computes, _) => false,
    }
}

/// True if the words before this position negate it.
fn is_negated(words: &[&str], at: usize) -> bool {
    let start = at.saturating_sub(4);
    let near = words.get(start..at).unwrap_or_default();
    near.iter().any(|word| NEGATIONS.has(word))
}

/// A change that a later sentence attributes to the tool itself.
fn later(first: &[&str], rest: &[Vec<&str>]) -> Option<String> {
    if let Some(word) = passive(first) {
        return Some(word);
    }
    for words in rest {
        if let Some(word) = about_itself(words).or_else(|| passive(words)) {
            return Some(word);
        }
    }
    None
}

fn about_itself(words: &[&str]) -> Option<String> {
    let is_filler = |word: &&str| ABOUT_ITSELF.has(word) || word.ends_with("ly");
    let at = words.iter().position(|word| !is_filler(word))?;
    let word = words.get(at)?;
    let (sense, form) = words::verb(word)?;
    let rest = words.get(at + 1..).unwrap_or_default();
    if taken(word, sense, rest) == Action::Looks {
        return None;
    }
    if TAKES.iter().any(|verb| word.starts_with(verb)) {
        return None;
    }
    let names_itself = words.iter().take(at).any(|word| !matches!(*word, "if" | "to" | "and"));
    let next = words.get(at + 1).copied().unwrap_or_default();
    let is_told = match form {
        // Imperatives in later sentences address the reader.
        Form::Base => names_itself,
        Form::Third => names_itself || words::leads_to_object(next),
        Form::Ing => false,
    };
    (is_told && sense.is_change() && !is_negated(words, at)).then(|| (*word).to_owned())
}

/// "A file will be *created*"; "a *destructive* operation".
fn passive(words: &[&str]) -> Option<String> {
    let at = words.windows(2).position(|pair| pair == ["will", "be"]);
    let participle = at.and_then(|at| words.get(at + 2)).filter(|word| is_change(word));
    let destructive = || {
        let at = words.iter().position(|word| *word == "destructive")?;
        (!is_negated(words, at)).then_some(())?;
        words.get(at)
    };
    participle.or_else(destructive).map(|word| (*word).to_owned())
}

/// True if it is the participle of a verb of change.
fn is_change(participle: &str) -> bool {
    let stem = match participle {
        "written" | "overwritten" | "sent" | "sold" => return true,
        _ => participle.strip_suffix("ed").unwrap_or_default(),
    };
    let sense = words::base(stem).or_else(|| words::base(&format!("{stem}e")));
    sense.is_some_and(Sense::is_change)
}

fn claims_read(text: &str) -> bool {
    static CLAIMED: Phrases = LazyLock::new(|| AhoCorasick::new(CLAIMS).ok());
    if !mentions(text, &CLAIMED) {
        return false;
    }
    CLAIMS.iter().any(|claim| {
        let Some((before, after)) = text.split_once(claim) else { return false };
        // A tool that is disabled in a read-only mode is not a read.
        let is_mode = after.trim_start().starts_with("mode");
        !is_mode && !before.ends_with("not ") && !before.ends_with("not a ")
    })
}
