//! Operations in a running gateway: the form that travels over the control socket.
//!
//! A request contains the version of the API, the name of the operation, its parameters and, where
//! needed, the digest of the configuration that the gateway must have. Events and questions travel
//! back as JSON while it runs; the result is `{"ok": …}` or `{"error": …}`.

use std::borrow::Cow;
use std::sync::Arc;

use capstan_config::{Hide, Problem, Scope, SourceFile, redact_file};
use capstan_hub::ports::BoxFuture;
use capstan_model::ServerName;
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

use super::{
    AddServer, Answer, AnswerApproval, CallTool, CompletePrompt, CompleteTemplate, GetPrompt,
    GetServer, Interact, ListApprovals, ListDefinitions, ListPrompts, ListResources, ListServers,
    ListTools, Local, Operation, ReadResource, Reload, RemoveServer, SearchTools, ShowApproval,
};
use crate::gateways::Selected;
use crate::{AppError, ControlFault, ControlSocket, ErrorKind, Gateways, NotRun, Which};

/// The version of the API. A gateway refuses a request with any other version without running it.
pub const VERSION: u32 = 3;

/// The servers of a running gateway.
pub struct Remote<'a> {
    /// The running gateways.
    pub gateways: &'a Gateways,
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    login: Option<Box<ServerName>>,
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
        let Selected { socket, digest } = self.gateways.select(self.which).await?;
        match run_in(&*socket, operation, digest, front).await {
            Ok(result) => Ok(result?),
            Err(fault) => Err(fault.of_operation(self.which)),
        }
    }
}

