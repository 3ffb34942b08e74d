//! `./dev/bench policy`: instructions to decide on one call.
//!
//! Rules and roles are many and of every kind that people write: whole ids, names with stars before,
//! behind and in between, matchers over arguments. The caller has all the roles at once, and what it
//! calls is found by the last rule of the last list, behind all the others.

#![expect(clippy::similar_names, reason = "rules and roles are what is counted")]

use std::hint::black_box;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use capstan_model::{Caller, Effect, ItemId, Kind, ServerName, Verdict};
use capstan_policy::access::{AccessTo, Grant, Says};
use capstan_policy::{
    Access, AccessTable, Arguments, Asked, DefaultRule, Glob, Pattern, Policy, PolicySource, Rule,
    ServerPolicy,
};
use capstan_wire::Json;
use jiff::Timestamp;
use serde::Serialize;

use crate::count;
use crate::table::Table;

/// Instructions that a decision may take, whatever there is to look at.
const GOAL: u64 = 20_000;

/// How much more a decision may take with a hundred times as many tools.
const GROWTH: f64 = 1.05;

const RULES: [usize; 3] = [10, 100, 500];
const ROLES: [usize; 2] = [1, 100];
const TOOLS: [usize; 2] = [100, 10_000];

/// Tools of one server.
const PER_SERVER: usize = 100;

/// How often is decided in the shorter run; the longer one is three times as long.
const TIMES: u32 = 2_000;

/// One cell of the table.
#[derive(Serialize)]
struct Cell {
    rules: usize,
    roles: usize,
    tools: usize,
    instructions: u64,
    met: bool,
}

#[derive(Serialize)]
struct Report {
    goal: u64,
    cells: Vec<Cell>,
    /// Whether ten thousand tools cost what a hundred do.
    steady: bool,
    met: bool,
}

/// Decides, to be counted from outside.
pub(crate) fn run(rules: usize, roles: usize, tools: usize, times: u32) -> anyhow::Result<()> {
    let scene = Scene::new(rules, roles, tools)?;
    for _ in 0..times {
        let ruling = scene.decide();
        anyhow::ensure!(ruling == Verdict::Allow, "the last rule did not decide");
        black_box(ruling);
    }
    Ok(())
}

