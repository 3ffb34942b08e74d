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
use super::shared::{Hit, SharedIndex};
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

/// A service that failed is not asked again before this time has passed.
const RETRY: Duration = Duration::from_secs(30);

/// Gets the vectors of tools.
pub(crate) type Receiver = Arc<dyn Fn(&Digest, &Vector) + Send + Sync>;

/// Makes vectors of texts; lives on the worker's thread.
pub(crate) trait Embedder {
    /// Number of texts that are best embedded at once.
    fn batch(&self) -> usize;

    /// Embeds texts. The result is in their order, with `None` for a text that cannot be embedded.
    ///
    /// # Errors
    /// If a service does not answer; the texts can be embedded later.
    fn embed(&mut self, texts: &[&str]) -> Result<Vec<Option<Vector>>, Unavailable>;
}

/// A service that does not answer, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unavailable(pub(crate) String);

/// Loads what makes vectors; `None` if it cannot be used.
pub(crate) type Load = Arc<dyn Fn() -> Option<Box<dyn Embedder>> + Send + Sync>;

/// Opens the index that several processes share; `None` if it cannot be used.
pub(crate) type Open = Arc<dyn Fn() -> Option<Box<dyn SharedIndex>> + Send + Sync>;

/// The parts that a worker is made of.
pub(crate) struct Parts {
    pub(crate) load: Load,
    pub(crate) file: Option<VectorFile>,
    pub(crate) shared: Option<Open>,
    pub(crate) receiver: Receiver,
}

/// The embeddings of one index.
pub(crate) struct Worker {
    shared: Arc<Shared>,
}

/// A tool to be embedded.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) digest: Digest,
    pub(crate) text: String,
    /// The server and the name of the tool, for an index that is shared.
    pub(crate) names: [String; 2],
}

/// A search in the index that is shared.
pub(crate) struct SharedSearch {
    pub(crate) vector: Vector,
    pub(crate) among: Vec<Digest>,
    pub(crate) limit: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Number of tools that are not embedded yet.
    pending: watch::Sender<usize>,
    parts: Parts,
}

#[derive(Default)]
struct Queue {
    queries: VecDeque<(String, oneshot::Sender<Vector>)>,
    /// Tools whose vector may be in the file.
    new: Vec<Job>,
    /// Tools that must be embedded.
    tools: VecDeque<Job>,
    /// Tools that a service did not embed; tried again after `retry_at`.
    deferred: Vec<Job>,
    /// Set after a failure of a service.
    retry_at: Option<Instant>,
    searches: VecDeque<(SharedSearch, oneshot::Sender<Vec<Hit>>)>,
    /// Tools that leave the index that is shared.
    removed: Vec<Digest>,
    running: bool,
    /// True if the model cannot be used.
    broken: bool,
    closed: bool,
}

/// A piece of work.
enum Work {
    Query(String, oneshot::Sender<Vector>),
    New(Vec<Job>),
    Tools(Vec<Job>),
    Search(SharedSearch, oneshot::Sender<Vec<Hit>>),
    Removed(Vec<Digest>),
    Stop,
}

/// The state of the thread.
struct Thread {
    embedder: Box<dyn Embedder>,
    index: Option<Box<dyn SharedIndex>>,
    unsaved: Vec<(Digest, Vector)>,
    saved: Instant,
    interval: Duration,
}

// === impl Worker ===

impl Worker {
    pub(crate) fn new(parts: Parts) -> Self {
        let (pending, _) = watch::channel(0);
        let shared = Shared { queue: Mutex::default(), wake: Condvar::new(), pending, parts };
        Self { shared: Arc::new(shared) }
    }

    /// Embeds a query. The receiver fails if it cannot be embedded.
    pub(crate) fn query(&self, text: &str) -> oneshot::Receiver<Vector> {
        let (to, from) = oneshot::channel();
        let mut queue = self.shared.queue();
        self.shared.retry(&mut queue);
        if queue.is_usable() && queue.queries.len() < MAX_QUERIES {
            queue.queries.push_back((text.to_owned(), to));
            self.start(&mut queue);
        }
        drop(queue);
        from
    }

