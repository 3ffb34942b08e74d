//! Renders a configuration problem with the affected lines.

use capstan_config::{Hide, Problem, Severity, SourceFile, redact_file};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report,
    Severity as Level,
};

use capstan_safety::clean::clean;

/// Renders a problem with an excerpt of its file.
pub fn render(problem: &Problem, files: &[SourceFile], width: Option<usize>) -> String {
    let mut diagnostic = MietteDiagnostic::new(problem.message.clone());
    diagnostic.severity = Some(match problem.severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warning,
    });
    diagnostic.help.clone_from(&problem.help);
    let mut report = None;
    if let Some(place) = &problem.place {
        let label = problem.key.clone().unwrap_or_else(|| "here".to_owned());
        let span = (place.start, place.len);
        diagnostic.labels = Some(vec![LabeledSpan::new_with_span(Some(label), span)]);
        let file = files.iter().find(|file| file.path == place.file);
        report = file.map(|file| {
            let text = redact_file(&file.path, &file.text, Hide::EveryValue);
            let source = NamedSource::new(&file.path, text);
            Report::new(diagnostic.clone()).with_source_code(source)
        });
    }
    let report = report.unwrap_or_else(|| Report::new(diagnostic));
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(width.unwrap_or(100));
    let mut text = String::new();
    match handler.render_report(&mut text, report.as_ref()) {
        // The file may be part of a project from an untrusted source.
        Ok(()) => clean(&text).into_owned(),
        Err(_) => clean(&problem.to_string()).into_owned(),
    }
}
