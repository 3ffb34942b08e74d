//! Rewrites the variables in a text of another program in native notation.

use capstan_config::source::expand::forms::{Form, Forms};
use capstan_config::source::expand::{Answer, Inputs, MissingEnv};

/// A text in native notation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Native {
    pub(crate) text: String,
    /// Variables for the values that the other program requests from its user.
    pub(crate) asked: Vec<String>,
}

/// The other program's conventions for variables.
#[derive(Clone, Copy)]
pub(crate) struct Habits<'a> {
    pub(crate) forms: Forms,
    pub(crate) missing: MissingEnv,
    pub(crate) inputs: &'a Inputs,
}

/// The reason why a text cannot be expressed in a native file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoWords(pub(crate) String);

// === impl Habits ===

impl Habits<'_> {
    /// Rewrites a text so that it has the same meaning in a native file.
    pub(crate) fn rewrite(&self, text: &str) -> Result<Native, NoWords> {
        let mut out = Native::default();
        let mut rest = text;
        while let Some((before, form)) =
            rest.find(self.forms.marks()).and_then(|at| rest.split_at_checked(at))
        {
            out.text.push_str(before);
            if let Some(after) = form.strip_prefix("$$") {
                out.text.push_str("$$");
                rest = after;
                continue;
            }
            let taken = self.forms.take(form);
            let Some((found, behind)) =
                taken.filter(|(found, _)| !matches!(found, Form::Foreign(_)))
            else {
                rest = out.literally(form)?;
                continue;
            };
            if out.text.ends_with('$') {
                return Err(NoWords("a `$` in front of a variable".to_owned()));
            }
            let written = form.strip_suffix(behind).unwrap_or(form);
            self.replace(found, written, &mut out)?;
            rest = behind;
        }
        out.text.push_str(rest);
        Ok(out)
    }

    fn replace(&self, form: Form<'_>, written: &str, out: &mut Native) -> Result<(), NoWords> {
        let new = match form {
            Form::Variable(name) => match self.missing {
                MissingEnv::Error => format!("${{{name}}}"),
                MissingEnv::Empty => format!("${{{name}:-}}"),
            },
            Form::Default(name, default) => format!("${{{name}:-{default}}}"),
            Form::IfSet(name) => format!("${{{name}:-{written}}}"),
            Form::Place("userHome" | "HOME") => "${HOME}".to_owned(),
            Form::Place("workspaceFolder") => "${CAPSTAN_PROJECT_DIR}".to_owned(),
            Form::Place("pathSeparator" | "/") => "/".to_owned(),
            Form::Input(id) => match self.inputs.get(id) {
                Some(Answer::Given(value)) => value.clone(),
                Some(Answer::Missing { .. }) | None => {
                    let name = variable_name(id);
                    out.asked.push(name.clone());
                    format!("${{{name}}}")
                }
            },
            Form::Place(_) | Form::File(_) | Form::Foreign(_) | Form::Unclosed => {
                return Err(NoWords(format!("`{written}` has no equivalent in Capstan")));
            }
        };
        out.text.push_str(&new);
        Ok(())
    }
}

// === impl Native ===

impl Native {
    /// Copies the first character literally, and returns the rest.
    ///
    /// Fails if that character would begin a variable in a native file.
    fn literally<'t>(&mut self, form: &'t str) -> Result<&'t str, NoWords> {
        if form.starts_with('$')
            && let Some((Form::Variable(_) | Form::Default(..) | Form::Unclosed, behind)) =
                Forms::Braces.take(form)
        {
            let written = form.strip_suffix(behind).unwrap_or(form);
            // The default after the name may be a secret.
            let written = written.split_once(":-").map_or(written, |(name, _)| name);
            let why = format!(
                "`{written}` is plain text in that file, but would be a variable in Capstan's"
            );
            return Err(NoWords(why));
        }
        let mut chars = form.chars();
        self.text.extend(chars.next());
        Ok(chars.as_str())
    }
}

/// The variables in a native text that have no default.
pub(crate) fn required_variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(form) = rest.find('$').and_then(|at| rest.get(at..)) {
        rest = match (form.strip_prefix("$$"), Forms::Braces.take(form)) {
            (Some(after), _) => after,
            (None, Some((found, behind))) => {
                if let Form::Variable(name) = found {
                    names.push(name.to_owned());
                }
                behind
            }
            (None, None) => form.get(1..).unwrap_or_default(),
        };
    }
    names
}

/// Converts a word to the name of a variable.
pub(crate) fn variable_name(word: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = word.chars().map(upper).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        return format!("VALUE_{name}").trim_end_matches('_').to_owned();
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(forms: Forms, missing: MissingEnv, text: &str, expected: &str) {
        let inputs = Inputs::from([("region".to_owned(), Answer::Given("eu".to_owned()))]);
        let said = Habits { forms, missing, inputs: &inputs }.rewrite(text);
        match said {
            Ok(native) => assert_eq!(native.text, expected, "{text}"),
            Err(NoWords(why)) => assert!(why.contains(expected), "{text}: {why}"),
        }
    }

    #[test]
    fn variables_of_every_program_become_ours() {
        for (forms, text, expected) in [
            (Forms::Braces, "a ${B} ${C:-d}", "a ${B} ${C:-d}"),
            (Forms::Braces, "${v%pat} $HOME $$x", "${v%pat} $HOME $$x"),
            (Forms::Shell, "$A/${B} %C% 100%", "${A}/${B} ${C:-%C%} 100%"),
            (Forms::Spaced, "Bearer ${ T } $U", "Bearer ${T} ${U}"),
            (Forms::Editor, "${env:T}${/}${userHome}", "${T}/${HOME}"),
            (Forms::Editor, "${workspaceFolder}/x", "${CAPSTAN_PROJECT_DIR}/x"),
            (Forms::Editor, "${input:region} ${input:api-key}", "eu ${API_KEY}"),
            (Forms::Curly, "{env:T} {x}", "${T} {x}"),
            (Forms::Nothing, "cost: $5 {env:T}", "cost: $5 {env:T}"),
        ] {
            check(forms, MissingEnv::Error, text, expected);
        }
        check(Forms::Braces, MissingEnv::Empty, "${A} ${B:-c}", "${A:-} ${B:-c}");
    }

    #[test]
    fn what_a_native_file_would_read_otherwise_is_refused() {
        for (forms, text, expected) in [
            (Forms::Nothing, "x ${literal}", "`${literal}` is plain text in that file"),
            (Forms::Editor, "${PLAIN}", "`${PLAIN}` is plain text in that file"),
            (Forms::Curly, "${A:-b}", "`${A` is plain text in that file"),
            (Forms::Editor, "${workspaceFolderBasename}", "has no equivalent in Capstan"),
            (Forms::Curly, "{file:~/key}", "has no equivalent in Capstan"),
            (Forms::Shell, "$%A%", "a `$` in front of a variable"),
        ] {
            check(forms, MissingEnv::Error, text, expected);
        }
    }

    #[test]
    fn what_is_asked_for_becomes_a_variable_that_is_listed() {
        let inputs = Inputs::new();
        let (forms, missing) = (Forms::Editor, MissingEnv::Error);
        let native =
            Habits { forms, missing, inputs: &inputs }.rewrite("${input:2nd key}").unwrap();
        assert_eq!(native.asked, ["VALUE_2ND_KEY"]);
    }

    #[test]
    fn only_variables_without_a_default_must_be_set() {
        let names = required_variables("${A} ${B:-b} $$x $C ${v%pat} Bearer ${D}");
        assert_eq!(names, ["A", "D"]);
    }
}
