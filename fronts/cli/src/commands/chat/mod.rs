//! `capstan chat`: a model answers with the tools of all servers, once with `--print`.
//!
//! `full_screen` is the conversation on a terminal, `talk` the one line by line. `input` reads a message, `slash` runs commands, `mcp`
//! shows servers as text, `front` answers questions, `output` prints the answer of `--print`.

mod front;
mod full_screen;
mod input;
mod mcp;
mod output;
mod slash;
mod talk;

use std::sync::Arc;

use capstan_app::api::{Interact, Local};
use capstan_app::chat::{Chat, ChatLimits, Conversation, HubToolbox, Ranker};
use capstan_app::{AppError, HubPurpose, choose_model};
use capstan_hub::ports::ChatMessage;
use capstan_text::gather::{self, Report};
use capstan_text::message::{self, Typed};

use self::front::{ModelFront, Reported};
use self::output::Output;
use crate::args::{ChatArgs, OutputFormat, WaitArgs};
use crate::context::Context;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, args: &ChatArgs) -> Result<Exit, AppError> {
    if args.print {
        return print(context, args).await;
    }
    if full_screen::is_wanted(context, args) {
        return full_screen::run(context, args).await;
    }
    talk::run(context, args).await
}

/// Answers one message.
async fn print(context: &Context, args: &ChatArgs) -> Result<Exit, AppError> {
    let front = Arc::new(ModelFront::new(&context.print, &args.allow)?);
    let given = input::read(&args.text).await?;
    let typed = message::read(&given.typed);
    if let Typed::Command(name, rest) = typed
        && let Some(exit) = slash::run(context, name, rest).await?
    {
        return Ok(exit);
    }
    let local = Arc::new(context.local(HubPurpose::Calls)?);
    let environment = &context.app.configs.environment;
    let config = &local.setup.loaded.config.model;
    let choice = choose_model(config, environment, args.model.as_deref())?;
    let model = context.app.models.open(&choice)?;
    let asker = Arc::<ModelFront>::clone(&front);
    let tools = toolbox(context, &local, asker, Some(&choice.label));
    let resumed = match Which::from(args.resume) {
        Which::Latest => Some(open(context, &local, Which::Latest)?),
        Which::New => None,
    };
    if let Some(conversation) = &resumed {
        tools.restore(conversation.sources().clone());
    }
    let mut messages = messages(context, &local, typed).await?;
    if let Some(piped) = given.piped {
        messages.push(ChatMessage::user(piped));
    }
    let mut conversation = match resumed {
        Some(conversation) => conversation,
        None => open(context, &local, Which::New)?,
    };
    let limits = ChatLimits {
        max_turns: args.max_turns,
        context_tokens: choice.context_tokens,
        max_output: choice.max_output,
    };
    let chat = Chat { model, tools: Arc::new(tools), limits };
    let format = match (args.output_format, context.print.wants_json()) {
        (OutputFormat::Text, true) => OutputFormat::Json,
        (format, _) => format,
    };
    let output = Output::new(&context.print, format);
    let outcome = chat.run(&mut conversation, messages, &output).await;
    front.tell_unapproved();
    let outcome = outcome?;
    output.end(&outcome, &choice.label, conversation.id());
    let is_denied = outcome.calls.iter().any(|call| call.denied);
    Ok(if is_denied { Exit::Denied } else { Exit::Ok })
}

/// The tools of a conversation with this model.
fn toolbox(
    context: &Context,
    local: &Arc<Local>,
    front: Arc<dyn Interact>,
    model: Option<&str>,
) -> HubToolbox {
    let environment = &context.app.configs.environment;
    let config = &local.setup.loaded.config;
    let ranker = Ranker::of(config, environment, &*context.app.models, model);
    HubToolbox::new(Arc::clone(local), front, ranker)
}

/// A new conversation, or the latest of the project.
#[derive(Clone, Copy)]
enum Which {
    New,
    Latest,
}

impl From<bool> for Which {
    fn from(resume: bool) -> Self {
        if resume { Self::Latest } else { Self::New }
    }
}

fn open(context: &Context, local: &Local, which: Which) -> Result<Conversation, AppError> {
    let folder = context.app.configs.environment.workspace().display().to_string();
    let store = Arc::clone(&context.app.conversations);
    match which {
        Which::Latest => Conversation::resume(store, &folder),
        Which::New => Conversation::begin(store, &folder, local.hub.clock().now()),
    }
}

/// The messages of a typed text: a prompt, or a message with what it mentions.
async fn messages(
    context: &Context,
    local: &Local,
    typed: Typed<'_>,
) -> Result<Vec<ChatMessage>, AppError> {
    let report: Arc<dyn Report> = Arc::new(Reported(context.print.clone()));
    gather::messages(local, typed, Context::patience(&WaitArgs::default()), &report).await
}
