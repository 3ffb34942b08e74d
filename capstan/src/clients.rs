//! Locates other programs' files, and adds and removes an entry for Capstan.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capstan_app::{AppError, Clients, ConfigFile, Installed, Mode, Spot, Uninstalled};
use capstan_config::{Scope, SourceFile};
use capstan_files::{Placed, PlacedError, Put, Taken};
use capstan_import::Client;
use capstan_import::clients::{
    Base, ClientConnection, ClientError, ClientFile, Named, Presence, Use, presence, put, take,
};

use crate::host::{LocalHost, explained};

/// The folder in which desktop programs keep their configuration on macOS.
const APPLICATION_SUPPORT: &str = "Library/Application Support";

/// The permission bits for users other than the owner.
const OTHERS: u32 = 0o077;

impl Clients for LocalHost {
    fn client_files(&self, client: Client, scope: Scope) -> Vec<PathBuf> {
        let places = client.places(scope);
        let paths = places.iter().map(|place| self.locate(place));
        // A link in a project must not expose files outside the project.
        let inside = |path: &PathBuf| scope != Scope::Project || self.refuse_outside(path).is_ok();
        paths.filter(|path| path.is_file()).filter(inside).collect()
    }

    fn client_file(&self, client: Client, scope: Scope) -> Result<Option<PathBuf>, AppError> {
        let places = client.places(scope);
        let writable = places.iter().filter(|place| place.for_use == Use::Both);
        let paths: Vec<PathBuf> = writable.map(|place| self.locate(place)).collect();
        let there = paths.iter().find(|path| path.symlink_metadata().is_ok());
        let Some(path) = there.or(paths.first()) else { return Ok(None) };
        if scope == Scope::Project {
            self.refuse_outside(path)?;
        }
        Ok(Some(path.clone()))
    }

    fn client_text(&self, path: &Path) -> Result<String, AppError> {
        let text = Placed::read(path).map_err(|error| explained(&error, error.hint()))?;
        Ok(text.unwrap_or_default())
    }

    fn shown_path(&self, path: &str) -> String {
        match Path::new(path).strip_prefix(self.world.home()) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.to_owned(),
        }
    }

    fn workspace(&self) -> String {
        self.world.workspace().to_string_lossy().into_owned()
    }

    fn is_private(&self, file: &ConfigFile) -> bool {
        let mode = fs::metadata(&file.path).map(|meta| meta.permissions().mode());
        // A new file is created readable only by the owner.
        mode.map_or(true, |mode| mode & OTHERS == 0)
    }

    fn own_path(&self) -> Result<String, AppError> {
        let own = std::env::current_exe().map_err(|error| {
            AppError::internal(format!(
                "the path of the capstan program cannot be determined: {error}"
            ))
        })?;
        // A name in `PATH` survives updates; the real path may not.
        let path = self.world.variable("PATH").unwrap_or_default();
        let named = std::env::split_paths(&path).map(|folder| folder.join("capstan"));
        let whole = own.canonicalize().ok();
        let mut same = named
            .filter(|named| named.is_absolute())
            .filter(|named| whole.is_some() && named.canonicalize().ok() == whole);
        let path = same.next().unwrap_or(own);
        path.to_str().map(str::to_owned).ok_or_else(|| {
            AppError::usage(format!(
                "the path of the capstan program is not UTF-8: {}",
                path.display()
            ))
            .hint("move the program to a folder with a UTF-8 name")
        })
    }

    fn install(
        &self,
        spot: Spot<'_>,
        way: &ClientConnection,
        mode: Mode,
    ) -> Result<Installed, AppError> {
        let Spot { client, path } = spot;
        let name = path.display().to_string();
        let placed = Placed::open(self.world.state());
        let failed = |error| placed_failure(path, error);
        let start = placed.start(path, |text| take(client, &name, text)).map_err(failed)?;
        let text = start.base.as_deref().unwrap_or_default();
        let refused = |error| client_failure(path, text, error);
        if presence(client, &name, text).map_err(refused)? == Presence::Starts {
            return Ok(Installed::ByHand);
        }
        let new = put(client, &name, text, way).map_err(refused)?;
        if mode == Mode::Try {
            let created = start.base.is_none();
            return Ok(match (start.now.as_deref() == Some(new.as_str()), created) {
                (true, _) => Installed::Already,
                (false, true) => Installed::Created,
                (false, false) => Installed::Changed { backup: None },
            });
        }
        Ok(match placed.put(path, &start, &new).map_err(failed)? {
            Put::Already => Installed::Already,
            Put::Done { backup: None } => Installed::Created,
            Put::Done { backup } => Installed::Changed { backup },
        })
    }

    fn uninstall(&self, spot: Spot<'_>, mode: Mode) -> Result<Uninstalled, AppError> {
        let Spot { client, path } = spot;
        let name = path.display().to_string();
        let placed = Placed::open(self.world.state());
        let failed = |error| placed_failure(path, error);
        let known = placed.knows(path).map_err(failed)?;
        let taken_out = |text: &str| {
            // An entry that is not recorded as ours is removed only if it starts Capstan.
            if !known && presence(client, &name, text)? == Presence::Other {
                return Err(ClientError::NotOurs);
            }
            take(client, &name, text)
        };
        let taken = match mode {
            Mode::Do => placed.take_back(path, taken_out),
            Mode::Try => placed.would_take_back(path, taken_out),
        };
        Ok(match taken.map_err(failed)? {
            Taken::Restored => Uninstalled::Restored,
            Taken::Removed => Uninstalled::Removed,
            Taken::TakenOut { backup } => Uninstalled::TakenOut { backup },
            Taken::Nothing => Uninstalled::Nothing,
        })
    }
}

