//! What pins say of lists that come one after the other.

use std::future::ready;
use std::sync::atomic::AtomicBool;

use capstan_wire::Json;
use jiff::Timestamp;

use super::*;
use crate::ports::BoxFuture;

/// Keeps definitions in memory; broken when it has no memory, or when it is told to be.
#[derive(Default)]
struct Memory(Option<Mutex<HashMap<String, Vec<Pin>>>>, AtomicBool);

/// Goes forward when it is told to.
#[derive(Default)]
struct Hand(Mutex<Duration>);

impl Memory {
    fn whole() -> Arc<Self> {
        Arc::new(Self(Some(Mutex::default()), AtomicBool::new(false)))
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&mut HashMap<String, Vec<Pin>>) -> T,
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
    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Vec<Pin>>, StoreError>> {
        self.with(|all| all.get(&whose.identity).cloned())
    }

    fn begin<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|all| {
            all.entry(whose.identity.clone()).or_insert_with(|| pins.to_vec());
        })
    }

    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|all| {
            let known = all.entry(whose.identity.clone()).or_default();
            known.retain(|one| pins.iter().all(|new| new.tool != one.tool));
            known.extend_from_slice(pins);
        })
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

fn server() -> ServerName {
    "s".parse().unwrap()
}

fn pins_in(store: &Arc<Memory>, rules: PinRules) -> Pins {
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

/// A list of tools, each with a description.
fn list(tools: &[(&str, &str)]) -> Arc<[Item]> {
    let item = |(name, description): &(&str, &str)| {
        let definition = format!(r#"{{"name":"{name}","description":"{description}"}}"#);
        Item { name: (*name).to_owned(), definition: Json::parse(definition).unwrap() }
    };
    tools.iter().map(item).collect()
}

/// What becomes of an allowed call to each tool of the second list, after the first was seen.
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

const FIRST: &[(&str, &str)] = &[("a", "Reads."), ("b", "Writes.")];
const LATER: &[(&str, &str)] = &[("a", "Reads."), ("b", "Does more."), ("c", "New.")];

#[tokio::test]
async fn what_is_there_first_is_approved_and_a_change_is_not() {
    let rules = PinRules::default();
    assert_eq!(verdicts(rules.clone(), FIRST, FIRST).await, "allow allow");
    assert_eq!(verdicts(rules.clone(), FIRST, LATER).await, "allow deny ask");
    // One that had nothing was seen all the same.
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
        fn list_changed(&self, server: &ServerName, listing: Listing) {
            self.0.lock().unwrap().push(format!("{server} {listing:?}"));
        }
        fn resource_updated(&self, _: &ServerName, _: &Json) {}
        fn told(&self, _: &ServerName, _: &str, _: Option<&Json>) {}
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

    // Too soon to look at the store again.
    pins.look_again().await;
    assert!(ear.0.lock().unwrap().is_empty());
    *clock.0.lock().unwrap() = LOOK_AGAIN;
    pins.look_again().await;
    assert_eq!(*ear.0.lock().unwrap(), ["s Tools"]);
    // Once is enough.
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
    // What nobody could compare is compared as soon as that is possible.
    let changed = list(&[("a", "Reads other things.")]);
    pins.look_at(&server(), &changed).await;
    assert_eq!(standing("a"), Standing::Approved);
    store.1.store(false, Ordering::Release);
    *clock.0.lock().unwrap() = LOOK_AGAIN;
    pins.look_again().await;
    assert_eq!(standing("a"), Standing::Changed);
}

#[tokio::test]
async fn where_nothing_can_be_looked_up_nothing_is_refused() {
    let pins = pins_in(&Arc::default(), PinRules::default());
    pins.look_at(&server(), &list(FIRST)).await;
    let id = ItemId { server: server(), item: "a".to_owned() };
    assert_eq!(pins.standing(&id), Standing::Approved);
    assert!(pins.approve(&server(), list(FIRST).iter()).await.is_err());
    assert!(pins.review(&server(), &list(FIRST)).await.is_err());
}
