//! Lines of bounded length.

use std::io::{self, BufRead, Read};

/// Longest message, in bytes without its newline.
pub(crate) const MAX_LINE: u64 = 1024 * 1024;

/// The next piece of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// A line beyond [`MAX_LINE`]; it has been skipped.
    TooLong,
    /// Nothing more.
    End,
}

/// Reads the next line and never holds more than [`MAX_LINE`] bytes of it.
pub(crate) fn next(input: &mut impl BufRead) -> io::Result<Line> {
    let mut line = Vec::new();
    let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(Line::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Line::Whole(line));
    }
    if read as u64 <= MAX_LINE {
        return Ok(Line::Whole(line));
    }
    input.skip_until(b'\n')?;
    Ok(Line::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let limit = usize::try_from(MAX_LINE).unwrap();
        let longest = vec![b'x'; limit];
        let input = [&longest[..], b"\n", &longest[..], b"x\nnext\nlast"].concat();
        let mut input = input.as_slice();
        assert_eq!(next(&mut input).unwrap(), Line::Whole(longest));
        assert_eq!(next(&mut input).unwrap(), Line::TooLong);
        assert_eq!(next(&mut input).unwrap(), Line::Whole(b"next".to_vec()));
        assert_eq!(next(&mut input).unwrap(), Line::Whole(b"last".to_vec()));
        assert_eq!(next(&mut input).unwrap(), Line::End);
    }
}
