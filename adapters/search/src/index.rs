//! The index: slots for tools, their words and vectors, and the scores of both fused.

use std::path::PathBuf;
use std::sync::{
    Arc, LazyLock, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::time::Duration;

use capstan_hub::ports::{
    BoxFuture, IndexedTools, Score, Scores, SearchedTool, Slot, ToolIndex, Wanted,
};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::{Instant, timeout_at};

use crate::document::Document;
use crate::embed::file::VectorFile;
use crate::embed::service::EmbeddingService;
use crate::embed::shared::{Hit, QdrantServer};
use crate::embed::worker::{Job, Load, Open, Parts, SharedSearch, Worker};
use crate::embed::{BUILT_IN, Digest, TEXT};
use crate::lexical::{Language, Lexical, MAX_SLOTS, Query};
use crate::vectors::{Vector, Vectors};

/// The share of words in a score; the rest is that of meaning.
const WORDS: f32 = 0.43;

/// The share of words if the query has identifiers or paths, which mean little to the model.
const WORDS_WITH_IDENTIFIER: f32 = 0.55;

/// Unused slots are swept when they are this share of all, so that a sweep costs little a change.
const SWEEP_SHARE: usize = 4;

/// Unused slots below this number are not worth a sweep.
const SWEEP_FROM: usize = 256;

/// Hits that a shared index is asked for, in addition to the wanted tools.
const SHARED_SPARE: usize = 100;

/// Scores tools by their words and, with the feature `model` or a service, their meaning.
pub struct SearchIndex {
    state: Arc<RwLock<State>>,
    /// Made by the first use: most commands search nothing.
    language: LazyLock<Language>,
    /// Made by the first use, or by [`SearchIndex::configure`] before it.
    worker: OnceLock<Option<Worker>>,
    built_in: Option<Load>,
    vectors: Option<PathBuf>,
}

/// The origin of embeddings, if it is not the model in the binary.
#[derive(Clone, Debug, Default)]
pub struct Embeddings {
    /// The service that makes them; `None` for the model in the binary.
    pub service: Option<EmbeddingService>,
    /// The server in which several gateways keep them.
    pub shared: Option<QdrantServer>,
    /// The reason why a service cannot be used; reported at the first search.
    pub problem: Option<String>,
}

#[derive(Default)]
struct State {
    lexical: Lexical,
    vectors: Vectors,
    /// For each slot the number of held lists that it is in.
    holders: Vec<u32>,
    by_digest: FxHashMap<Digest, u32>,
    /// Slots without a tool and without postings.
    free: Vec<u32>,
    /// Tools that callers hold, to notice when they no longer do.
    held: Vec<(Weak<()>, Arc<[Slot]>)>,
    /// Texts of tools that nobody has searched among yet, by slot.
    waiting: FxHashMap<u32, Job>,
    /// Number of slots that are unused and have postings.
    unused: usize,
    /// Tools that nobody holds any more, for the shared index.
    dropped: Vec<Digest>,
}

// === impl SearchIndex ===

impl SearchIndex {
    /// Creates an empty index. Vectors are kept in a file if one is named.
    pub fn new(vectors: Option<PathBuf>) -> Self {
        #[cfg(feature = "model")]
        let load: Option<Load> = Some(Arc::new(crate::embed::load));
        #[cfg(not(feature = "model"))]
        let load: Option<Load> = None;
        Self::with_model(load, vectors)
    }

    /// Creates an empty index that does not use the model.
    pub fn lexical() -> Self {
        Self::with_model(None, None)
    }

    pub(crate) fn with_model(built_in: Option<Load>, vectors: Option<PathBuf>) -> Self {
        let language: LazyLock<Language> = LazyLock::new(Language::new);
        Self { state: Arc::default(), language, worker: OnceLock::new(), built_in, vectors }
    }

    /// Chooses the origin of embeddings. It has an effect before the first search only: vectors of
    /// two models cannot be compared.
    pub fn configure(&self, embeddings: &Embeddings) {
        self.worker.get_or_init(|| self.make_worker(embeddings));
    }

    fn worker(&self) -> Option<&Worker> {
        self.worker.get_or_init(|| self.make_worker(&Embeddings::default())).as_ref()
    }

    fn make_worker(&self, embeddings: &Embeddings) -> Option<Worker> {
        let to = Arc::clone(&self.state);
        let receiver = move |digest: &Digest, vector: &Vector| {
            to.write().unwrap_or_else(PoisonError::into_inner).set_vector(digest, vector);
        };
        let (load, model, file): (Load, _, _) = match &embeddings.service {
            None => {
                let (built_in, problem) = (self.built_in.clone()?, embeddings.problem.clone());
                let load = move || {
                    if let Some(problem) = &problem {
                        tracing::warn!(%problem, "tools are compared by the model in the binary");
                    }
                    built_in()
                };
                (Arc::new(load), BUILT_IN.to_owned(), self.vectors.clone())
            }
            Some(service) => {
                let model = service.recipe();
                // Vectors of different models are in different files.
                let digest = blake3::hash(model.as_bytes()).to_hex();
                let name = |path: &PathBuf| {
                    let mut name = path.as_os_str().to_owned();
                    name.push("-");
                    name.push(digest.get(..16).unwrap_or_default());
                    PathBuf::from(name)
                };
                let (file, service) = (self.vectors.as_ref().map(name), service.clone());
                (Arc::new(move || service.open()), model, file)
            }
        };
        let recipe = format!("{model}, {TEXT}");
        let shared = embeddings.shared.clone().map(|server| {
            let recipe = recipe.clone();
            Arc::new(move || server.open(&recipe)) as Open
        });
        let file = file.map(|path| VectorFile::new(path, &recipe));
        Some(Worker::new(Parts { load, file, shared, receiver: Arc::new(receiver) }))
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to embed the tools that are not yet.
    fn embed_waiting(&self, worker: &Worker) {
        if self.read().waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.write().waiting);
        let mut jobs: Vec<(u32, Job)> = waiting.into_iter().collect();
        jobs.sort_unstable_by_key(|(slot, _)| *slot);
        worker.tools(jobs.into_iter().map(|(_, job)| job).collect());
    }

    /// The vector of a query, if there is one within the time. Waits for the vectors of tools, too.
    async fn embed_query(&self, query: &str, wait: Duration) -> Option<Vector> {
        let worker = self.worker().filter(|_| !query.trim().is_empty())?;
        self.embed_waiting(worker);
        if wait.is_zero() {
            return None;
        }
        let deadline = Instant::now() + wait;
        let vector = timeout_at(deadline, worker.query(query)).await.ok()?.ok()?;
        // If not all tools are embedded in time, those that are can be compared.
        drop(timeout_at(deadline, worker.all_embedded()).await);
        Some(vector)
    }

    /// The cosines that the shared index has found among these tools.
    async fn search_shared(&self, vector: &Vector, among: &[Slot], wanted: Wanted) -> Vec<Hit> {
        let Some(worker) = self.worker().filter(|worker| worker.is_shared()) else {
            return Vec::new();
        };
        let among = self.read().digests(among);
        let limit = wanted.limit.saturating_add(SHARED_SPARE);
        let search = SharedSearch { vector: vector.clone(), among, limit };
        let deadline = Instant::now() + wanted.wait;
        let hits = timeout_at(deadline, worker.search(search)).await;
        hits.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl ToolIndex for SearchIndex {
    fn add(&self, tools: &[SearchedTool<'_>]) -> IndexedTools {
        let digests: Vec<Digest> = tools.iter().map(digest).collect();
        let mut state = self.write();
        state.release();
        let slots = tools.iter().zip(digests);
        let slots = slots.map(|(tool, digest)| state.add(&self.language, tool, digest));
        let slots: Arc<[Slot]> = slots.collect();
        let kept = Arc::new(());
        state.held.push((Arc::downgrade(&kept), Arc::clone(&slots)));
        let dropped = state.take_dropped();
        drop(state);
        // A worker that no search has made has nothing to remove.
        if let Some(Some(worker)) = self.worker.get() {
            worker.removed(dropped);
        }
        IndexedTools::new(slots, kept)
    }

    fn score<'a>(
        &'a self,
        query: &'a str,
        among: &'a [Slot],
        wanted: Wanted,
    ) -> BoxFuture<'a, Scores> {
        Box::pin(async move {
            let vector = self.embed_query(query, wanted.wait).await;
            let hits = match &vector {
                Some(vector) => self.search_shared(vector, among, wanted).await,
                None => Vec::new(),
            };
            let meaning = vector.as_ref().map(|vector| (vector, hits.as_slice()));
            self.read().score(&self.language, query, meaning, among, wanted.limit)
        })
    }

    fn likeness(&self, one: Slot, other: Slot) -> Option<f32> {
        let state = self.read();
        let other = state.vectors.get(other.0)?;
        state.vectors.cosine(one.0, &other).map(|cosine| cosine.clamp(0.0, 1.0))
    }
}

// === impl State ===

impl State {
    fn add(&mut self, language: &Language, tool: &SearchedTool<'_>, digest: Digest) -> Slot {
        if let Some(known) = self.by_digest.get(&digest).copied() {
            if let Some(holders) = self.holders.get_mut(known as usize) {
                self.unused -= usize::from(*holders == 0);
                *holders += 1;
            }
            return Slot(known);
        }
        let next = self.holders.len();
        let slot = match (self.free.pop(), u32::try_from(next)) {
            (Some(free), _) => free,
            (None, Ok(new)) if next < MAX_SLOTS => {
                self.holders.push(0);
                new
            }
            // A slot that nothing refers to: the tool cannot be found.
            (None, _) => return Slot(u32::MAX),
        };
        if let Some(holders) = self.holders.get_mut(slot as usize) {
            *holders = 1;
        }
        let document = Document::new(tool);
        self.lexical.add(&language.words, slot, &document);
        self.by_digest.insert(digest, slot);
        let names = [tool.server, tool.name].map(ToOwned::to_owned);
        self.waiting.insert(slot, Job { digest, text: document.embedded_text(), names });
        Slot(slot)
    }

    /// Gives up the tools that no caller holds any more.
    fn release(&mut self) {
        let (held, dropped) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(kept, _): &(Weak<()>, _)| kept.strong_count() > 0);
        self.held = held;
        let dropped: Vec<(Weak<()>, Arc<[Slot]>)> = dropped;
        let mut unheld = FxHashSet::default();
        for slot in dropped.iter().flat_map(|(_, slots)| slots.iter()) {
            if let Some(holders) = self.holders.get_mut(slot.0 as usize) {
                *holders = holders.saturating_sub(1);
                self.unused += usize::from(*holders == 0);
                if *holders == 0 {
                    unheld.insert(slot.0);
                }
            }
        }
        if !unheld.is_empty() {
            let gone = self.by_digest.iter().filter(|(_, slot)| unheld.contains(*slot));
            self.dropped.extend(gone.map(|(digest, _)| *digest));
        }
        if self.unused >= SWEEP_FROM && self.unused * SWEEP_SHARE >= self.by_digest.len() {
            self.sweep();
        }
    }

    /// Empties the slots that are not in use.
    fn sweep(&mut self) {
        let Self { holders, by_digest, free, vectors, waiting, .. } = self;
        let in_use = |slot: u32| holders.get(slot as usize).is_some_and(|holders| *holders > 0);
        by_digest.retain(|_, slot| {
            let in_use = in_use(*slot);
            if !in_use {
                vectors.set(*slot, None);
                waiting.remove(slot);
                free.push(*slot);
            }
            in_use
        });
        self.lexical.sweep(in_use, by_digest.len());
        self.unused = 0;
    }

    /// The digests of slots that are in use.
    fn digests(&self, among: &[Slot]) -> Vec<Digest> {
        let wanted: FxHashSet<u32> = among.iter().map(|slot| slot.0).collect();
        let held = self.by_digest.iter().filter(|(_, slot)| wanted.contains(*slot));
        held.map(|(digest, _)| *digest).collect()
    }

    /// The tools that were dropped since the last call and that nobody has added again.
    fn take_dropped(&mut self) -> Vec<Digest> {
        let dropped = std::mem::take(&mut self.dropped);
        let is_held = |digest: &Digest| {
            let slot = self.by_digest.get(digest).and_then(|slot| self.holders.get(*slot as usize));
            slot.is_some_and(|holders| *holders > 0)
        };
        dropped.into_iter().filter(|digest| !is_held(digest)).collect()
    }

    fn set_vector(&mut self, digest: &Digest, vector: &Vector) {
        if let Some(slot) = self.by_digest.get(digest).copied() {
            self.vectors.set(slot, Some(vector));
        }
    }

    fn score(
        &self,
        language: &Language,
        text: &str,
        meaning: Option<(&Vector, &[Hit])>,
        among: &[Slot],
        limit: usize,
    ) -> Scores {
        let query = self.lexical.query(language, text);
        let mut all = vec![0.0; self.holders.len()];
        self.lexical.score(&query, &mut all);
        let words = |slot: &Slot| all.get(slot.0 as usize).copied().unwrap_or_default();
        let most_words = among.iter().map(words).fold(0.0, f32::max);
        let Some((vector, hits)) = meaning else {
            let of_words = |(position, slot): (usize, &Slot)| {
                let words = words(slot);
                let similarity = query.coverage(words);
                (words > 0.0).then(|| Score { position, score: words / most_words, similarity })
            };
            let best = best(among.iter().enumerate().filter_map(of_words).collect(), limit);
            return Scores { best, pending: among.len() };
        };
        // Hits are digests: the tools are those of the live lists, never those of the shared index.
        let hits: FxHashMap<u32, f32> = hits
            .iter()
            .filter_map(|(digest, cosine)| Some((*self.by_digest.get(digest)?, *cosine)))
            .collect();
        let cosine = |slot: &Slot| {
            hits.get(&slot.0).copied().or_else(|| self.vectors.cosine(slot.0, vector))
        };
        let cosines: Vec<Option<f32>> = among.iter().map(cosine).collect();
        let fusion = Fusion {
            most_words,
            most_meaning: cosines.iter().flatten().copied().fold(0.0, f32::max),
            query,
        };
        let fused = among.iter().zip(&cosines).enumerate();
        let fused =
            fused.map(|(position, (slot, cosine))| fusion.fuse(position, words(slot), *cosine));
        let pending = cosines.iter().filter(|cosine| cosine.is_none()).count();
        Scores { best: best(fused.collect(), limit), pending }
    }
}

/// How the two halves of a query are made comparable: each relative to its best tool.
struct Fusion {
    query: Query,
    most_words: f32,
    most_meaning: f32,
}

// === impl Fusion ===

impl Fusion {
    fn fuse(&self, position: usize, words: f32, cosine: Option<f32>) -> Score {
        let relative = |part: f32, most: f32| if most > 0.0 { part.max(0.0) / most } else { 0.0 };
        let by_words = relative(words, self.most_words);
        let share = if self.query.has_identifier { WORDS_WITH_IDENTIFIER } else { WORDS };
        let coverage = self.query.coverage(words);
        match cosine {
            Some(cosine) => {
                let by_meaning = relative(cosine, self.most_meaning);
                let score = share * by_words + (1.0 - share) * by_meaning;
                Score { position, score, similarity: coverage.max(cosine).clamp(0.0, 1.0) }
            }
            None => Score { position, score: by_words, similarity: coverage },
        }
    }
}

/// The best scores in order; equal ones keep the order of the tools.
fn best(mut scores: Vec<Score>, limit: usize) -> Vec<Score> {
    let order = |one: &Score, other: &Score| {
        other.score.total_cmp(&one.score).then(one.position.cmp(&other.position))
    };
    if limit == 0 {
        return Vec::new();
    }
    if scores.len() > limit {
        scores.select_nth_unstable_by(limit - 1, order);
        scores.truncate(limit);
    }
    scores.sort_unstable_by(order);
    scores
}

/// BLAKE3 of everything that is searched.
fn digest(tool: &SearchedTool<'_>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let parts = [tool.server, tool.about, tool.name, tool.description, tool.schema.as_str()];
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