    /// True if there is an index that is shared.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.parts.shared.is_some()
    }

    /// Searches the index that is shared. The receiver fails if it cannot be searched.
    pub(crate) fn search(&self, search: SharedSearch) -> oneshot::Receiver<Vec<Hit>> {
        let (to, from) = oneshot::channel();
        let mut queue = self.shared.queue();
        if queue.is_usable() && queue.searches.len() < MAX_QUERIES {
            queue.searches.push_back((search, to));
            self.start(&mut queue);
        }
        drop(queue);
        from
    }

    /// Removes tools from the index that is shared.
    pub(crate) fn removed(&self, digests: Vec<Digest>) {
        if digests.is_empty() || !self.is_shared() {
            return;
        }
        let mut queue = self.shared.queue();
        if !queue.broken {
            queue.removed.extend(digests);
            self.start(&mut queue);
        }
        drop(queue);
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

    /// Tries again what a service did not do, if enough time has passed.
    fn retry(&self, queue: &mut Queue) {
        if queue.retry_at.is_some_and(|at| Instant::now() >= at) {
            queue.retry_at = None;
            let deferred = std::mem::take(&mut queue.deferred);
            self.pending.send_modify(|pending| *pending += deferred.len());
            queue.tools.extend(deferred);
        }
    }

    fn run(&self) {
        let Some(embedder) = (self.parts.load)() else {
            let mut queue = self.queue();
            queue.give_up();
            drop(queue);
            self.pending.send_replace(0);
            return;
        };
        let index = self.parts.shared.as_ref().and_then(|open| open());
        let (saved, interval) = (Instant::now(), FIRST_SAVE);
        let mut thread = Thread { embedder, index, unsaved: Vec::new(), saved, interval };
        loop {
            match self.next(thread.embedder.batch()) {
                Work::Query(text, to) => self.query(&mut thread, &text, to),
                Work::New(jobs) => self.read(&mut thread, jobs),
                Work::Tools(jobs) => self.embed(&mut thread, jobs),
                Work::Search(search, to) => {
                    if let Some(hits) = thread.search(&search) {
                        drop(to.send(hits));
                    }
                }
                Work::Removed(digests) => thread.share(|index| index.remove(&digests)),
                Work::Stop => {
                    self.save(&mut thread.unsaved);
                    return;
                }
            }
        }
    }

    fn query(&self, thread: &mut Thread, text: &str, to: oneshot::Sender<Vector>) {
        // A search that no longer waits needs no vector.
        if to.is_closed() {
            return;
        }
        match thread.embedder.embed(&[text]) {
            Ok(mut vectors) => {
                if let Some(vector) = vectors.pop().flatten() {
                    drop(to.send(vector));
                }
            }
            Err(Unavailable(reason)) => self.defer(&reason, Vec::new()),
        }
    }

    fn embed(&self, thread: &mut Thread, jobs: Vec<Job>) {
        let texts: Vec<&str> = jobs.iter().map(|job| job.text.as_str()).collect();
        let vectors = match thread.embedder.embed(&texts) {
            Ok(vectors) => vectors,
            Err(Unavailable(reason)) => {
                self.defer(&reason, jobs);
                self.save(&mut thread.unsaved);
                return;
            }
        };
        let count = jobs.len();
        let made = jobs.into_iter().zip(vectors);
        let made: Vec<(Job, Vector)> =
            made.filter_map(|(job, vector)| Some((job, vector?))).collect();
        for (job, vector) in &made {
            (self.parts.receiver)(&job.digest, vector);
            thread.unsaved.push((job.digest, vector.clone()));
        }
        thread.share(|index| index.put(&made));
        if thread.saved.elapsed() > thread.interval || self.queue().has_no_tools() {
            self.save(&mut thread.unsaved);
            (thread.saved, thread.interval) = (Instant::now(), MAX_SAVE.min(thread.interval * 2));
        }
        self.done(count);
    }

    /// Keeps tools for later, because a service does not answer. Nobody waits for them.
    fn defer(&self, reason: &str, jobs: Vec<Job>) {
        tracing::warn!(%reason, "tools are searched by their words only");
        let mut queue = self.queue();
        queue.deferred.extend(jobs);
        let waiting = std::mem::take(&mut queue.tools);
        queue.deferred.extend(waiting);
        queue.queries.clear();
        queue.retry_at = Some(Instant::now() + RETRY);
        let new = queue.new.len();
        drop(queue);
        self.pending.send_replace(new);
    }

    /// Waits for the next piece of work.
    #[expect(clippy::significant_drop_tightening, reason = "the condition takes the guard")]
    fn next(&self, batch: usize) -> Work {
        let mut queue = self.queue();
        loop {
            if queue.closed {
                return Work::Stop;
            }
            if let Some((text, to)) = queue.queries.pop_front() {
                return Work::Query(text, to);
            }
            if let Some((search, to)) = queue.searches.pop_front() {
                return Work::Search(search, to);
            }
            if !queue.new.is_empty() {
                return Work::New(std::mem::take(&mut queue.new));
            }
            if !queue.tools.is_empty() {
                let count = batch.clamp(1, queue.tools.len());
                return Work::Tools(queue.tools.drain(..count).collect());
            }
            if !queue.removed.is_empty() {
                return Work::Removed(std::mem::take(&mut queue.removed));
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

    /// Takes vectors from the file, then from the index that is shared; other tools are embedded.
    fn read(&self, thread: &mut Thread, jobs: Vec<Job>) {
        let wanted: FxHashSet<Digest> = jobs.iter().map(|job| job.digest).collect();
        let mut known = self.parts.file.as_ref().map(|file| file.read(&wanted)).unwrap_or_default();
        let missing: Vec<Digest> =
            wanted.iter().filter(|digest| !known.contains_key(*digest)).copied().collect();
        thread.share(|index| {
            let found = index.fetch(&missing)?;
            known.extend(found);
            Ok(())
        });
        for (digest, vector) in known.iter().filter(|(digest, _)| missing.contains(digest)) {
            thread.unsaved.push((*digest, vector.clone()));
        }
        let (found, unknown): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| known.contains_key(&job.digest));
        for (digest, vector) in &known {
            (self.parts.receiver)(digest, vector);
        }
        let count = found.len();
        let found = found.into_iter();
        let found: Vec<(Job, Vector)> =
            found.filter_map(|job| Some((job.clone(), known.get(&job.digest)?.clone()))).collect();
        thread.share(|index| index.put(&found));
        if unknown.is_empty() {
            self.save(&mut thread.unsaved);
        }
        let mut queue = self.queue();
        let left = if queue.retry_at.is_some() {
            let left = unknown.len();
            queue.deferred.extend(unknown);
            left
        } else {
            queue.tools.extend(unknown);
            0
        };
        drop(queue);
        self.done(count + left);
    }

    fn done(&self, tools: usize) {
        self.pending.send_modify(|pending| *pending = pending.saturating_sub(tools));
    }

    fn save(&self, unsaved: &mut Vec<(Digest, Vector)>) {
        let new = std::mem::take(unsaved);
        let Some(file) = self.parts.file.as_ref().filter(|_| !new.is_empty()) else { return };
        if let Err(error) = file.add(&new) {
            tracing::warn!(%error, "embeddings of tools cannot be saved; they will be computed again");
        }
    }
}

// === impl Thread ===

impl Thread {
    /// Uses the index that is shared, if there is one. Without it, this process compares by itself.
    fn share(&mut self, with: impl FnOnce(&mut dyn SharedIndex) -> Result<(), Unavailable>) {
        if let Some(index) = &mut self.index
            && let Err(Unavailable(reason)) = with(&mut **index)
        {
            tracing::warn!(%reason, "the shared index of tools is not used");
            self.index = None;
        }
    }

    fn search(&mut self, search: &SharedSearch) -> Option<Vec<Hit>> {
        let mut hits = None;
        self.share(|index| {
            hits = Some(index.search(&search.vector, &search.among, search.limit)?);
            Ok(())
        });
        hits
    }
}

// === impl Queue ===

impl Queue {
    fn is_empty(&self) -> bool {
        self.queries.is_empty()
            && self.searches.is_empty()
            && self.removed.is_empty()
            && self.has_no_tools()
    }

    /// False if vectors cannot be made, for ever or for some time.
    fn is_usable(&self) -> bool {
        !self.broken && self.retry_at.is_none()
    }

    fn has_no_tools(&self) -> bool {
        self.new.is_empty() && self.tools.is_empty()
    }

    /// Drops all work, now and later: there is no model.
    fn give_up(&mut self) {
        *self = Self { broken: true, ..Self::default() };
    }
}
