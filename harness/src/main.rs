//! The `lakemark` command.

mod cli;
mod cmd;
mod driver;
mod machine;
mod output;
mod plan;
mod progress;
mod registry;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::cmd::Ended;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Worker => return worker::main(),
        Command::Run(options) => cmd::run::run(&options),
        Command::Reproduce(options) => cmd::reproduce::run(&options),
        Command::Resume(options) => cmd::resume::run(&options),
        Command::Trace(options) => cmd::trace::run(&options),
        Command::Simulate(options) => cmd::simulate::run(&options),
        Command::Fit(options) => cmd::fit::run(&options),
        Command::List(options) => cmd::list::run(&options),
    };
    match ended {
        Ok(ended) => ended.into(),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            if error.is::<plan::UsageError>() { Ended::Usage.into() } else { Ended::Failed.into() }
        }
    }
}
