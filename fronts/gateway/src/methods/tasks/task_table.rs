//! The table of tasks: calls whose results are fetched later, by an unguessable id.
//!
//! A server's own id names no owner and may be the same at two servers. So each task gets another,
//! unguessable id for its client, and is kept with its server and its owner. For all other callers
//! the task does not exist.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_hub::TaskHandle;
use capstan_model::ServerName;
use capstan_wire::{Json, compose, object};

use crate::client::Client;

/// `_meta` key of messages that belong to a task.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Maximum number of tasks. Beyond it, the owner with the most tasks loses its oldest.
const MAX_TASKS: usize = 16_384;

/// Maximum number of tasks of one owner; beyond it, the oldest is removed.
const MAX_OWN: usize = 1024;

/// Maximum lifetime of a task; also the default if the server states none.
const LONGEST: Duration = Duration::from_hours(24);

/// Extra lifetime beyond the server's, so that the server is the one to report the expiry.
const GRACE: Duration = Duration::from_mins(1);

/// Number of random bytes in an id.
const KEY: usize = 16;

/// The tasks that servers have started for clients, each with the handle `H` to operate on it.
pub(crate) struct Tasks<H = TaskHandle>(Mutex<Table<H>>);

struct Table<H> {
    next: u64,
    tasks: HashMap<String, TaskRecord<H>>,
    /// The ids towards clients, by server and its own id.
    ids: HashMap<(ServerName, String), String>,
}

/// A task of a server.
#[derive(Debug)]
pub(crate) struct TaskRecord<H = TaskHandle> {
    pub(crate) handle: Arc<H>,
    pub(crate) server: ServerName,
    /// The id that its server uses.
    pub(crate) own: String,
    owner: Owner,
    number: u64,
    expires: Duration,
    /// True if its server has been removed or replaced since.
    pub(crate) orphaned: bool,
}

/// The owner of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    caller: String,
    /// The client, if it has a session. Without one, access needs the unguessable id.
    client: Option<u64>,
}

// === impl Owner ===

impl Owner {
    pub(crate) fn of(client: &Client) -> Self {
        let number = client.era.has_sessions().then_some(client.number);
        Self { caller: client.caller.identity(), client: number }
    }
}

// === impl TaskRecord ===

impl<H> Clone for TaskRecord<H> {
    fn clone(&self) -> Self {
        Self {
            handle: Arc::clone(&self.handle),
            server: self.server.clone(),
            own: self.own.clone(),
            owner: self.owner.clone(),
            ..*self
        }
    }
}

// === impl Tasks ===

impl<H> Default for Tasks<H> {
    fn default() -> Self {
        Self(Mutex::new(Table { next: 0, tasks: HashMap::new(), ids: HashMap::new() }))
    }
}

impl<H> Tasks<H> {
    /// Registers a task and returns its description with the id for the client.
    ///
    /// `None` if it has no id, or there is no randomness for a new one.
    pub(crate) fn adopt(
        &self,
        server: &ServerName,
        owner: Owner,
        task: &Json,
        handle: H,
        now: Duration,
    ) -> Option<Json> {
        let own = object::get_string(task, "taskId")?;
        let mut key = [0; KEY];
        getrandom::fill(&mut key).ok()?;
        let id = format!("task-{}", URL_SAFE_NO_PAD.encode(key));
        let named = object::with_member(task, "taskId", &compose::string(&id)).ok()?;
        let life = ["ttlMs", "ttl"].iter().find_map(|key| object::get(task, key)?.read().ok());
        let life = life.map_or(LONGEST, |life| Duration::from_millis(life) + GRACE);
        let expires = now + life.min(LONGEST);
        let mut table = self.table();
        table.make_room(&owner);
        table.next += 1;
        let number = table.next;
        // If a server uses an id twice, the second use is another task.
        if let Some(before) = table.ids.insert((server.clone(), own.clone()), id.clone()) {
            table.tasks.remove(&before);
        }
        let (handle, server, orphaned) = (Arc::new(handle), server.clone(), false);
        table
            .tasks
            .insert(id, TaskRecord { handle, server, own, owner, number, expires, orphaned });
        drop(table);
        Some(named)
    }

    /// The task with this id, if it belongs to this owner.
    pub(crate) fn find(&self, id: &str, owner: &Owner) -> Option<TaskRecord<H>> {
        self.table().tasks.get(id).filter(|task| task.owner == *owner).cloned()
    }

