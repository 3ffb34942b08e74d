//! Registries of servers, queried over the network or read from a file.

use std::collections::HashMap;
use std::path::Path;

use capstan_app::{AppError, ErrorKind, Registries};
use capstan_config::edit::{NewProgram, NewServer, NewTarget};
use capstan_config::{Dialect, Kind, Plugin, Scope, Surroundings, load};
use capstan_hub::ports::BoxFuture;
use capstan_import::AllDialects;
use capstan_import::packages::secrets;
use capstan_import::registry::{Need, Offer};
use capstan_registry::{OFFICIAL, Registry, RegistryError};

use crate::host::{LocalHost, config_file, read_file};
use crate::packages;

impl Registries for LocalHost {
    fn search_registry<'a>(
        &'a self,
        address: Option<&'a str>,
        words: &'a [String],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Offer>, AppError>> {
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
    ) -> BoxFuture<'a, Result<Offer, AppError>> {
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
        address: Option<&'a str>,
        url: &'a str,
        sha256: &'a str,
        settings: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<(NewServer, Vec<Need>), AppError>> {
        Box::pin(async move {
            let registry = self.registry(address)?;
            let bytes = registry.bundle(url, sha256).await.map_err(|error| failed(&error))?;
            self.keep_bundle(&bytes, sha256, settings)
        })
    }
}

impl LocalHost {
    /// The registry that was named, else the user's, else the official one.
    fn registry(&self, named: Option<&str>) -> Result<Registry, AppError> {
        let own = || self.world.variable("CAPSTAN_REGISTRY").filter(|url| !url.is_empty());
        let address = named.map(ToOwned::to_owned).or_else(own);
        Registry::at(address.as_deref().unwrap_or(OFFICIAL)).map_err(|error| failed(&error))
    }

    /// Stores a bundle permanently and reads the entry that starts it, in which secrets are
    /// variables.
    fn keep_bundle(
        &self,
        bytes: &[u8],
        sha256: &str,
        settings: &[(String, String)],
    ) -> Result<(NewServer, Vec<Need>), AppError> {
        let folder = self.world.data().join("bundles");
        let path = folder.join(format!("{}.mcpb", sha256.to_lowercase()));
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, bytes));
        written.map_err(|error| AppError::internal(format!("{}: {error}", path.display())))?;
        let file = config_file(Scope::Flag, path, Some(Dialect::Mcpb));
        let sources = packages::read(&file, self.world.data())?;
        let plugin = sources.iter().find_map(|source| source.plugin.as_ref());
        let plugin = plugin.ok_or_else(|| broken("the bundle has no manifest"))?;
        let answers = self.answers(plugin, settings)?;
        let workspace = self.world.workspace();
        let around = Surroundings {
            variable: &|name| answers.get(name).cloned().or_else(|| self.world.variable(name)),
            project_dir: &workspace.to_string_lossy(),
        };
        let loaded = load(&sources, &around, &AllDialects);
        let entry = loaded.config.servers.values().next();
        let entry = entry.ok_or_else(|| broken("the bundle has no server"))?;
        let server = entry.status.as_ref().map_err(|problem| {
            let failure = broken(&problem.to_string());
            AppError { hint: problem.help.clone(), ..failure }
        })?;
        let Kind::Stdio(program) = &server.kind else {
            return Err(broken("the bundle starts no program"));
        };
        let env = program.env.iter().map(|(name, value)| (name.clone(), value.reveal().clone()));
        let program = NewProgram {
            command: program.command.clone(),
            args: program.args.clone(),
            env: env.collect(),
        };
        refuse_variables(&program, server.description.as_ref(), &answers)?;
        let (description, target) = (server.description.clone(), NewTarget::Stdio(program));
        let needs = secrets(plugin).into_iter().filter(|need| {
            let own = format!("${{{}}}", need.variable);
            answers.get(&need.variable).is_none_or(|answer| *answer == own)
        });
        // A setting that is left out of the file is not used, even if its variable is set later.
        let needs = needs.map(|need| {
            let is_left_out = !answers.contains_key(&need.variable);
            let mut settings = plugin.settings.iter().filter(|_| is_left_out);
            match settings.find(|setting| plugin.variable(&setting.key) == need.variable) {
                Some(setting) => {
                    let how = format!("`--set '{}=${{{}}}'`", setting.key, need.variable);
                    Need { description: format!("{}; add it with {how}", need.description), ..need }
                }
                None => need,
            }
        });
        Ok((NewServer { description, ..NewServer::new(target) }, needs.collect()))
    }

    /// The values of a bundle's settings by variable: the user's values, and references for
    /// secrets.
    fn answers(
        &self,
        plugin: &Plugin,
        settings: &[(String, String)],
    ) -> Result<HashMap<String, String>, AppError> {
        let secrets = secrets(plugin);
        let mut answers = HashMap::new();
        for (key, value) in settings {
            if plugin.settings.iter().all(|setting| setting.key != *key) {
                let keys: Vec<&str> = plugin.settings.iter().map(|one| one.key.as_str()).collect();
                return Err(AppError::usage(format!("the bundle has no setting `{key}`"))
                    .hint(format!("it has: {}", keys.join(", "))));
            }
            let variable = plugin.variable(key);
            let is_secret = secrets.iter().any(|need| need.variable == variable);
            if is_secret && !is_reference(value) {
                return Err(AppError::usage(format!(
                    "`{key}` is a secret, which must not be written to the file"
                ))
                .hint(format!("give it as a variable: `--set '{key}=${{{variable}}}'`")));
            }
            answers.insert(variable, value.clone());
        }
        for Need { variable, required, .. } in secrets {
            if required || self.world.variable(&variable).is_some() {
                let reference = format!("${{{variable}}}");
                answers.entry(variable).or_insert(reference);
            }
        }
        Ok(answers)
    }
}

