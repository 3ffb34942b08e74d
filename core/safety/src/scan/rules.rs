//! Rules over groups of words, with the points that each is worth.
//!
//! No rule is a list of sentences. A text is suspicious when the points of a few neighbouring
//! sentences reach [`ENOUGH`]: one clear sign, or several weak ones together.

use super::Class;
use super::sentence::{Sentence, Word};
use super::words::{
    ALSO, AMBIENT, ASSISTANT, ATTENTION, BE, CHANGE, COMMAND_LINE, CONSENT, DECODE, DESTROY,
    DISABLE, DISGUISE, EVIL, FIELD, FOLLOW, Groups, HARMLESS, IDENTIFIER, INSTEAD, INSTRUCTION,
    KNOW, LIE, LOCAL, LOOSE, MAIL_ADDRESS, MODE, MODE_KIND, MODEL, MUST, NEW, NORMAL, NOT, OUR,
    OUTSIDE, OVER, OVERRIDE, PERSON, PLACE, PLEASE, PRECEDENCE, PRIOR, PRIVATE, QUALIFIED,
    QUALIFIER, READ, RESTRICTION, REVEAL, SECRET, SECRET_FILE, SELF, SEND, SHELL, SHOW, SKIP,
    STEAL, STEALTH, TASK, TELL, TOOL, TREAT, URL, USE, WHEN, WHOLE,
};

/// Points that make a text suspicious.
pub(super) const ENOUGH: u32 = 9;

/// Words that count as near each other.
const NEAR: usize = 20;

/// A combination of groups in one sentence.
pub(super) struct Rule {
    pub(super) class: Class,
    pub(super) points: u32,
    shape: Shape,
    /// Groups that, shortly before or inside, make it mean something else.
    unless: Groups,
}

