//! Understands licence expressions such as `(MIT OR Apache-2.0) AND Unicode-3.0`.

use std::iter::Peekable;

/// Whether the expression can be met with the licences of the list alone.
///
/// A text that is no licence expression is not met. The old form `MIT/Apache-2.0` means a choice.
pub fn met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    choice(&mut words, allowed) == Some(true) && words.next().is_none()
}

fn choice<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    allowed: &[String],
) -> Option<bool> {
    let mut met = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed)?;
    }
    Some(met)
}

fn all<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    allowed: &[String],
) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed)?;
    }
    Some(met)
}

fn one<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    allowed: &[String],
) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let met = choice(words, allowed);
        return words.next_if_eq(&")").and(met);
    }
    if ["OR", "AND", "WITH", ")"].contains(&word) {
        return None;
    }
    let mut name = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", words.next()?);
    }
    Some(allowed.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(expression: &str) -> bool {
        met(expression, &["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned))
    }

    #[test]
    fn an_expression_is_met_when_the_list_suffices() {
        for expression in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0",
        ] {
            assert!(accepts(expression), "{expression}");
        }
    }

    #[test]
    fn an_expression_is_not_met_when_a_licence_is_missing_or_it_makes_no_sense() {
        for expression in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR GPL-3.0 AND",
            "(MIT OR Apache-2.0",
            "MIT MIT",
            "Apache-2.0 WITH LLVM-exception",
            "mit",
            "",
        ] {
            assert!(!accepts(expression), "{expression}");
        }
    }
}
