//! The rules of a configuration, for commands that only weigh them.

use capstan_cli::args::Options;
use capstan_cli::exit::{Exit, Failure};
use capstan_cli::host::{Rules, Setup};
use capstan_config::Scope;
use capstan_hub::ports::Clock;
use capstan_policy::Policy;
use jiff::Timestamp;

use crate::clock::SystemClock;
use crate::host::LocalHost;
use crate::policy;

impl Rules for LocalHost {
    fn policy(&self, setup: &Setup) -> Result<Policy, Failure> {
        policy::of(&setup.loaded.config).map_err(|(server, error)| {
            let message = format!("server `{server}`: {error}");
            Failure::new(Exit::Config, "invalid_config", message)
        })
    }

    fn load_alone(&self, options: &Options) -> Result<Setup, Failure> {
        let mut sources = self.sources(options)?;
        sources.retain(|source| match source.scope {
            Scope::Managed | Scope::Flag => true,
            Scope::Project | Scope::User => false,
        });
        Ok(self.put_together(sources, options))
    }

    fn now(&self) -> Timestamp {
        SystemClock::new().now()
    }
}
