//! Characters of texts that other programs wrote.

/// Whether a character takes no room and shows nothing, or changes the order in which text is read.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        // Soft hyphen, joiners and fillers that show nothing.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}'
        // Zero width, marks of direction, line and paragraph separators.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Variation selectors, notes between lines, musical controls.
        | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{1bca0}'..='\u{1bca3}'
        // Tags and the second set of variation selectors: a whole alphabet that is not seen.
        | '\u{e0000}'..='\u{e0fff}'
    )
}
