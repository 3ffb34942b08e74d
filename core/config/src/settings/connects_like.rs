//! Decides whether an existing connection can be kept after an entry changed.

use crate::settings::flows::TagLists;
use crate::settings::overrides::ToolOverrides;
use crate::settings::rule::Rules;
use crate::settings::screen::ServerScreen;
use crate::settings::server::{EffectLists, Server, ServerEntry, ToolList};

// === impl ServerEntry ===

impl ServerEntry {
    /// True if both entries are reached in the same way, so that a connection can be kept.
    ///
    /// Rules and descriptions may differ: every call reads them anew.
    pub fn connects_like(&self, other: &Self) -> bool {
        let Self { name, display: _, origin: _, approved, enabled, secrets, status } = self;
        let same = match (status, &other.status) {
            (Ok(server), Ok(other)) => server.bare() == other.bare(),
            (Err(problem), Err(other)) => problem.message == other.message,
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        };
        same && *name == other.name
            && (*approved, *enabled) == (other.approved, other.enabled)
            && *secrets == other.secrets
    }
}

// === impl Server ===

impl Server {
    /// A copy with only the fields that a connection depends on.
    fn bare(&self) -> Self {
        Self {
            target: String::new(),
            description: None,
            required: false,
            always_load: false,
            expose: None,
            hide: Vec::new(),
            tool_list: ToolList::default(),
            tools: ToolOverrides::default(),
            permissions: Rules::default(),
            effect: EffectLists::default(),
            tags: TagLists::default(),
            screen: ServerScreen::default(),
            naming: capstan_model::Naming::default(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{NativeFiles, Scope, SourceFile, Surroundings, load};

    use super::*;

    fn entry(text: &str) -> ServerEntry {
        let source = SourceFile::new("config.toml", Scope::User, text);
        let around = Surroundings { variable: &|_| None, project_dir: "/p" };
        let mut loaded = load(&[source], &around, &NativeFiles);
        let entry = loaded.config.servers.swap_remove_index(0).unwrap().1;
        assert!(entry.status.is_ok(), "{text}");
        entry
    }

    #[track_caller]
    fn alike(first: &str, second: &str) -> bool {
        let (first, second) = (entry(first), entry(second));
        let alike = first.connects_like(&second);
        assert_eq!(second.connects_like(&first), alike);
        alike
    }

    #[test]
    fn a_server_stays_connected_when_only_its_rules_or_its_place_change() {
        let plain = "[servers.a]\ncommand = \"x\"\n";
        for other in [
            plain.to_owned(),
            format!("# a comment\n\n{plain}"),
            format!("{plain}description = \"d\"\nhide = [\"t\"]\nexpose = [\"u\"]\n"),
            format!("{plain}naming = \"bare\"\n[servers.a.permissions]\ndeny = [\"t\"]\n"),
            format!("{plain}[servers.a.effect]\nread = [\"t\"]\n"),
            format!("{plain}[servers.a.tags]\nsends = [\"t\"]\n"),
        ] {
            assert!(alike(plain, &other), "{other}");
        }
        for other in [
            "[servers.a]\ncommand = \"y\"\n".to_owned(),
            "[servers.b]\ncommand = \"x\"\n".to_owned(),
            "[servers.a]\nurl = \"https://x\"\n".to_owned(),
            format!("{plain}args = [\"--flag\"]\n"),
            format!("{plain}env = {{ A = \"1\" }}\n"),
            format!("{plain}cwd = \"/tmp\"\n"),
            format!("{plain}timeout = \"5s\"\n"),
            format!("{plain}enabled = false\n"),
            format!("{plain}trust = \"sandboxed\"\n"),
            format!("{plain}roots = [\"sub\"]\n"),
            format!("{plain}sandbox = true\n"),
            format!("{plain}sandbox = {{ net = [\"a.test\"] }}\n"),
            format!("{plain}elicitation = false\n"),
        ] {
            assert!(!alike(plain, &other), "{other}");
        }
        let with = |value: &str| format!("{plain}env = {{ A = \"{value}\" }}\n");
        assert!(!alike(&with("1"), &with("2")));
    }
}
