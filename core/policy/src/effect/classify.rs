//! Classifies a tool by its name, its description and its arguments.
//!
//! **Safety first:** a tool counts as a read only if there is evidence for it and none against it.
//! Otherwise the effect stays unknown, which counts as a write wherever it matters.

use capstan_model::Effect;
use capstan_wire::{Json, object};

use super::description::{self, Does, Spoken};
use super::name::{self, Said};
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
    said: Said,
    spoken: Spoken,
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
        Said::Destroys(verb) => Some(verb),
        Said::Writes(_)
        | Said::Acts(_)
        | Said::Thing(_)
        | Said::Noun(_)
        | Said::ThingRead(_)
        | Said::Torn(..)
        | Said::Brings(_)
        | Said::Reads(_)
        | Said::Looks(_)
        | Said::Computes(_)
        | Said::Nothing
        | Said::Odd => None,
    };
    Judged { effect, confidence, reasons, destroys }
}

// === impl Evidence ===

impl Evidence {
    #[expect(clippy::match_same_arms, reason = "rows of a table, kept together by the name's side")]
    fn weigh(&self) -> Verdict {
        use Does::{Acts, Brings, Computes, Looks, Pictures, Reads, Thing, Writes};
        let does = self.spoken.head.as_ref().map(|head| head.does);
        match (&self.said, does) {
            (Said::Destroys(_), _) => Verdict::write(98),
            (Said::Writes(_), _) => Verdict::write(92),
            (Said::Torn(_, change), _) => self.weigh_torn(change, does),

            (Said::Acts(_) | Said::Thing(_) | Said::Noun(_), Some(Writes | Acts | Thing)) => {
                Verdict::write(80)
            }
            (Said::Acts(verb) | Said::Thing(verb) | Said::Noun(verb), Some(Pictures))
                if pictures(verb) =>
            {
                self.computed()
            }
            (Said::Acts(_), Some(Reads)) => self.unknown(),
            (Said::Acts(_), Some(Looks)) if self.spoken.claims_read => self.unknown(),
            (Said::Acts(_), Some(Looks | Brings | Computes | Pictures) | None) => {
                Verdict::write(60)
            }
            (Said::Thing(_) | Said::Noun(_), Some(Reads | Looks)) => self.read(65),
            (Said::Thing(_) | Said::Noun(_), Some(Brings | Computes | Pictures)) => self.unknown(),
            (Said::Thing(_), None) => Verdict::write(55),
            (Said::Noun(_), None) => self.unknown(),

            (Said::ThingRead(_), Some(Reads | Looks)) => self.read(75),
            (Said::ThingRead(_), Some(Writes | Acts)) => Verdict::write(70),
            (Said::ThingRead(_), Some(Thing | Brings | Computes | Pictures) | None) => {
                self.unknown()
            }

            (Said::Reads(_), Some(Reads | Looks)) => self.read(90),
            (Said::Looks(_), Some(Reads | Looks)) => self.read(85),
            (Said::Reads(_), Some(Computes | Brings | Pictures) | None) => self.read(75),
            (Said::Looks(_), Some(Computes) | None) | (Said::Reads(_), Some(Thing)) => {
                self.read(65)
            }
            // `grep` prints its matches, but not on paper.
            (Said::Reads(word), Some(Acts)) if word == "grep" => self.read(70),
            (Said::Reads(_), Some(Acts)) => self.unknown(),
            // The description disambiguates the verb of the name: "check a box".
            (Said::Looks(word), Some(Acts)) if self.begins_with(word) => Verdict::write(70),
            (Said::Looks(_), Some(Acts | Thing | Brings | Pictures)) => self.unknown(),

            (Said::Computes(_), Some(Reads | Looks | Computes | Pictures) | None) => {
                self.computed()
            }
            (Said::Computes(_), Some(Acts | Thing | Brings)) => self.unknown(),
            (Said::Brings(_), Some(Pictures)) => self.computed(),
            (Said::Brings(_), Some(Acts | Thing | Brings | Reads | Looks | Computes) | None) => {
                if self.file().is_some() {
                    Verdict::write(60)
                } else {
                    self.unknown()
                }
            }
            (
                Said::Reads(_) | Said::Looks(_) | Said::Computes(_) | Said::Brings(_),
                Some(Writes),
            ) => Verdict::write(60),

            (Said::Nothing, _) => self.weigh_nameless(does),
            (Said::Odd, Some(Writes)) => Verdict::write(70),
            (Said::Odd, _) => self.unknown(),
        }
    }

