//! Names of tools in every spelling, and the names that are shown for them.
#![no_main]

use capstan_model::{ItemId, ServerName};
use capstan_policy::pattern::spellings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str)| {
    let (typed, server, item) = input;
    let known: Vec<ServerName> = ["a", "a-b", "files", "files__more", server]
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    if let Some(id) = ItemId::resolve(typed, known.iter()) {
        assert!(known.contains(&id.server));
        assert!(typed.ends_with(&id.item), "{typed:?} {id:?}");
        // The canonical spelling leads back to the same item.
        let again = ItemId::resolve(&id.to_string(), known.iter());
        assert_eq!(again.as_ref(), Some(&id), "{typed:?}");
    }
    if let Ok(server) = server.parse::<ServerName>() {
        let id = ItemId { server, item: item.to_owned() };
        for spelling in spellings(&id, "Display") {
            drop(ItemId::resolve(&spelling, known.iter()));
        }
    }
});
