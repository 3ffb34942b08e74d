//! The files of long answers, in the state folder.
//!
//! The name of a file says whose answer it is: `ID.CALLER.PAGE.SERVER.json`.

use std::io;
use std::sync::Arc;

use capstan_app::Environment;
use capstan_files::answers::{AnswerFile, AnswerFolder};
use capstan_hub::ports::{
    AnswerFiles, AnswerOwner, BoxFuture, ListedAnswer, SavedAnswer, StoreError,
};
use capstan_hub::spills::MAX_BYTES;
use capstan_wire::Json;
use futures::FutureExt;
use jiff::Timestamp;

/// The end of a file's name.
const SUFFIX: &str = ".json";

/// The folder of long answers.
pub(crate) struct StateAnswers(AnswerFolder);

// === impl StateAnswers ===

impl StateAnswers {
    pub(crate) fn shared(environment: &Environment) -> Arc<Self> {
        Arc::new(Self(AnswerFolder::new(environment.state.join("answers"))))
    }

    /// Works on the folder in a thread that may wait.
    fn work<'a, T: Send + 'static>(
        &'a self,
        what: &'static str,
        work: impl FnOnce(&AnswerFolder) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let folder = self.0.clone();
        async move {
            let done = tokio::task::spawn_blocking(move || work(&folder)).await;
            done.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|cause| StoreError {
                what: format!("{what}: {cause}"),
                cause: Some(cause.into()),
            })
        }
        .boxed()
    }
}

impl AnswerFiles for StateAnswers {
    fn save<'a>(
        &'a self,
        about: &'a AnswerOwner,
        answer: &'a Json,
    ) -> BoxFuture<'a, Result<SavedAnswer, StoreError>> {
        let (about, answer) = (about.clone(), answer.clone());
        self.work("the answer cannot be saved", move |folder| {
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            let id = format!("{:032x}", u128::from_ne_bytes(random));
            let AnswerOwner { caller, server, page, tags } = about;
            let name = format!("{id}.{caller}.{page}-{tags}.{server}{SUFFIX}");
            let path = folder.save(&name, answer.as_bytes())?;
            Ok(SavedAnswer { id, file: path.display().to_string() })
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ListedAnswer>, StoreError>> {
        self.work("kept answers cannot be listed", |folder| {
            Ok(folder.list()?.iter().filter_map(listed).collect())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Json>, StoreError>> {
        let id = id.to_owned();
        self.work("the answer cannot be read", move |folder| {
            let Some(name) = name_of(folder, &id)? else { return Ok(None) };
            let Some(text) = folder.load(&name, MAX_BYTES)? else { return Ok(None) };
            Json::parse(text).map(Some).map_err(io::Error::other)
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let id = id.to_owned();
        self.work("a kept answer cannot be removed", move |folder| {
            name_of(folder, &id)?.map_or(Ok(()), |name| folder.remove(&name))
        })
    }
}

/// The name of the file with this id.
fn name_of(folder: &AnswerFolder, id: &str) -> io::Result<Option<String>> {
    let is_it = |file: &AnswerFile| file.name.split('.').next() == Some(id);
    Ok(folder.list()?.into_iter().find(is_it).map(|file| file.name))
}

/// Reads the name of a file; `None` for files of others.
fn listed(file: &AnswerFile) -> Option<ListedAnswer> {
    let mut parts = file.name.strip_suffix(SUFFIX)?.split('.');
    let (id, caller) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let (page, server) = (parts.next()?, parts.next()?.parse().ok()?);
    let (page, tags) = page.split_once('-')?;
    let (page, tags) = (page.parse().ok()?, tags.parse().ok()?);
    let saved_at = Timestamp::try_from(file.written).ok()?;
    let owner = AnswerOwner { caller, server, page, tags };
    parts.next().is_none().then_some(ListedAnswer { id, owner, bytes: file.bytes, saved_at })
}
