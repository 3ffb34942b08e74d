//! Embeds on a thread of its own, queries before tools.
//!
//! The thread starts with the first search and ends when it has had nothing to do for some minutes;
//! the model is in memory only in between.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use tokio::sync::{oneshot, watch};

use super::Digest;
use super::file::VectorFile;
use crate::vectors::Vector;

/// The thread ends after this time without work.
const IDLE: Duration = Duration::from_mins(5);

/// Maximum number of queries that wait. Further ones are answered without embeddings.
const MAX_QUERIES: usize = 64;

/// Vectors are saved after this time, and before the last tool counts as embedded: a command ends
/// then. The time doubles, because the whole file is written.
const FIRST_SAVE: Duration = Duration::from_secs(2);

/// The time does not grow beyond this one.
const MAX_SAVE: Duration = Duration::from_mins(1);

/// Gets the vectors of tools.
pub(crate) type Receiver = Arc<dyn Fn(&Digest, &Vector) + Send + Sync>;

/// Makes the vector of a text.
pub(crate) type Embed = Box<dyn Fn(&str) -> Option<Vector>>;

/// Loads what makes vectors; `None` if it cannot be used.
pub(crate) type Load = fn() -> Option<Embed>;

/// The embeddings of one index.
pub(crate) struct Worker {
    shared: Arc<Shared>,
}

/// A tool to be embedded.
pub(crate) struct Job {
    pub(crate) digest: Digest,
    pub(crate) text: String,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Number of tools that are not embedded yet.
    pending: watch::Sender<usize>,
    file: Option<VectorFile>,
    receiver: Receiver,
    load: Load,
}

#[derive(Default)]
struct Queue {
    queries: VecDeque<(String, oneshot::Sender<Vector>)>,
    /// Tools whose vector may be in the file.
    new: Vec<Job>,
    /// Tools that must be embedded.
    tools: VecDeque<Job>,
    running: bool,
    /// True if the model cannot be used.
    broken: bool,
    closed: bool,
}

/// A piece of work.
enum Work {
    Query(String, oneshot::Sender<Vector>),
    New(Vec<Job>),
    Tool(Job),
    Stop,
}

// === impl Worker ===

impl Worker {
    pub(crate) fn new(load: Load, file: Option<VectorFile>, receiver: Receiver) -> Self {
        let (pending, _) = watch::channel(0);
        let queue = Mutex::default();
        let shared = Shared { queue, wake: Condvar::new(), pending, file, receiver, load };
        Self { shared: Arc::new(shared) }
    }

    /// Embeds a query. The receiver fails if it cannot be embedded.
    pub(crate) fn query(&self, text: &str) -> oneshot::Receiver<Vector> {
        let (to, from) = oneshot::channel();
        let mut queue = self.shared.queue();
        if !queue.broken && queue.queries.len() < MAX_QUERIES {
            queue.queries.push_back((text.to_owned(), to));
            self.start(&mut queue);
        }
        drop(queue);
        from
    }

    /// Embeds tools, unless their vectors are in the file.
    pub(crate) fn tools(&self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let mut queue = self.shared.queue();
        if queue.broken {
            return;
        }
        self.shared.pending.send_modify(|pending| *pending += jobs.len());
        queue.new.extend(jobs);
        self.start(&mut queue);
        drop(queue);
    }

    /// Waits until all tools are embedded.
    pub(crate) async fn all_embedded(&self) {
        // It fails only if the sender is dropped, which `self` has.
        drop(self.shared.pending.subscribe().wait_for(|pending| *pending == 0).await);
    }

    fn start(&self, queue: &mut Queue) {
        self.shared.wake.notify_one();
        if queue.running {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("embed".to_owned());
        queue.running = thread.spawn(move || shared.run()).is_ok();
        if !queue.running {
            queue.give_up();
            self.shared.pending.send_replace(0);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.wake.notify_one();
    }
}

// === impl Shared ===

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let Some(embed) = (self.load)() else {
            let mut queue = self.queue();
            queue.give_up();
            drop(queue);
            self.pending.send_replace(0);
            return;
        };
        let mut unsaved = Vec::new();
        let (mut saved, mut interval) = (Instant::now(), FIRST_SAVE);
        loop {
            match self.next() {
                Work::Query(text, to) => {
                    // A search that no longer waits needs no vector.
                    if !to.is_closed()
                        && let Some(vector) = embed(&text)
                    {
                        drop(to.send(vector));
                    }
                }
                Work::New(jobs) => self.read(jobs),
                Work::Tool(job) => {
                    if let Some(vector) = embed(&job.text) {
                        (self.receiver)(&job.digest, &vector);
                        unsaved.push((job.digest, vector));
                    }
                    if saved.elapsed() > interval || self.queue().has_no_tools() {
                        self.save(&mut unsaved);
                        (saved, interval) = (Instant::now(), MAX_SAVE.min(interval * 2));
                    }
                    self.done(1);
                }
                Work::Stop => {
                    self.save(&mut unsaved);
                    return;
                }
            }
        }
    }

    /// Waits for the next piece of work.
    #[expect(clippy::significant_drop_tightening, reason = "the condition takes the guard")]
    fn next(&self) -> Work {
        let mut queue = self.queue();
        loop {
            if queue.closed {
                return Work::Stop;
            }
            if let Some((text, to)) = queue.queries.pop_front() {
                return Work::Query(text, to);
            }
            if !queue.new.is_empty() {
                return Work::New(std::mem::take(&mut queue.new));
            }
            if let Some(job) = queue.tools.pop_front() {
                return Work::Tool(job);
            }
            let waited = self.wake.wait_timeout(queue, IDLE);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            if timeout.timed_out() && queue.is_empty() {
                queue.running = false;
                return Work::Stop;
            }
        }
    }

    /// Takes vectors from the file; the other tools are embedded.
    fn read(&self, jobs: Vec<Job>) {
        let wanted: FxHashSet<Digest> = jobs.iter().map(|job| job.digest).collect();
        let known = self.file.as_ref().map(|file| file.read(&wanted)).unwrap_or_default();
        let (found, unknown): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| known.contains_key(&job.digest));
        for (digest, vector) in &known {
            (self.receiver)(digest, vector);
        }
        self.queue().tools.extend(unknown);
        self.done(found.len());
    }

    fn done(&self, tools: usize) {
        self.pending.send_modify(|pending| *pending = pending.saturating_sub(tools));
    }

    fn save(&self, unsaved: &mut Vec<(Digest, Vector)>) {
        let new = std::mem::take(unsaved);
        let Some(file) = self.file.as_ref().filter(|_| !new.is_empty()) else { return };
        if let Err(error) = file.add(&new) {
            tracing::warn!(%error, "embeddings of tools cannot be saved; they will be computed again");
        }
    }
}

// === impl Queue ===

impl Queue {
    fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.has_no_tools()
    }

    fn has_no_tools(&self) -> bool {
        self.new.is_empty() && self.tools.is_empty()
    }

    /// Drops all work, now and later: there is no model.
    fn give_up(&mut self) {
        *self = Self { broken: true, ..Self::default() };
    }
}
