//! The keyring of the system, used from a thread of its own and with a deadline.
//!
//! A locked keyring asks the person for a password and waits; one that hangs never answers. The
//! thread waits for it; the caller waits for the thread until the deadline. After a failure the
//! keyring is left alone for a while, so that not every operation waits anew.

use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use keyring_core::{CredentialStore, Entry, Error};

/// The service that the items of Capstan belong to.
const SERVICE: &str = "capstan";

/// Longest value that is offered to a keyring. Windows refuses more than 2560 bytes.
pub(crate) const MAX_VALUE: usize = if cfg!(windows) { 2400 } else { 64 * 1024 };

/// Timeout of one operation.
const DEADLINE: Duration = Duration::from_secs(5);

/// Time that the keyring is left alone after it did not work.
const PAUSE: Duration = Duration::from_secs(30);

/// Whether the keyring is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyringMode {
    /// Use the keyring of the system, if there is one.
    System,
    /// Never use a keyring.
    Off,
    /// The setting has this value, which is unknown.
    Unknown(String),
}

/// The reason that the keyring cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The configuration turns it off.
    Off,
    /// There is none, or it cannot be reached.
    Absent(String),
    /// It is locked, or refuses access.
    Locked(String),
    /// It did not answer in time.
    Slow,
    /// It refuses this value; others may fit.
    Refused(String),
}

/// Opens the store of the system.
pub(crate) type OpenStore =
    Arc<dyn Fn() -> keyring_core::Result<Arc<CredentialStore>> + Send + Sync>;

/// The keyring.
pub(crate) struct Keyring {
    mode: KeyringMode,
    open: OpenStore,
    deadline: Duration,
    state: Mutex<State>,
}

/// The state of the connection to the keyring.
#[derive(Default)]
struct State {
    worker: Option<Sender<Job>>,
    /// The failure that the keyring is left alone for, and its end.
    paused: Option<(Unusable, Instant)>,
}

type Job = Box<dyn FnOnce(&mut Option<Arc<CredentialStore>>) + Send>;

// === impl KeyringMode ===

impl KeyringMode {
    /// Reads the mode from the value of the variable `CAPSTAN_KEYRING`.
    pub fn from_variable(value: Option<&str>) -> Self {
        match value {
            None | Some("" | "auto") => Self::System,
            Some("off") => Self::Off,
            Some(other) => Self::Unknown(other.to_owned()),
        }
    }
}

// === impl Unusable ===

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("it is turned off (CAPSTAN_KEYRING)"),
            Self::Absent(reason) => write!(f, "there is none here ({reason})"),
            Self::Locked(reason) => write!(f, "it is locked ({reason}); unlock it to use it"),
            Self::Slow => write!(
                f,
                "it did not answer within {} s; it may be locked and wait for its password",
                DEADLINE.as_secs()
            ),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

// === impl Keyring ===

impl Keyring {
    pub(crate) fn new(mode: KeyringMode, open: OpenStore) -> Self {
        Self { mode, open, deadline: DEADLINE, state: Mutex::default() }
    }

    /// Sets another deadline.
    #[cfg(test)]
    pub(crate) fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    pub(crate) fn mode(&self) -> &KeyringMode {
        &self.mode
    }

    /// Stores an item.
    pub(crate) fn set(&self, user: &str, value: &str) -> Result<(), Unusable> {
        let value = value.to_owned();
        self.run(user, move |entry| entry.set_password(&value))
    }

    /// Reads an item; `None` if there is none.
    pub(crate) fn get(&self, user: &str) -> Result<Option<String>, Unusable> {
        self.run(user, |entry| match entry.get_password() {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        })
    }

