//! Compares names of members as lenient readers do.
//!
//! Some servers find a member without regard to case, after Unicode normalization, or up to a NUL
//! (C strings). Such a server takes `Name`, `ｎａｍｅ` or `name\0x` for `name`, so that a rule which
//! reads `name` does not see the value that the server uses.

use std::str;

use icu_normalizer::ComposingNormalizerBorrowed;

/// True if two names differ, but a lenient reader could take one for the other.
pub fn collides(name: &str, other: &str) -> bool {
    if is_plain(name.as_bytes()) && is_plain(other.as_bytes()) {
        return name != other && name.eq_ignore_ascii_case(other);
    }
    name != other && fold(name).eq(fold(other))
}

/// Returns the first `protected` name that `name` collides with. Protected names are not empty.
pub(crate) fn collision(name: &[u8], protected: &[&'static str]) -> Option<&'static str> {
    if is_plain(name) {
        // The usual case: the lengths differ, or it is the protected name itself.
        let is_other = |one: &&&str| {
            one.len() == name.len()
                && one.as_bytes() != name
                && one.as_bytes().eq_ignore_ascii_case(name)
        };
        return protected.iter().find(is_other).copied();
    }
    let name = str::from_utf8(name).ok()?;
    // Folded once, and no further than the longest protected name.
    let longest = protected.iter().map(|one| one.len()).max()?;
    let folded: String = fold(name).take(longest + 1).collect();
    protected.iter().find(|one| **one != name && fold(one).eq(folded.chars())).copied()
}

/// True if the name has only visible ASCII characters, which only case can fold.
fn is_plain(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

/// Folds a name: up to a NUL, without invisible characters, in NFKC, without case.
fn fold(name: &str) -> impl Iterator<Item = char> {
    // Readers that compare in upper case take the dotless i for an i; those that compare in lower
    // case do so with the dotted capital.
    let plain_i = |c| if matches!(c, 'ı' | 'İ') { 'i' } else { c };
    let visible = name.chars().take_while(|c| *c != '\0').filter(|c| !is_invisible(*c));
    let normalized = ComposingNormalizerBorrowed::new_nfkc().normalize_iter(visible.map(plain_i));
    // Upper case first, because it folds more: `ß` becomes `ss`.
    normalized.flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// True if a character is white space, a control character or ignorable by default (Unicode
/// property `Default_Ignorable_Code_Point`).
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTECTED: [&str; 4] = ["name", "arguments", "task", "uri"];

    fn found(name: &str) -> Option<&'static str> {
        collision(name.as_bytes(), &PROTECTED)
    }

    /// Holes 2.
    #[test]
    fn names_that_a_lenient_reader_takes_for_another_collide() {
        for (name, protected) in [
            ("Name", "name"),
            ("nAME", "name"),
            ("name\0", "name"),
            ("NAME\0anything", "name"),
            ("name ", "name"),
            ("\tname", "name"),
            ("\u{feff}name", "name"),
            ("n\u{ad}ame", "name"),
            ("na\u{200d}me", "name"),
            ("name\u{fe0f}", "name"),
            ("name\u{e0041}", "name"),
            ("ｎａｍｅ", "name"),
            ("ＮＡＭＥ", "name"),
            ("𝓷𝓪𝓶𝓮", "name"),
            ("ⓝⓐⓜⓔ", "name"),
            ("tas\u{212a}", "task"),
            ("ta\u{17f}k", "task"),
            ("ARGUMENT\u{17f}", "arguments"),
            ("ur\u{131}", "uri"),
            ("UR\u{130}", "uri"),
            ("ᵘʳⁱ", "uri"),
        ] {
            assert_eq!(found(name), Some(protected), "{name:?}");
            assert!(collides(name, protected) && collides(protected, name), "{name:?}");
        }
    }

    #[test]
    fn names_that_every_reader_tells_apart_do_not_collide() {
        for name in [
            "name", "names", "nam", "", "\0", "\0name", "na-me", "na_me", "näme", "nаmе", "名前",
            "uris",
        ] {
            assert_eq!(found(name), None, "{name:?}");
        }
        assert!(!collides("größe", "größe"));
        assert!(collides("größe", "GRÖSSE") && collides("e\u{301}", "\u{e9}"));
        assert!(!collides("größe", "grosse"));
    }
}
