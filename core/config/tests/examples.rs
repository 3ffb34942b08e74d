//! Every example loads without a problem, in any scope.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::path::Path;

use capstan_config::NativeFiles;
use capstan_config::{Loaded, Scope, SourceFile, Surroundings, load};

fn load_example(path: &Path, scope: Scope) -> Loaded {
    let name = path.file_name().unwrap().to_string_lossy();
    let file = SourceFile::new(name, scope, fs::read_to_string(path).unwrap());
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