enum Shape {
    /// In this order, with at most so many words between two of them.
    InOrder(usize, &'static [Groups]),
    /// Near each other, in any order.
    Together(&'static [Groups]),
}

/// A rule that fits a sentence.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) rule: usize,
    pub(super) class: Class,
    pub(super) points: u32,
    /// Where it begins in the reading.
    pub(super) start: usize,
}

const fn ordered(class: Class, points: u32, gap: usize, steps: &'static [Groups]) -> Rule {
    Rule { class, points, shape: Shape::InOrder(gap, steps), unless: Groups::NONE }
}

const fn together(class: Class, points: u32, all: &'static [Groups]) -> Rule {
    Rule { class, points, shape: Shape::Together(all), unless: Groups::NONE }
}

const fn unless(rule: Rule, unless: Groups) -> Rule {
    Rule { unless, ..rule }
}

const DIRECTIVE: Groups = INSTRUCTION.with(RESTRICTION);
const DESTINATION: Groups = OUTSIDE.with(URL).with(MAIL_ADDRESS).with(EVIL);
const DATA: Groups = SECRET.with(SECRET_FILE);
const ACT: Groups = SEND.with(READ).with(CHANGE).with(USE).with(FOLLOW);
const TAKE: Groups = SEND.with(STEAL);
const OTHER_TOOL: Groups = IDENTIFIER.with(TOOL);

pub(super) const RULES: &[Rule] = &[
    // Instructions that are to be overridden.
    unless(
        ordered(
            Class::Instruction,
            10,
            3,
            &[OVERRIDE, PRIOR.with(MODEL), INSTRUCTION.with(RESTRICTION)],
        ),
        NOT,
    ),
    unless(ordered(Class::Instruction, 8, 2, &[OVERRIDE, INSTRUCTION]), NOT),
    unless(ordered(Class::Instruction, 5, 2, &[OVERRIDE.with(DISABLE), RESTRICTION]), NOT),
    ordered(Class::Instruction, 6, 3, &[RESTRICTION, BE, OVERRIDE.with(DISABLE)]),
    ordered(Class::Instruction, 10, 3, &[PRECEDENCE, OVER, DIRECTIVE.with(PRIOR)]),
    unless(ordered(Class::Instruction, 6, 3, &[PRECEDENCE, PRIOR, DIRECTIVE]), NOT),
    ordered(Class::Instruction, 6, 1, &[NEW, INSTRUCTION]),
    ordered(Class::Instruction, 4, 2, &[MODEL, NEW, INSTRUCTION.with(TASK)]),
    unless(ordered(Class::Instruction, 8, 1, &[MODE_KIND, MODE]), Groups::NONE),
    ordered(Class::Instruction, 6, 4, &[FOLLOW, NEW.with(PRIOR).with(SELF), INSTRUCTION]),
    ordered(Class::Instruction, 5, 3, &[MUST, FOLLOW, PRIOR, DIRECTIVE.with(FIELD)]),
    ordered(Class::Instruction, 4, 3, &[MUST, FOLLOW, INSTRUCTION]),
    unless(ordered(Class::Instruction, 8, 3, &[OVERRIDE, PERSON, FIELD]), NOT),
    // Text that speaks to the model about its work.
    ordered(Class::Instruction, 4, 5, &[WHEN, MODEL, TASK]),
    ordered(Class::Instruction, 5, 2, &[MODEL, PRIOR.with(NEW), TASK]),
    // Things that the person must not learn.
    ordered(Class::Concealment, 10, 3, &[NOT, TELL, PERSON]),
    ordered(Class::Concealment, 8, 2, &[NOT, TELL, SELF.with(MODEL)]),
    ordered(Class::Concealment, 6, 2, &[NOT, TELL]),
    ordered(Class::Concealment, 6, 3, &[NOT, SHOW, SELF, PERSON]),
    ordered(Class::Concealment, 10, 3, &[PERSON, NOT, KNOW]),
    ordered(Class::Concealment, 10, 3, &[NOT, PERSON, KNOW]),
    unless(
        ordered(Class::Concealment, 6, 3, &[STEALTH, TAKE.with(CHANGE).with(READ).with(USE)]),
        HARMLESS,
    ),
    unless(ordered(Class::Concealment, 6, 6, &[TAKE.with(CHANGE).with(READ), STEALTH]), HARMLESS),
    ordered(Class::Concealment, 5, 6, &[DISGUISE, PERSON.with(NORMAL)]),
    together(Class::Concealment, 4, &[NORMAL, SHOW.with(DISGUISE), SECRET]),
    // Data that leaves.
    together(Class::Exfiltration, 10, &[TAKE, DATA, DESTINATION]),
    together(Class::Exfiltration, 10, &[STEAL, DATA.with(PRIVATE)]),
    together(Class::Exfiltration, 8, &[TAKE, PRIVATE, OUTSIDE.with(EVIL)]),
    together(
        Class::Exfiltration,
        5,
        &[TAKE, PRIVATE.with(WHOLE), URL.with(MAIL_ADDRESS), MUST.with(PLEASE).with(WHEN)],
    ),
    together(Class::Exfiltration, 10, &[TAKE.with(CHANGE), EVIL]),
    ordered(Class::Exfiltration, 7, 6, &[TAKE, OUTSIDE, PLACE]),
    ordered(Class::Exfiltration, 8, 5, &[MUST, CHANGE.with(SEND), MAIL_ADDRESS]),
    together(Class::Exfiltration, 5, &[TAKE, DATA, MUST.with(WHEN).with(PLEASE)]),
    ordered(Class::Exfiltration, 4, 5, &[TAKE, WHOLE, PRIVATE.with(SECRET)]),
    together(Class::Exfiltration, 8, &[SHELL, URL, COMMAND_LINE]),
    together(Class::Exfiltration, 5, &[SHELL, URL]),
    ordered(Class::Exfiltration, 6, 4, &[REVEAL, MODEL, INSTRUCTION]),
    together(Class::Exfiltration, 10, &[TAKE, AMBIENT, OUTSIDE.with(EVIL)]),
    together(Class::Exfiltration, 5, &[TAKE, STEALTH, PRIVATE.with(SECRET)]),
    ordered(Class::Exfiltration, 5, 6, &[SEND, DATA, FIELD]),
    together(
        Class::Exfiltration,
        5,
        &[
            SEND.with(CHANGE),
            AMBIENT.with(SECRET_FILE),
            FIELD,
            MUST.with(WHEN).with(WHOLE).with(PERSON).with(PLEASE),
        ],
    ),
    together(Class::Exfiltration, 5, &[SEND.with(CHANGE), AMBIENT, FIELD]),
    ordered(Class::Exfiltration, 9, 5, &[MUST, SEND, URL.with(OUTSIDE)]),
    together(Class::Exfiltration, 10, &[TAKE, AMBIENT.with(SECRET), OUR]),
    together(Class::Exfiltration, 6, &[TAKE, STEALTH]),
    ordered(
        Class::Exfiltration,
        6,
        5,
        &[TAKE.with(READ), PRIVATE.with(SECRET), TAKE, OUR.with(OUTSIDE)],
    ),
    together(Class::Exfiltration, 10, &[TELL, PERSON, SECRET, URL]),
    // Secrets that are to be read or told.
    together(
        Class::Exfiltration,
        10,
        &[
            SEND.with(STEAL).with(CHANGE),
            AMBIENT,
            MUST.with(WHEN).with(PLEASE).with(ALSO),
            FIELD.with(URL).with(IDENTIFIER),
        ],
    ),
    ordered(Class::Secrets, 10, 8, &[READ, AMBIENT, SEND.with(CHANGE).with(READ), FIELD]),
    ordered(Class::Secrets, 6, 6, &[CHANGE, FIELD, SECRET, AMBIENT.with(FIELD)]),
    together(Class::Secrets, 8, &[READ.with(SEND).with(CHANGE), SECRET, LOCAL]),
    together(Class::Secrets, 6, &[READ.with(SEND).with(USE), AMBIENT, WHOLE.with(PERSON)]),
    together(Class::Secrets, 9, &[ASSISTANT, MUST, SECRET, AMBIENT.with(PERSON).with(LOCAL)]),
    together(Class::Secrets, 5, &[SEND.with(READ), SECRET, FIELD, PLEASE]),
    ordered(Class::Concealment, 10, 4, &[LIE, PERSON]),
    ordered(Class::Concealment, 6, 3, &[MUST, LIE]),
    together(Class::Secrets, 6, &[READ.with(SEND), SECRET_FILE]),
    together(Class::Secrets, 5, &[SECRET_FILE, MUST.with(WHEN).with(PLEASE).with(ATTENTION)]),
    ordered(Class::Secrets, 6, 5, &[MUST, REVEAL.with(READ), SECRET]),
    ordered(Class::Secrets, 5, 6, &[REVEAL.with(READ), SECRET, MODEL, FIELD]),
    ordered(Class::Secrets, 3, 5, &[REVEAL, SECRET]),
    // Other tools that are watched, replaced or told what to do.
    ordered(Class::CrossServer, 6, 3, &[INSTEAD, USE, OTHER_TOOL]),
    ordered(Class::CrossServer, 5, 2, &[INSTEAD.with(STEAL), IDENTIFIER]),
    ordered(Class::CrossServer, 6, 2, &[STEAL.with(CHANGE), WHOLE, FIELD]),
    together(Class::CrossServer, 5, &[STEAL, FIELD]),
    ordered(Class::CrossServer, 5, 5, &[WHEN, IDENTIFIER, USE]),
    ordered(Class::CrossServer, 4, 4, &[WHEN, USE, IDENTIFIER.with(WHOLE)]),
    ordered(Class::CrossServer, 5, 8, &[WHEN, USE.with(IDENTIFIER), CHANGE, FIELD]),
    ordered(Class::CrossServer, 4, 6, &[MUST, CHANGE, FIELD]),
    // A tool that is only there to be read.
    unless(ordered(Class::CrossServer, 10, 1, &[MUST, NOT, BE, USE]), QUALIFIER),
    unless(ordered(Class::CrossServer, 10, 2, &[NOT, MUST, BE, USE]), QUALIFIER),
    ordered(Class::CrossServer, 10, 1, &[TOOL, MUST, USE, IDENTIFIER]),
    ordered(Class::CrossServer, 6, 2, &[USE, QUALIFIED]),
    ordered(Class::CrossServer, 5, 6, &[WHEN, USE, USE, SELF, TOOL]),
    ordered(Class::CrossServer, 6, 5, &[WHEN, PRIOR, TOOL, CHANGE]),
    ordered(Class::CrossServer, 5, 6, &[CHANGE, MAIL_ADDRESS.with(URL)]),
    ordered(Class::CrossServer, 5, 1, &[ALSO, USE, IDENTIFIER]),
    // What is to be done before, beside or after the real work.
    ordered(Class::Instruction, 3, 8, &[WHEN, MUST.with(PLEASE), ACT]),
    ordered(Class::Instruction, 3, 3, &[MUST, PLEASE, ACT]),
    ordered(Class::Instruction, 3, 4, &[MUST, ACT, PLEASE]),
    together(Class::Instruction, 3, &[WHEN, MUST, DATA]),
    // Safeguards that are to be left out.
    ordered(Class::Instruction, 4, 2, &[NOT, LOOSE]),
    ordered(Class::Instruction, 4, 6, &[NOT.with(SKIP), CONSENT, WHOLE.with(PRIOR).with(PERSON)]),
    ordered(Class::Instruction, 6, 1, &[NOT, CONSENT, PERSON]),
    unless(ordered(Class::Instruction, 6, 1, &[SKIP, CONSENT]), NOT),
    ordered(Class::Instruction, 10, 6, &[TREAT, INSTRUCTION]),
    ordered(Class::Instruction, 4, 2, &[NOT, SHOW, PERSON]),
    ordered(Class::Instruction, 3, 2, &[DESTROY, WHOLE]),
    // Programs.
    together(Class::Command, 4, &[SHELL, MUST.with(WHEN).with(PLEASE)]),
    together(Class::Command, 4, &[COMMAND_LINE, MUST.with(WHEN)]),
    ordered(Class::Encoded, 8, 4, &[DECODE, FOLLOW.with(USE)]),
    ordered(Class::Encoded, 8, 4, &[USE.with(FOLLOW), DECODE]),
];

/// Returns the rules that fit a sentence.
pub(super) fn hits(sentence: &Sentence) -> Vec<Hit> {
    let words = &sentence.words;
    let all = words.iter().fold(Groups::NONE, |all, word| all | word.groups);
    let fits = |(number, rule): (usize, &Rule)| {
        let start = rule.find(words, all)?;
        let points = sentence.weighed(rule.points, start);
        Some(Hit { rule: number, class: rule.class, points, start })
    };
    RULES.iter().enumerate().filter_map(fits).collect()
}

// === impl Rule ===

impl Rule {
    /// Where the rule begins to fit, if it does.
    fn find(&self, words: &[Word], all: Groups) -> Option<usize> {
        let steps = match &self.shape {
            Shape::InOrder(_, steps) | Shape::Together(steps) => steps,
        };
        if !steps.iter().all(|step| all.has(*step)) {
            return None;
        }
        match &self.shape {
            Shape::Together(steps) => Self::find_together(words, steps),
            Shape::InOrder(gap, steps) => {
                (0..words.len()).find_map(|at| self.fit_at(words, at, *gap, steps))
            }
        }
    }

