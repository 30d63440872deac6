//! What machine and tool a run was made with.

use std::fs;
use std::process::Command;

use chrono::{SecondsFormat, Utc};

/// Now, as RFC 3339 has it, in UTC.
pub(crate) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A name for a run that starts now.
pub(crate) fn run_name(what: &str) -> String {
    format!("{}-{what}", Utc::now().format("%Y%m%d-%H%M%S"))
}

/// The commit that the tool was built from, if it was built in a checkout.
pub(crate) fn commit() -> Option<String> {
    option_env!("LAKEMARK_COMMIT").map(str::to_owned)
}

/// Model name of the CPU.
pub(crate) fn cpu_model() -> String {
    let found = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| field(&text, "model name"));
    found.or_else(|| output("sysctl", &["-n", "machdep.cpu.brand_string"])).unwrap_or_else(|| "unknown".to_owned())
}

/// CPUs that the process may use.
pub(crate) fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
}

/// Memory of the machine.
pub(crate) fn memory_bytes() -> u64 {
    let found = fs::read_to_string("/proc/meminfo").ok().and_then(|text| field(&text, "MemTotal"));
    found.and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kib| kib * 1_024)
}

/// Release of the kernel.
pub(crate) fn kernel() -> String {
    let found = fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned());
    found.or_else(|| output("uname", &["-r"])).unwrap_or_else(|| "unknown".to_owned())
}

/// Largest resident memory of this process so far.
pub(crate) fn peak_memory_bytes() -> u64 {
    let found = fs::read_to_string("/proc/self/status").ok().and_then(|text| field(&text, "VmHWM"));
    found.and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kib| kib * 1_024)
}

/// The first value of `name: value` lines.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next().is_some_and(|field| field.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmHWMX:\t1 kB\nVmHWM:\t  2044 kB\n";
        assert_eq!(field(text, "VmHWM").as_deref(), Some("2044 kB"));
        assert_eq!(field(text, "Vm"), None);
    }
}
