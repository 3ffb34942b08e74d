//! A bundle from a registry: stores it and reads the entry that starts it.

use std::collections::HashMap;

use capstan_config::edit::{NewProgram, NewServer, NewTarget};
use capstan_config::{Dialect, Kind, Plugin, Scope};
use capstan_import::packages::secrets;
use capstan_import::registry::Need;

use crate::configs::read_package;
use crate::{AppError, ConfigFile, Environment};

/// Stores a bundle permanently and reads the entry that starts it, in which secrets are
/// variables.
pub(super) fn store(
    environment: &Environment,
    bytes: &[u8],
    sha256: &str,
    settings: &[(String, String)],
) -> Result<(NewServer, Vec<Need>), AppError> {
    let name = format!("{}.mcpb", sha256.to_lowercase());
    let path = environment.data.join("bundles").join(name);
    environment.files.write(&path, bytes)?;
    let (scope, dialect) = (Scope::Flag, Some(Dialect::Mcpb));
    let file = ConfigFile { path, scope, exists: true, dialect };
    let sources = read_package(environment, &file, &environment.data)?;
    let plugin = sources.iter().find_map(|source| source.plugin.as_ref());
    let plugin = plugin.ok_or_else(|| broken("the bundle has no manifest"))?;
    let answers = answers(environment, plugin, settings)?;
    let variable = |name: &str| answers.get(name).cloned().or_else(|| environment.variable(name));
    let loaded = environment.load_with(&sources, &variable);
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
    environment: &Environment,
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
        if required || environment.variables.contains_key(&variable) {
            let reference = format!("${{{variable}}}");
            answers.entry(variable).or_insert(reference);
        }
    }
    Ok(answers)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeFiles, environment};

    /// Stores a bundle whose server has these variables and a secret setting `key`.
    fn stored(env: &str, settings: &[(&str, &str)]) -> Result<(NewServer, Vec<Need>), AppError> {
        let manifest = format!(
            r#"{{"manifest_version": "0.2", "name": "b", "version": "1.0.0",
                "server": {{"type": "binary", "entry_point": "x", "mcp_config":
                    {{"command": "${{__dirname}}/x", "args": [], "env": {{{env}}}}}}},
                "user_config": {{"key": {{"type": "string", "title": "Key", "description": "The key",
                    "sensitive": true, "required": true}}}}}}"#
        );
        let folder = "/home/me/.local/share/capstan/bundles/ab/manifest.json";
        let here = environment(FakeFiles::with(&[(folder, &manifest)]));
        let settings: Vec<(String, String)> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        store(&here, b"zip", "AB", &settings)
    }

    #[test]
    fn a_required_secret_becomes_a_variable_that_the_user_has_to_set() {
        let (server, needs) = stored(r#""KEY": "${user_config.key}""#, &[]).unwrap();
        let NewTarget::Stdio(program) = server.target else { panic!("no program") };
        let [need] = needs.as_slice() else { panic!("{needs:?}") };
        assert!(need.required);
        let value = program.env.iter().find(|(name, _)| *name == "KEY").unwrap().1.clone();
        assert_eq!(value, format!("${{{}}}", need.variable));
    }

    #[test]
    fn a_secret_in_plain_text_is_refused_and_a_reference_is_not() {
        let env = r#""KEY": "${user_config.key}""#;
        let error = stored(env, &[("key", "hunter2")]).unwrap_err();
        assert!(error.message.contains("is a secret"), "{}", error.message);
        let (_, needs) = stored(env, &[("key", "${MY_KEY}")]).unwrap();
        assert!(needs.is_empty(), "{needs:?}");
    }

    #[test]
    fn a_setting_that_the_bundle_does_not_have_is_refused() {
        let error = stored("", &[("other", "x")]).unwrap_err();
        assert_eq!(error.message, "the bundle has no setting `other`");
    }

    #[test]
    fn a_bundle_that_names_a_variable_itself_is_refused() {
        let error = stored(r#""STOLEN": "${AWS_SECRET_ACCESS_KEY}""#, &[]);
        assert!(error.is_err(), "only the user may name variables");
    }
}
