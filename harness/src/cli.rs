//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use lakemark_core::clock::{Cpu, Mode};
use lakemark_results::table::OutputFormat;
use lakemark_sweep::Shard;

/// Measures what a table format's metadata costs: to commit, to load, to contend for.
///
/// Exit status: 0 if everything ran and was verified, 1 if something failed, 2 if the command was not understood, 3 if a
/// cell failed its audit (its figures are invalid), 130 if it was stopped.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a grid of cells, given by options or by a definition in a TOML file
    Run(RunOptions),
    /// Run the cells of a published study and set the figures beside the published ones
    Reproduce(ReproduceOptions),
    /// Run the cells of a run folder that have not ended yet
    Resume(ResumeOptions),
    /// Show every request of one commit or load
    Trace(TraceOptions),
    /// Simulate commit contention over a grid of cells: loads, tables, providers, protocols, retry policies
    Simulate(SimulateOptions),
    /// Read commit protocols off recorded requests, and set the simulated contention beside the measured
    Fit(FitOptions),
    /// List formats, catalogs, stores, scenarios, studies, definitions, and what formats do not offer
    List(ListOptions),
    /// Run one cell: reads it from standard input, writes its records to standard output (docs/PROTOCOL.md)
    #[command(hide = true)]
    Worker,
}

/// How cells run, whatever they measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct HowOptions {
    /// How waiting is done: skip (the clock moves on when nothing else can happen) or real
    #[arg(long, default_value_t = Mode::Skip, value_name = "MODE")]
    pub(crate) clock: Mode,
    /// How much process time computing takes: measured, scale=F, or free (none: latencies are waits alone, and CPU time
    /// stands beside them) [default: measured, or what the definition says]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<Cpu>,
    /// Seed of the latencies
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Cells that run side by side [default: one for each CPU, two at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Folder that run folders are made in
    #[arg(long, default_value = "runs", value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Name of the run and of its folder [default: from the date]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A worker built elsewhere for a format: it takes the built-in one's place
    #[arg(long = "worker", value_name = "FORMAT=PATH")]
    pub(crate) workers: Vec<String>,
    /// Show what would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Form of what is printed: text, json or csv
    #[arg(long, default_value_t = OutputFormat::Text, value_name = "FORM")]
    pub(crate) format: OutputFormat,
}

/// Options of `run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// A definition: a TOML file, or the name of a built-in one
    pub(crate) definition: Option<String>,
    /// Formats, with commas between them [default: all]
    #[arg(long, value_delimiter = ',', value_name = "FORMAT")]
    pub(crate) formats: Vec<String>,
    /// Stores: profiles by name, or profile files ending in .toml
    #[arg(long, value_delimiter = ',', value_name = "STORE")]
    pub(crate) stores: Vec<String>,
    /// Catalogs: sqlite, sqlite:PATH, or the URL of a database; each format's own default without any
    #[arg(long = "catalog", value_name = "CATALOG")]
    pub(crate) catalogs: Vec<String>,
    /// Scenario
    #[arg(long, default_value = "sequential-commit", value_name = "SCENARIO")]
    pub(crate) scenario: String,
    /// Appends: the same as --param appends=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) appends: Option<String>,
    /// A parameter of the scenario
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) parameters: Vec<String>,
    /// A setting of a format
    #[arg(long = "set", value_name = "FORMAT.NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Run each cell this often, with a seed of its own each time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,
    /// How cells run
    #[command(flatten)]
    pub(crate) how: HowOptions,
}

/// Options of `reproduce`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReproduceOptions {
    /// The study
    pub(crate) study: String,
    /// Only this scenario of it
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Only these formats
    #[arg(long, value_delimiter = ',', value_name = "FORMAT")]
    pub(crate) formats: Vec<String>,
    /// Only these stores
    #[arg(long, value_delimiter = ',', value_name = "STORE")]
    pub(crate) stores: Vec<String>,
    /// Catalog for the formats that need one
    #[arg(long = "catalog", value_name = "CATALOG")]
    pub(crate) catalog: Option<String>,
    /// Appends, in place of the study's number
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) appends: Option<String>,
    /// A tenth of the work
    #[arg(long, conflicts_with = "appends")]
    pub(crate) quick: bool,
    /// Seeds of each cell, for a study that is simulated [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: Option<u32>,
    /// A setting of a format
    #[arg(long = "set", value_name = "FORMAT.NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// How cells run
    #[command(flatten)]
    pub(crate) how: HowOptions,
}

