//! The scanner of servers' texts, the sanitiser of what people see, and the masking of secrets.
#![no_main]

use capstan_safety::clean::{clean, is_invisible, quotable, visible};
use capstan_safety::mask::{mask_prose, mask_tokens};
use capstan_safety::scan::{Surface, mask, may_matter, scan, scan_definition};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for surface in [Surface::Instructions, Surface::Answer] {
        let findings = scan(text, surface);
        let masked = mask(text, &findings);
        assert!(masked.len() <= text.len() + findings.len() * "[sanitized]".len());
    }
    drop(may_matter(text));
    if let Ok(value) = serde_json::from_str(text) {
        for located in scan_definition(&value) {
            assert!(located.place.is_empty() || value.pointer(&located.place).is_some());
        }
    }
    drop((mask_prose(text), mask_tokens(text)));
    let shown = clean(text);
    assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{shown:?}");
    assert!(!quotable(text).contains(['`', '\n']));
    // Tags and direction marks never survive, whatever stands beside them.
    for text in [&*shown, &visible(text), &quotable(text)] {
        let hides = |c: char| is_invisible(c) && !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0f}');
        assert!(!text.chars().any(hides), "{text:?}");
    }
});
