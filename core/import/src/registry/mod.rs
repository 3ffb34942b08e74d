//! Offers of a server registry (`server.json`), and their conversion into entries.
//!
//! A registry is not trusted: its values become arguments, never the text of a shell, and a package
//! name that could be read as an option is refused. Values that the user must supply become
//! variables, `${NAME}`. Their names begin with that of the server; otherwise a registry could
//! request any variable that is set here and have it sent away. Only a program's own variables keep
//! their names.

use indexmap::IndexMap;
use serde::Deserialize;

use capstan_config::edit::{NewProgram, NewRemote, NewServer, NewTarget};

/// A server as a registry describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Offer {
    /// Its full name, such as `io.github.someone/weather`.
    pub name: String,
    /// Its display name.
    pub title: Option<String>,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    packages: Vec<Package>,
    #[serde(default)]
    remotes: Vec<Transport>,
}

/// The result of choosing a way to reach an offered server.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The way to reach the server.
    pub way: Delivery,
    /// The variables that the user can or must set.
    pub needs: Vec<Need>,
}

/// A way to reach an offered server.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// As an entry of the configuration.
    Entry(Box<NewServer>),
    /// As a bundle that has to be fetched first.
    Bundle {
        /// Its address.
        url: String,
        /// The digest that it must have.
        sha256: String,
    },
}

/// A variable that the user can or must set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The variable.
    pub variable: String,
    /// Its purpose.
    pub description: String,
    /// True if the server does not work without it.
    pub required: bool,
}

/// The reason why an offer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOffer {
    /// The text is not a valid `server.json`.
    #[error("not a description of a server: {0}")]
    Shape(String),
    /// It has no package and no address of a supported kind.
    #[error("the server has no usable package and no usable address ({0})")]
    Nothing(String),
    /// A text in it has unusual characters, or could be read as an option or a variable.
    #[error("the {what} `{text}` contains unexpected characters")]
    Odd {
        /// The kind of text.
        what: &'static str,
        /// The text as written, shortened.
        text: String,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    registry_type: String,
    identifier: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    file_sha256: String,
    transport: Option<Transport>,
    #[serde(default)]
    runtime_arguments: Vec<Input>,
    #[serde(default, rename = "packageArguments")]
    own_arguments: Vec<Input>,
    #[serde(default)]
    environment_variables: Vec<Input>,
}

#[derive(Clone, Debug, Deserialize)]
struct Transport {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: Vec<Input>,
    #[serde(default)]
    variables: IndexMap<String, Input>,
}

/// An argument, a variable, a header, or a part of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Input {
    name: Option<String>,
    value: Option<String>,
    default: Option<String>,
    value_hint: Option<String>,
    description: String,
    is_required: bool,
    is_secret: bool,
    variables: IndexMap<String, Input>,
}

/// Builds an entry, and collects the variables that it needs.
struct Choosing {
    /// The prefix of variables that are not a program's own.
    prefix: String,
    needs: Vec<Need>,
    /// A value that would refer to a variable of the user.
    odd: Option<String>,
}

/// The naming of a variable.
#[derive(Clone, Copy)]
enum Naming {
    /// As the program itself names it.
    Own,
    /// With the server's name as a prefix.
    Prefixed,
}

// === impl Offer ===

impl Offer {
    /// Reads a `server.json`.
    pub fn read(text: &str) -> Result<Self, BadOffer> {
        let offer: Self =
            serde_json::from_str(text).map_err(|error| BadOffer::Shape(error.to_string()))?;
        plain("name", &offer.name, "._-/")?;
        Ok(offer)
    }

    /// Returns the last part of its name, which becomes the name of the entry.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns the ways to reach it: `npm`, `pypi`, `oci`, `nuget`, `mcpb`, or the transport.
    pub fn kinds(&self) -> Vec<&str> {
        let packages = self.packages.iter().map(|package| package.registry_type.as_str());
        packages.chain(self.remotes.iter().map(|remote| remote.kind.as_str())).collect()
    }

