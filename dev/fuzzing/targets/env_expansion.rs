//! Variables in configuration strings: every expansion ends, and no secret of the environment that is not
//! named gets into the result.
#![no_main]

use capstan_config::{Kind, Scope, SourceFile, Surroundings, load};
use capstan_import::AllDialects;
use libfuzzer_sys::fuzz_target;

/// The value of the only variable that exists.
const SECRET: &str = "s3cr3t-value-of-token";

fuzz_target!(|text: &str| {
    let Ok(argument) = serde_json::to_string(text) else { return };
    let files = [
        ("config.toml", format!("[servers.s]\ncommand = \"x\"\nargs = [{argument}]\n")),
        (".mcp.json", format!(r#"{{"mcpServers":{{"s":{{"command":"x","args":[{argument}]}}}}}}"#)),
        (
            ".vscode/mcp.json",
            format!(r#"{{"servers":{{"s":{{"command":"x","args":[{argument}]}}}}}}"#),
        ),
    ];
    for (name, file) in files {
        let file = SourceFile::new(name, Scope::User, file);
        let variable = |name: &str| (name == "TOKEN").then(|| SECRET.to_owned());
        let around = Surroundings { variable: &variable, project_dir: "/p" };
        let loaded = load(&[file], &around, &AllDialects);
        for entry in loaded.config.servers.values() {
            let Ok(server) = &entry.status else { continue };
            if let Kind::Stdio(program) = &server.kind {
                let has_secret = program.args.iter().any(|argument| argument.contains(SECRET));
                assert!(!has_secret || text.to_uppercase().contains("TOKEN"), "{text:?}");
            }
            // What people see of the command line has variables as they were written.
            assert!(!server.target.contains(SECRET), "{:?}", server.target);
        }
    }
});
