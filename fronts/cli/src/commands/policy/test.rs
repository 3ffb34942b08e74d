//! `capstan policy test`: checks that the rules decide as expected. Starts nothing.

use capstan_app::hub_settings::policy;
use capstan_app::{AppError, Setup};
use capstan_hub::explain::id_among;
use capstan_hub::{DescribedCall, Explanation};
use capstan_model::{Kind, Verdict};
use capstan_policy::{Policy, Step};
use capstan_text::clean::one_line;
use capstan_wire::Json;
use jiff::Timestamp;
use serde::Serialize;

use super::cases::{self, Case};
use crate::args::PolicyTestArgs;
use crate::commands::explained::{self, STEP_HEADERS};
use crate::context::Context;
use crate::exit::Exit;

/// The result of a case, as `--json` prints it.
#[derive(Serialize)]
struct Outcome<'a> {
    name: &'a str,
    passed: bool,
    kind: Kind,
    item: &'a str,
    expected: Verdict,
    verdict: Option<Verdict>,
    rule: Option<String>,
    /// The reason why the case failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// All evaluated rules, if the case failed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    steps: Vec<Step>,
}

/// The results of all cases.
#[derive(Serialize)]
struct Summary<'a> {
    passed: usize,
    failed: usize,
    cases: &'a [Outcome<'a>],
}

pub(super) fn run(context: &Context, args: &PolicyTestArgs) -> Result<Exit, AppError> {
    let cases = cases::read(&args.file)?;
    let setup = if args.alone { context.setup_alone()? } else { context.setup()? };
    let policy = policy(&setup.loaded.config)?;
    let now = context.app.configs.now();
    let outcomes: Vec<Outcome<'_>> =
        cases.iter().map(|case| Outcome::of(case, &setup, &policy, now)).collect();
    let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
    let passed = outcomes.len() - failed;
    if context.print.wants_json() {
        context.print.json(&Summary { passed, failed, cases: &outcomes });
    } else {
        for outcome in outcomes.iter().filter(|outcome| !outcome.passed) {
            show(context, outcome);
        }
        context.print.data(&format!("{passed} passed, {failed} failed"));
    }
    Ok(if failed > 0 { Exit::ToolError } else { Exit::Ok })
}

fn show(context: &Context, outcome: &Outcome<'_>) {
    let (name, item) = (one_line(outcome.name, usize::MAX), one_line(outcome.item, usize::MAX));
    let named = if name == item { String::new() } else { format!(" ({item})") };
    let problem = one_line(outcome.problem.as_deref().unwrap_or_default(), usize::MAX);
    context.print.data(&format!("failed: {name}{named}: {problem}"));
    if !outcome.steps.is_empty() {
        context.print.table(&STEP_HEADERS, &explained::steps(&outcome.steps));
        context.print.exactly("\n");
    }
}

// === impl Outcome ===

impl<'a> Outcome<'a> {
    fn of(case: &'a Case, setup: &Setup, policy: &Policy, now: Timestamp) -> Self {
        let item = case.target.name.as_str();
        let (verdict, rule, problem, steps) = match explain(case, setup, policy, now) {
            Ok(Explanation { ruling, steps, .. }) => {
                let problem = misses(case, ruling.verdict, &ruling.rule);
                (Some(ruling.verdict), Some(ruling.rule), problem, steps)
            }
            Err(problem) => (None, None, Some(problem), Vec::new()),
        };
        let passed = problem.is_none();
        Self {
            name: case.name.as_deref().unwrap_or(item),
            passed,
            kind: case.target.kind,
            item,
            expected: case.expect,
            verdict,
            rule,
            problem,
            steps: if passed { Vec::new() } else { steps },
        }
    }
}

/// Explains the decision about a case, or returns the reason why there is none.
fn explain(
    case: &Case,
    setup: &Setup,
    policy: &Policy,
    now: Timestamp,
) -> Result<Explanation, String> {
    let name = case.target.name.as_str();
    let Some(id) = id_among(policy, case.target.kind, name) else {
        return Err(unknown_server(setup, name));
    };
    let caller = case.door.caller(case.caller.as_deref(), case.roles.clone());
    let mut told = DescribedCall::new(caller, id, case.target.kind);
    if let Some(arguments) = &case.arguments {
        let text = serde_json::Value::Object(arguments.clone()).to_string();
        told.arguments = Json::parse(text).map_err(|error| error.to_string())?;
    }
    if let Some(effect) = case.effect {
        told.effect = effect;
    }
    Ok(told.explain(policy, now))
}

/// The reason why no server matches a name.
fn unknown_server(setup: &Setup, name: &str) -> String {
    let broken = setup.loaded.config.servers.values().find_map(|entry| {
        let fits = name.strip_prefix(entry.name.as_str()).or(name.strip_prefix(&entry.display))?;
        let problem = entry.status.as_ref().err()?;
        fits.starts_with(['_', ':', '.']).then(|| (entry.display.clone(), problem.to_string()))
    });
    match broken {
        Some((server, problem)) => format!("the rules of `{server}` are not known: {problem}"),
        None => "no configured server matches".to_owned(),
    }
}

/// The reason why a decision is not the expected one; `None` if it is.
fn misses(case: &Case, verdict: Verdict, rule: &str) -> Option<String> {
    let (expected, got) = (case.expect.as_str(), verdict.as_str());
    if case.expect != verdict {
        return Some(format!("expected {expected}, got {got} by `{rule}`"));
    }
    let wanted = case.rule.as_ref().filter(|wanted| !rule.contains(wanted.as_str()))?;
    Some(format!("got {got} as expected, but by `{rule}` instead of `{wanted}`"))
}