/// Options of `resume`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResumeOptions {
    /// The run folder
    pub(crate) folder: PathBuf,
    /// Catalog URL, for cells whose catalog needs a password: run folders keep none
    #[arg(long = "catalog", value_name = "CATALOG")]
    pub(crate) catalog: Option<String>,
    /// Cells that run side by side [default: one for each CPU, two at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Show what would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Form of what is printed: text, json or csv
    #[arg(long = "format", default_value_t = OutputFormat::Text, value_name = "FORM")]
    pub(crate) output: OutputFormat,
}

/// What to trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Traced {
    /// The commit of the last append
    Commit,
    /// A cold open after it
    Load,
    /// A load after it with a new handle in a process that has loaded the table
    Fresh,
    /// A load after it with an open handle that was 10 appends behind
    Refresh,
    /// An open after it without the list of files
    Shallow,
}

/// Options of `trace`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceOptions {
    /// Format
    #[arg(value_name = "FORMAT")]
    pub(crate) table: String,
    /// Store: a profile by name, or a profile file ending in .toml
    #[arg(long, default_value = "s3", value_name = "STORE")]
    pub(crate) store: String,
    /// Catalog, for a format that needs one
    #[arg(long = "catalog", value_name = "CATALOG")]
    pub(crate) catalog: Option<String>,
    /// What to show
    #[arg(long, value_enum, default_value_t = Traced::Commit)]
    pub(crate) operation: Traced,
    /// The append whose commit is shown, or that the load comes after
    #[arg(long, default_value = "100", value_name = "N", allow_negative_numbers = true)]
    pub(crate) at: String,
    /// A setting of the format
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Seed of the latencies
    #[arg(long, default_value_t = crate::plan::SEED, value_name = "N")]
    pub(crate) seed: u64,
    /// How much process time computing takes: measured, free, or scale=F
    #[arg(long, default_value_t = Cpu::Measured, value_name = "CPU")]
    pub(crate) cpu: Cpu,
    /// Form of what is printed: text, json or csv
    #[arg(long = "format", default_value_t = OutputFormat::Text, value_name = "FORM")]
    pub(crate) output: OutputFormat,
}