    /// Without a verb in the name, the description decides.
    fn weigh_nameless(&self, does: Option<Does>) -> Verdict {
        match does {
            Some(Does::Reads) => self.read(70),
            Some(Does::Looks) => self.read(60),
            Some(Does::Writes) => Verdict::write(85),
            Some(Does::Acts) => Verdict::write(70),
            Some(Does::Thing) => Verdict::write(55),
            Some(Does::Computes | Does::Pictures) => self.computed(),
            Some(Does::Brings) | None => self.unknown(),
        }
    }

    /// True if this is the first verb of the description.
    fn begins_with(&self, verb: &str) -> bool {
        self.spoken.head.as_ref().is_some_and(|head| head.word.starts_with(verb))
    }

    /// A reading verb and a verb of change, which may be a noun: `get_merge_request`.
    fn weigh_torn(&self, change: &str, does: Option<Does>) -> Verdict {
        let is_noun = words::is_noun_too(change) || words::base(change) == Some(Sense::Thing);
        match does {
            Some(Does::Writes | Does::Acts) => Verdict::write(80),
            Some(Does::Reads) if is_noun => self.read(60),
            Some(
                Does::Reads
                | Does::Thing
                | Does::Brings
                | Does::Looks
                | Does::Computes
                | Does::Pictures,
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
            matches!((&self.said, does), (Said::Reads(_) | Said::Looks(_), Some(Does::Reads)));
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
            let only_looks_at_it = matches!(self.said, Said::Reads(_)) && is_data(argument);
            let is_query =
                matches!(argument.as_str(), "sql" | "statement" | "cypher" | "sql_query");
            let is_fine = only_looks_at_it || (is_query && self.spoken.claims_read);
            return (!is_fine).then(|| format!("argument: `{argument}` can say anything"));
        }
        let does = self.spoken.head.as_ref().map(|head| head.does);
        let is_query = matches!(&self.said, Said::Looks(word) if word == "query");
        let queries = is_query || does == Some(Does::Looks);
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
            Said::Destroys(verb) => reasons.push(format!("name: `{verb}` takes away")),
            Said::Writes(verb) => reasons.push(format!("name: `{verb}` changes something")),
            Said::Acts(verb) => reasons.push(format!("name: `{verb}` acts")),
            Said::Thing(word) | Said::Noun(word) => {
                reasons.push(format!("name: `{word}` may be a verb of change"));
            }
            Said::Torn(verb, other) => {
                reasons.push(format!("name: `{verb}` reads, but there is `{other}`"));
            }
            Said::Brings(verb) => reasons.push(format!("name: `{verb}` may leave a file")),
            Said::Reads(verb) | Said::Looks(verb) | Said::ThingRead(verb) => {
                reasons.push(format!("name: `{verb}` reads"));
            }
            Said::Computes(verb) => reasons.push(format!("name: `{verb}` works something out")),
            Said::Nothing => reasons.push("name: no verb".to_owned()),
            Said::Odd => reasons.push("name: cannot be read for sure".to_owned()),
        }
        if let Some(head) = &self.spoken.head {
            let what = match head.does {
                Does::Writes => "changes something",
                Does::Acts => "acts",
                Does::Thing => "may be a verb of change",
                Does::Brings => "may leave a file",
                Does::Reads | Does::Looks => "reads",
                Does::Computes => "works something out",
                Does::Pictures => "a picture",
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