// === impl LocalHost ===

impl LocalHost {
    fn locate(&self, place: &ClientFile) -> PathBuf {
        let variable = |name| self.world.variable(name).filter(|value| !value.is_empty());
        match place.named {
            Some(Named::Folder(name, file)) if let Some(folder) = variable(name) => {
                return self.world.here().join(folder).join(file);
            }
            Some(Named::File(name)) if let Some(file) = variable(name) => {
                return self.world.here().join(file);
            }
            Some(Named::Folder(..) | Named::File(_)) | None => {}
        }
        let base = match place.base {
            Base::Home => self.world.home().to_owned(),
            Base::App if cfg!(target_os = "macos") => self.world.home().join(APPLICATION_SUPPORT),
            Base::Config | Base::App => self.world.shared_config().to_owned(),
            Base::Project => self.world.workspace(),
        };
        base.join(place.path)
    }

    /// Refuses a path that a link in a project leads outside the project.
    fn refuse_outside(&self, path: &Path) -> Result<(), AppError> {
        let project = self.world.workspace();
        let (Ok(project), Some(existing)) =
            (project.canonicalize(), path.ancestors().find_map(|part| part.canonicalize().ok()))
        else {
            return Ok(());
        };
        let dangling = path.is_symlink() && !path.exists();
        if existing.starts_with(&project) && !dangling {
            return Ok(());
        }
        let message = format!("{} is a link that leaves the project", path.display());
        Err(AppError::usage(message).hint("name the target of the link in your own configuration"))
    }
}

fn client_failure(path: &Path, text: &str, error: ClientError) -> AppError {
    let name = path.display().to_string();
    let hint = error.hint();
    if let ClientError::Broken(problem) = error {
        let file = SourceFile::new(name.clone(), Scope::User, text);
        let message = format!("{name} cannot be read, and is not changed");
        return AppError { message, hint, ..AppError::problems(vec![*problem], vec![file]) };
    }
    let message = format!("{error} ({name})");
    AppError { hint, ..AppError::config(message) }
}

fn placed_failure(path: &Path, error: PlacedError<ClientError>) -> AppError {
    let hint = error.hint();
    if let PlacedError::Edit { cause, .. } = error {
        let text = Placed::read(path).ok().flatten().unwrap_or_default();
        return client_failure(path, &text, cause);
    }
    explained(&error, hint)
}