/// Runs an operation in the gateway with this socket, if its configuration has this digest.
pub(crate) async fn run_in<O: Operation>(
    socket: &dyn ControlSocket,
    operation: &O,
    digest: Option<String>,
    front: &Arc<dyn Interact>,
) -> Result<Result<O::Output, AppError>, ControlFault> {
    let written = Json::from_value(operation).and_then(|params| {
        let operation = O::NAME.to_owned();
        Json::from_value(&Request { version: VERSION, operation, params, digest })
    });
    let Ok(request) = written else { return Ok(Err(broken("the request"))) };
    let outcome = socket.run(&request, front).await?;
    Ok(match outcome.read() {
        Ok(Outcome::Ok(output)) => output.read().map_err(|_| broken("the gateway's answer")),
        Ok(Outcome::Error(error)) => Err(AppError::from(*error)),
        Err(_) => Err(broken("the gateway's answer")),
    })
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
        SearchTools::NAME => run::<SearchTools>(&params, local, front).await,
        ListDefinitions::NAME => run::<ListDefinitions>(&params, local, front).await,
        CallTool::NAME => run::<CallTool>(&params, local, front).await,
        ListResources::NAME => run::<ListResources>(&params, local, front).await,
        ReadResource::NAME => run::<ReadResource>(&params, local, front).await,
        CompleteTemplate::NAME => run::<CompleteTemplate>(&params, local, front).await,
        ListPrompts::NAME => run::<ListPrompts>(&params, local, front).await,
        GetPrompt::NAME => run::<GetPrompt>(&params, local, front).await,
        CompletePrompt::NAME => run::<CompletePrompt>(&params, local, front).await,
        ListApprovals::NAME => run::<ListApprovals>(&params, local, front).await,
        ShowApproval::NAME => run::<ShowApproval>(&params, local, front).await,
        AnswerApproval::NAME => run::<AnswerApproval>(&params, local, front).await,
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
            login: error.login,
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
            login: text.login,
            problems: text.problems.into(),
            files: text.files.into_iter().map(file).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{
        FakeFiles, FakeFront, FakeSocket, FakeSockets, NoEntries, NoIndex, Reply, configs, hub,
    };
    use crate::{Selection, Usage};

    fn front() -> Arc<dyn Interact> {
        Arc::new(FakeFront)
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    /// Reloads the only gateway, which replies by a function.
    async fn reload(
        which: Which<'_>,
        reply: impl Fn(&Json) -> Reply + Send + Sync + 'static,
    ) -> Result<bool, NotRun> {
        let gateways = Gateways {
            configs: Arc::new(configs(FakeFiles::with(&[]))),
            sockets: Arc::new(FakeSockets(vec![FakeSocket::new(7, "", reply)])),
        };
        let remote = Remote { gateways: &gateways, which };
        remote.run(&Reload {}, &front()).await.map(|reloaded| reloaded.changed)
    }

    fn failed(result: Result<bool, NotRun>) -> AppError {
        match result {
            Err(NotRun::Failed(error)) => *error,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_request_names_version_operation_and_where_needed_the_digest() {
        let result = |request: &Json| {
            let request: serde_json::Value = request.read().unwrap();
            assert_eq!(
                (&request["version"], &request["operation"]),
                (&VERSION.into(), &"config/reload".into())
            );
            let changed = request.get("digest").is_some();
            let output = format!(r#"{{"changed":{changed},"needs_restart":[],"trouble":null}}"#);
            Some(Ok(json(&format!(r#"{{"ok":{output}}}"#))))
        };
        let selection = Selection::default();
        assert!(!reload(Which::Process(7), result).await.unwrap());
        assert!(reload(Which::Like(&selection), result).await.unwrap(), "with a digest");
    }

    #[tokio::test]
    async fn a_refusal_runs_a_plain_command_here_and_is_an_error_for_an_attached_one() {
        let refuse = |_: &Json| -> Reply { Some(Err(ControlFault::Declined("no".to_owned()))) };
        let selection = Selection::default();
        let plain = reload(Which::Like(&selection), refuse).await;
        assert!(matches!(plain, Err(NotRun::Here)), "{plain:?}");
        let error = failed(reload(Which::Only(&selection), refuse).await);
        assert_eq!(error.message, "the gateway says: no");
    }

    #[tokio::test]
    async fn a_gateway_that_ended_before_the_request_did_nothing() {
        let gone = |_: &Json| -> Reply { Some(Err(ControlFault::Gone)) };
        let selection = Selection::default();
        assert!(matches!(reload(Which::Like(&selection), gone).await, Err(NotRun::Here)));
        let error = failed(reload(Which::Process(7), gone).await);
        assert_eq!(error.message, "no gateway of yours is running");
    }

    #[tokio::test]
    async fn an_operation_whose_gateway_ends_in_the_middle_is_not_run_again_here() {
        let lost = |_: &Json| -> Reply { Some(Err(ControlFault::Failed("closed".into()))) };
        let selection = Selection::default();
        for which in [Which::Like(&selection), Which::Only(&selection), Which::Process(7)] {
            let error = failed(reload(which, lost).await);
            assert_eq!(error.code, "outcome_unknown", "{which:?}");
        }
    }

    #[tokio::test]
    async fn a_malformed_reply_is_an_error() {
        for reply in [r#""ok""#, r#"{"ok":{"changed":"yes"}}"#, r#"{"fine":1}"#, "[]"] {
            let error = failed(reload(Which::Process(7), move |_| Some(Ok(json(reply)))).await);
            assert_eq!(error.message, "the gateway's answer cannot be parsed", "{reply}");
        }
    }

    /// Sends a request to a gateway without servers in this process.
    async fn answered(request: &str) -> Result<Json, String> {
        let setup = configs(FakeFiles::with(&[])).load(&Selection::default()).unwrap();
        let local = Local {
            hub: Arc::new(hub(&setup)),
            names: None,
            usage: Arc::new(Usage { log: Arc::new(NoEntries) }),
            index: Arc::new(NoIndex),
            switched_off: false,
            gateway: None,
            conversation: crate::api::OpenConversation::default(),
            setup,
        };
        answer(&json(request), "d1g3st", &local, &front()).await
    }

    #[tokio::test]
    async fn a_gateway_runs_nothing_for_another_version_or_configuration() {
        for (request, reason) in [
            (r#"{"version":2,"operation":"servers/get","params":{"name":"s"}}"#, "version 3"),
            (r#"{"version":3,"operation":"servers/explode","params":{}}"#, "no operation"),
            (r#"{"version":3,"operation":"servers/get","params":{}}"#, "parameters"),
            (
                r#"{"version":3,"operation":"servers/get","params":{"name":"s"},"digest":"x"}"#,
                "another configuration",
            ),
            (r#"{"operation":"servers/get"}"#, "cannot be parsed"),
        ] {
            let refused = answered(request).await.unwrap_err();
            assert!(refused.contains(reason), "{request}: {refused}");
        }
        let ran = answered(
            r#"{"version":3,"operation":"servers/remove","params":{"name":"s"},"digest":"d1g3st"}"#,
        );
        let error = ran.await.unwrap().to_string();
        assert!(error.contains("no gateway runs in this process"), "{error}");
    }

    #[test]
    fn an_error_arrives_with_its_files_and_without_their_values() {
        let file = SourceFile::new("c.toml", Scope::User, "token = \"hunter2\"");
        let error = AppError::problems(Vec::new(), vec![file]).hint("mend it").code("x");
        let text = Json::from_value(&ErrorText::from(error)).unwrap();
        assert!(!text.to_string().contains("hunter2"), "{text}");
        let read = AppError::from(text.read::<ErrorText>().unwrap());
        assert_eq!((read.kind, &*read.code), (ErrorKind::Config, "x"));
        assert_eq!((read.hint.as_deref(), read.files.len()), (Some("mend it"), 1));
    }
}
