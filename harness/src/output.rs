//! What goes to the terminal: data to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use lakemark_results::table::{OutputFormat, Table};

/// Width of a table where the terminal's is not known.
const WIDTH: u16 = 120;

/// One line on standard error.
pub fn complain(line: &str) {
    // Where standard error is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "lakemark: {line}");
}

/// One line on standard error, for a person.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Text on standard output.
pub fn print(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").or_else(ignore_closed)
}

/// A table on standard output.
pub fn print_table(table: &Table, format: OutputFormat) -> Result<()> {
    let width = if io::stdout().is_terminal() { None } else { Some(WIDTH) };
    table.write(&mut io::stdout().lock(), format, width).or_else(ignore_closed)
}

/// A reader that has read enough (`| head`) is no failure.
fn ignore_closed(error: io::Error) -> Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) }
}
