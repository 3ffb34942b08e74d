//! Registries of servers: searches them and reads their offers.
//!
//! `bundle` turns a bundle that a registry names into an entry of the configuration.

mod bundle;

use std::path::Path;
use std::sync::Arc;

use capstan_config::edit::NewServer;
use capstan_hub::ports::BoxFuture;
use capstan_import::registry::{Need, Offer};

use crate::{AppError, Environment};

/// Finds and fetches servers in registries.
///
/// Without an address, the user's registry or the official one is used.
pub struct Registries {
    /// The environment, which may name a registry.
    pub environment: Arc<Environment>,
    /// Sends the requests.
    pub client: Arc<dyn RegistryClient>,
}

/// Sends requests to registries; `None` is the official one.
pub trait RegistryClient: Send + Sync {
    /// The servers that match all of these words, best first.
    fn search<'a>(
        &'a self,
        address: Option<&'a str>,
        words: &'a [String],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Offer>, AppError>>;

    /// The offer with this name, in this version or the latest.
    fn offer<'a>(
        &'a self,
        address: Option<&'a str>,
        name: &'a str,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Offer, AppError>>;

    /// Downloads a bundle that the registry names, and verifies its digest.
    fn bundle<'a>(
        &'a self,
        address: Option<&'a str>,
        url: &'a str,
        sha256: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AppError>>;
}

// === impl Registries ===

impl Registries {
    /// The servers that match all of these words, best first.
    ///
    /// # Errors
    /// If the registry cannot be asked.
    pub async fn search(
        &self,
        address: Option<&str>,
        words: &[String],
        most: usize,
    ) -> Result<Vec<Offer>, AppError> {
        self.client.search(self.address(address).as_deref(), words, most).await
    }

    /// The offer with this name, in this version or the latest. The name may also be a file.
    ///
    /// # Errors
    /// If there is no such offer, or the registry cannot be asked.
    pub async fn offer(
        &self,
        address: Option<&str>,
        name: &str,
        version: Option<&str>,
    ) -> Result<Offer, AppError> {
        let is_json = Path::new(name).extension().is_some_and(|ending| ending == "json");
        if is_json {
            return self.offer_in(&self.environment.current_folder.join(name));
        }
        self.client.offer(self.address(address).as_deref(), name, version).await
    }

    /// True if a variable is set in the user's environment.
    pub fn is_set(&self, variable: &str) -> bool {
        self.environment.variables.contains_key(variable)
    }

    /// Fetches a bundle that a registry names, verifies its digest and stores it.
    ///
    /// Returns the entry that starts it with these settings, and the variables that the user still
    /// has to set.
    ///
    /// # Errors
    /// If it cannot be fetched or stored, or if the settings do not fit it.
    pub async fn fetch_bundle(
        &self,
        address: Option<&str>,
        url: &str,
        sha256: &str,
        settings: &[(String, String)],
    ) -> Result<(NewServer, Vec<Need>), AppError> {
        let bytes = self.client.bundle(self.address(address).as_deref(), url, sha256).await?;
        bundle::store(&self.environment, &bytes, sha256, settings)
    }

    /// The registry that was named, else the user's; `None` for the official one.
    fn address(&self, named: Option<&str>) -> Option<String> {
        let own = || self.environment.filled_variable("CAPSTAN_REGISTRY");
        named.map(ToOwned::to_owned).or_else(own)
    }

    fn offer_in(&self, path: &Path) -> Result<Offer, AppError> {
        let shown = path.display();
        let text = self.environment.files.read(path)?;
        let text =
            text.ok_or_else(|| AppError::not_found(format!("the file {shown} does not exist")))?;
        Offer::read(&text).map_err(|error| AppError::config(format!("{shown}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;

    use super::*;
    use crate::fakes::{FakeFiles, environment};

    /// A registry that notes which address is asked, and has nothing.
    #[derive(Default)]
    struct Nothing(Mutex<Vec<Option<String>>>);

    impl RegistryClient for Nothing {
        fn search<'a>(
            &'a self,
            address: Option<&'a str>,
            _: &'a [String],
            _: usize,
        ) -> BoxFuture<'a, Result<Vec<Offer>, AppError>> {
            self.0.lock().unwrap().push(address.map(ToOwned::to_owned));
            futures::future::ready(Ok(Vec::new())).boxed()
        }

        fn offer<'a>(
            &'a self,
            _: Option<&'a str>,
            name: &'a str,
            _: Option<&'a str>,
        ) -> BoxFuture<'a, Result<Offer, AppError>> {
            futures::future::ready(Err(AppError::not_found(name))).boxed()
        }

        fn bundle<'a>(
            &'a self,
            _: Option<&'a str>,
            url: &'a str,
            _: &'a str,
        ) -> BoxFuture<'a, Result<Vec<u8>, AppError>> {
            futures::future::ready(Err(AppError::not_found(url))).boxed()
        }
    }

    #[tokio::test]
    async fn a_named_registry_comes_before_the_users_and_that_before_the_official_one() {
        let client = Arc::new(Nothing::default());
        let asked = async |variable: Option<&str>, named: Option<&str>| {
            let mut here = environment(FakeFiles::default());
            let value = variable.map(|value| ("CAPSTAN_REGISTRY".to_owned(), value.to_owned()));
            here.variables.extend(value);
            let client: Arc<Nothing> = Arc::clone(&client);
            let registries =
                Registries { environment: Arc::new(here), client: Arc::<Nothing>::clone(&client) };
            registries.search(named, &[], 1).await.unwrap();
            client.0.lock().unwrap().pop().unwrap()
        };
        assert_eq!(asked(Some("https://mine"), Some("https://it")).await.unwrap(), "https://it");
        assert_eq!(asked(Some("https://mine"), None).await.unwrap(), "https://mine");
        assert_eq!(asked(Some(""), None).await, None, "an empty variable is not set");
        assert_eq!(asked(None, None).await, None);
    }

    #[tokio::test]
    async fn a_name_that_ends_in_json_is_a_file_and_no_registry_is_asked() {
        let environment = Arc::new(environment(FakeFiles::default()));
        let registries = Registries { environment, client: Arc::new(Nothing::default()) };
        let error = registries.offer(None, "s.json", None).await.unwrap_err();
        assert_eq!(error.message, "the file /home/me/project/s.json does not exist");
    }
}
