//! Registries of servers: asked over the network, or read from a file.

use std::path::Path;

use capstan_cli::exit::{Exit, Failure};
use capstan_cli::host::Registries;
use capstan_config::edit::{NewProgram, NewServer, NewTarget};
use capstan_config::registry::Offer;
use capstan_config::{Dialect, Kind, Scope, Surroundings, load};
use capstan_hub::ports::BoxFuture;
use capstan_registry::{OFFICIAL, Registry, RegistryError};

use crate::host::{LocalHost, config_file, explained, read_file};
use crate::packages;

impl Registries for LocalHost {
    fn search_registry<'a>(
        &'a self,
        address: Option<&'a str>,
        words: &'a [String],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Offer>, Failure>> {
        Box::pin(async move {
            let registry = self.registry(address)?;
            registry.search(words, most).await.map_err(|error| failed(&error))
        })
    }

    fn offer<'a>(
        &'a self,
        address: Option<&'a str>,
        name: &'a str,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Offer, Failure>> {
        Box::pin(async move {
            let is_json = Path::new(name).extension().is_some_and(|ending| ending == "json");
            if is_json {
                return of_file(&self.world.here().join(name));
            }
            let registry = self.registry(address)?;
            registry.offer(name, version).await.map_err(|error| failed(&error))
        })
    }

    fn is_set(&self, variable: &str) -> bool {
        self.world.variable(variable).is_some()
    }

    fn fetch_bundle<'a>(
        &'a self,
        url: &'a str,
        sha256: &'a str,
    ) -> BoxFuture<'a, Result<NewServer, Failure>> {
        Box::pin(async move {
            let bytes =
                self.registry(None)?.bundle(url, sha256).await.map_err(|error| failed(&error))?;
            self.keep_bundle(&bytes, sha256)
        })
    }
}

impl LocalHost {
    /// The registry that was named, or that of the user, or the official one.
    fn registry(&self, named: Option<&str>) -> Result<Registry, Failure> {
        let own = || self.world.variable("CAPSTAN_REGISTRY").filter(|url| !url.is_empty());
        let address = named.map(ToOwned::to_owned).or_else(own);
        Registry::at(address.as_deref().unwrap_or(OFFICIAL)).map_err(|error| failed(&error))
    }

    /// Puts a bundle where it stays, and reads what starts it.
    fn keep_bundle(&self, bytes: &[u8], sha256: &str) -> Result<NewServer, Failure> {
        let folder = self.world.data().join("bundles");
        let path = folder.join(format!("{}.mcpb", sha256.to_lowercase()));
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, bytes));
        written.map_err(|error| Failure::internal(format!("{}: {error}", path.display())))?;
        let file = config_file(Scope::Flag, path, Some(Dialect::Mcpb));
        let sources = packages::read(&file, self.world.data())?;
        let workspace = self.world.workspace();
        let around = Surroundings {
            variable: &|name| self.world.variable(name),
            project_dir: &workspace.to_string_lossy(),
        };
        let loaded = load(&sources, &around);
        let broken = |why: String| Failure::new(Exit::Config, "invalid_config", why);
        let entry = loaded.config.servers.values().next();
        let entry = entry.ok_or_else(|| broken("the bundle has no server".to_owned()))?;
        let server = entry.status.as_ref().map_err(|problem| {
            let failure = broken(problem.to_string());
            Failure { hint: problem.help.clone(), ..failure }
        })?;
        if !entry.secrets.is_empty() {
            let path = file.path.display();
            return Err(broken("a setting of the bundle is a secret".to_owned())
                .hint(format!("set its variable and use `--config {path}` instead")));
        }
        let Kind::Stdio(program) = &server.kind else {
            return Err(broken("the bundle starts no program".to_owned()));
        };
        let env = program.env.iter().map(|(name, value)| (name.clone(), value.reveal().clone()));
        Ok(NewServer {
            description: server.description.clone(),
            ..NewServer::new(NewTarget::Stdio(NewProgram {
                command: program.command.clone(),
                args: program.args.clone(),
                env: env.collect(),
            }))
        })
    }
}

fn of_file(path: &Path) -> Result<Offer, Failure> {
    let shown = path.display();
    let text = read_file(path)?
        .ok_or_else(|| Failure::not_found(format!("the file {shown} does not exist")))?;
    Offer::read(&text)
        .map_err(|error| Failure::new(Exit::Config, "invalid_config", format!("{shown}: {error}")))
}

fn failed(error: &RegistryError) -> Failure {
    let (exit, code, hint) = match error {
        RegistryError::Address(_) => {
            (Exit::Usage, "invalid_input", "write it as `https://registry.example.com`")
        }
        RegistryError::Unknown(..) => {
            (Exit::NotFound, "not_found", "`capstan registry search WORDS` finds the whole name")
        }
        RegistryError::Unreachable(..) | RegistryError::Refused(..) => (
            Exit::Unreachable,
            "transient",
            "try again later, or ask another one: `--registry URL`, or CAPSTAN_REGISTRY",
        ),
        RegistryError::TooLarge(..) | RegistryError::Shape(..) => {
            (Exit::Unreachable, "server_error", "`--registry URL` asks another one")
        }
        RegistryError::Offer(_) => {
            (Exit::Config, "invalid_config", "tell whoever offers the server")
        }
        RegistryError::Digest(_) | RegistryError::NoDigest(_) => {
            (Exit::Denied, "policy_blocked", "do not use it; tell whoever offers the server")
        }
    };
    let whole = explained(error, Some(hint.to_owned()));
    Failure { exit, code, ..whole }
}
