//! Classifies a tool by its name, its description and its arguments.
//!
//! **Safety first:** a tool counts as a read only if there is evidence for it and none against it.
//! Otherwise the effect stays unknown, which counts as a write wherever it matters.

use capstan_model::Effect;
use capstan_wire::{Json, object};

use super::description::{self, Action, DescriptionEvidence};
use super::name::{self, Verb};
use super::schema::{self, Choices, Shape};
use super::words::{self, Sense};

/// The result for a tool.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) effect: Effect,
    /// From 0 to 100; 0 without any evidence.
    pub(super) confidence: u8,
    pub(super) reasons: Vec<String>,
    /// The verb in the name that destroys something.
    pub(super) destroys: Option<String>,
}

/// All evidence about a tool.
struct Evidence {
    said: Verb,
    spoken: DescriptionEvidence,
    shape: Shape,
}

/// An effect, its confidence, and the deciding reason unless it is the name or the first verb.
struct Verdict(Effect, u8, Option<String>);

/// Classifies a tool by its server's definition.
pub(super) fn classify(tool: &str, definition: &Json) -> Judged {
    let [description, schema, other] =
        object::peek(definition, ["description", "inputSchema", "input_schema"]);
    let description: String = description.and_then(|text| text.read().ok()).unwrap_or_default();
    let evidence = Evidence {
        said: name::read(tool),
        spoken: description::read(&description),
        shape: schema::read(schema.or(other).as_ref()),
    };
    let Verdict(effect, confidence, tipped) = evidence.weigh();
    let mut reasons = evidence.reasons();
    reasons.extend(tipped);
    let destroys = match evidence.said {
        Verb::Destroys(verb) => Some(verb),
        Verb::Writes(_)
        | Verb::Acts(_)
        | Verb::Thing(_)
        | Verb::Noun(_)
        | Verb::ThingRead(_)
        | Verb::Torn(..)
        | Verb::Brings(_)
        | Verb::Reads(_)
        | Verb::Looks(_)
        | Verb::Computes(_)
        | Verb::Nothing
        | Verb::Odd => None,
    };
    Judged { effect, confidence, reasons, destroys }
}

// === impl Evidence ===

impl Evidence {
    #[expect(clippy::match_same_arms, reason = "rows of a table, kept together by the name's side")]
    fn weigh(&self) -> Verdict {
        use Action::{Acts, Brings, Computes, Looks, Pictures, Reads, Thing, Writes};
        let does = self.spoken.head.as_ref().map(|head| head.does);
        match (&self.said, does) {
            (Verb::Destroys(_), _) => Verdict::write(98),
            (Verb::Writes(_), _) => Verdict::write(92),
            (Verb::Torn(_, change), _) => self.weigh_torn(change, does),

            (Verb::Acts(_) | Verb::Thing(_) | Verb::Noun(_) | Verb::ThingRead(_), _) => {
                self.weigh_acting(does)
            }

            (Verb::Reads(_), Some(Reads | Looks)) => self.read(90),
            (Verb::Looks(_), Some(Reads | Looks)) => self.read(85),
            (Verb::Reads(_), Some(Computes | Brings | Pictures) | None) => self.read(75),
            (Verb::Looks(_), Some(Computes) | None) | (Verb::Reads(_), Some(Thing)) => {
                self.read(65)
            }
            // `grep` prints its matches, but not on paper.
            (Verb::Reads(word), Some(Acts)) if word == "grep" => self.read(70),
            (Verb::Reads(_), Some(Acts)) => self.unknown(),
            // The description disambiguates the verb of the name: "check a box".
            (Verb::Looks(word), Some(Acts)) if self.begins_with(word) => Verdict::write(70),
            (Verb::Looks(_), Some(Acts | Thing | Brings | Pictures)) => self.unknown(),

            (Verb::Computes(_), Some(Reads | Looks | Computes | Pictures) | None) => {
                self.computed()
            }
            (Verb::Computes(_), Some(Acts | Thing | Brings)) => self.unknown(),
            (Verb::Brings(_), Some(Pictures)) => self.computed(),
            (Verb::Brings(_), Some(Acts | Thing | Brings | Reads | Looks | Computes) | None) => {
                if self.file().is_some() {
                    Verdict::write(60)
                } else {
                    self.unknown()
                }
            }
            // "Manage profiles (read-only)": a vague verb, and two claims that it reads.
            (Verb::Reads(_) | Verb::Looks(_), Some(Writes))
                if self.spoken.claims_read && self.is_vague() =>
            {
                self.read(60)
            }
            (
                Verb::Reads(_) | Verb::Looks(_) | Verb::Computes(_) | Verb::Brings(_),
                Some(Writes),
            ) => Verdict::write(60),

            (Verb::Nothing, _) => self.weigh_nameless(does),
            (Verb::Odd, Some(Writes)) => Verdict::write(70),
            (Verb::Odd, _) => self.unknown(),
        }
    }

