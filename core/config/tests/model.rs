//! The `[model]` table: who chooses the model, and how its key is given.

use std::time::Duration;

use capstan_config::{Loaded, NativeFiles, Scope, Severity, SourceFile, Surroundings};

fn load(scope: Scope, text: &str) -> Loaded {
    let variable = |name: &str| (name == "MY_KEY").then(|| "key-of-mine-123".to_owned());
    let around = Surroundings { variable: &variable, project_dir: "" };
    capstan_config::load(&[SourceFile::new("c.toml", scope, text)], &around, &NativeFiles)
}

const ALL: &str = r#"
[model]
name = "openai/qwen3"
endpoint = "http://localhost:8000/v1"
api_key = "${MY_KEY}"
api_key_env_var = "OTHER"
networks = ["10.0.0.0/8", "192.168.1.4"]
max_output_tokens = 4096
context_tokens = 32000
timeout = "2m"
"#;

#[test]
fn every_key_is_read_and_the_key_is_not_shown() {
    let loaded = load(Scope::User, ALL);
    assert_eq!(loaded.problems, []);
    let model = &loaded.config.model;
    assert_eq!(model.name.as_deref(), Some("openai/qwen3"));
    assert_eq!(model.endpoint.as_deref(), Some("http://localhost:8000/v1"));
    assert_eq!(model.api_key.as_ref().unwrap().reveal(), "key-of-mine-123");
    assert_eq!(model.api_key_env_var.as_deref(), Some("OTHER"));
    assert_eq!((model.max_output_tokens, model.context_tokens), (Some(4096), 32_000));
    let networks: Vec<String> = model.networks.iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["10.0.0.0/8", "192.168.1.4"]);
    assert_eq!(model.timeout, Duration::from_mins(2));
    let shown = capstan_config::show(&loaded);
    assert!(shown.iter().any(|shown| shown.key == "model.endpoint"));
    assert!(!format!("{shown:?} {:?}", loaded.config).contains("key-of-mine"));
}

#[test]
fn a_project_chooses_neither_the_model_nor_its_address() {
    let loaded = load(Scope::Project, ALL);
    assert_eq!(loaded.config.model, capstan_config::Model::default());
    let [problem] = loaded.problems.as_slice() else { panic!("{:?}", loaded.problems) };
    assert_eq!(problem.severity, Severity::Warning);
    assert!(problem.message.contains("in a project file is not used"), "{problem:?}");
}

#[test]
fn a_variable_that_is_not_set_stops_nothing_but_the_model() {
    let loaded = load(Scope::User, "[model]\nname = \"openai/x\"\napi_key = \"${NOT_SET}\"\n");
    assert_eq!(loaded.fatal().count(), 0);
    assert!(loaded.problems.iter().any(|problem| problem.message.contains("NOT_SET")));
    assert_eq!(loaded.config.model.api_key.unwrap().reveal(), "");
}

#[test]
fn a_name_without_a_provider_and_keys_of_others_are_refused() {
    for text in [
        "name = \"gpt\"",
        "context_tokens = 10",
        "key = \"x\"",
        "networks = [\"x\"]",
        "timeout = \"soon\"",
    ] {
        let loaded = load(Scope::User, &format!("[model]\n{text}\n"));
        assert_eq!(loaded.fatal().count(), 1, "{text}: {:?}", loaded.problems);
    }
}
