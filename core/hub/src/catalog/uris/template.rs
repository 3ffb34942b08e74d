//! URI templates, compared by the fixed text at their ends.

/// The fixed text before the first and after the last placeholder of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    prefix: Box<str>,
    suffix: Box<str>,
}

// === impl Fixed ===

impl Fixed {
    /// `None` if the text has no placeholder.
    pub(super) fn of(template: &str) -> Option<Self> {
        let (prefix, rest) = template.split_once('{')?;
        let (_, suffix) = rest.rsplit_once('}')?;
        Some(Self { prefix: prefix.into(), suffix: suffix.into() })
    }

    /// True if the template can produce this URI, as far as its ends tell.
    pub(super) fn fits(&self, uri: &str) -> bool {
        uri.len() >= self.prefix.len() + self.suffix.len()
            && uri.starts_with(&*self.prefix)
            && uri.ends_with(&*self.suffix)
    }

    /// True if there may be a URI that both templates can produce.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let begins =
            self.prefix.starts_with(&*other.prefix) || other.prefix.starts_with(&*self.prefix);
        let ends = self.suffix.ends_with(&*other.suffix) || other.suffix.ends_with(&*self.suffix);
        begins && ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(template: &str) -> Fixed {
        Fixed::of(template).unwrap()
    }

    #[test]
    fn a_template_fits_what_has_its_ends() {
        for (template, uri, fits) in [
            ("f://{x}", "f://a", true),
            ("f://{x}", "f://", true),
            ("f://{x}", "g://a", false),
            ("f://{x}.md", "f://a.md", true),
            ("f://{x}.md", "f://a.txt", false),
            ("f://ab{x}ab", "f://ab", false),
            ("{+any}", "g://a", true),
        ] {
            assert_eq!(fixed(template).fits(uri), fits, "{template} {uri}");
        }
        assert_eq!((Fixed::of("f://x"), Fixed::of("f://{x")), (None, None));
    }

    #[test]
    fn templates_overlap_if_a_uri_may_fit_both() {
        for (one, other, overlap) in [
            ("f://{x}", "f://{y}", true),
            ("f://{x}", "f://docs/{y}.md", true),
            ("f://{x}.txt", "f://docs/{y}.md", false),
            ("f://{x}", "g://{y}", false),
            ("{+any}", "g://{y}", true),
        ] {
            assert_eq!(fixed(one).overlaps(&fixed(other)), overlap, "{one} {other}");
            assert_eq!(fixed(other).overlaps(&fixed(one)), overlap, "{other} {one}");
        }
    }
}
