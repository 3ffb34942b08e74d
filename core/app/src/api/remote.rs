//! Operations in a running gateway: the form that travels over the control socket.
//!
//! A request contains the version of the API, the name of the operation, its parameters and, where
//! needed, the digest of the configuration that the gateway must have. Events and questions travel
//! back as JSON while it runs; the result is `{"ok": …}` or `{"error": …}`.

use std::borrow::Cow;
use std::sync::Arc;

use capstan_config::{Hide, Problem, Scope, SourceFile, redact_file};
use capstan_hub::ports::BoxFuture;
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

use super::changes::{AddServer, Reload, RemoveServer};
use super::{
    Answer, CallTool, CompletePrompt, CompleteTemplate, GetPrompt, GetServer, Interact,
    ListPrompts, ListResources, ListServers, ListTools, Local, Operation, ReadResource,
};
use crate::{AppError, ErrorKind, Gateways, NotRun, Which};

/// The version of the API. A gateway refuses a request with any other version without running it.
pub const VERSION: u32 = 1;

/// The servers of a running gateway.
pub struct Remote<'a> {
    /// Access to running gateways.
    pub gateways: &'a dyn Gateways,
    /// Selects the gateway.
    pub which: Which<'a>,
}

/// The wire form of an operation sent to a gateway.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    version: u32,
    operation: String,
    params: Json,
    /// The digest of the configuration that the gateway must have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    digest: Option<String>,
}

/// The result of an operation in a gateway.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Ok(Json),
    Error(Box<ErrorText>),
}

/// An [`AppError`] in text form; values in files are redacted.
#[derive(Debug, Serialize, Deserialize)]
struct ErrorText {
    kind: ErrorKind,
    code: String,
    message: String,
    hint: Option<String>,
    retryable: bool,
    problems: Vec<Problem>,
    files: Vec<FileText>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileText {
    path: String,
    text: String,
}

// === impl Remote ===

impl Remote<'_> {
    /// Runs an operation in the gateway.
    ///
    /// # Errors
    /// [`NotRun::Here`] if nothing was done there, else the reason why it failed.
    pub async fn run<O: Operation>(
        &self,
        operation: &O,
        front: &Arc<dyn Interact>,
    ) -> Result<O::Output, NotRun> {
        let params = Json::from_value(operation).map_err(|_| broken("the request"))?;
        let request = |digest| {
            let operation = O::NAME.to_owned();
            let request = Request { version: VERSION, operation, params: params.clone(), digest };
            Json::from_value(&request).unwrap_or_else(|_| Json::empty_object())
        };
        let outcome = self.gateways.send(self.which, &request, front).await?;
        match outcome.read().map_err(|_| broken("the gateway's answer"))? {
            Outcome::Ok(output) => Ok(output.read().map_err(|_| broken("the gateway's answer"))?),
            Outcome::Error(error) => Err(AppError::from(*error).into()),
        }
    }
}

/// Runs a request in this process, whose gateway has a configuration with this digest.
///
/// # Errors
/// The reason why it is not run here; in that case nothing has been done.
pub async fn answer(
    request: &Json,
    digest: &str,
    local: &Local,
    front: &Arc<dyn Interact>,
) -> Result<Json, String> {
    let Ok(request) = request.read::<Request>() else {
        return Err("the request cannot be parsed".to_owned());
    };
    if request.version != VERSION {
        let theirs = request.version;
        return Err(format!(
            "it has version {VERSION} of the API, but the command has version {theirs}"
        ));
    }
    if request.digest.as_ref().is_some_and(|wanted| wanted != digest) {
        return Err("the gateway uses another configuration".to_owned());
    }
    let Request { operation, params, .. } = request;
    let ran = match operation.as_str() {
        ListServers::NAME => run::<ListServers>(&params, local, front).await,
        GetServer::NAME => run::<GetServer>(&params, local, front).await,
        AddServer::NAME => run::<AddServer>(&params, local, front).await,
        RemoveServer::NAME => run::<RemoveServer>(&params, local, front).await,
        Reload::NAME => run::<Reload>(&params, local, front).await,
        ListTools::NAME => run::<ListTools>(&params, local, front).await,
        CallTool::NAME => run::<CallTool>(&params, local, front).await,
        ListResources::NAME => run::<ListResources>(&params, local, front).await,
        ReadResource::NAME => run::<ReadResource>(&params, local, front).await,
        CompleteTemplate::NAME => run::<CompleteTemplate>(&params, local, front).await,
        ListPrompts::NAME => run::<ListPrompts>(&params, local, front).await,
        GetPrompt::NAME => run::<GetPrompt>(&params, local, front).await,
        CompletePrompt::NAME => run::<CompletePrompt>(&params, local, front).await,
        unknown => return Err(format!("it has no operation `{unknown}`")),
    };
    let outcome = match ran? {
        Ok(output) => Outcome::Ok(output),
        Err(error) => Outcome::Error(Box::new(error.into())),
    };
    Json::from_value(&outcome).map_err(|_| "the answer cannot be written".to_owned())
}

async fn run<O: Operation>(
    params: &Json,
    local: &Local,
    front: &Arc<dyn Interact>,
) -> Result<Result<Json, AppError>, String> {
    let Ok(operation) = params.read::<O>() else {
        return Err("the parameters cannot be parsed".to_owned());
    };
    let written = |output| Json::from_value(&output).map_err(|_| broken("the answer"));
    Ok(operation.run(local, front).await.and_then(written))
}

/// Forwards an event of a gateway to the front.
pub fn tell_front(front: &dyn Interact, event: &Json) {
    // An event that cannot be parsed comes from a later version and can be ignored.
    if let Ok(event) = event.read() {
        front.event(event);
    }
}

/// Forwards a question of a gateway to the front.
pub fn ask_front(front: Arc<dyn Interact>, question: &Json) -> BoxFuture<'static, Json> {
    let question = question.read();
    Box::pin(async move {
        let answer = match question {
            Ok(question) => front.ask(question).await,
            Err(_) => Answer::Refused,
        };
        Json::from_value(&answer).unwrap_or_else(|_| Json::empty_object())
    })
}

fn broken(part: &str) -> AppError {
    AppError::internal(format!("{part} cannot be parsed"))
}

// === impl ErrorText ===

impl From<AppError> for ErrorText {
    fn from(error: AppError) -> Self {
        let file = |file: &SourceFile| {
            let text = redact_file(&file.path, &file.text, Hide::EveryValue);
            FileText { path: file.path.clone(), text }
        };
        Self {
            kind: error.kind,
            code: error.code.into_owned(),
            message: error.message,
            hint: error.hint,
            retryable: error.retryable,
            problems: error.problems.into_vec(),
            files: error.files.iter().map(file).collect(),
        }
    }
}

impl From<ErrorText> for AppError {
    fn from(text: ErrorText) -> Self {
        let file = |file: FileText| SourceFile::new(file.path, Scope::User, file.text);
        Self {
            kind: text.kind,
            code: Cow::Owned(text.code),
            message: text.message,
            hint: text.hint,
            retryable: text.retryable,
            problems: text.problems.into(),
            files: text.files.into_iter().map(file).collect(),
        }
    }
}
