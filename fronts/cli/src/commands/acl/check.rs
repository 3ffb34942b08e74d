//! `capstan acl check`: checks whether a caller of the gateway may use an item, and by which rule.

use capstan_app::hub_settings::policy;
use capstan_app::{AppError, HubPurpose, Setup};
use capstan_config::ServerEntry;
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{DescribedCall, EntryPoint, Explanation, Freshness, Hub};
use capstan_model::{CallError, Caller, Effect, Front, ItemId, Kind, ServerName, Verdict};
use capstan_policy::Policy;
use capstan_text::clean::one_line;
use capstan_wire::Json;
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{AccessArg, AclCheckArgs, FormatArg};
use crate::commands::explained::{self, Decision, STEP_HEADERS};
use crate::commands::tell_saved;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Printer;
use crate::spinner::Spinner;

/// The placeholder subject if only roles are given; no real caller has this name.
const ANY_CALLER: &str = "__check__";

/// One item, as `--json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    server: &'a ServerName,
    kind: Kind,
    item: &'a str,
    subject: &'a str,
    roles: &'a [String],
    #[serde(flatten)]
    decision: Decision<'a>,
}

/// The server, caller and policy of a check.
struct Check<'a> {
    context: &'a Context,
    setup: &'a Setup,
    policy: Policy,
    entry: &'a ServerEntry,
    caller: Caller,
    /// Ask the server, whatever was seen of it.
    refresh: bool,
}

pub(super) async fn run(context: &Context, args: &AclCheckArgs) -> Result<Exit, AppError> {
    let print = match args.format {
        FormatArg::Json => Printer::json_only(),
        FormatArg::Table => context.print.clone(),
    };
    let setup = context.setup()?;
    let entry = setup.server(&args.server)?;
    if let Err(problem) = &entry.status {
        let message = format!("the rules of `{}` are not known: {problem}", args.server);
        return Err(AppError::config(message));
    }
    explained::tell_unknown_roles(&print, &setup, &args.role);
    let subject = args.subject.as_deref().unwrap_or(ANY_CALLER);
    let caller = EntryPoint::Gateway.caller(Some(subject), args.role.clone());
    let policy = policy(&setup.loaded.config)?;
    let refresh = args.refresh;
    let check = Check { context, setup: &setup, policy, entry, caller, refresh };
    if args.all_tools {
        check.all_tools(&print).await?;
        return Ok(Exit::Ok);
    }
    let told = check.told(args).await?;
    let explained = told.explain(&check.policy, context.app.configs.now());
    if print.wants_json() {
        print.json(&Row::new(&explained, &check.caller));
    } else {
        show(&print, &explained, &check.caller);
    }
    let denied = explained.ruling.verdict == Verdict::Deny;
    Ok(if denied { Exit::Denied } else { Exit::Ok })
}

// === impl Check ===