/// Options of `simulate`.
///
/// Each option that takes values with commas between them makes an axis of the grid; it takes the place of what the file
/// says. docs/SWEEPS.md describes the file, the rows and how a sweep is split over machines.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SimulateOptions {
    /// What to do with rows that there are already.
    #[command(subcommand)]
    pub(crate) command: Option<SimulateCommand>,
    /// A grid: a TOML file, the name of a study (endive-2026), or, with --resume, the folder of a sweep
    pub(crate) grid: Option<String>,
    /// Transactions that arrive a second
    #[arg(long, value_delimiter = ',', value_name = "PER_S", allow_hyphen_values = true)]
    pub(crate) load: Vec<String>,
    /// Clients in closed loop, in place of a load
    #[arg(long, value_delimiter = ',', value_name = "N", allow_hyphen_values = true, conflicts_with = "load")]
    pub(crate) clients: Vec<String>,
    /// Tables of the catalog
    #[arg(long, value_delimiter = ',', value_name = "N", allow_hyphen_values = true)]
    pub(crate) tables: Vec<String>,
    /// Profiles of the store
    #[arg(long, value_delimiter = ',', value_name = "STORE")]
    pub(crate) provider: Vec<String>,
    /// Commit protocols
    #[arg(long, value_delimiter = ',', value_name = "PROTOCOL")]
    pub(crate) protocol: Vec<String>,
    /// Retry policies
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    pub(crate) retry: Vec<String>,
    /// Shares of FastAppends and ValidatedOverwrites, in percent: 90/10
    #[arg(long, value_delimiter = ',', value_name = "FA/VO", allow_hyphen_values = true)]
    pub(crate) mix: Vec<String>,
    /// Catalogs: a service's latency in milliseconds, or storage
    #[arg(long, value_delimiter = ',', value_name = "MS|storage", allow_hyphen_values = true)]
    pub(crate) catalog: Vec<String>,
    /// Exponents of a Zipf choice of tables, in place of a uniform one
    #[arg(long, value_delimiter = ',', value_name = "EXPONENT", allow_hyphen_values = true)]
    pub(crate) zipf: Vec<String>,
    /// Any setting of a cell, by its path
    #[arg(long = "set", value_name = "SETTING=VALUE,VALUE")]
    pub(crate) settings: Vec<String>,
    /// Run each cell with the seeds 1 to N [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) seeds: Option<u32>,
    /// Run a part of the cells: part I, from 0, of N
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Folder that the folders of sweeps are made in
    #[arg(long, default_value = "runs", value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Name of the folder [default: from the date]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Go on with the sweep of this name, or of the folder given as grid, if there is one: rows present are skipped
    #[arg(long)]
    pub(crate) resume: bool,
    /// Keep a row for each transaction too, a Parquet file for each cell and seed. Takes twice the time
    #[arg(long)]
    pub(crate) transactions: bool,
    /// Begin a sweep however large it is
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show how many cells there are and what they vary, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Form of what is printed: text, json or csv
    #[arg(long, default_value_t = OutputFormat::Text, value_name = "FORM")]
    pub(crate) format: OutputFormat,
}

/// What to do with rows that there are already.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    /// Put the rows of several sweeps or shards of one grid into one Parquet file, sorted by cell and seed
    Merge {
        /// The file to write
        out: PathBuf,
        /// Parquet files, folders of sweeps, or patterns such as 'runs/shard-*'
        #[arg(required = true)]
        parts: Vec<String>,
    },
    /// Draw the rows of a sweep: heatmaps, knees, throughput and latency, as one HTML file
    Plot {
        /// Parquet files, folders of sweeps, or patterns
        #[arg(required = true)]
        rows: Vec<String>,
        /// The file to write [default: plots.html beside the rows]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Definition of the metrics: drain, table, heatmap or knee [default: drain where cells have it, else table]
        #[arg(long, value_name = "NAME")]
        definition: Option<String>,
        /// Setting on the vertical axis of heatmaps [default: the first that varies]
        #[arg(long, value_name = "SETTING")]
        y: Option<String>,
    },
}

/// Options of `fit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FitOptions {
    /// The run folder
    pub(crate) folder: PathBuf,
    /// Only these cells [default: all that append to one table]
    #[arg(long = "cell", value_name = "CELL")]
    pub(crate) cells: Vec<String>,
    /// Simulate this protocol, a built-in one or a file ending in .toml, in place of the fitted ones
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Folder to write the protocols to, a file a cell [default: protocols, in the run folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Simulate each cell with the seeds 1 to N
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,
    /// Simulated time that is counted, in seconds, after a minute of warm-up
    #[arg(long, default_value_t = 600, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) duration_s: u32,
    /// Form of what is printed: text, json or csv
    #[arg(long, default_value_t = OutputFormat::Text, value_name = "FORM")]
    pub(crate) format: OutputFormat,
}

/// What to list.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Listed {
    /// Table formats and their settings
    Formats,
    /// Catalogs
    Catalogs,
    /// Emulated stores and where their numbers come from
    Stores,
    /// Scenarios and their parameters
    Scenarios,
    /// Published studies and the definitions that reproduce them
    Studies,
    /// Definitions that come with the tool, for run and reproduce
    Definitions,
    /// What the formats' libraries do not offer, and why
    Unsupported,
}

/// Options of `list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListOptions {
    /// What to list [default: everything, in short]
    #[arg(value_enum)]
    pub(crate) what: Option<Listed>,
    /// Form of what is printed: text, json or csv
    #[arg(long, default_value_t = OutputFormat::Text, value_name = "FORM")]
    pub(crate) format: OutputFormat,
}