/// Measures, and prints a table or one JSON document.
pub(crate) fn print(form: Form) -> anyhow::Result<ExitCode> {
    let report = Report::measure()?;
    let mut out = io::stdout().lock();
    match form {
        Form::Json => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        Form::Table => {
            writeln!(out, "instructions to decide on one call; the goal is {GOAL}\n")?;
            writeln!(out, "{}", report.table())?;
            let word = if report.steady { "does not grow" } else { "GROWS" };
            writeln!(out, "it {word} with the number of tools")?;
        }
    }
    Ok(if report.met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How it is printed.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Table,
    Json,
}

// === impl Report ===

impl Report {
    fn measure() -> anyhow::Result<Self> {
        let mut cells = Vec::new();
        for rules in RULES {
            for roles in ROLES {
                for tools in TOOLS {
                    let instructions = instructions(rules, roles, tools)?;
                    let met = instructions < GOAL;
                    cells.push(Cell { rules, roles, tools, instructions, met });
                }
            }
        }
        let steady = cells.chunks(TOOLS.len()).all(is_steady);
        let met = steady && cells.iter().all(|cell| cell.met);
        Ok(Self { goal: GOAL, cells, steady, met })
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["rules", "roles", "tools", "instructions", "met"]);
        for cell in &self.cells {
            table.row([
                cell.rules.to_string(),
                cell.roles.to_string(),
                cell.tools.to_string(),
                cell.instructions.to_string(),
                (if cell.met { "yes" } else { "no" }).to_owned(),
            ]);
        }
        table
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of two counts")]
fn is_steady(pair: &[Cell]) -> bool {
    match pair {
        [few, many] => many.instructions as f64 <= few.instructions as f64 * GROWTH,
        _ => true,
    }
}

/// Instructions for one decision: of two runs of different length, so that starting cancels out.
fn instructions(rules: usize, roles: usize, tools: usize) -> anyhow::Result<u64> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let words = |times: u32| {
        let numbers = [rules, roles, tools].map(|number| number.to_string());
        let [rules, roles, tools] = numbers;
        ["decide".to_owned(), rules, roles, tools, times.to_string()]
    };
    let short = count::instructions(&program, &words(TIMES))?;
    let long = count::instructions(&program, &words(3 * TIMES))?;
    Ok(long.saturating_sub(short) / u64::from(2 * TIMES))
}

struct Scene {
    policy: Policy,
    caller: Caller,
    id: ItemId,
    arguments: Json,
}

// === impl Scene ===

impl Scene {
    fn new(rules: usize, roles: usize, tools: usize) -> anyhow::Result<Self> {
        let servers = (tools / PER_SERVER).max(1);
        let mut policy = PolicySource::default();
        for number in 0..servers {
            let name: ServerName = format!("server{number}").parse()?;
            let display = name.to_string();
            policy.servers.insert(name, ServerPolicy { display, ..ServerPolicy::default() });
        }
        for number in 0..rules.saturating_sub(1) {
            let rule = Rule::new(Pattern::parse(&pattern(number))?, "permissions");
            let lists = &mut policy.permissions.global;
            match number % 3 {
                0 => lists.deny.push(rule),
                1 => lists.ask.push(rule),
                _ => lists.allow.push(rule),
            }
        }
        let last = Rule::new(Pattern::parse("*_wanted")?, "permissions.allow");
        policy.permissions.global.allow.push(last);
        let names: Vec<String> = (0..roles).map(|number| format!("role-{number}")).collect();
        let granted = names.iter().enumerate();
        let granted = granted.map(|(number, name)| (name.clone(), grants(number))).collect();
        let table = AccessTable { default: Says::Deny, roles: granted, ..AccessTable::default() };
        let known = policy.servers.iter().map(|(name, it)| (name, it.display.as_str()));
        policy.access = vec![Access::new(table, known)];
        Ok(Self {
            policy: policy.compile(),
            caller: Caller::remote("someone", names),
            id: ItemId { server: "server0".parse()?, item: "find_what_is_wanted".to_owned() },
            arguments: Json::parse(r#"{"path":"/srv/data/report.txt","depth":3}"#.to_owned())?,
        })
    }

    fn decide(&self) -> Verdict {
        let asked = Asked {
            caller: &self.caller,
            id: &self.id,
            kind: Kind::Tool,
            arguments: Arguments::These(&self.arguments),
            effect: Effect::Read,
            now: Timestamp::UNIX_EPOCH,
            fallback: DefaultRule::Always(Verdict::Ask),
        };
        self.policy.decide(&asked).verdict
    }
}

/// A rule that does not speak of what is called, of one of the kinds that people write.
fn pattern(number: usize) -> String {
    match number % 6 {
        0 => format!("server{number}__delete_*"),
        1 => format!("*_secret{number}"),
        2 => format!("mcp__server{number}__create_issue"),
        3 => format!("*admin{number}*"),
        4 => format!("run_{number}_*:path=/etc/*"),
        _ => format!("server0__find_{number}_?"),
    }
}

/// Grants of a role: one for everything that reads, and some that speak of other tools.
fn grants(number: usize) -> Vec<Grant> {
    let grant = |servers: &str, access, tools: Option<String>, says| Grant {
        servers: vec![Glob::stars(servers)],
        access,
        tools: tools.map(|tools| vec![Glob::stars(&tools)]),
        resources: None,
        prompts: None,
        says,
    };
    vec![
        grant("*", AccessTo::Read, None, Says::Allow),
        grant("server*", AccessTo::Write, Some(format!("put_{number}_*")), Says::Allow),
        grant(&format!("server{number}"), AccessTo::All, Some("drop_*".to_owned()), Says::Deny),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_of_all_decides_in_every_cell() {
        for rules in RULES {
            for roles in ROLES {
                run(rules, roles, TOOLS[0], 1).unwrap();
            }
        }
    }

    #[test]
    fn a_goal_that_is_missed_is_a_failure() {
        let cell =
            |tools, instructions| Cell { rules: 1, roles: 1, tools, instructions, met: true };
        assert!(is_steady(&[cell(100, 10_000), cell(10_000, 10_100)]));
        assert!(!is_steady(&[cell(100, 10_000), cell(10_000, 11_000)]));
    }
}