    /// Removes an item; it is fine if there is none.
    pub(crate) fn delete(&self, user: &str) -> Result<(), Unusable> {
        self.run(user, |entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// Runs an operation on the thread and waits for it until the deadline.
    fn run<T: Send + 'static>(
        &self,
        user: &str,
        work: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
    ) -> Result<T, Unusable> {
        let worker = self.worker()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let (open, user) = (Arc::clone(&self.open), user.to_owned());
        let job: Job = Box::new(move |store| {
            let done = opened(store, &open)
                .and_then(|store| store.build(SERVICE, &user, None))
                .and_then(|entry| work(&entry));
            // Nobody waits for an answer after the deadline.
            drop(answer.send(done));
        });
        if worker.send(job).is_err() {
            return Err(self.pause(Unusable::Absent("its thread has ended".to_owned())));
        }
        match answered.recv_timeout(self.deadline) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(RecvTimeoutError::Timeout) => Err(self.pause(Unusable::Slow)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.pause(Unusable::Absent("its thread has ended".to_owned())))
            }
        }
    }

    /// The thread that talks to the keyring, unless the keyring is left alone now.
    fn worker(&self) -> Result<Sender<Job>, Unusable> {
        if self.mode != KeyringMode::System {
            return Err(Unusable::Off);
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner).worker()
    }

    /// Classifies an error; all but those about one value pause the keyring.
    fn failed(&self, error: &Error) -> Unusable {
        match error {
            // Neither contains the value.
            Error::TooLong(..) | Error::Invalid(..) => Unusable::Refused(error.to_string()),
            Error::NoStorageAccess(reason) => self.pause(Unusable::Locked(reason.to_string())),
            // Their texts could contain the value.
            Error::BadEncoding(_) | Error::BadDataFormat(..) | Error::Ambiguous(_) => {
                Unusable::Refused("it returned something else than Capstan stored".to_owned())
            }
            Error::PlatformFailure(reason) => self.pause(Unusable::Absent(reason.to_string())),
            Error::NoEntry
            | Error::BadStoreFormat(_)
            | Error::NoDefaultStore
            | Error::NotSupportedByStore(_)
            | _ => self.pause(Unusable::Absent(error.to_string())),
        }
    }

    /// Leaves the keyring alone for a while, and gives up the thread, which may hang.
    fn pause(&self, reason: Unusable) -> Unusable {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.worker = None;
        state.paused = Some((reason.clone(), Instant::now() + PAUSE));
        drop(state);
        reason
    }
}

// === impl State ===

impl State {
    fn worker(&mut self) -> Result<Sender<Job>, Unusable> {
        if let Some((reason, until)) = &self.paused
            && Instant::now() < *until
        {
            return Err(reason.clone());
        }
        self.paused = None;
        if let Some(worker) = &self.worker {
            return Ok(worker.clone());
        }
        let (jobs, queue) = mpsc::channel();
        let thread = std::thread::Builder::new().name("keyring".to_owned());
        thread
            .spawn(move || work_off(&queue))
            .map_err(|error| Unusable::Absent(error.to_string()))?;
        self.worker = Some(jobs.clone());
        Ok(jobs)
    }
}

/// Does the jobs of the thread until nobody can send more.
fn work_off(queue: &Receiver<Job>) {
    let mut store = None;
    while let Ok(job) = queue.recv() {
        job(&mut store);
    }
}

/// The store, opened at the first use.
fn opened<'a>(
    store: &'a mut Option<Arc<CredentialStore>>,
    open: &OpenStore,
) -> keyring_core::Result<&'a Arc<CredentialStore>> {
    if store.is_none() {
        *store = Some(open()?);
    }
    store.as_ref().ok_or(Error::NoDefaultStore)
}

/// Opens the Secret Service of the session.
#[cfg(target_os = "linux")]
pub(crate) fn open_system() -> keyring_core::Result<Arc<CredentialStore>> {
    let store = zbus_secret_service_keyring_store::Store::new()?;
    Ok(store)
}

/// Opens the keychain of the user. No machine of this project has compiled this yet.
#[cfg(target_os = "macos")]
pub(crate) fn open_system() -> keyring_core::Result<Arc<CredentialStore>> {
    let store = apple_native_keyring_store::keychain::Store::new()?;
    Ok(store)
}

/// Opens the credential manager. No machine of this project has compiled this yet.
#[cfg(windows)]
pub(crate) fn open_system() -> keyring_core::Result<Arc<CredentialStore>> {
    let store = windows_native_keyring_store::Store::new()?;
    Ok(store)
}

/// Other systems have no keyring that is supported.
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub(crate) fn open_system() -> keyring_core::Result<Arc<CredentialStore>> {
    Err(Error::NoDefaultStore)
}
