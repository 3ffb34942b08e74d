//! A hub whose operator sits in another shell.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::approvals::{Answer, Answered, Extent, OpenQuestion, OtherShells, Span};
use capstan_hub::ports::{
    Approval, Binding, BoxFuture, Grant, KeptQuestion, NewRule, NotSaved, RuleBook, Store,
    StoreError,
};
use capstan_hub::{Approvals, Call, Session};
use capstan_model::{CallError, Caller, Front, Target};
use capstan_policy::effect::EffectRules;
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;
use jiff::Timestamp;

use crate::world::{Person, Server, World, json, policy};

/// How long a call waits here.
pub(crate) const WAIT: Duration = Duration::from_secs(15);

/// A hub, and what is around it.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) store: Arc<Kept>,
    pub(crate) book: Arc<Book>,
}

/// A store that keeps everything in memory.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) grants: Mutex<Vec<Grant>>,
    pub(crate) questions: Mutex<Vec<KeptQuestion>>,
    pub(crate) broken: AtomicBool,
}

/// A configuration that takes every rule, or none.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) rules: Mutex<Vec<NewRule>>,
    pub(crate) closed: AtomicBool,
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new() -> Self {
        let files = Server::new("files", &["read", "list", "write", "drop", "pay"]);
        let notes = Server::new("notes", &["read", "write"]);
        let mut rules = policy(&[], &["files__pay"], &[]);
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let effects =
            EffectRules::new(&names(&["read", "list"]), &names(&["write", "drop", "pay"])).unwrap();
        let one = rules.servers.values().next().unwrap().clone();
        rules.servers.insert("notes".parse().unwrap(), one);
        for server in rules.servers.values_mut() {
            server.effects = effects.clone();
        }
        let world = World::new(vec![files, notes], rules);
        let mut scene = Self { world, store: Arc::default(), book: Arc::default() };
        scene.restart("1", WAIT);
        scene
    }

    /// A new process: nothing is remembered but what is stored.
    pub(crate) fn restart(&mut self, policy: &str, wait: Duration) {
        let approvals = Arc::new(self.approvals(policy, wait));
        self.world.change(|hub| hub.approvals = approvals);
        self.world.session = self.world.hub.session();
    }

    /// The same process with another configuration.
    pub(crate) fn change(&mut self, policy: &str) {
        let after = self.approvals(policy, WAIT).after(self.world.hub.approvals());
        self.world.change(|hub| hub.approvals = Arc::new(after));
    }

    pub(crate) fn approvals(&self, policy: &str, wait: Duration) -> Approvals {
        let shells = OtherShells {
            store: Arc::<Kept>::clone(&self.store),
            clock: Arc::clone(self.world.hub.clock()),
            policy: policy.to_owned(),
            wait: Some(wait),
            seed: 7,
        };
        let spans = vec![Span::Session, Span::Saved];
        let approvals = Approvals::at_the_front(spans, Arc::<Book>::clone(&self.book));
        approvals.and_elsewhere(shells)
    }

    /// A call with nobody at the front.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> Result<Json, CallError> {
        self.world.call(&Arc::new(Person::nobody()), call(name, arguments)).await
    }

    pub(crate) async fn call_in(
        &self,
        session: &Session,
        call: Call,
        person: Person,
    ) -> Result<Json, CallError> {
        let screened = self.world.hub.call(session, call, Arc::new(person).requester()).await?;
        Ok(screened.result().clone())
    }

    /// Waits until so many questions are open: those that are.
    pub(crate) async fn open(&self, count: usize) -> Vec<OpenQuestion> {
        loop {
            let (revision, questions) = self.world.hub.approvals().questions().await;
            if questions.len() >= count {
                return questions;
            }
            self.world.hub.approvals().changed(revision).await;
        }
    }

    pub(crate) async fn answer(&self, id: &str, answer: Answer) -> Answered {
        self.world.hub.approvals().answer(id, answer).await.unwrap().0
    }

    /// Calls, and answers from another shell while the call waits.
    pub(crate) async fn call_answered(
        &self,
        name: &str,
        arguments: &str,
        answer: Answer,
    ) -> Result<Json, CallError> {
        let answering = async {
            let question = self.open(1).await.remove(0);
            assert_eq!(question.stands.as_str(), "waiting");
            self.answer(&question.id, answer).await
        };
        futures::join!(self.call(name, arguments), answering).0
    }

    /// Makes a call that is refused: the question that stays open.
    pub(crate) async fn refused(&self, name: &str, arguments: &str) -> String {
        match self.call(name, arguments).await {
            Err(CallError::NotApproved { open: Some(id), .. }) => id,
            other => unexpected(&other),
        }
    }

    /// The words of the audit log on how each call was approved.
    pub(crate) fn grounds(&self) -> Vec<&'static str> {
        let entries = self.world.entries();
        entries.iter().map(|entry| entry.approval.map_or("-", |ground| ground.as_str())).collect()
    }
}

