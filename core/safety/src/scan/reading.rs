//! Readings of a text: what a model makes of it, whatever the spelling.
//!
//! A reading has no invisible characters, no look-alike or styled letters and no long blanks. Each
//! of its bytes knows where it comes from, so that findings point into the original.

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::clean::is_invisible;

/// A text as a model reads it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The text. Case is kept.
    pub(super) text: String,
    /// For each byte of `text`, its offset in the original.
    origin: Vec<usize>,
    /// The length of the original.
    end: usize,
    /// Letters that are disguised: look-alikes of another script, or styled ones.
    pub(super) look_alikes: usize,
    pub(super) styled: usize,
}

/// Letters of other scripts that look like Latin ones, with these.
const LOOK_ALIKES: (&str, &str) = (
    "аеорсухіѕјһԁԛԝɡոսցօքАВЕКМНОРСТХУІЅЈԌԚԜᴀοανικρτυχεωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxisjhdqwgnugoqABEKMHOPCTXYISJGQWaoavikptuxewyABEZHIKMNOPTYX",
);

// === impl Reading ===

impl Reading {
    /// Reads a text as it appears.
    pub(super) fn new(text: &str) -> Self {
        let mut reading = Self { end: text.len(), ..Self::default() };
        if text.is_ascii() {
            reading.read_ascii(text);
            return reading;
        }
        let nfkc = ComposingNormalizerBorrowed::new_nfkc();
        let mut at = 0;
        for piece in text.split_inclusive(char::is_whitespace) {
            let is_mixed = is_mixed(piece);
            for (offset, c) in piece.char_indices() {
                let letter = look_alike(c).filter(|_| is_mixed);
                reading.read(&nfkc, c, letter, at + offset);
            }
            at += piece.len();
        }
        reading
    }

    /// A text that is not in the original as such: all of it comes from `origin`.
    pub(super) fn derived(text: String, origin: usize, end: usize) -> Self {
        let origin = vec![origin; text.len()];
        Self { text, origin, end, ..Self::default() }
    }

    /// Replaces characters one by one; `None` keeps a character.
    pub(super) fn replaced(&self, with: impl Fn(char) -> Option<char>) -> Self {
        let mut reading = Self { end: self.end, ..Self::default() };
        for (at, c) in self.text.char_indices() {
            reading.push(with(c).unwrap_or(c), self.original(at));
        }
        reading
    }

    /// Joins letters that stand alone: `S Y S T E M` becomes `SYSTEM`. `None` if there are none.
    pub(super) fn joined(&self) -> Option<Self> {
        let chars: Vec<(usize, char)> = self.text.char_indices().collect();
        let is_lone = |at: usize| {
            let near = |at: Option<usize>| {
                at.and_then(|at| chars.get(at)).is_none_or(|(_, c)| !c.is_alphanumeric())
            };
            chars.get(at).is_some_and(|(_, c)| c.is_alphabetic())
                && near(at.checked_sub(1))
                && near(Some(at + 1))
        };
        let mut reading = Self { end: self.end, ..Self::default() };
        let mut joined = 0;
        for (at, (offset, c)) in chars.iter().enumerate() {
            let is_gap = *c == ' ' && at.checked_sub(1).is_some_and(is_lone) && is_lone(at + 1);
            if is_gap {
                joined += 1;
            } else {
                reading.push(*c, self.original(*offset));
            }
        }
        (joined >= 4).then_some(reading)
    }

    /// The offset in the original of a byte of the reading.
    pub(super) fn original(&self, at: usize) -> usize {
        self.origin.get(at).copied().unwrap_or(self.end)
    }

    fn read_ascii(&mut self, text: &str) {
        self.text.reserve(text.len());
        self.origin.reserve(text.len());
        for (at, c) in text.char_indices() {
            if !c.is_control() || matches!(c, '\n' | '\t' | '\r') {
                self.push(c, at);
            }
        }
    }

    fn read(
        &mut self,
        nfkc: &ComposingNormalizerBorrowed<'_>,
        c: char,
        letter: Option<char>,
        at: usize,
    ) {
        if c.is_ascii() {
            if !c.is_control() || matches!(c, '\n' | '\t' | '\r') {
                self.push(c, at);
            }
            return;
        }
        if is_invisible(c) || c.is_control() {
            return;
        }
        if let Some(letter) = letter {
            self.look_alikes += 1;
            self.push(letter, at);
            return;
        }
        match c {
            '‘' | '’' | '‛' | 'ʼ' => return self.push('\'', at),
            '“' | '”' | '„' => return self.push('"', at),
            _ => {}
        }
        for plain in nfkc.normalize_iter(std::iter::once(c)) {
            if plain.is_ascii_alphabetic() {
                self.styled += 1;
            }
            self.push(plain, at);
        }
    }

    fn push(&mut self, c: char, at: usize) {
        let is_blank = |c: char| c == ' ' || c == '\t' || c == '\r' || c == '\u{a0}';
        if is_blank(c) {
            if self.text.ends_with(' ') {
                return;
            }
            self.text.push(' ');
        } else {
            self.text.push(c);
        }
        self.origin.resize(self.text.len(), at);
    }
}

/// True if a word has Latin letters and look-alikes of them from other scripts, or only
/// look-alikes.
pub(super) fn is_mixed(word: &str) -> bool {
    let (mut latin, mut alike, mut other) = (0, 0, 0);
    for c in word.chars() {
        if c.is_ascii_alphabetic() {
            latin += 1;
        } else if look_alike(c).is_some() {
            alike += 1;
        } else if c.is_alphabetic() {
            other += 1;
        }
    }
    alike > 0 && latin > 1 && other == 0
}

fn look_alike(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    let (from, to) = LOOK_ALIKES;
    from.chars().zip(to.chars()).find(|(alike, _)| *alike == c).map(|(_, letter)| letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_look_alikes_is_a_table() {
        assert_eq!(LOOK_ALIKES.0.chars().count(), LOOK_ALIKES.1.chars().count());
    }

    #[track_caller]
    fn check(written: &str, read: &str) {
        assert_eq!(Reading::new(written).text, read, "{written:?}");
    }

    #[test]
    fn spelling_makes_no_difference() {
        check("ig\u{200b}no\u{ad}re", "ignore");
        check("Ign\u{43e}re th\u{435} rules", "Ignore the rules");
        check("ｉｇｎｏｒｅ 𝐚𝐥𝐥", "ignore all");
        check("a  \t b\u{a0}\u{a0}c", "a b c");
        check("don’t", "don't");
    }

    #[test]
    fn other_languages_stay() {
        for text in ["Прочитать все сообщения", "Ελληνικά κείμενα", "Grüße 世界", "5 µs"]
        {
            assert_eq!(Reading::new(text).look_alikes, 0, "{text}");
        }
        check("Прочитать", "Прочитать");
    }

    #[test]
    fn a_place_in_a_reading_is_a_place_in_the_text() {
        let text = "é\u{200b}\u{200b}ab";
        let reading = Reading::new(text);
        let at = reading.text.find('b').unwrap();
        assert_eq!(text.get(reading.original(at)..), Some("b"));
        assert_eq!(reading.original(reading.text.len()), text.len());
    }

    #[test]
    fn letters_that_stand_alone_are_joined() {
        let reading = Reading::new("S Y S T E M rules: a b").joined().unwrap();
        assert_eq!(reading.text, "SYSTEM rules: ab");
        assert!(Reading::new("plan a or b").joined().is_none());
    }
}
