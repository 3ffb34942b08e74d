//! Tests of pins with lists that come one after the other.

use std::future::ready;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use capstan_wire::Json;
use jiff::Timestamp;

use super::*;
use crate::ports::{Approved, BoxFuture, Newcomer};

/// A store in memory. It fails if it has no memory, or while it is set to fail.
#[derive(Default)]
pub(super) struct Memory(Option<Mutex<HashMap<String, Known>>>, AtomicBool, AtomicU64, AtomicU64);

/// The record of one server, and the number of times it was read.
#[derive(Default)]
pub(super) struct Known {
    pub(super) approved: Approved,
    pub(super) sum: Option<String>,
    pub(super) reads: usize,
}

/// A clock that is set by hand.
#[derive(Default)]
struct Hand(Mutex<Duration>);

impl Memory {
    pub(super) fn whole() -> Arc<Self> {
        Arc::new(Self { 0: Some(Mutex::default()), ..Self::default() })
    }

    /// The number of lookups of digests.
    pub(super) fn looks(&self) -> u64 {
        self.2.load(Ordering::Acquire)
    }

    /// The number of times that servers were recorded as new.
    pub(super) fn begins(&self) -> u64 {
        self.3.load(Ordering::Acquire)
    }

    pub(super) fn with<T>(
        &self,
        act: impl FnOnce(&mut HashMap<String, Known>) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
    {
        let is_broken = self.1.load(Ordering::Acquire);
        let done = match &self.0 {
            Some(memory) if !is_broken => Ok(act(&mut memory.lock().unwrap())),
            Some(_) | None => Err(StoreError { what: "broken".to_owned(), cause: None }),
        };
        Box::pin(ready(done))
    }
}

impl PinStore for Memory {
    fn get_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn approved_digests(
        &self,
    ) -> BoxFuture<'_, Result<HashMap<PinOwner, Option<String>>, StoreError>> {
        let owner = |identity: &String| PinOwner { server: server(), identity: identity.clone() };
        self.2.fetch_add(1, Ordering::AcqRel);
        let approved_digests = self
            .with(|all| all.iter().map(|(one, known)| (owner(one), known.sum.clone())).collect());
        // Other lookups begin during this one.
        Box::pin(async {
            tokio::task::yield_now().await;
            approved_digests.await
        })
    }

    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Approved>, StoreError>> {
        self.with(|all| {
            let known = all.get_mut(&whose.identity)?;
            known.reads += 1;
            Some(known.approved.clone())
        })
    }

    fn begin<'a>(&'a self, new: &'a [Newcomer]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.3.fetch_add(1, Ordering::AcqRel);
        // Other servers come during the write.
        Box::pin(async move {
            tokio::task::yield_now().await;
            let keep = |all: &mut HashMap<String, Known>| {
                for new in new {
                    let approved = Approved { pins: new.pins().collect(), ..Approved::default() };
                    let first = || Known { approved, sum: Some(new.sum.clone()), reads: 0 };
                    all.entry(new.owner.identity.clone()).or_insert_with(first);
                }
            };
            self.with(keep).await
        })
    }

    fn note<'a>(
        &'a self,
        whose: &'a PinOwner,
        sum: &'a str,
        changes: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|all| {
            let known = all.get_mut(&whose.identity);
            if let Some(known) = known.filter(|known| known.approved.changes == changes) {
                known.sum = Some(sum.to_owned());
                known.approved.is_lost = false;
            }
        })
    }

    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|all| {
            let known = all.entry(whose.identity.clone()).or_default();
            known.approved.pins.retain(|one| pins.iter().all(|new| new.tool != one.tool));
            known.approved.pins.extend_from_slice(pins);
            known.approved.changes += 1;
            known.sum = None;
        })
    }

    fn end_loss<'a>(&'a self, _: &'a [PinOwner]) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.with(|_| false)
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

pub(super) fn server() -> ServerName {
    "s".parse().unwrap()
}

pub(super) fn pins_in(store: &Arc<Memory>, rules: PinRules) -> Pins {
    pins_at(&Arc::default(), &Arc::default(), store, rules)
}

fn pins_at(
    clock: &Arc<Hand>,
    changes: &Arc<Changes>,
    store: &Arc<Memory>,
    rules: PinRules,
) -> Pins {
    let store: Arc<dyn PinStore> = Arc::<Memory>::clone(store);
    let clock: Arc<dyn Clock> = Arc::<Hand>::clone(clock);
    Pins::new(store, clock, Arc::clone(changes), HashMap::from([(server(), rules)]))
}