// === impl Kept ===

impl Kept {
    fn check(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError { what: "the database is locked".to_owned(), cause: None });
        }
        Ok(())
    }
}

impl Store for Kept {
    fn grant<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), StoreError>> {
        let done = self.check().map(|()| self.grants.lock().unwrap().push(grant.clone()));
        ready(done).boxed()
    }

    fn take<'a>(
        &'a self,
        binding: &'a Binding,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let taken = self.check().map(|()| {
            let mut grants = self.grants.lock().unwrap();
            let fits = |grant: &Grant| grant.binding == *binding && grant.expires_at > now;
            grants.iter().position(fits).map(|place| grants.remove(place)).is_some()
        });
        ready(taken).boxed()
    }

    fn list(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        ready(self.check().map(|()| self.grants.lock().unwrap().clone())).boxed()
    }

    fn expire(&self, _: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        ready(Ok(0)).boxed()
    }

    fn keep<'a>(&'a self, question: &'a KeptQuestion) -> BoxFuture<'a, Result<(), StoreError>> {
        let done = self.check().map(|()| self.questions.lock().unwrap().push(question.clone()));
        ready(done).boxed()
    }

    fn kept(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<Vec<KeptQuestion>, StoreError>> {
        ready(self.check().map(|()| self.questions.lock().unwrap().clone())).boxed()
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let forgotten = self.check().map(|()| {
            let mut questions = self.questions.lock().unwrap();
            let before = questions.len();
            questions.retain(|question| question.grant.id != id);
            questions.len() < before
        });
        ready(forgotten).boxed()
    }
}

// === impl Book ===

impl RuleBook for Book {
    fn allow<'a>(&'a self, rule: &'a NewRule) -> BoxFuture<'a, Result<String, NotSaved>> {
        let saved = if self.closed.load(Ordering::Relaxed) {
            Err(NotSaved { reason: "the file is read-only".to_owned() })
        } else {
            self.rules.lock().unwrap().push(rule.clone());
            Ok("the file".to_owned())
        };
        ready(saved).boxed()
    }
}

/// A call of a client at the gateway; its default there lets reads pass, so none is set here.
pub(crate) fn call(name: &str, arguments: &str) -> Call {
    call_of("operator", name, arguments)
}

pub(crate) fn call_of(subject: &str, name: &str, arguments: &str) -> Call {
    let caller = Caller { subject: subject.to_owned(), ..Caller::operator(Front::Terminal) };
    Call::new(caller, Target::tool(name), Some(&json(arguments)))
}

pub(crate) fn says(approval: Approval) -> Person {
    Person { approves: Box::new(move || ready(approval).boxed()), ..Person::nobody() }
}

pub(crate) const ONCE: Answer = Answer::Yes(Extent::Once);

#[track_caller]
#[expect(clippy::panic, reason = "a test that sees something else must fail")]
pub(crate) fn unexpected(what: &dyn std::fmt::Debug) -> ! {
    panic!("{what:?}")
}
