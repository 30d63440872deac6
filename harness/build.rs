//! Tells the tool which commit it is built from.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../.git/HEAD");
    println!("cargo::rerun-if-changed=../.git/refs/heads");
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output();
    if let Ok(output) = output
        && output.status.success()
    {
        println!("cargo::rustc-env=LAKEMARK_COMMIT={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
