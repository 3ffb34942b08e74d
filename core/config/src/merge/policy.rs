//! Merge policies: reduce the settings of several files under one key to one.
//!
//! Each function takes the settings, nearest first, and the default.

use crate::settings::form::Setting;
use crate::source::Scope;

/// Returns the nearest setting.
pub(crate) fn nearest<T>(settings: Vec<Setting<T>>, _: Option<T>) -> Option<Setting<T>> {
    settings.into_iter().next()
}

/// Returns the nearest setting that no project has made.
pub(crate) fn own<T>(settings: Vec<Setting<T>>, _: Option<T>) -> Option<Setting<T>> {
    settings.into_iter().find(|setting| setting.origin.scope != Scope::Project)
}

/// Returns the nearest setting that is true, else the nearest.
///
/// A project cannot switch off what another file switches on.
pub(crate) fn any(settings: Vec<Setting<bool>>, _: Option<bool>) -> Option<Setting<bool>> {
    let (on, off): (Vec<_>, Vec<_>) = settings.into_iter().partition(|setting| setting.value);
    on.into_iter().chain(off).next()
}

/// Returns the smallest setting.
///
/// A project's setting counts only if it is below the value that applies without it.
pub(crate) fn smallest<T: Copy + Ord>(
    settings: Vec<Setting<T>>,
    default: Option<T>,
) -> Option<Setting<T>> {
    let (projects, others): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|setting| setting.origin.scope == Scope::Project);
    let least = others.into_iter().min_by_key(|setting| setting.value);
    let bound = least.as_ref().map(|setting| setting.value).or(default);
    let tighter = projects
        .into_iter()
        .filter(|setting| bound.is_none_or(|bound| setting.value < bound))
        .min_by_key(|setting| setting.value);
    tighter.or(least)
}
