//! What goes to the terminal: data to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use lakemark_results::table::{OutputFormat, Table};

/// Width that tables are wrapped to on a terminal. Elsewhere lines are whole, for whatever program reads them.
const WIDTH: u16 = 140;

/// One line on standard error.
pub(crate) fn complain(line: &str) {
    // Where standard error is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "lakemark: {line}");
}

/// One line on standard error, for a person.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Text on standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").or_else(ignore_closed)
}

/// A table on standard output.
pub(crate) fn print_table(table: &Table, format: OutputFormat) -> Result<()> {
    let width = io::stdout().is_terminal().then_some(WIDTH);
    table.write(&mut io::stdout().lock(), format, width).or_else(ignore_closed)
}

/// A reader that has read enough (`| head`) is no failure.
fn ignore_closed(error: io::Error) -> Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) }
}