    /// A verb that acts, or a noun that may be one: the description decides whether it does.
    #[expect(clippy::match_same_arms, reason = "rows of a table, kept together by the name's side")]
    fn weigh_acting(&self, does: Option<Action>) -> Verdict {
        use Action::{Acts, Brings, Computes, Looks, Pictures, Reads, Thing, Writes};
        match (&self.said, does) {
            (Verb::Acts(_) | Verb::Thing(_) | Verb::Noun(_), Some(Writes | Acts | Thing)) => {
                Verdict::write(80)
            }
            (Verb::Acts(verb) | Verb::Thing(verb) | Verb::Noun(verb), Some(Pictures))
                if pictures(verb) =>
            {
                self.computed()
            }
            (Verb::Acts(verb), Some(Computes)) if verb == "generate" => self.computed(),
            (Verb::Acts(verb), Some(Looks)) if verb == "track" => self.read(60),
            (Verb::Acts(_), Some(Reads)) => self.unknown(),
            (Verb::Acts(_), Some(Looks)) if self.spoken.claims_read => self.unknown(),
            (Verb::Acts(_), Some(Looks | Brings | Computes | Pictures) | None) => {
                Verdict::write(60)
            }
            (Verb::Thing(_) | Verb::Noun(_), Some(Reads | Looks)) => self.read(65),
            (Verb::Thing(_) | Verb::Noun(_), Some(Brings | Computes | Pictures)) => self.unknown(),
            (Verb::Thing(_), None) => Verdict::write(55),
            (Verb::Noun(_), None) => self.unknown(),

            (Verb::ThingRead(_), Some(Reads | Looks)) => self.read(75),
            (Verb::ThingRead(_), Some(Writes | Acts)) => Verdict::write(70),
            (Verb::ThingRead(_), Some(Thing | Brings | Computes | Pictures) | None) => {
                self.unknown()
            }
            (
                Verb::Destroys(_)
                | Verb::Writes(_)
                | Verb::Torn(..)
                | Verb::Brings(_)
                | Verb::Reads(_)
                | Verb::Looks(_)
                | Verb::Computes(_)
                | Verb::Nothing
                | Verb::Odd,
                _,
            ) => self.unknown(),
        }
    }

    /// Without a verb in the name, the description decides.
    fn weigh_nameless(&self, does: Option<Action>) -> Verdict {
        match does {
            Some(Action::Reads) => self.read(70),
            Some(Action::Looks) => self.read(60),
            Some(Action::Writes) => Verdict::write(85),
            Some(Action::Acts) => Verdict::write(70),
            Some(Action::Thing) => Verdict::write(55),
            Some(Action::Computes | Action::Pictures) => self.computed(),
            Some(Action::Brings) | None => self.unknown(),
        }
    }

    /// True if this is the first verb of the description.
    fn begins_with(&self, verb: &str) -> bool {
        self.spoken.head.as_ref().is_some_and(|head| head.word.starts_with(verb))
    }

    /// True if the first verb of the description says only that something is done.
    fn is_vague(&self) -> bool {
        const VAGUE: [&str; 6] = ["manage", "manages", "handle", "handles", "execute", "executes"];
        self.spoken.head.as_ref().is_some_and(|head| VAGUE.contains(&head.word.as_str()))
    }

    /// A reading verb and a verb of change, which may be a noun: `get_merge_request`.
    fn weigh_torn(&self, change: &str, does: Option<Action>) -> Verdict {
        let is_noun = words::is_noun_too(change)
            || words::base(change) == Some(Sense::Thing)
            || self.spoken.uses_as_noun(change);
        match does {
            Some(Action::Writes | Action::Acts) => Verdict::write(80),
            Some(Action::Reads) if is_noun => self.read(60),
            Some(
                Action::Reads
                | Action::Thing
                | Action::Brings
                | Action::Looks
                | Action::Computes
                | Action::Pictures,
            )
            | None => self.unknown(),
        }
    }

    /// A tool that computes or pictures something reads, unless it may store the result in a file.
    fn computed(&self) -> Verdict {
        if !self.shape.is_known || self.shape.of_code.is_some() {
            return self.unknown();
        }
        match self.file() {
            Some(_) => self.unknown(),
            None => self.read(65),
        }
    }

