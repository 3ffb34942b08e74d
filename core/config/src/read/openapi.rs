//! The keys of an OpenAPI document: the document alone, or a table of them.

use crate::fields::Fields;
use crate::mask::mask_url;
use crate::problem::Problem;
use crate::server::OpenApi;
use crate::url;

/// Reads the document, and how it may be shown. Headers are read by whoever reads those of others.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<(OpenApi, String)> {
    let is_table = fields.peek("openapi").is_some_and(|entry| entry.node.as_table().is_some());
    if !is_table {
        let document = fields.text("openapi")?;
        let target = mask_url(document.shown());
        return Some((OpenApi { document: document.value.clone(), ..OpenApi::default() }, target));
    }
    let mut nested = fields.nested("openapi")?;
    let document = nested.text("document");
    if !nested.has("document") {
        let message = format!("`{}` has no `document`", nested.path());
        let help = "name a file or an address, as in `document = \"api.yaml\"`";
        nested.table_problem(Problem::error(message).help(help));
    }
    let base_url = base_url(&mut nested);
    let tags = nested.strings("tags");
    let only = nested.strings("only");
    let except = nested.strings("except").unwrap_or_default();
    nested.finish();
    let document = document?;
    let (target, document) = (mask_url(document.shown()), document.value.clone());
    Some((OpenApi { document, base_url, tags, only, except, ..OpenApi::default() }, target))
}

fn base_url(fields: &mut Fields<'_, '_>) -> Option<String> {
    let text = fields.text("base_url")?;
    if let Err(fault) = url::check(&text.value) {
        let message = format!("`{}` {fault}", fields.key("base_url"));
        let help = "write an address such as \"https://example.com/v1\"";
        fields.problem("base_url", Problem::error(message).help(help));
    }
    Some(text.value.clone())
}
