//! Every example loads without a problem, and the documents show keys that exist.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::path::Path;

use capstan_config::NativeFiles;
use capstan_config::{Loaded, Scope, SourceFile, Surroundings, load};
use capstan_tidy::markdown::blocks;
use capstan_tidy::tree::files_ending;

fn load_example(path: &Path, scope: Scope) -> Loaded {
    let name = path.file_name().unwrap().to_string_lossy();
    load_text(&name, scope, fs::read_to_string(path).unwrap())
}

fn load_text(name: &str, scope: Scope, text: String) -> Loaded {
    let file = SourceFile::new(name, scope, text);
    load(&[file], &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles)
}

#[test]
fn every_example_loads_without_a_problem() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let examples: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert!(examples.len() >= 2, "the examples have gone");
    for path in examples {
        let loaded = load_example(&path, Scope::User);
        assert_eq!(loaded.problems, [], "{}", path.display());
        assert!(!loaded.config.servers.is_empty(), "{}", path.display());
        for entry in loaded.config.servers.values() {
            assert!(entry.status.is_ok(), "{}: {:?}", path.display(), entry.status);
        }
    }
}

#[test]
fn every_key_that_a_document_shows_exists() {
    // Files of Codex, and of `capstan policy test`.
    let others = ["[mcp_servers.", "[[case]]"];
    let mut count = 0;
    for document in files_ending(".md").unwrap() {
        let shown = blocks(&document.text).into_iter().filter(|block| block.language == "toml");
        for block in shown {
            let text = block.lines.join("\n");
            if others.iter().any(|other| text.trim_start().starts_with(other)) {
                continue;
            }
            count += 1;
            let loaded = load_text("shown.toml", Scope::User, text);
            for problem in loaded.problems {
                // A block may leave out the rest of its server; it may not have a key that there is not.
                let message = &problem.message;
                let wrong = message.contains("not a known key") || message.contains("TOML");
                assert!(!wrong, "{}:{}: {message}", document.path, block.line);
            }
        }
    }
    assert!(count > 15, "only {count} blocks are shown");
}
