//! Configuration files and files of other programs: read, shown and redacted. The first byte chooses
//! the name of the file, and with it the format.
#![no_main]

use capstan_config::{Hide, Scope, SourceFile, Surroundings, load, redact_file};
use capstan_import::AllDialects;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 16] = [
    "config.toml",
    ".capstan/config.toml",
    "claude_desktop_config.json",
    ".mcp.json",
    ".claude.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    "zeph.toml",
    "opencode.json",
    "goose/config.yaml",
    ".zed/settings.json",
    "cline_mcp_settings.json",
    "auth_server.json",
    "manifest.json",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let name = NAMES[usize::from(*first) % NAMES.len()];
    for scope in [Scope::User, Scope::Project] {
        let file = SourceFile::new(name, scope, text);
        let variable = |name: &str| (name == "HOME").then(|| "/home/x".to_owned());
        let around = Surroundings { variable: &variable, project_dir: "/p" };
        let loaded = load(std::slice::from_ref(&file), &around, &AllDialects);
        drop(capstan_config::show(&loaded));
        drop(redact_file(&file, Hide::Secrets));
    }
    if let Ok(offer) = capstan_import::registry::Offer::read(text) {
        drop(offer.choose(None));
    }
    drop(capstan_import::packages::plugin("/r", text));
    drop(capstan_import::packages::bundle("/r", text));
});