    /// Returns the first usable way to reach the server, optionally only of one kind.
    ///
    /// Packages run on this machine and come before addresses.
    pub fn choose(&self, kind: Option<&str>) -> Result<Chosen, BadOffer> {
        let wanted = |word: &str| kind.is_none_or(|kind| kind == word);
        for package in self.packages.iter().filter(|package| wanted(&package.registry_type)) {
            let is_stdio = package.transport.as_ref().is_none_or(|one| one.kind == "stdio");
            let mut choosing = self.choosing();
            if let Some(way) = choosing.package(package)?.filter(|_| is_stdio) {
                return self.chosen(way, choosing);
            }
        }
        for remote in self.remotes.iter().filter(|remote| wanted(&remote.kind)) {
            let mut choosing = self.choosing();
            if let Some(way) = choosing.remote(remote)? {
                return self.chosen(way, choosing);
            }
        }
        Err(BadOffer::Nothing(self.kinds().join(", ")))
    }

    fn choosing(&self) -> Choosing {
        let prefix = format!("{}_", upper(self.short_name()));
        Choosing { prefix, needs: Vec::new(), odd: None }
    }

    fn chosen(&self, mut way: Delivery, choosing: Choosing) -> Result<Chosen, BadOffer> {
        if let Some(text) = choosing.odd {
            return Err(BadOffer::Odd { what: "value", text });
        }
        if let (Delivery::Entry(entry), false) = (&mut way, self.description.is_empty()) {
            entry.description = Some(self.description.clone());
        }
        Ok(Chosen { way, needs: choosing.needs })
    }
}

// === impl Choosing ===