/// Returns a list of tools, each with a description.
pub(super) fn list(tools: &[(&str, &str)]) -> Arc<[Item]> {
    let item = |(name, description): &(&str, &str)| {
        let definition = format!(r#"{{"name":"{name}","description":"{description}"}}"#);
        Item { name: (*name).to_owned(), definition: Json::parse(definition).unwrap() }
    };
    tools.iter().map(item).collect()
}

/// Returns the verdicts on allowed calls to the tools of the second list, after the first was seen.
async fn verdicts(rules: PinRules, before: &[(&str, &str)], now: &[(&str, &str)]) -> String {
    let store = Memory::whole();
    pins_in(&store, rules.clone()).look_at(&server(), &list(before)).await;
    // Another process, as after a restart.
    let pins = pins_in(&store, rules);
    pins.look_at(&server(), &list(now)).await;
    let verdict = |(name, _): &(&str, &str)| {
        let allow = Ruling { verdict: Verdict::Allow, rule: "x".to_owned(), by: By::Default };
        let id = ItemId { server: server(), item: (*name).to_owned() };
        pins.tighten(&id, pins.standing(&id), allow).verdict.as_str()
    };
    now.iter().map(verdict).collect::<Vec<_>>().join(" ")
}

pub(super) const FIRST: &[(&str, &str)] = &[("a", "Reads."), ("b", "Writes.")];
pub(super) const LATER: &[(&str, &str)] = &[("a", "Reads."), ("b", "Does more."), ("c", "New.")];

#[tokio::test]
async fn what_is_there_first_is_approved_and_a_change_is_not() {
    let rules = PinRules::default();
    assert_eq!(verdicts(rules.clone(), FIRST, FIRST).await, "allow allow");
    assert_eq!(verdicts(rules.clone(), FIRST, LATER).await, "allow deny ask");
    // A server without tools counts as seen too.
    assert_eq!(verdicts(rules.clone(), &[], FIRST).await, "ask ask");
    assert_eq!(verdicts(rules, FIRST, &FIRST[..1]).await, "allow");
}

#[tokio::test]
async fn the_changes_of_a_trusted_server_are_taken_unless_its_list_is_locked() {
    let trusted = PinRules { trust: Trust::Trusted, ..PinRules::default() };
    assert_eq!(verdicts(trusted.clone(), FIRST, LATER).await, "allow allow allow");
    let locked = PinRules { new_tools: NewTools::Refuse, ..trusted };
    assert_eq!(verdicts(locked.clone(), FIRST, LATER).await, "allow deny deny");
    let untrusted = PinRules { trust: Trust::Untrusted, ..locked };
    assert_eq!(verdicts(untrusted, FIRST, LATER).await, "allow deny deny");
}

#[tokio::test]
async fn a_tool_that_nobody_expects_is_refused_from_the_first() {
    let expected = Some(vec!["a".to_owned()]);
    let rules = PinRules { expected, ..PinRules::default() };
    assert_eq!(verdicts(rules.clone(), FIRST, FIRST).await, "allow deny");
    let trusted = PinRules { trust: Trust::Trusted, ..rules };
    assert_eq!(verdicts(trusted, FIRST, FIRST).await, "allow allow");
}

#[tokio::test]
async fn a_server_that_is_started_in_another_way_is_another_one() {
    let store = Memory::whole();
    let of = |identity: &str| PinRules { identity: identity.to_owned(), ..PinRules::default() };
    let id = ItemId { server: server(), item: "b".to_owned() };
    for (identity, tools, expected) in [
        ("one", FIRST, Standing::Approved),
        ("other", LATER, Standing::Approved),
        ("one", LATER, Standing::Changed),
    ] {
        let pins = pins_in(&store, of(identity));
        pins.look_at(&server(), &list(tools)).await;
        assert_eq!(pins.standing(&id), expected, "{identity}");
    }
}

#[tokio::test]
async fn pins_make_a_verdict_stricter_and_never_looser() {
    let store = Memory::whole();
    pins_in(&store, PinRules::default()).look_at(&server(), &list(FIRST)).await;
    let pins = pins_in(&store, PinRules::default());
    pins.look_at(&server(), &list(LATER)).await;
    for tool in ["a", "b", "c", "unknown"] {
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            let id = ItemId { server: server(), item: tool.to_owned() };
            let before = Ruling { verdict, rule: "x".to_owned(), by: By::Default };
            let standing = pins.standing(&id);
            assert!(pins.tighten(&id, standing, before.clone()).verdict >= verdict, "{tool}");
            assert_eq!(pins.tighten(&id, Standing::Approved, before.clone()), before);
        }
    }
}