    /// A read, unless there is evidence against it.
    fn read(&self, confidence: u8) -> Verdict {
        if let Some(word) = &self.spoken.joined {
            return Verdict(Effect::Write, 75, Some(format!("description: also `{word}`")));
        }
        let does = self.spoken.head.as_ref().map(|head| head.does);
        let reads_twice =
            matches!((&self.said, does), (Verb::Reads(_) | Verb::Looks(_), Some(Action::Reads)));
        if let Choices::Write(value) = &self.shape.choices {
            // A list may be filtered by kinds of changes.
            let effect = if reads_twice { Effect::Unknown } else { Effect::Write };
            let confidence = if reads_twice { 0 } else { 75 };
            return Verdict(effect, confidence, Some(format!("argument: `{value}` can be chosen")));
        }
        if let Some(word) = &self.spoken.later {
            return Verdict::unclear(format!("description: speaks of `{word}`"));
        }
        if self.shape.is_cut {
            return Verdict::unclear("argument: there are more than are looked at".to_owned());
        }
        if let Some(argument) = &self.shape.of_change {
            return Verdict::unclear(format!("argument: `{argument}` belongs to changes"));
        }
        if let Some(doubt) = self.program() {
            return Verdict::unclear(doubt);
        }
        let bonus =
            u8::from(self.spoken.claims_read) + u8::from(self.shape.choices == Choices::Read);
        Verdict(Effect::Read, confidence + 3 * bonus, None)
    }

    /// Unknown, unless there is other evidence for a change.
    fn unknown(&self) -> Verdict {
        if let Some(word) = &self.spoken.joined {
            return Verdict(Effect::Write, 70, Some(format!("description: also `{word}`")));
        }
        if let Choices::Write(value) = &self.shape.choices {
            let reason = format!("argument: `{value}` can be chosen");
            return Verdict(Effect::Write, 70, Some(reason));
        }
        Verdict(Effect::Unknown, 0, None)
    }

    /// The reason why a tool that takes a program may do anything.
    fn program(&self) -> Option<String> {
        let is_data = |argument: &str| {
            matches!(
                argument,
                "statement" | "code" | "function" | "expression" | "js" | "javascript" | "python"
            )
        };
        if let Some(argument) = &self.shape.of_code {
            let only_looks_at_it = matches!(self.said, Verb::Reads(_)) && is_data(argument);
            let is_query =
                matches!(argument.as_str(), "sql" | "statement" | "cypher" | "sql_query");
            let is_fine = only_looks_at_it || (is_query && self.spoken.claims_read);
            return (!is_fine).then(|| format!("argument: `{argument}` can say anything"));
        }
        let does = self.spoken.head.as_ref().map(|head| head.does);
        let is_query = matches!(&self.said, Verb::Looks(word) if word == "query");
        let queries = is_query || does == Some(Action::Looks);
        let is_open = queries && self.spoken.speaks_sql && !self.spoken.claims_read;
        is_open.then(|| "description: a query that can say anything".to_owned())
    }

    /// An argument with which a result may be stored in a file.
    fn file(&self) -> Option<&str> {
        self.shape.of_file.as_deref().or(self.shape.of_change.as_deref())
    }

    /// The reasons from the name and the first verb of the description.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        match &self.said {
            Verb::Destroys(verb) => reasons.push(format!("name: `{verb}` takes away")),
            Verb::Writes(verb) => reasons.push(format!("name: `{verb}` changes something")),
            Verb::Acts(verb) => reasons.push(format!("name: `{verb}` acts")),
            Verb::Thing(word) | Verb::Noun(word) => {
                reasons.push(format!("name: `{word}` may be a verb of change"));
            }
            Verb::Torn(verb, other) => {
                reasons.push(format!("name: `{verb}` reads, but there is `{other}`"));
            }
            Verb::Brings(verb) => reasons.push(format!("name: `{verb}` may leave a file")),
            Verb::Reads(verb) | Verb::Looks(verb) | Verb::ThingRead(verb) => {
                reasons.push(format!("name: `{verb}` reads"));
            }
            Verb::Computes(verb) => reasons.push(format!("name: `{verb}` works something out")),
            Verb::Nothing => reasons.push("name: no verb".to_owned()),
            Verb::Odd => reasons.push("name: cannot be read for sure".to_owned()),
        }
        if let Some(head) = &self.spoken.head {
            let what = match head.does {
                Action::Writes => "changes something",
                Action::Acts => "acts",
                Action::Thing => "may be a verb of change",
                Action::Brings => "may leave a file",
                Action::Reads | Action::Looks => "reads",
                Action::Computes => "works something out",
                Action::Pictures => "a picture",
            };
            reasons.push(format!("description: `{}` {what}", head.word));
        }
        reasons
    }
}

// === impl Verdict ===

impl Verdict {
    fn write(confidence: u8) -> Self {
        Self(Effect::Write, confidence, None)
    }

    fn unclear(reason: String) -> Self {
        Self(Effect::Unknown, 0, Some(reason))
    }
}

/// True if a word of a name goes with pictures.
fn pictures(word: &str) -> bool {
    matches!(word, "take" | "make" | "grab" | "snapshot")
}
