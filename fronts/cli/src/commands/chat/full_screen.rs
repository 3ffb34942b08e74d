//! The conversation on the whole screen, which the terminal front draws.

use std::sync::Arc;

use capstan_app::api::Local;
use capstan_app::chat::TalkParts;
use capstan_app::{AppError, HubPurpose};
use capstan_hub::ports::BoxFuture;
use capstan_text::conversation::{Commands, Conversing, Output, allowed};
use capstan_text::screen::{has_person, stdout_is_terminal};

use super::slash;
use crate::args::ChatArgs;
use crate::context::Context;
use crate::conversing::Ended;
use crate::exit::Exit;

/// The slash commands, run on behalf of a screen.
struct SlashCommands<'a>(&'a Context);

/// True if the terminal can be drawn on, and the person does not want a conversation line by line.
pub(super) fn is_wanted(context: &Context, args: &ChatArgs) -> bool {
    let environment = &context.app.configs.environment;
    let is_dumb = environment.variable("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let is_plain = args.plain || environment.filled_variable("CAPSTAN_PLAIN").is_some();
    has_person() && stdout_is_terminal() && !is_dumb && !is_plain
}

pub(super) async fn run(context: &Context, args: &ChatArgs) -> Result<Exit, AppError> {
    let allow = args.allow.iter().map(|text| allowed(text)).collect::<Result<_, _>>()?;
    let local = Arc::new(context.local(HubPurpose::Calls)?);
    let commands = SlashCommands(context);
    let conversing = Conversing {
        parts: parts(context, local, args),
        resume: args.resume,
        first: Some(args.text.join(" ")).filter(|text| !text.trim().is_empty()),
        allow,
        commands: &commands,
        names: Arc::clone(&context.app.names),
    };
    Ok(match context.app.converse.converse(conversing).await? {
        Ended::ByPerson => Exit::Ok,
        Ended::BySignal => Exit::Interrupted,
    })
}

/// The parts of a conversation, for any front.
pub(super) fn parts(context: &Context, local: Arc<Local>, args: &ChatArgs) -> TalkParts {
    TalkParts {
        local,
        models: Arc::clone(&context.app.models),
        conversations: Arc::clone(&context.app.conversations),
        environment: Arc::clone(&context.app.configs.environment),
        model: args.model.clone(),
        max_turns: args.max_turns,
    }
}

impl Commands for SlashCommands<'_> {
    fn run<'a>(
        &'a self,
        name: &'a str,
        rest: &'a str,
        output: Arc<dyn Output>,
    ) -> BoxFuture<'a, Result<Option<()>, AppError>> {
        Box::pin(async move {
            let context = self.0.on_screen(output);
            Ok(slash::run(&context, name, rest).await?.map(drop))
        })
    }

    fn names(&self) -> Vec<(&'static str, &'static str)> {
        slash::COMMANDS.to_vec()
    }
}
