//! Both places, with a keyring that the tests control.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use keyring_core::{CredentialStore, Error, mock};
use tempfile::TempDir;

use super::*;

/// The value of the tests, which must not appear where it does not belong.
const VALUE: &str = "correct-horse-battery";

/// A keyring that stays over several vaults and can be locked.
#[derive(Clone)]
struct FakeKeyring {
    store: Arc<CredentialStore>,
    is_locked: Arc<AtomicBool>,
}

impl FakeKeyring {
    fn new() -> Self {
        Self { store: mock::Store::new().unwrap(), is_locked: Arc::default() }
    }

    fn vault(&self, folder: &Path) -> SystemVault {
        let keyring = self.clone();
        let open = move || {
            if keyring.is_locked.load(Ordering::Relaxed) {
                return Err(Error::NoStorageAccess("the collection is locked".into()));
            }
            Ok(Arc::clone(&keyring.store))
        };
        SystemVault::with_store(folder.join("mcp-tokens.json"), KeyringMode::System, Arc::new(open))
    }

    fn lock(&self) {
        self.is_locked.store(true, Ordering::Relaxed);
    }

    fn unlock(&self) {
        self.is_locked.store(false, Ordering::Relaxed);
    }

    fn has(&self, user: &str) -> bool {
        self.store.build("capstan", user, None).unwrap().get_password().is_ok()
    }
}

fn file_only(folder: &Path) -> SystemVault {
    SystemVault::new(folder.join("mcp-tokens.json"), KeyringMode::Off)
}

fn key(name: &str) -> VaultKey {
    VaultKey { kind: VaultKind::Secret, name: name.to_owned() }
}

fn secret(value: &str) -> Secret<String> {
    Secret::new(value.to_owned())
}

fn text(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("mcp-tokens.json")).unwrap()
}

/// The item of the keyring that the index names.
fn item(folder: &TempDir, name: &str) -> String {
    let index: serde_json::Value = serde_json::from_str(&text(folder)).unwrap();
    index["entries"]["secret"][name]["keyring"].as_str().unwrap().to_owned()
}

async fn value(vault: &SystemVault, name: &str) -> Option<String> {
    let found = vault.read(&key(name)).await.unwrap();
    found.map(|secret| secret.reveal().clone())
}

#[tokio::test]
async fn a_value_goes_to_the_keyring_and_the_file_has_only_its_name() {
    let folder = TempDir::new().unwrap();
    let vault = FakeKeyring::new().vault(folder.path());
    let place = vault.write(&key("a"), &secret(VALUE)).await.unwrap();
    assert_eq!(place, VaultPlace::Keyring);
    assert_eq!(value(&vault, "a").await.as_deref(), Some(VALUE));
    assert!(!text(&folder).contains(VALUE));
    assert_eq!(vault.list(VaultKind::Secret).await.unwrap(), [(key("a"), VaultPlace::Keyring)]);
    assert_eq!(vault.list(VaultKind::Tokens).await.unwrap(), []);
}

#[tokio::test]
async fn without_a_keyring_the_file_has_the_value_and_only_its_owner_can_read_it() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("new/data");
    let vault = file_only(&home);
    assert_eq!(value(&vault, "a").await, None);
    let place = vault.write(&key("a"), &secret(VALUE)).await.unwrap();
    let path = home.join("mcp-tokens.json");
    assert_eq!(place, VaultPlace::File(path.display().to_string()));
    assert_eq!(value(&file_only(&home), "a").await.as_deref(), Some(VALUE));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&home)), (0o600, 0o700));
}

