//! `capstan chat`: a model answers with the tools of all servers, once with `--print`.
//!
//! `talk` is the conversation on a terminal. `input` gathers a message, `slash` runs commands, `mcp`
//! shows servers as text, `front` answers questions, `output` prints the answer of `--print`.

mod front;
mod input;
mod mcp;
mod output;
mod slash;
mod talk;

use std::sync::Arc;

use capstan_app::api::{GetPrompt, Interact, Local, Operation as _};
use capstan_app::chat::{Chat, ChatLimits, Conversation, HubToolbox, Ranker, of_prompt};
use capstan_app::{AppError, HubPurpose, choose_model};
use capstan_hub::ports::{ChatMessage, ChatPart, Role};
use capstan_text::message::{self, Typed};

use self::front::{ModelFront, TypedFront};
use self::output::Output;
use crate::args::{ChatArgs, OutputFormat, WaitArgs};
use crate::context::Context;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, args: &ChatArgs) -> Result<Exit, AppError> {
    if args.print { print(context, args).await } else { talk::run(context, args).await }
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
    match typed {
        Typed::Command(name, rest) => prompt(context, local, name, rest).await,
        Typed::Message(text) => {
            let parts = input::parts(context, local, text).await;
            Ok(vec![ChatMessage { role: Role::User, parts, written_by: None }])
        }
    }
}

/// The messages of a prompt that is typed as a command.
async fn prompt(
    context: &Context,
    local: &Local,
    name: &str,
    rest: &str,
) -> Result<Vec<ChatMessage>, AppError> {
    let wait = Context::patience(&WaitArgs::default());
    let get = GetPrompt { name: name.to_owned(), wait, max_tokens: None };
    let front: Arc<dyn Interact> =
        Arc::new(TypedFront::prompt(&context.print, message::words(rest)));
    let result = get.run(local, &front).await.map_err(|error| match error.hint {
        None => error.hint("`/help` lists the commands and prompts"),
        Some(_) => error,
    })?;
    let messages = of_prompt(&result);
    if messages.is_empty() {
        return Err(AppError::usage(format!("the prompt `{name}` has no messages")));
    }
    Ok(answerable(messages))
}

/// A model answers a user, so a prompt that ends with the model's own words is followed by a wish.
fn answerable(mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    if messages.last().is_some_and(|last| last.role == Role::Assistant) {
        let parts = vec![ChatPart::text("Continue.")];
        messages.push(ChatMessage { role: Role::User, parts, written_by: None });
    }
    messages
}
