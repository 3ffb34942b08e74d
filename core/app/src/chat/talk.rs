//! A conversation with its model and its tools, for fronts where a person types.

use std::sync::Arc;

use capstan_hub::ports::{ChatMessage, ChatModel, TokenCount};

use super::conversation::{Conversation, ConversationStore};
use super::engine::{Chat, ChatLimits, Outcome, Watch};
use super::ranking::Ranker;
use super::toolbox::HubToolbox;
use crate::api::{Interact, Local};
use crate::{AppError, Environment, ModelChoice, Models, choose_model};

/// The parts from which a [`Talk`] is made.
pub struct TalkParts {
    /// The servers.
    pub local: Arc<Local>,
    /// Opens models.
    pub models: Arc<dyn Models>,
    /// Keeps conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// The variables and folders of the process.
    pub environment: Arc<Environment>,
    /// The model that the command line names.
    pub model: Option<String>,
    /// The largest number of requests to the model for one message of the user.
    pub max_turns: u32,
}

/// A model that was chosen and opened.
#[derive(Clone)]
struct OpenModel {
    choice: ModelChoice,
    model: Arc<dyn ChatModel>,
}

/// A conversation, its model and its tools. Each can be replaced without the others.
pub struct Talk {
    parts: TalkParts,
    tools: Arc<HubToolbox>,
    /// The model, or the reason why there is none.
    model: Result<OpenModel, AppError>,
    conversation: Option<Conversation>,
}

// === impl Talk ===

impl Talk {
    /// A talk without a conversation; the first message begins one. Questions of the road and of
    /// servers go to `front`.
    pub fn new(parts: TalkParts, front: Arc<dyn Interact>) -> Self {
        let model = open(&parts, parts.model.as_deref());
        let label = model.as_ref().ok().map(|open| open.choice.label.as_str());
        let config = &parts.local.setup.loaded.config;
        let ranker = Ranker::of(config, &parts.environment, &*parts.models, label);
        let tools = Arc::new(HubToolbox::new(Arc::clone(&parts.local), front, ranker));
        Self { parts, tools, model, conversation: None }
    }

    /// The servers.
    pub fn local(&self) -> &Arc<Local> {
        &self.parts.local
    }

    /// The conversation; `None` before its first message.
    pub fn conversation(&self) -> Option<&Conversation> {
        self.conversation.as_ref()
    }

    /// The tokens of all requests of the conversation.
    pub fn tokens(&self) -> TokenCount {
        self.conversation.as_ref().map(Conversation::tokens).unwrap_or_default()
    }

    /// The model.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn model(&self) -> Result<&ModelChoice, AppError> {
        self.model.as_ref().map(|open| &open.choice).map_err(Clone::clone)
    }

    /// Chooses another model.
    ///
    /// # Errors
    /// If it cannot be used; then the model is the one before.
    pub fn choose(&mut self, wanted: &str) -> Result<(), AppError> {
        self.model = Ok(open(&self.parts, Some(wanted))?);
        Ok(())
    }

    /// Leaves the conversation; the next message begins another one.
    pub fn leave(&mut self) {
        self.conversation = None;
        self.tools.begin_again();
    }

    /// Goes on with the latest conversation about this folder.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn resume(&mut self) -> Result<(), AppError> {
        let store = Arc::clone(&self.parts.conversations);
        let conversation = Conversation::resume(store, &self.folder())?;
        self.tools.begin_again();
        self.tools.restore(conversation.sources().clone());
        self.conversation = Some(conversation);
        Ok(())
    }

    /// Adds messages and lets the model answer. The conversation stays usable if the future is
    /// dropped.
    ///
    /// # Errors
    /// If there is no model, or it does not answer.
    pub async fn answer(
        &mut self,
        messages: Vec<ChatMessage>,
        watch: &dyn Watch,
    ) -> Result<Outcome, AppError> {
        let chat = self.chat()?;
        let (store, folder) = (Arc::clone(&self.parts.conversations), self.folder());
        let conversation = match &mut self.conversation {
            Some(conversation) => conversation,
            none => {
                let now = self.parts.local.hub.clock().now();
                none.insert(Conversation::begin(store, &folder, now)?)
            }
        };
        chat.run(conversation, messages, watch).await
    }

    /// Replaces earlier messages by a summary; false if nothing can be left out.
    ///
    /// # Errors
    /// If there is no model, or it does not answer.
    pub async fn compact(&mut self, watch: &dyn Watch) -> Result<bool, AppError> {
        let chat = self.chat()?;
        let Some(conversation) = &mut self.conversation else { return Ok(false) };
        chat.compact(conversation, watch).await
    }

    fn chat(&self) -> Result<Chat, AppError> {
        let OpenModel { choice, model } = self.model.clone()?;
        let limits = ChatLimits {
            max_turns: self.parts.max_turns,
            context_tokens: choice.context_tokens,
            max_output: choice.max_output,
        };
        Ok(Chat { model, tools: Arc::<HubToolbox>::clone(&self.tools), limits })
    }

    fn folder(&self) -> String {
        self.parts.environment.workspace().display().to_string()
    }
}

fn open(parts: &TalkParts, wanted: Option<&str>) -> Result<OpenModel, AppError> {
    let config = &parts.local.setup.loaded.config.model;
    let choice = choose_model(config, &parts.environment, wanted)?;
    let model = parts.models.open(&choice)?;
    Ok(OpenModel { choice, model })
}
