//! The generated files are what the code generates. `CAPSTAN_BLESS=1` writes them anew.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::path::Path;

#[track_caller]
fn check(name: &str, generated: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let path = folder.join(name);
    if std::env::var_os("CAPSTAN_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "docs/reference/{name} is stale; run with CAPSTAN_BLESS=1");
}

#[test]
fn the_schema_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&capstan_config::schema()).unwrap();
    check("config.schema.json", &(schema + "\n"));
}

#[test]
fn the_reference_page_is_up_to_date() {
    check("config.md", &capstan_config::reference());
}
