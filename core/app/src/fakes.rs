//! Fakes of the ports, for the tests of this crate.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{
    AuditLog, Binding, BoxFuture, Clock, Grant, IndexedTools, KeptQuestion, Scores, SearchedTool,
    Slot, Store, StoreError, ToolIndex, UsageLog, UsageRow, Wanted,
};
use capstan_hub::{Entry, Hub, HubBuilder};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::{pending, ready};
use jiff::Timestamp;

use crate::api::{Answer, Ask, Event, Interact};
use crate::hub_settings::policy;
use crate::{
    AppError, Approval, AuditMark, AuditQuery, AuditReader, AuditRow, AuditWhole, Configs,
    ControlFault, ControlSocket, ControlSockets, EditText, Edited, Environment, FileFacts,
    FileKind, Files, Machine, ProbeAnswer, ProbeRequest, ProjectApprovals, PublicProbe, Setup,
};

/// Files in memory; a folder exists if a file is in it.
#[derive(Default)]
pub(crate) struct FakeFiles {
    texts: Mutex<BTreeMap<PathBuf, String>>,
    links: Mutex<BTreeMap<PathBuf, PathBuf>>,
    /// Files that others can read.
    open: Mutex<Vec<PathBuf>>,
}

/// Approved texts in memory.
#[derive(Default)]
struct FakeApprovals(Mutex<BTreeMap<PathBuf, String>>);

/// A clock that stands still. A sleep ends at once.
pub(crate) struct FakeClock;

/// A machine on which every absolute path in `/bin` is a program, and nothing else answers.
pub(crate) struct FakeMachine;

/// The answer of a gateway to a request; `None` if it never answers.
pub(crate) type Reply = Option<Result<Json, ControlFault>>;

/// The control socket of a gateway that answers by a function.
pub(crate) struct FakeSocket {
    pub(crate) process: u32,
    pub(crate) digest: String,
    pub(crate) reply: Box<dyn Fn(&Json) -> Reply + Send + Sync>,
}

/// Control sockets of running gateways.
pub(crate) struct FakeSockets(pub(crate) Vec<Arc<FakeSocket>>);

/// A front that ignores events and answers nothing.
pub(crate) struct FakeFront;

/// An index that finds nothing.
pub(crate) struct NoIndex;

/// An audit log, a usage log and a log reader without entries.
pub(crate) struct NoEntries;

// === impl FakeFiles ===

impl FakeFiles {
    pub(crate) fn with(files: &[(&str, &str)]) -> Arc<Self> {
        let texts = files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        Arc::new(Self { texts: Mutex::new(texts), ..Self::default() })
    }

    pub(crate) fn link(&self, path: &str, to: &str) {
        self.links.lock().unwrap().insert(path.into(), to.into());
    }

    pub(crate) fn open_to_others(&self, path: &str) {
        self.open.lock().unwrap().push(path.into());
    }

    pub(crate) fn remove(&self, path: &str) {
        self.texts.lock().unwrap().remove(Path::new(path));
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.texts.lock().unwrap().get(Path::new(path)).cloned()
    }

    fn target(&self, path: &Path) -> PathBuf {
        self.links.lock().unwrap().get(path).cloned().unwrap_or_else(|| path.to_owned())
    }
}

impl Files for FakeFiles {
    fn facts(&self, path: &Path) -> Option<FileFacts> {
        let path = self.target(path);
        let text = self.texts.lock().unwrap().get(&path).cloned();
        let is_above = |file: &PathBuf| file.starts_with(&path);
        let (kind, size) = match text {
            Some(text) => (FileKind::File, text.len()),
            None if self.texts.lock().unwrap().keys().any(is_above) => (FileKind::Folder, 0),
            None => return None,
        };
        let is_private = !self.open.lock().unwrap().contains(&path);
        let modified = Some(Timestamp::UNIX_EPOCH);
        Some(FileFacts { kind, is_private, size: u64::try_from(size).unwrap(), modified })
    }