impl Choosing {
    fn package(&mut self, package: &Package) -> Result<Option<Delivery>, BadOffer> {
        let Package { identifier, version, .. } = package;
        let kind = package.registry_type.as_str();
        if kind == "mcpb" {
            let (url, sha256) = (identifier.clone(), package.file_sha256.clone());
            return Ok(Some(Delivery::Bundle { url, sha256 }));
        }
        plain("package", identifier, "@._-/:+")?;
        plain("version", version, "._-+")?;
        let at = if version.is_empty() { String::new() } else { format!("@{version}") };
        let env = self.pairs(&package.environment_variables, Naming::Own);
        let runtime = self.arguments(&package.runtime_arguments);
        let rest = self.arguments(&package.own_arguments);
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (command, before, name) = match kind {
            "npm" => ("npx", own(&["-y"]), format!("{identifier}{at}")),
            "pypi" => ("uvx", Vec::new(), format!("{identifier}{at}")),
            "nuget" => ("dnx", Vec::new(), format!("{identifier}{at}")),
            "oci" => {
                let mut words = own(&["run", "-i", "--rm"]);
                words.extend(env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]));
                let last = identifier.rsplit('/').next().unwrap_or_default();
                let has_tag = last.contains(':') || identifier.contains('@');
                let tag = if has_tag || version.is_empty() {
                    String::new()
                } else {
                    format!(":{version}")
                };
                ("docker", words, format!("{identifier}{tag}"))
            }
            _ => return Ok(None),
        };
        let is_told = |word: &String| before.contains(word);
        let runtime: Vec<String> = runtime.into_iter().filter(|word| !is_told(word)).collect();
        let after = if kind == "nuget" { own(&["--yes", "--"]) } else { Vec::new() };
        let args = before.iter().cloned().chain(runtime).chain([name]).chain(after).chain(rest);
        let program = NewProgram { command: command.to_owned(), args: args.collect(), env };
        Ok(Some(Delivery::Entry(Box::new(NewServer::new(NewTarget::Stdio(program))))))
    }

    fn remote(&mut self, remote: &Transport) -> Result<Option<Delivery>, BadOffer> {
        let odd = || BadOffer::Odd { what: "address", text: remote.url.clone() };
        if !(remote.url.starts_with("https://") || remote.url.starts_with("http://")) {
            return Err(odd());
        }
        let url = self.filled(&remote.url, &remote.variables);
        let new = NewRemote { url, headers: self.pairs(&remote.headers, Naming::Prefixed) };
        let target = match remote.kind.as_str() {
            "streamable-http" => NewTarget::Http(new),
            "sse" => NewTarget::Sse(new),
            _ => return Ok(None),
        };
        Ok(Some(Delivery::Entry(Box::new(NewServer::new(target)))))
    }

    /// Builds the words of a command line: flags with their values, and positional arguments.
    fn arguments(&mut self, inputs: &[Input]) -> Vec<String> {
        let mut words = Vec::new();
        for input in inputs {
            let flag = input.name.as_ref().filter(|name| name.starts_with('-'));
            let is_switch = flag.is_some() && input.is_switch();
            if is_switch {
                words.extend(flag.cloned());
            } else if let Some(value) = self.value(input, Naming::Prefixed) {
                words.extend(flag.cloned());
                words.push(value);
            }
        }
        words
    }

    fn pairs(&mut self, inputs: &[Input], naming: Naming) -> IndexMap<String, String> {
        let mut pairs = IndexMap::new();
        for input in inputs {
            if let (Some(name), Some(value)) = (&input.name, self.value(input, naming)) {
                pairs.insert(name.clone(), value);
            }
        }
        pairs
    }

    /// Returns the value of an input: from the registry, or a variable for the user to set.
    ///
    /// `None` if the registry has no value and the input is optional.
    fn value(&mut self, input: &Input, naming: Naming) -> Option<String> {
        if let Some(value) = &input.value {
            return Some(self.filled(value, &input.variables));
        }
        if let Some(default) = input.default.as_ref().filter(|_| !input.is_secret) {
            return Some(self.literal(default));
        }
        let named = input.name.as_deref().or(input.value_hint.as_deref()).unwrap_or("VALUE");
        let variable = self.need(named, input, naming);
        input.is_required.then(|| format!("${{{variable}}}"))
    }

    /// Replaces each `{name}` in a text by its value, or by a variable if the user must supply it.
    fn filled(&mut self, text: &str, variables: &IndexMap<String, Input>) -> String {
        let mut filled = self.literal(text);
        for (name, input) in variables {
            let place = format!("{{{name}}}");
            if !filled.contains(&place) {
                continue;
            }
            let given = input.value.clone().or_else(|| input.default.clone());
            let value = match given.filter(|_| !input.is_secret) {
                Some(value) => self.literal(&value),
                None => format!("${{{}}}", self.need(name, input, Naming::Prefixed)),
            };
            filled = filled.replace(&place, &value);
        }
        filled
    }

    /// Returns the text, and marks the offer as refused if it contains a variable.
    fn literal(&mut self, text: &str) -> String {
        if text.contains("${") {
            self.odd = Some(text.chars().take(80).collect());
        }
        text.to_owned()
    }

    fn need(&mut self, name: &str, input: &Input, naming: Naming) -> String {
        let mut variable = upper(name.trim_start_matches('-'));
        match naming {
            Naming::Prefixed if !variable.starts_with(&self.prefix) => {
                variable.insert_str(0, &self.prefix);
            }
            Naming::Prefixed | Naming::Own => {}
        }
        if variable.starts_with(|c: char| c.is_ascii_digit()) {
            variable.insert(0, '_');
        }
        let (description, required) = (input.description.clone(), input.is_required);
        if self.needs.iter().all(|need| need.variable != variable) {
            self.needs.push(Need { variable: variable.clone(), description, required });
        }
        variable
    }
}

// === impl Input ===

impl Input {
    /// True if it is a flag without a value.
    fn is_switch(&self) -> bool {
        let hints = self.value_hint.is_none() && self.variables.is_empty();
        self.value.as_deref().unwrap_or_default().is_empty() && self.default.is_none() && hints
    }
}

/// Converts a text to the name of a variable.
fn upper(text: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    text.chars().map(upper).collect()
}

/// Refuses a text that could be read as something else.
///
/// That is a text that is empty (except a version), begins with `-`, has unusual characters, or is
/// longer than 256 bytes.
fn plain(what: &'static str, text: &str, others: &str) -> Result<(), BadOffer> {
    let usual = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let is_plain = text.chars().all(usual) && !text.starts_with('-') && text.len() <= 256;
    let is_there = !text.is_empty() || what == "version";
    if is_plain && is_there {
        return Ok(());
    }
    Err(BadOffer::Odd { what, text: text.chars().take(80).collect() })
}

#[cfg(test)]
mod tests;