impl Check<'_> {
    /// The call to check.
    async fn told(&self, args: &AclCheckArgs) -> Result<DescribedCall, AppError> {
        let (kind, item) = match (&args.tool, &args.resource, &args.prompt) {
            (Some(tool), _, _) => (Kind::Tool, tool),
            (None, Some(uri), _) => (Kind::Resource, uri),
            (None, None, Some(prompt)) => (Kind::Prompt, prompt),
            (None, None, None) => return Err(AppError::usage("name the item to check")),
        };
        let id = ItemId { server: self.entry.name.clone(), item: item.clone() };
        let told = DescribedCall::new(self.caller.clone(), id, kind);
        match (kind, args.access) {
            (Kind::Resource | Kind::Prompt, _) => Ok(told),
            (Kind::Tool, Some(AccessArg::Read)) => {
                Ok(DescribedCall { effect: Effect::Read, ..told })
            }
            (Kind::Tool, Some(AccessArg::Write)) => {
                Ok(DescribedCall { effect: Effect::Write, ..told })
            }
            (Kind::Tool, None) => {
                let effect = self.effect(&told.id).await?;
                Ok(DescribedCall { effect, ..told })
            }
        }
    }

    /// The time of the saved list of tools, if it is to be used.
    fn saved_at(&self, hub: &Hub) -> Option<Timestamp> {
        hub.saved_at(&self.entry.name, Listing::Tools).filter(|_| !self.refresh)
    }

    /// The effect of a tool. The server is queried, but may be unavailable.
    async fn effect(&self, id: &ItemId) -> Result<Effect, AppError> {
        let hub = self.context.hub(self.setup, HubPurpose::Lists)?;
        let print = &self.context.print;
        if let Some(seen) = self.saved_at(hub) {
            let items = hub.list(&id.server, Listing::Tools, Freshness::Remembered).await?;
            if let Some(item) = items.iter().find(|item| item.name == id.item) {
                tell_saved(print, std::iter::once(seen));
                return Ok(self.policy.effect_of(id, Kind::Tool, &item.definition));
            }
        }
        let waiting = Spinner::new(print, &format!("starting `{}`", id.server));
        let found = hub.find_tool(&Caller::operator(Front::Cli), &id.to_string()).await;
        drop(waiting);
        match found {
            Ok(view) => Ok(view.effect),
            Err(unknown @ CallError::Unknown { .. }) => Err(unknown.into()),
            Err(error) => {
                let effect = self.policy.effect_of(id, Kind::Tool, &Json::empty_object());
                let word = effect.as_str();
                print.warning(&error.to_string());
                print.note(&format!(
                    "so the effect of `{id}` is judged only by its name and the configuration: {word}"
                ));
                Ok(effect)
            }
        }
    }

    async fn all_tools(&self, print: &Printer) -> Result<(), AppError> {
        let (hub, server) = (self.context.hub(self.setup, HubPurpose::Lists)?, &self.entry.name);
        if !hub.has(server) {
            return Err(AppError::not_found(format!("server `{server}` is not in use")));
        }
        let waiting = Spinner::new(print, &format!("starting `{server}`"));
        let seen = self.saved_at(hub);
        let freshness = match (seen, self.refresh) {
            (Some(_), _) => Freshness::Remembered,
            (None, false) => Freshness::Known,
            (None, true) => Freshness::Current,
        };
        let items = hub.list(server, Listing::Tools, freshness).await?;
        drop(waiting);
        let now = self.context.app.configs.now();
        let explain = |item: &Item| {
            let id = ItemId { server: server.clone(), item: item.name.clone() };
            let effect = self.policy.effect_of(&id, Kind::Tool, &item.definition);
            let told =
                DescribedCall { effect, ..DescribedCall::new(self.caller.clone(), id, Kind::Tool) };
            told.explain(&self.policy, now)
        };
        let all: Vec<Explanation> = items.iter().map(explain).collect();
        if print.wants_json() {
            let rows = all.iter().map(|explained| Row::new(explained, &self.caller));
            print.json(&rows.collect::<Vec<_>>());
        } else {
            let cells: Vec<Vec<String>> = all.iter().map(cells).collect();
            print.table(&["TOOL", "ACCESS", "VERDICT", "RULE"], &cells);
            tell_saved(print, seen.into_iter());
        }
        Ok(())
    }
}

fn cells(explained: &Explanation) -> Vec<String> {
    let words = [explained.effect.as_str(), explained.ruling.verdict.as_str()];
    let [effect, verdict] = words.map(ToOwned::to_owned);
    vec![explained.id.to_string(), effect, verdict, explained.ruling.rule.clone()]
}

fn show(print: &Printer, explained: &Explanation, caller: &Caller) {
    print.table(&STEP_HEADERS, &explained::steps(&explained.steps));
    let item = one_line(&explained.id.to_string(), usize::MAX);
    let rule = one_line(&explained.ruling.rule, usize::MAX);
    let (verdict, access) = (explained.ruling.verdict.as_str(), explained.effect.as_str());
    let who = who(caller);
    print.data(&format!("\n{item} for {who}: {verdict} by `{rule}` (access {access})"));
    explained::tell_by_arguments(print, &explained.by_arguments);
}

/// The caller in words.
fn who(caller: &Caller) -> String {
    let subject = match caller.subject.as_str() {
        ANY_CALLER => "any caller".to_owned(),
        subject => format!("`{}`", one_line(subject, usize::MAX)),
    };
    if caller.roles.is_empty() {
        return subject;
    }
    let roles: Vec<String> =
        caller.roles.iter().map(|role| format!("`{}`", one_line(role, usize::MAX))).collect();
    format!("{subject} with {}", roles.join(", "))
}

// === impl Row ===

impl<'a> Row<'a> {
    fn new(explained: &'a Explanation, caller: &'a Caller) -> Self {
        Self {
            server: &explained.id.server,
            kind: explained.kind,
            item: &explained.id.item,
            subject: &caller.subject,
            roles: &caller.roles,
            decision: Decision::of(explained),
        }
    }
}