#[tokio::test]
async fn a_file_that_others_can_read_is_narrowed() {
    let folder = TempDir::new().unwrap();
    let vault = file_only(folder.path());
    vault.write(&key("a"), &secret(VALUE)).await.unwrap();
    let path = folder.path().join("mcp-tokens.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(value(&vault, "a").await.as_deref(), Some(VALUE));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_locked_keyring_makes_the_file_take_the_value_and_the_newest_write_wins() {
    let folder = TempDir::new().unwrap();
    let keyring = FakeKeyring::new();
    keyring.vault(folder.path()).write(&key("a"), &secret("first")).await.unwrap();
    let old_item = item(&folder, "a");

    keyring.lock();
    let locked = keyring.vault(folder.path());
    let place = locked.write(&key("a"), &secret("second")).await.unwrap();
    assert!(matches!(place, VaultPlace::File(_)), "{place:?}");
    assert_eq!(value(&locked, "a").await.as_deref(), Some("second"));

    keyring.unlock();
    let vault = keyring.vault(folder.path());
    assert_eq!(value(&vault, "a").await.as_deref(), Some("second"));
    assert!(keyring.has(&old_item));
    assert_eq!(vault.write(&key("a"), &secret("third")).await.unwrap(), VaultPlace::Keyring);
    assert_eq!(value(&vault, "a").await.as_deref(), Some("third"));
    assert!(!keyring.has(&old_item), "the old item stays in the keyring");
    let text = text(&folder);
    assert!(!text.contains("second") && text.contains("\"stale\": []"), "{text}");
}

#[tokio::test]
async fn a_value_in_a_locked_keyring_is_an_error_and_not_a_missing_entry() {
    let folder = TempDir::new().unwrap();
    let keyring = FakeKeyring::new();
    keyring.vault(folder.path()).write(&key("a"), &secret(VALUE)).await.unwrap();
    keyring.lock();
    let error = keyring.vault(folder.path()).read(&key("a")).await.unwrap_err().to_string();
    assert!(error.contains("the keyring cannot be used: it is locked"), "{error}");
    assert!(error.contains("`a` is stored there"), "{error}");
}

#[tokio::test]
async fn an_entry_removed_while_the_keyring_is_locked_does_not_come_back() {
    let folder = TempDir::new().unwrap();
    let keyring = FakeKeyring::new();
    keyring.vault(folder.path()).write(&key("a"), &secret(VALUE)).await.unwrap();
    let removed = item(&folder, "a");
    keyring.lock();
    let locked = keyring.vault(folder.path());
    assert!(locked.remove(&key("a")).await.unwrap());
    assert!(!locked.remove(&key("a")).await.unwrap());
    keyring.unlock();
    let vault = keyring.vault(folder.path());
    assert_eq!(value(&vault, "a").await, None);
    vault.write(&key("b"), &secret("other")).await.unwrap();
    assert!(!keyring.has(&removed), "the removed value stays in the keyring");
}

#[tokio::test]
async fn a_keyring_that_does_not_answer_costs_one_wait_and_then_the_file_is_used() {
    let folder = TempDir::new().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (released, opened) = (Mutex::new(released), Arc::new(AtomicBool::new(false)));
    let is_open = Arc::clone(&opened);
    let open: OpenStore = Arc::new(move || {
        assert!(!is_open.swap(true, Ordering::Relaxed), "the keyring is asked again at once");
        let _released = released.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let store: Arc<CredentialStore> = mock::Store::new()?;
        Ok(store)
    });
    let keyring = Keyring::new(KeyringMode::System, open).with_deadline(Duration::from_millis(50));
    let vault = SystemVault(Arc::new(Places {
        file: TokenFile::at(folder.path().join("mcp-tokens.json")),
        keyring,
        told: AtomicBool::new(false),
    }));
    for number in ["1", "2", "3"] {
        let place = vault.write(&key("a"), &secret(number)).await.unwrap();
        assert!(matches!(place, VaultPlace::File(_)), "{place:?}");
        assert_eq!(value(&vault, "a").await.as_deref(), Some(number));
    }
    assert!(opened.load(Ordering::Relaxed));
    drop(release);
}

#[tokio::test]
async fn a_value_too_long_for_a_keyring_goes_to_the_file_and_one_too_long_for_both_is_refused() {
    let folder = TempDir::new().unwrap();
    let vault = FakeKeyring::new().vault(folder.path());
    let long = "x".repeat(MAX_VALUE + 1);
    let place = vault.write(&key("a"), &secret(&long)).await.unwrap();
    assert!(matches!(place, VaultPlace::File(_)), "{place:?}");
    assert_eq!(value(&vault, "a").await, Some(long.clone()));
    let place = vault.write(&key("b"), &secret("short")).await.unwrap();
    assert_eq!(place, VaultPlace::Keyring);
    assert!(vault.write(&key("a"), &secret(&"x".repeat(MAX_SECRET + 1))).await.is_err());
    assert!(vault.write(&key(""), &secret("x")).await.is_err());
    assert!(vault.write(&key(&"n".repeat(MAX_NAME + 1)), &secret("x")).await.is_err());
    assert_eq!(value(&vault, "a").await, Some(long));
}

#[tokio::test]
async fn a_damaged_file_is_never_read_as_empty_and_is_kept_aside_by_the_next_write() {
    for damaged in ["", "{", "[]", "{\"version\":1}", "{\"version\":1,\"entries\":{\"secret\":7}}"]
    {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("mcp-tokens.json");
        fs::write(&path, damaged).unwrap();
        let vault = file_only(folder.path());
        for _ in 0..2 {
            let error = vault.read(&key("a")).await.unwrap_err();
            assert!(matches!(error, VaultError::Damaged { .. }), "{error:?}");
            assert!(vault.list(VaultKind::Secret).await.is_err());
            assert!(vault.remove(&key("a")).await.is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
        }
        vault.write(&key("a"), &secret(VALUE)).await.unwrap();
        assert_eq!(value(&vault, "a").await.as_deref(), Some(VALUE));
        let aside: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-"))
            .collect();
        let [aside] = aside.as_slice() else { panic!("{aside:?}") };
        assert_eq!(fs::read_to_string(aside.path()).unwrap(), damaged);
    }
}

#[tokio::test]
async fn the_message_about_a_damaged_file_does_not_repeat_a_value() {
    let folder = TempDir::new().unwrap();
    let text = format!("{{\"version\":1,\"entries\":{{\"secret\":{{\"a\":\"{VALUE}\"}}}}}}");
    fs::write(folder.path().join("mcp-tokens.json"), text).unwrap();
    let error = file_only(folder.path()).read(&key("a")).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(VALUE), "{error}");
}

#[tokio::test]
async fn a_file_of_a_later_version_is_neither_read_nor_replaced() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mcp-tokens.json");
    let later = "{\"version\":2,\"vaults\":[]}";
    fs::write(&path, later).unwrap();
    let vault = file_only(folder.path());
    let error = vault.write(&key("a"), &secret(VALUE)).await.unwrap_err();
    assert!(error.to_string().contains("update Capstan"), "{error}");
    assert!(vault.read(&key("a")).await.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), later);
}

#[tokio::test]
async fn a_setting_that_is_unknown_is_refused_before_anything_is_stored() {
    let folder = TempDir::new().unwrap();
    let mode = KeyringMode::from_variable(Some("of"));
    let vault = SystemVault::new(folder.path().join("mcp-tokens.json"), mode);
    let error = vault.write(&key("a"), &secret(VALUE)).await.unwrap_err();
    assert!(error.to_string().contains("CAPSTAN_KEYRING is `of`"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(KeyringMode::from_variable(Some("off")), KeyringMode::Off);
    assert_eq!(KeyringMode::from_variable(Some("")), KeyringMode::System);
    assert_eq!(KeyringMode::from_variable(None), KeyringMode::System);
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_an_entry_excludes_others_for_a_bounded_time() {
    let folder = TempDir::new().unwrap();
    let (first, second) = (file_only(folder.path()), file_only(folder.path()));
    let held = first.lock(&key("a")).await.unwrap();
    drop(second.lock(&key("b")).await.unwrap());
    assert_eq!(second.lock(&key("a")).await.unwrap_err(), VaultError::Busy);
    drop(held);
    drop(second.lock(&key("a")).await.unwrap());
}
