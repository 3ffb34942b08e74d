//! The `time` server: what time it is elsewhere.

use jiff::civil::{self, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::describe::{Answer, Effect, Members, Tool, array, boolean, integer, parse, string};
use crate::fault::Fault;
use crate::server::{Profile, Prompts, Resources, Server};

/// Most zone names in one answer; there are about 600.
const MAX_ZONES: usize = 1_000;

/// Most names proposed for a misspelt zone.
const MAX_NEAREST: usize = 3;

/// How alike a name must be to be proposed, from 0 to 1.
const ALIKE: f64 = 0.8;

/// The server; the clock is handed in so that tests can stop it.
pub(crate) struct Time {
    clock: fn() -> Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Now {
    zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Convert {
    time: String,
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Zones {
    #[serde(default)]
    filter: String,
}

// === impl Time ===

impl Time {
    pub(crate) fn new(clock: fn() -> Timestamp) -> Self {
        Self { clock }
    }

    fn now(&self, asked: &Now) -> Result<Answer, Fault> {
        let zone = match &asked.zone {
            Some(name) => find_zone(name)?,
            None => TimeZone::system(),
        };
        Ok(Answer::structured(show(&(self.clock)().to_zoned(zone))))
    }

    fn convert(&self, asked: &Convert) -> Result<Answer, Fault> {
        let from = find_zone(&asked.from)?;
        let to = find_zone(&asked.to)?;
        let local = self.parse_local(&asked.time, &from)?;
        let ambiguous = from.to_ambiguous_zoned(local);
        let note = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => None,
            AmbiguousOffset::Gap { .. } => {
                Some("clocks skip this time; the time after the skip is taken")
            }
            AmbiguousOffset::Fold { .. } => {
                Some("clocks show this time twice; the first one is taken")
            }
        };
        let start = ambiguous
            .compatible()
            .map_err(|problem| Fault::refused(format!("`{}`: {problem}", asked.time)))?;
        let end = start.with_time_zone(to);
        let mut answer = json!({ "from": show(&start), "to": show(&end) });
        if let (Some(object), Some(note)) = (answer.as_object_mut(), note) {
            object.insert("note".to_owned(), json!(note));
        }
        Ok(Answer::structured(answer))
    }

    /// A date and time without an offset, or a time of today.
    fn parse_local(&self, text: &str, zone: &TimeZone) -> Result<DateTime, Fault> {
        // The parser of local times would drop an offset without a word.
        if text.parse::<Timestamp>().is_ok() {
            let reason =
                format!("`{text}` has an offset of its own; leave it away, `from` says it");
            return Err(Fault::refused(reason));
        }
        // The parser of times of day would drop a date as well.
        if let Ok(local) = text.parse::<DateTime>() {
            return Ok(local);
        }
        let time: civil::Time = text.parse().map_err(|_| {
            Fault::refused(format!(
                "`{text}` is not a time; write `2026-03-29T14:30`, or `14:30` for today"
            ))
        })?;
        Ok((self.clock)().to_zoned(zone.clone()).date().to_datetime(time))
    }
}

impl Server for Time {
    fn profile(&self) -> Profile {
        Profile {
            name: "time",
            title: "Time",
            instructions: "Tells the time in any zone. Zones have IANA names, such as \
                           `Europe/Berlin`; `zones` finds them.",
            resources: Resources::None,
            prompts: Prompts::None,
        }
    }

    fn tools(&self) -> Vec<Tool> {
        tools()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, Fault> {
        match tool {
            "now" => self.now(&parse(tool, arguments)?),
            "convert" => self.convert(&parse(tool, arguments)?),
            "zones" => Ok(zones(&parse(tool, arguments)?)),
            _ => Err(Fault::UnknownTool { name: tool.to_owned() }),
        }
    }
}

fn tools() -> Vec<Tool> {
    let zone = |whose| string(&format!("{whose}: an IANA name such as `Europe/Berlin`"));
    let moment = || {
        Members::new([
            ("time", string("The time with its offset, as in RFC 3339")),
            ("zone", string("The zone")),
            ("weekday", string("The day of the week")),
            ("dst", boolean("Whether daylight saving time is in force")),
        ])
        .requiring(&["time", "zone", "weekday", "dst"])
    };
    let names = array("The names, in order", &json!({ "type": "string" }));
    vec![
        Tool {
            name: "now",
            title: "Current time",
            description: "Tells the current time in a zone",
            input: Members::new([("zone", zone("The zone (default: this machine's)"))])
                .requiring(&[]),
            output: Some(moment()),
            effect: Effect::Reads,
        },
        Tool {
            name: "convert",
            title: "Convert a time",
            description: "Tells what a clock in one zone shows when a clock in another shows a \
                          given time",
            input: Members::new([
                ("time", string("A local time: `2026-03-29T14:30`, or `14:30` for today")),
                ("from", zone("The zone of `time`")),
                ("to", zone("The zone wanted")),
            ])
            .requiring(&["time", "from", "to"]),
            output: Some(
                Members::new([
                    ("from", moment()),
                    ("to", moment()),
                    ("note", string("What is special about this time, if anything")),
                ])
                .requiring(&["from", "to"]),
            ),
            effect: Effect::Reads,
        },
        Tool {
            name: "zones",
            title: "Find zones",
            description: "Lists the names of time zones, or those that contain a text",
            input: Members::new([("filter", string("A part of the name, such as `asia/`"))])
                .requiring(&[]),
            output: Some(
                Members::new([("zones", names), ("total", integer("How many there are", 0))])
                    .requiring(&["zones", "total"]),
            ),
            effect: Effect::Reads,
        },
    ]
}

fn zones(asked: &Zones) -> Answer {
    let filter = plain(&asked.filter);
    let mut names: Vec<String> = zone_names(jiff::tz::db());
    names.retain(|name| plain(name).contains(&filter));
    let total = names.len();
    names.truncate(MAX_ZONES);
    Answer::structured(json!({ "zones": names, "total": total }))
}

fn show(time: &Zoned) -> Value {
    let zone = time.time_zone();
    let dst = zone.to_offset_info(time.timestamp()).dst().is_dst();
    json!({
        "time": time.timestamp().display_with_offset(time.offset()).to_string(),
        "zone": zone.iana_name().unwrap_or("local"),
        "weekday": time.strftime("%A").to_string(),
        "dst": dst,
    })
}

fn find_zone(name: &str) -> Result<TimeZone, Fault> {
    let database = jiff::tz::db();
    database.get(name).map_err(|_| {
        let nearest = nearest(name, &zone_names(database));
        let hint = match nearest.as_slice() {
            [] => "`zones` lists them".to_owned(),
            names => format!("perhaps {}", names.join(" or ")),
        };
        Fault::refused(format!("no time zone `{name}`; {hint}"))
    })
}

fn zone_names(database: &TimeZoneDatabase) -> Vec<String> {
    let mut names: Vec<String> =
        database.available().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    names
}

/// The names most like what was asked, as a whole or in their last part, the city.
fn nearest(asked: &str, names: &[String]) -> Vec<String> {
    let asked = plain(asked);
    let mut scored: Vec<(f64, &String)> = names
        .iter()
        .map(|name| {
            let whole = plain(name);
            let city = whole.rsplit('/').next().unwrap_or_default();
            let score =
                strsim::jaro_winkler(&asked, &whole).max(strsim::jaro_winkler(&asked, city));
            (score, name)
        })
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| left.cmp(right)));
    scored.into_iter().take(MAX_NEAREST).map(|(_, name)| format!("`{name}`")).collect()
}

/// Lower case, with `_` for the spaces people write.
fn plain(text: &str) -> String {
    text.trim().to_lowercase().replace(' ', "_")
}