fn broken(why: &str) -> AppError {
    AppError::config(why)
}

/// True if a value is exactly one reference to a variable.
fn is_reference(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Refuses references to variables that the bundle itself contains.
///
/// Only the user may name variables; a reference in the bundle could read any variable that is set
/// here.
fn refuse_variables(
    program: &NewProgram,
    description: Option<&String>,
    answers: &HashMap<String, String>,
) -> Result<(), AppError> {
    let NewProgram { command, args, env } = program;
    let texts = std::iter::once(command).chain(args).chain(description);
    let texts = texts.chain(env.iter().flat_map(|(name, value)| [name, value]));
    for text in texts {
        let rest = answers.values().filter(|answer| is_reference(answer));
        let rest = rest.fold(text.clone(), |text, answer| text.replace(answer.as_str(), ""));
        if rest.contains("${") {
            return Err(broken("a value in the bundle contains a variable, which is not allowed"));
        }
    }
    Ok(())
}

fn of_file(path: &Path) -> Result<Offer, AppError> {
    let shown = path.display();
    let text = read_file(path)?
        .ok_or_else(|| AppError::not_found(format!("the file {shown} does not exist")))?;
    Offer::read(&text).map_err(|error| AppError::config(format!("{shown}: {error}")))
}

fn failed(error: &RegistryError) -> AppError {
    let (kind, code, hint) = match error {
        RegistryError::Address(_) => {
            (ErrorKind::Usage, "invalid_input", "write it as `https://registry.example.com`")
        }
        RegistryError::Unknown(..) => (
            ErrorKind::NotFound,
            "not_found",
            "find the full name with `capstan registry search WORDS`",
        ),
        RegistryError::Blocked(..) => (
            ErrorKind::Denied,
            "policy_blocked",
            "a registry may be in your network, but its downloads must have public addresses",
        ),
        RegistryError::Unreachable(..)
        | RegistryError::TimedOut(..)
        | RegistryError::Refused(..) => (
            ErrorKind::Unreachable,
            "transient",
            "try again later, or use another registry: `--registry URL`, or CAPSTAN_REGISTRY",
        ),
        RegistryError::TooLarge(..) | RegistryError::Shape(..) => {
            (ErrorKind::Unreachable, "server_error", "use another registry with `--registry URL`")
        }
        RegistryError::Offer(_) => {
            (ErrorKind::Config, "invalid_config", "report this to the publisher of the server")
        }
        RegistryError::Digest(_) | RegistryError::NoDigest(_) => (
            ErrorKind::Denied,
            "policy_blocked",
            "do not use it; report this to the publisher of the server",
        ),
    };
    AppError::caused(kind, error).code(code).hint(hint)
}