    /// All tasks of an owner, oldest first.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<(String, TaskRecord<H>)> {
        let table = self.table();
        let mut tasks: Vec<(String, TaskRecord<H>)> = table
            .tasks
            .iter()
            .filter(|(_, task)| task.owner == *owner)
            .map(|(id, task)| (id.clone(), task.clone()))
            .collect();
        drop(table);
        tasks.sort_by_key(|(_, task)| task.number);
        tasks
    }

    /// The id for the client of a server's task, and the number of that client if it has one.
    pub(crate) fn shown(&self, server: &ServerName, own: &str) -> Option<(String, Option<u64>)> {
        let table = self.table();
        let id = table.ids.get(&(server.clone(), own.to_owned()))?;
        Some((id.clone(), table.tasks.get(id)?.owner.client))
    }

    /// True if the task exists, for any owner.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.table().tasks.contains_key(id)
    }

    pub(crate) fn forget(&self, id: &str) {
        self.table().forget(id);
    }

    /// Removes the tasks of a client that is gone.
    pub(crate) fn leave(&self, client: u64) {
        self.table().forget_all(|task| task.owner.client == Some(client));
    }

    /// Marks the tasks of servers that were removed or replaced.
    pub(crate) fn orphan(&self, servers: &HashSet<ServerName>) {
        let mut table = self.table();
        for task in table.tasks.values_mut().filter(|task| servers.contains(&task.server)) {
            task.orphaned = true;
        }
    }

    pub(crate) fn sweep(&self, now: Duration) {
        self.table().forget_all(|task| task.expires <= now);
    }

    /// Replaces task ids with those of the client, at the top level and in related tasks.
    pub(crate) fn translate(&self, server: &ServerName, said: &Json) -> Json {
        let rename = |said: &Json| {
            let own = object::get_string(said, "taskId")?;
            let (id, _) = self.shown(server, &own)?;
            object::with_member(said, "taskId", &compose::string(&id)).ok()
        };
        let said = rename(said).unwrap_or_else(|| said.clone());
        // Fast path: most messages have no related task.
        if !said.as_str().contains(RELATED) {
            return said;
        }
        let related = || {
            let meta = object::get(&said, "_meta")?;
            let related = rename(&object::get(&meta, RELATED)?)?;
            let meta = object::with_member(&meta, RELATED, &related).ok()?;
            object::with_member(&said, "_meta", &meta).ok()
        };
        related().unwrap_or(said)
    }

    fn table(&self) -> MutexGuard<'_, Table<H>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Table ===

impl<H> Table<H> {
    /// Makes room for one more task of this owner. No owner loses a task to an owner with more.
    fn make_room(&mut self, owner: &Owner) {
        let mut counts: HashMap<&Owner, usize> = HashMap::new();
        if self.tasks.len() >= MAX_OWN {
            for task in self.tasks.values() {
                *counts.entry(&task.owner).or_default() += 1;
            }
        }
        let loses = if counts.get(owner).is_some_and(|count| *count >= MAX_OWN) {
            Some(owner.clone())
        } else if self.tasks.len() >= MAX_TASKS {
            counts.iter().max_by_key(|(_, count)| **count).map(|(owner, _)| (*owner).clone())
        } else {
            None
        };
        let Some(loses) = loses else { return };
        let own = self.tasks.iter().filter(|(_, task)| task.owner == loses);
        let oldest = own.min_by_key(|(_, task)| task.number).map(|(id, _)| id.clone());
        if let Some(oldest) = oldest {
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, id: &str) {
        if let Some(task) = self.tasks.remove(id) {
            self.ids.remove(&(task.server, task.own));
        }
    }

    fn forget_all(&mut self, is_over: impl Fn(&TaskRecord<H>) -> bool) {
        let over: Vec<String> =
            self.tasks.iter().filter(|(_, task)| is_over(task)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.forget(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(caller: &str, client: Option<u64>) -> Owner {
        Owner { caller: caller.to_owned(), client }
    }

    fn adopt(tasks: &Tasks<()>, owner: &Owner, own: &str, now: u64) -> String {
        let server = "files".parse().unwrap();
        let task = Json::parse(format!(r#"{{"taskId":"{own}","ttl":60000,"x":1.00}}"#)).unwrap();
        let now = Duration::from_secs(now);
        let named = tasks.adopt(&server, owner.clone(), &task, (), now).unwrap();
        let id = object::get_string(&named, "taskId").unwrap();
        assert_eq!(named.to_string(), format!(r#"{{"taskId":"{id}","ttl":60000,"x":1.00}}"#));
        id
    }

    #[test]
    fn a_task_is_its_owners_and_nobody_elses() {
        let (tasks, ann) = (Tasks::default(), owner("ann", Some(1)));
        let id = adopt(&tasks, &ann, "1", 0);
        assert_eq!(tasks.find(&id, &ann).unwrap().own, "1");
        for other in [owner("bob", Some(1)), owner("ann", Some(2)), owner("ann", None)] {
            assert!(tasks.find(&id, &other).is_none() && tasks.of(&other).is_empty());
        }
        assert!(tasks.find("1", &ann).is_none(), "a server's own id is not taken");
        tasks.leave(2);
        assert!(tasks.find(&id, &ann).is_some());
        tasks.leave(1);
        assert!(tasks.find(&id, &ann).is_none());
    }

    #[test]
    fn an_id_that_a_server_gives_twice_is_the_second_owners() {
        let (tasks, ann, bob) = (Tasks::default(), owner("ann", None), owner("bob", None));
        let (first, second) = (adopt(&tasks, &ann, "1", 0), adopt(&tasks, &bob, "1", 0));
        assert!(tasks.find(&first, &ann).is_none());
        assert!(tasks.find(&second, &bob).is_some());
    }

    #[test]
    fn tasks_are_forgotten_in_time_and_when_one_has_too_many() {
        let (tasks, ann, bob) = (Tasks::default(), owner("ann", None), owner("bob", None));
        let kept = adopt(&tasks, &bob, "b", 0);
        let ids: Vec<String> =
            (0..=MAX_OWN).map(|at| adopt(&tasks, &ann, &at.to_string(), 0)).collect();
        assert!(tasks.find(&ids[0], &ann).is_none());
        assert_eq!(tasks.of(&ann).first().unwrap().0, ids[1]);
        assert!(tasks.find(&kept, &bob).is_some());
        tasks.sweep(Duration::from_secs(119));
        assert_eq!(tasks.of(&ann).len(), MAX_OWN);
        tasks.sweep(Duration::from_mins(2));
        assert!(tasks.of(&ann).is_empty() && tasks.of(&bob).is_empty());
    }
}
