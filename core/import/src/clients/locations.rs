//! The locations of clients' files.

use capstan_config::source::Scope;

use super::Client;

/// The folder that a path starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The user's home.
    Home,
    /// The configuration folder: `XDG_CONFIG_HOME`, or `~/.config`.
    Config,
    /// The folder of desktop programs: `~/Library/Application Support` on macOS, else as `Config`.
    App,
    /// The project.
    Project,
    /// The folder in which the administrator of the machine configures Claude Code.
    Managed,
}

/// The use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Servers are read from it, and our entry can be added to it.
    Both,
    /// Servers are only read from it.
    Reading,
}

/// An environment variable that changes the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The variable names the folder; the second field is the file in it.
    Folder(&'static str, &'static str),
    /// The variable names the file itself.
    File(&'static str),
}

/// A possible location of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFile {
    /// The folder that the path starts from.
    pub base: Base,
    /// The path from there.
    pub path: &'static str,
    /// The use of the file.
    pub for_use: Use,
    /// The variable that changes its place.
    pub named: Option<Named>,
}

/// Caliban's older file in a project, which nothing is written to.
const CALIBAN_OLDER: &str = ".caliban/mcp.toml";

// === impl ClientFile ===

impl ClientFile {
    const fn at(base: Base, path: &'static str) -> Self {
        Self { base, path, for_use: Use::Both, named: None }
    }

    const fn or_named(self, named: Named) -> Self {
        Self { named: Some(named), ..self }
    }

    const fn reading(self) -> Self {
        Self { for_use: Use::Reading, ..self }
    }
}

// === impl Client ===

impl Client {
    /// Returns the possible places of its files of this scope; a new file belongs in the first.
    pub fn places(self, scope: Scope) -> Vec<ClientFile> {
        match scope {
            Scope::User => self.users_places(),
            Scope::Project => {
                let at = |path: &&'static str| match *path {
                    CALIBAN_OLDER => ClientFile::at(Base::Project, path).reading(),
                    path => ClientFile::at(Base::Project, path),
                };
                self.projects_paths().iter().map(at).collect()
            }
            Scope::Managed | Scope::Flag => Vec::new(),
        }
    }

    /// Returns the possible places of files with its rules about servers.
    pub fn rule_places(self) -> Vec<ClientFile> {
        let Self::ClaudeCode = self else { return Vec::new() };
        let settings = Named::Folder("CLAUDE_CONFIG_DIR", "settings.json");
        let mut places = vec![
            ClientFile::at(Base::Managed, "managed-settings.json"),
            ClientFile::at(Base::Home, ".claude/settings.json").or_named(settings),
            ClientFile::at(Base::Project, ".claude/settings.json"),
            ClientFile::at(Base::Project, ".claude/settings.local.json"),
        ];
        // It has lists of the servers that the user has enabled and disabled in each project.
        places.extend(self.users_places());
        places
    }

    fn users_places(self) -> Vec<ClientFile> {
        let home = |path| ClientFile::at(Base::Home, path);
        let config = |path| ClientFile::at(Base::Config, path);
        let app = |path| ClientFile::at(Base::App, path);
        match self {
            Self::ClaudeCode => vec![
                home(".claude.json").or_named(Named::Folder("CLAUDE_CONFIG_DIR", ".claude.json")),
            ],
            Self::ClaudeDesktop => vec![app("Claude/claude_desktop_config.json")],
            Self::Codex => vec![
                home(".codex/config.toml").or_named(Named::Folder("CODEX_HOME", "config.toml")),
            ],
            Self::Cursor => vec![home(".cursor/mcp.json")],
            Self::VsCode => vec![app("Code/User/mcp.json")],
            Self::Gemini => vec![home(".gemini/settings.json")],
            Self::Llxprt => vec![home(".llxprt/settings.json")],
            Self::Goose => vec![config("goose/config.yaml")],
            Self::Zed => vec![config("zed/settings.json")],
            Self::OpenCode => {
                vec![config("opencode/opencode.json"), config("opencode/opencode.jsonc")]
            }
            Self::Windsurf => vec![home(".codeium/windsurf/mcp_config.json")],
            Self::Caliban => vec![
                config("caliban/settings.toml"),
                config("caliban/settings.json"),
                config("caliban/mcp.toml").reading(),
            ],
            Self::Zeph => vec![config("zeph/config.toml")],
            Self::Avelino => {
                vec![config("mcp/servers.json").or_named(Named::File("MCP_CONFIG_PATH"))]
            }
        }
    }

    fn projects_paths(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[".mcp.json"],
            Self::Codex => &[".codex/config.toml"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::VsCode => &[".vscode/mcp.json"],
            Self::Gemini => &[".gemini/settings.json"],
            Self::Llxprt => &[".llxprt/settings.json"],
            Self::Zed => &[".zed/settings.json"],
            Self::OpenCode => &["opencode.json", "opencode.jsonc"],
            Self::Caliban => &[".caliban/settings.toml", ".caliban/settings.json", CALIBAN_OLDER],
            Self::ClaudeDesktop | Self::Goose | Self::Windsurf | Self::Zeph | Self::Avelino => &[],
        }
    }
}
