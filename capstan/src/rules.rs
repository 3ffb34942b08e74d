//! The rules of a configuration, for commands that only evaluate them.

use capstan_app::{AppError, Rules, Selection, Setup};
use capstan_config::Scope;
use capstan_hub::ports::Clock;
use jiff::Timestamp;

use crate::clock::SystemClock;
use crate::host::LocalHost;

impl Rules for LocalHost {
    fn load_alone(&self, selection: &Selection) -> Result<Setup, AppError> {
        let mut sources = self.sources(selection)?;
        sources.retain(|source| match source.scope {
            Scope::Managed | Scope::Flag => true,
            Scope::Project | Scope::User => false,
        });
        Ok(self.put_together(sources, selection))
    }

    fn now(&self) -> Timestamp {
        SystemClock::new().now()
    }
}
