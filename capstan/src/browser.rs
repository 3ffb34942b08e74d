//! The user's browser.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::{Browser, Environment, Machine};
use capstan_hub::ports::BoxFuture;
use capstan_process::spawn::start_apart;

/// The program of the system that opens an address.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Variables that say that there is a screen.
const SCREENS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// The placeholder for the address in `BROWSER`.
const PLACE: &str = "%s";

/// Starts browsers of this machine.
pub(crate) struct Browsers {
    pub(crate) environment: Arc<Environment>,
    pub(crate) machine: Arc<dyn Machine>,
}

// === impl Browsers ===

impl Browsers {
    fn start(&self, url: &str) -> Result<(), String> {
        // A program may read another address as an option or a command.
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err("its address does not begin with `https://` or `http://`".to_owned());
        }
        let mut last = "no browser is known; set `BROWSER`".to_owned();
        for words in self.candidates()? {
            match self.program(&words).and_then(|program| {
                start_apart(&program, &arguments(&words, url)).map_err(|error| error.to_string())
            }) {
                Ok(()) => return Ok(()),
                Err(reason) => last = reason,
            }
        }
        Err(last)
    }

    /// The command lines to try, each as its words.
    fn candidates(&self) -> Result<Vec<Vec<String>>, String> {
        if let Some(text) = self.environment.filled_variable("BROWSER") {
            let words = text.split(':').filter_map(shlex::split).filter(|words| !words.is_empty());
            return Ok(words.collect());
        }
        let has_screen =
            SCREENS.iter().any(|name| self.environment.filled_variable(name).is_some());
        if !has_screen && !cfg!(target_os = "macos") {
            return Err("there is no screen here".to_owned());
        }
        Ok(vec![vec![OPENER.to_owned()]])
    }

    fn program(&self, words: &[String]) -> Result<PathBuf, String> {
        let path = self.environment.variable("PATH");
        let here = Some(self.environment.current_folder.as_path());
        let name = words.first().map(String::as_str).unwrap_or_default();
        self.machine.find_program(name, path.as_deref(), here)
    }
}

impl Browser for Browsers {
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.start(url) })
    }
}

/// The arguments of a browser: the address in its place, else at the end. No shell reads them.
fn arguments(words: &[String], url: &str) -> Vec<OsString> {
    let given = words.iter().skip(1);
    let mut arguments: Vec<OsString> =
        given.clone().map(|word| OsString::from(word.replace(PLACE, url))).collect();
    if !given.into_iter().any(|word| word.contains(PLACE)) {
        arguments.push(url.into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_argument_wherever_it_stands() {
        let url = "https://h/?a=b&c=$(id);'x y\"";
        for (line, expected) in
            [(vec!["b"], vec![url]), (vec!["b", "--new", "%s", "-x"], vec!["--new", url, "-x"])]
        {
            let line: Vec<String> = line.into_iter().map(ToOwned::to_owned).collect();
            assert_eq!(arguments(&line, url), expected);
        }
    }
}