#[tokio::test]
async fn what_another_process_approves_is_told_to_whoever_listens() {
    struct Ear(Mutex<Vec<String>>);
    impl crate::ports::Listener for Ear {
        fn list_changed(&self, _: &ServerName, _: Listing) {}

        fn list_may_differ(&self, server: &ServerName, listing: Listing) {
            self.0.lock().unwrap().push(format!("{server} {listing:?}"));
        }
        fn resource_updated(&self, _: &ServerName, _: &Json) {}
        fn told(&self, _: &ServerName, _: &str, _: Option<&Json>) {}
        fn only_client(&self, _: &ServerName) -> Option<crate::BackChannel> {
            None
        }
    }

    let store = Memory::whole();
    pins_in(&store, PinRules::default()).look_at(&server(), &list(FIRST)).await;
    let (clock, changes) = (Arc::new(Hand::default()), Arc::new(Changes::default()));
    let ear = Arc::new(Ear(Mutex::default()));
    changes.listen(Arc::<Ear>::clone(&ear));
    let pins = pins_at(&clock, &changes, &store, PinRules::default());
    let items = list(LATER);
    pins.look_at(&server(), &items).await;

    let elsewhere = pins_in(&store, PinRules::default());
    let review = elsewhere.review(&server(), &items).await.unwrap();
    let standings: Vec<_> = review.iter().map(|one| one.standing).collect();
    assert_eq!(standings, [Standing::Approved, Standing::Changed, Standing::New]);
    assert_eq!(review[1].before.as_deref(), Some("description:\n  Writes.\n"));
    assert_eq!(review[1].now, "description:\n  Does more.\n");
    elsewhere.approve(&server(), items.iter()).await.unwrap();

    // Too early to read the store again.
    pins.look_again().await;
    assert!(ear.0.lock().unwrap().is_empty());
    *clock.0.lock().unwrap() = seen::LOOK_AGAIN;
    pins.look_again().await;
    assert_eq!(*ear.0.lock().unwrap(), ["s Tools"]);
    // A change is announced only once.
    pins.look_again().await;
    assert_eq!(ear.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_approved_is_what_was_seen_and_not_what_it_has_become() {
    let store = Memory::whole();
    let pins = pins_in(&store, PinRules::default());
    pins.look_at(&server(), &list(FIRST)).await;
    let seen = list(&[("c", "New.")]);
    pins.look_at(&server(), &seen).await;
    let meanwhile = list(&[("c", "Quite another.")]);
    pins.look_at(&server(), &meanwhile).await;
    pins.approve(&server(), seen.iter()).await.unwrap();
    let id = ItemId { server: server(), item: "c".to_owned() };
    assert_ne!(pins.standing(&id), Standing::Approved);
    pins.approve(&server(), meanwhile.iter()).await.unwrap();
    assert_eq!(pins.standing(&id), Standing::Approved);
}

#[tokio::test]
async fn while_the_store_is_broken_what_was_refused_stays_refused_and_it_is_tried_again() {
    let (store, clock) = (Memory::whole(), Arc::new(Hand::default()));
    let expected = Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    let rules = PinRules { expected, ..PinRules::default() };
    let pins = pins_at(&clock, &Arc::default(), &store, rules);
    pins.look_at(&server(), &list(FIRST)).await;
    pins.look_at(&server(), &list(LATER)).await;
    store.1.store(true, Ordering::Release);
    let now = list(&[("a", "Reads."), ("b", "Does more."), ("d", "Nobody expects it.")]);
    pins.look_at(&server(), &now).await;
    let standing = |tool: &str| pins.standing(&ItemId { server: server(), item: tool.to_owned() });
    assert_eq!(standing("b"), Standing::Changed);
    assert_eq!(standing("d"), Standing::Unexpected);
    // This definition was compared before.
    assert_eq!(standing("a"), Standing::Approved);
    // A definition that cannot be compared is refused, and compared as soon as possible.
    let changed = list(&[("a", "Reads other things.")]);
    pins.look_at(&server(), &changed).await;
    assert_eq!(standing("a"), Standing::Lost);
    store.1.store(false, Ordering::Release);
    *clock.0.lock().unwrap() = seen::LOOK_AGAIN;
    pins.look_again().await;
    assert_eq!(standing("a"), Standing::Changed);
}

#[tokio::test]
async fn a_list_that_was_found_to_be_approved_is_not_compared_tool_by_tool_again() {
    let store = Memory::whole();
    let reads = || store.0.as_ref().unwrap().lock().unwrap().values().map(|one| one.reads).sum();
    let look = async |tools| {
        let pins = pins_in(&store, PinRules::default());
        pins.look_at(&server(), &list(tools)).await.len()
    };
    // The first time, and each time that the list is unchanged.
    assert_eq!((look(FIRST).await, look(FIRST).await, reads()), (0, 0, 0));
    // Fewer tools, each of them approved: compared once.
    assert_eq!((look(&FIRST[..1]).await, look(&FIRST[..1]).await, reads()), (0, 0, 1));
    // A list with unapproved tools is compared each time.
    assert_eq!((look(LATER).await, look(LATER).await, reads()), (2, 2, 3));
    assert_eq!((look(&FIRST[..1]).await, reads()), (0, 3));
}

#[tokio::test]
async fn what_is_approved_later_makes_the_list_before_another_one() {
    let store = Memory::whole();
    let pins = pins_in(&store, PinRules::default());
    assert!(pins.look_at(&server(), &list(FIRST)).await.is_empty());
    pins.approve(&server(), list(LATER).iter()).await.unwrap();
    // The server goes back to its old definition, which is no longer the approved one.
    let pins = pins_in(&store, PinRules::default());
    let odd = pins.look_at(&server(), &list(FIRST)).await;
    assert_eq!(Standing::of(&odd, "b"), Standing::Changed);
    assert_eq!(odd.len(), 1);
}

#[tokio::test]
async fn a_tool_that_changed_while_nobody_expected_it_is_changed_when_somebody_does() {
    let store = Memory::whole();
    let expecting = |tools: &[&str]| {
        let expected = Some(tools.iter().map(ToString::to_string).collect());
        pins_in(&store, PinRules { expected, ..PinRules::default() })
    };
    let standing = async |tools: &[&str], list: Arc<[Item]>| {
        Standing::of(&*expecting(tools).look_at(&server(), &list).await, "b")
    };
    assert_eq!(standing(&["a"], list(FIRST)).await, Standing::Unexpected);
    // The cached list gives the same result.
    assert_eq!(standing(&["a"], list(FIRST)).await, Standing::Unexpected);
    let changed = || list(&LATER[..2]);
    assert_eq!(standing(&["a"], changed()).await, Standing::Unexpected);
    assert_eq!(standing(&["a", "b"], changed()).await, Standing::Changed);
    assert_eq!(standing(&["a", "b"], list(FIRST)).await, Standing::Approved);
}

/// A rug pull: the definition is swapped after some honest calls.
#[tokio::test]
async fn a_tool_that_changes_after_ten_calls_is_quarantined() {
    let (store, name) = (Memory::whole(), server());
    let pins = pins_in(&store, PinRules::default());
    for _ in 0..10 {
        assert!(pins.look_at(&name, &list(FIRST)).await.is_empty());
    }
    let odd = pins.look_at(&name, &list(LATER)).await;
    assert_eq!(Standing::of(&odd, "b"), Standing::Changed);
    // Honest again: what was approved is what it is.
    assert!(pins.look_at(&name, &list(FIRST)).await.is_empty());
}

/// A rug pull: only one caller gets the other definition.
#[tokio::test]
async fn a_tool_that_changes_for_one_caller_is_quarantined_for_that_caller() {
    let (store, name) = (Memory::whole(), server());
    let pins = pins_in(&store, PinRules::default());
    let (honest, swapped) = (list(FIRST), list(LATER));
    for _ in 0..3 {
        assert!(pins.look_at(&name, &honest).await.is_empty());
        let odd = pins.look_at(&name, &swapped).await;
        assert_eq!(Standing::of(&odd, "b"), Standing::Changed);
        assert_eq!(Standing::of(&odd, "a"), Standing::Approved);
    }
}

/// A rug pull: the server has another definition after it was connected again.
#[tokio::test]
async fn a_tool_that_changes_on_reconnect_is_quarantined_each_time() {
    let (store, name) = (Memory::whole(), server());
    assert!(pins_in(&store, PinRules::default()).look_at(&name, &list(FIRST)).await.is_empty());
    for _ in 0..3 {
        let odd = pins_in(&store, PinRules::default()).look_at(&name, &list(LATER)).await;
        assert_eq!(Standing::of(&odd, "b"), Standing::Changed);
    }
}
