//! Classifies a tool by its name, its description and its arguments.
//!
//! **Safety first:** a tool counts as a read only if there is evidence for it and none against it.
//! Otherwise the effect stays unknown, which counts as a write wherever it matters.

use capstan_model::Effect;
use capstan_wire::{Json, object};

use super::description::{self, Action, DescriptionEvidence};
use super::name::{self, NameEvidence};
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
    said: NameEvidence,
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
        NameEvidence::Destroys(verb) => Some(verb),
        NameEvidence::Writes(_)
        | NameEvidence::Acts(_)
        | NameEvidence::Thing(_)
        | NameEvidence::Noun(_)
        | NameEvidence::ThingRead(_)
        | NameEvidence::Torn(..)
        | NameEvidence::Brings(_)
        | NameEvidence::Reads(_)
        | NameEvidence::Looks(_)
        | NameEvidence::Computes(_)
        | NameEvidence::Nothing
        | NameEvidence::Odd => None,
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
            (NameEvidence::Destroys(_), _) => Verdict::write(98),
            (NameEvidence::Writes(_), _) => Verdict::write(92),
            (NameEvidence::Torn(_, change), _) => self.weigh_torn(change, does),

            (
                NameEvidence::Acts(_) | NameEvidence::Thing(_) | NameEvidence::Noun(_),
                Some(Writes | Acts | Thing),
            ) => Verdict::write(80),
            (
                NameEvidence::Acts(verb) | NameEvidence::Thing(verb) | NameEvidence::Noun(verb),
                Some(Pictures),
            ) if pictures(verb) => self.computed(),
            (NameEvidence::Acts(_), Some(Reads)) => self.unknown(),
            (NameEvidence::Acts(_), Some(Looks)) if self.spoken.claims_read => self.unknown(),
            (NameEvidence::Acts(_), Some(Looks | Brings | Computes | Pictures) | None) => {
                Verdict::write(60)
            }
            (NameEvidence::Thing(_) | NameEvidence::Noun(_), Some(Reads | Looks)) => self.read(65),
            (
                NameEvidence::Thing(_) | NameEvidence::Noun(_),
                Some(Brings | Computes | Pictures),
            ) => self.unknown(),
            (NameEvidence::Thing(_), None) => Verdict::write(55),
            (NameEvidence::Noun(_), None) => self.unknown(),

            (NameEvidence::ThingRead(_), Some(Reads | Looks)) => self.read(75),
            (NameEvidence::ThingRead(_), Some(Writes | Acts)) => Verdict::write(70),
            (NameEvidence::ThingRead(_), Some(Thing | Brings | Computes | Pictures) | None) => {
                self.unknown()
            }

            (NameEvidence::Reads(_), Some(Reads | Looks)) => self.read(90),
            (NameEvidence::Looks(_), Some(Reads | Looks)) => self.read(85),
            (NameEvidence::Reads(_), Some(Computes | Brings | Pictures) | None) => self.read(75),
            (NameEvidence::Looks(_), Some(Computes) | None)
            | (NameEvidence::Reads(_), Some(Thing)) => self.read(65),
            // `grep` prints its matches, but not on paper.
            (NameEvidence::Reads(word), Some(Acts)) if word == "grep" => self.read(70),
            (NameEvidence::Reads(_), Some(Acts)) => self.unknown(),
            // The description disambiguates the verb of the name: "check a box".
            (NameEvidence::Looks(word), Some(Acts)) if self.begins_with(word) => Verdict::write(70),
            (NameEvidence::Looks(_), Some(Acts | Thing | Brings | Pictures)) => self.unknown(),

            (NameEvidence::Computes(_), Some(Reads | Looks | Computes | Pictures) | None) => {
                self.computed()
            }
            (NameEvidence::Computes(_), Some(Acts | Thing | Brings)) => self.unknown(),
            (NameEvidence::Brings(_), Some(Pictures)) => self.computed(),
            (
                NameEvidence::Brings(_),
                Some(Acts | Thing | Brings | Reads | Looks | Computes) | None,
            ) => {
                if self.file().is_some() {
                    Verdict::write(60)
                } else {
                    self.unknown()
                }
            }
            (
                NameEvidence::Reads(_)
                | NameEvidence::Looks(_)
                | NameEvidence::Computes(_)
                | NameEvidence::Brings(_),
                Some(Writes),
            ) => Verdict::write(60),

            (NameEvidence::Nothing, _) => self.weigh_nameless(does),
            (NameEvidence::Odd, Some(Writes)) => Verdict::write(70),
            (NameEvidence::Odd, _) => self.unknown(),
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

    /// A reading verb and a verb of change, which may be a noun: `get_merge_request`.
    fn weigh_torn(&self, change: &str, does: Option<Action>) -> Verdict {
        let is_noun = words::is_noun_too(change) || words::base(change) == Some(Sense::Thing);
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
        let reads_twice = matches!(
            (&self.said, does),
            (NameEvidence::Reads(_) | NameEvidence::Looks(_), Some(Action::Reads))
        );
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
            let only_looks_at_it = matches!(self.said, NameEvidence::Reads(_)) && is_data(argument);
            let is_query =
                matches!(argument.as_str(), "sql" | "statement" | "cypher" | "sql_query");
            let is_fine = only_looks_at_it || (is_query && self.spoken.claims_read);
            return (!is_fine).then(|| format!("argument: `{argument}` can say anything"));
        }
        let does = self.spoken.head.as_ref().map(|head| head.does);
        let is_query = matches!(&self.said, NameEvidence::Looks(word) if word == "query");
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
            NameEvidence::Destroys(verb) => reasons.push(format!("name: `{verb}` takes away")),
            NameEvidence::Writes(verb) => reasons.push(format!("name: `{verb}` changes something")),
            NameEvidence::Acts(verb) => reasons.push(format!("name: `{verb}` acts")),
            NameEvidence::Thing(word) | NameEvidence::Noun(word) => {
                reasons.push(format!("name: `{word}` may be a verb of change"));
            }
            NameEvidence::Torn(verb, other) => {
                reasons.push(format!("name: `{verb}` reads, but there is `{other}`"));
            }
            NameEvidence::Brings(verb) => reasons.push(format!("name: `{verb}` may leave a file")),
            NameEvidence::Reads(verb)
            | NameEvidence::Looks(verb)
            | NameEvidence::ThingRead(verb) => {
                reasons.push(format!("name: `{verb}` reads"));
            }
            NameEvidence::Computes(verb) => {
                reasons.push(format!("name: `{verb}` works something out"))
            }
            NameEvidence::Nothing => reasons.push("name: no verb".to_owned()),
            NameEvidence::Odd => reasons.push("name: cannot be read for sure".to_owned()),
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