    /// Finds words of all groups, each another word, within [`NEAR`] words.
    fn find_together(words: &[Word], steps: &[Groups]) -> Option<usize> {
        let any = steps.iter().fold(Groups::NONE, |any, step| any | *step);
        let starts = words.iter().enumerate().filter(|(_, word)| word.groups.has(any));
        for (start, first) in starts {
            let near: Vec<&Word> = words.iter().skip(start).take(NEAR).collect();
            let mut used: Vec<usize> = Vec::with_capacity(steps.len());
            for step in steps {
                let fits =
                    |(at, word): &(usize, &&Word)| word.groups.has(*step) && !used.contains(at);
                match near.iter().enumerate().find(fits) {
                    Some((at, _)) => used.push(at),
                    None => break,
                }
            }
            if used.len() == steps.len() {
                return Some(first.span.start);
            }
        }
        None
    }

    fn fit_at(&self, words: &[Word], at: usize, gap: usize, steps: &[Groups]) -> Option<usize> {
        let (first, rest) = steps.split_first()?;
        let word = words.get(at).filter(|word| word.groups.has(*first))?;
        let mut last = at;
        for step in rest {
            let near = words.iter().enumerate().skip(last + 1).take(gap + 1);
            last = near.into_iter().find(|(_, word)| word.groups.has(*step))?.0;
        }
        let around = words.iter().take(last + 2).skip(at.saturating_sub(3));
        let is_other = around.into_iter().any(|word| word.groups.has(self.unless));
        // "do not" begins with its first word.
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let helper = before.filter(|before| first.has(NOT) && before.groups.has(FOLLOW));
        (!is_other).then_some(helper.unwrap_or(word).span.start)
    }
}