    fn is_link(&self, path: &Path) -> bool {
        self.links.lock().unwrap().contains_key(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, String> {
        match self.facts(path) {
            Some(_) => Ok(self.target(path)),
            None => Err("No such file or directory".to_owned()),
        }
    }

    fn may_write(&self, path: &Path) -> bool {
        !path.starts_with("/readonly")
    }

    fn read(&self, path: &Path) -> Result<Option<String>, AppError> {
        Ok(self.texts.lock().unwrap().get(&self.target(path)).cloned())
    }

    fn edit(&self, path: &Path, change: EditText<'_>) -> Result<Edited, AppError> {
        let before = self.read(path)?;
        let new = change(before.as_deref().unwrap_or_default())?;
        self.texts.lock().unwrap().insert(path.to_owned(), new);
        Ok(if before.is_some() { Edited::Changed } else { Edited::Created })
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), AppError> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.texts.lock().unwrap().insert(path.to_owned(), text);
        Ok(())
    }

    fn remove(&self, path: &Path, expected: &str) -> Result<bool, AppError> {
        let target = self.target(path);
        let is_same = self.read(path)?.as_deref() == Some(expected);
        if is_same {
            self.texts.lock().unwrap().remove(&target);
        }
        Ok(is_same)
    }

    fn locked(&self, _: &Path, work: &mut dyn FnMut()) -> Result<(), AppError> {
        work();
        Ok(())
    }

    fn unpack(&self, bundle: &Path, bundles: &Path) -> Result<PathBuf, AppError> {
        Ok(bundles.join(bundle.file_stem().unwrap()))
    }
}

// === impl FakeApprovals ===

impl ProjectApprovals for FakeApprovals {
    fn status(&self, path: &Path, text: &str) -> Result<Approval, AppError> {
        Ok(match self.0.lock().unwrap().get(path) {
            Some(approved) if approved == text => Approval::Approved,
            Some(approved) => Approval::Changed { before: approved.clone(), now: text.to_owned() },
            None => Approval::Unknown { now: text.to_owned() },
        })
    }

    fn approve(&self, path: &Path, text: &str, _: Timestamp) -> Result<(), AppError> {
        self.0.lock().unwrap().insert(path.to_owned(), text.to_owned());
        Ok(())
    }

    fn revoke(&self, path: &Path) -> Result<bool, AppError> {
        Ok(self.0.lock().unwrap().remove(path).is_some())
    }
}

// === impl FakeClock ===

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }
}

// === impl FakeMachine ===

impl PublicProbe for FakeMachine {
    fn send(&self, _: ProbeRequest) -> BoxFuture<'_, Result<ProbeAnswer, String>> {
        ready(Err("nothing answers".to_owned())).boxed()
    }
}

impl Machine for FakeMachine {
    fn connect(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    fn listen(&self, address: SocketAddr) -> io::Result<()> {
        if address.port() == 1 { Err(io::ErrorKind::AddrInUse.into()) } else { Ok(()) }
    }

    fn find_program(
        &self,
        command: &str,
        _: Option<&str>,
        _: Option<&Path>,
    ) -> Result<PathBuf, String> {
        match command {
            "node" => Ok("/bin/node".into()),
            path if path.starts_with("/bin/") => Ok(path.into()),
            other => Err(format!("`{other}` is not in PATH")),
        }
    }

    fn version<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Option<String>> {
        ready(Some("v16.2.0".to_owned())).boxed()
    }

    fn check_sandbox(&self) -> BoxFuture<'_, Result<(), String>> {
        ready(Err("this kernel has no Landlock".to_owned())).boxed()
    }

    fn check_database(&self) -> BoxFuture<'_, Result<Vec<PathBuf>, String>> {
        ready(Ok(Vec::new())).boxed()
    }
}

// === impl FakeSocket ===

impl FakeSocket {
    pub(crate) fn new(
        process: u32,
        digest: impl Into<String>,
        reply: impl Fn(&Json) -> Reply + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { process, digest: digest.into(), reply: Box::new(reply) })
    }
}

impl ControlSocket for FakeSocket {
    fn path(&self) -> &Path {
        Path::new("/run/gateway.sock")
    }

    fn process(&self) -> Option<u32> {
        Some(self.process)
    }

    fn digest(&self) -> BoxFuture<'_, Result<String, ControlFault>> {
        ready(Ok(self.digest.clone())).boxed()
    }

    fn run<'a>(
        &'a self,
        request: &'a Json,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, ControlFault>> {
        match (self.reply)(request) {
            Some(reply) => ready(reply).boxed(),
            None => pending().boxed(),
        }
    }
}

// === impl FakeSockets ===

impl ControlSockets for FakeSockets {
    fn find(&self) -> Vec<Arc<dyn ControlSocket>> {
        let socket =
            |one: &Arc<FakeSocket>| -> Arc<dyn ControlSocket> { Arc::<FakeSocket>::clone(one) };
        self.0.iter().map(socket).collect()
    }
}

// === impl FakeFront ===

impl Interact for FakeFront {
    fn event(&self, _: Event) {}

    fn ask(&self, _: Ask) -> BoxFuture<'_, Answer> {
        ready(Answer::Nobody).boxed()
    }
}

// === impl NoIndex ===

impl ToolIndex for NoIndex {
    fn add(&self, tools: &[SearchedTool<'_>]) -> IndexedTools {
        IndexedTools::new(tools.iter().map(|_| Slot(0)).collect(), Arc::new(()))
    }

    fn score<'a>(&'a self, _: &'a str, _: &'a [Slot], _: Wanted) -> BoxFuture<'a, Scores> {
        ready(Scores::default()).boxed()
    }

    fn likeness(&self, _: Slot, _: Slot) -> Option<f32> {
        None
    }
}

// === impl NoEntries ===

impl AuditLog for NoEntries {
    fn record(&self, _: Entry) {}
}

impl UsageLog for NoEntries {
    fn read(&self, _: i64) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn add<'a>(&'a self, _: &'a [UsageRow], _: i64) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }
}

impl AuditReader for NoEntries {
    fn query(&self, _: &Setup, _: &AuditQuery) -> Result<Vec<AuditRow>, AppError> {
        Ok(Vec::new())
    }

    fn follow(&self, _: &Setup, _: &mut AuditMark) -> Result<Vec<AuditRow>, AppError> {
        Ok(Vec::new())
    }

    fn verify(&self, _: &Setup) -> Result<AuditWhole, AppError> {
        Ok(AuditWhole { first: 1, entries: 0, breaks: 0, unclosed: 0 })
    }
}

/// A hub with the rules and the quota of a configuration and without servers.
pub(crate) fn hub(setup: &Setup) -> Hub {
    let policy = Arc::new(policy(&setup.loaded.config).unwrap());
    let mut hub = HubBuilder::new(policy, Arc::new(NoEntries), Arc::new(FakeClock));
    hub.limits.quota = setup.loaded.config.tools.max_tool_calls_per_session;
    hub.build()
}

/// An environment of a user with the home folder `/home/me`, in the folder `project`.
pub(crate) fn environment(files: impl Into<Arc<FakeFiles>>) -> Environment {
    Environment {
        variables: BTreeMap::new(),
        current_folder: "/home/me/project".into(),
        home: "/home/me".into(),
        shared_config: "/home/me/.config".into(),
        config: "/home/me/.config/capstan".into(),
        state: "/home/me/.local/state/capstan".into(),
        cache: "/home/me/.cache/capstan".into(),
        data: "/home/me/.local/share/capstan".into(),
        program: Ok("/usr/bin/capstan".into()),
        files: files.into(),
    }
}

/// Configurations in that environment.
pub(crate) fn configs(files: Arc<FakeFiles>) -> Configs {
    configs_in(environment(files))
}

/// Configurations in an environment.
pub(crate) fn configs_in(environment: Environment) -> Configs {
    Configs {
        environment: Arc::new(environment),
        approvals: Arc::new(FakeApprovals::default()),
        clock: Arc::new(FakeClock),
        demo: |_, _, _| String::new(),
    }
}

/// A store of approvals and questions in memory.
#[derive(Default)]
pub(crate) struct FakeStore {
    grants: Mutex<Vec<Grant>>,
    questions: Mutex<Vec<KeptQuestion>>,
}

// === impl FakeStore ===

impl Store for FakeStore {
    fn grant<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), StoreError>> {
        self.grants.lock().unwrap().push(grant.clone());
        ready(Ok(())).boxed()
    }

    fn take<'a>(
        &'a self,
        binding: &'a Binding,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut grants = self.grants.lock().unwrap();
        let place = grants.iter().position(|grant| grant.binding == *binding);
        let taken = place.map(|place| grants.remove(place)).is_some();
        drop(grants);
        ready(Ok(taken)).boxed()
    }

    fn list(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        ready(Ok(self.grants.lock().unwrap().clone())).boxed()
    }

    fn expire(&self, _: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        ready(Ok(0)).boxed()
    }

    fn keep<'a>(&'a self, question: &'a KeptQuestion) -> BoxFuture<'a, Result<(), StoreError>> {
        self.questions.lock().unwrap().push(question.clone());
        ready(Ok(())).boxed()
    }

    fn kept(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<Vec<KeptQuestion>, StoreError>> {
        ready(Ok(self.questions.lock().unwrap().clone())).boxed()
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut questions = self.questions.lock().unwrap();
        let before = questions.len();
        questions.retain(|question| question.grant.id != id);
        let found = questions.len() < before;
        drop(questions);
        ready(Ok(found)).boxed()
    }
}
