//! A table format of the smallest kind: version N is the object `log/N`, created if absent, with the paths that it adds
//! and removes, a line each.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::record::Outcome;
use lakemark_core::store::{ListQuery, Precondition, Span, Store, StoreError};
use lakemark_core::table::{
    ActiveFiles, Change, DataFile, Format, FormatInfo, OperationError, OperationResult, Setting, Site, Table,
    Unsupported,
};

/// What its writers do when the answer to a commit was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unanswered {
    /// They look whether the commit is there.
    Verify,
    /// They tell their caller.
    Tell,
    /// They take the commit for lost and make it again: it may be there twice.
    Repeat,
}

#[derive(Clone, Copy, Debug)]
pub struct LogFormat(pub Unanswered);

#[async_trait]
impl Format for LogFormat {
    fn info(&self) -> FormatInfo {
        FormatInfo {
            name: "log",
            library: "log 1.0".to_owned(),
            catalogs: &["none"],
            settings: &[Setting { name: "max-retries", default: "15", help: "tries after one that lost" }],
            unsupported: &[Unsupported { what: "shallow_open", why: "there is nothing but the log" }],
        }
    }

    fn classify(&self, key: &str) -> &'static str {
        if key.starts_with("log/") { "log" } else { "other" }
    }

    fn publishes(&self, key: &str) -> bool {
        key.starts_with("log/")
    }

    async fn create(&self, site: &Site) -> OperationResult<()> {
        site.store.put(&key(site, 0), Bytes::new(), Precondition::Absent).await.map(drop).map_err(failed)
    }

    async fn open(&self, site: &Site) -> OperationResult<Box<dyn Table>> {
        let mut handle = Handle { site: site.clone(), unanswered: self.0, version: 0, active: BTreeMap::new() };
        handle.catch_up().await?;
        Ok(Box::new(handle))
    }

    async fn open_shallow(&self, _site: &Site) -> OperationResult<u64> {
        Err(OperationError::other("not supported"))
    }
}

/// Versions in the order of their numbers.
fn key(site: &Site, version: u64) -> String {
    format!("{}/log/{version:08}", site.table)
}

struct Handle {
    site: Site,
    unanswered: Unanswered,
    version: u64,
    /// Active files, each with how often it was added.
    active: BTreeMap<String, u32>,
}

impl Handle {
    fn store(&self) -> Arc<dyn Store> {
        self.site.store.clone()
    }

    fn apply(&mut self, body: &str) {
        for line in body.lines() {
            match line.split_at(1) {
                ("-", "*") => self.active.clear(),
                ("-", path) => _ = self.active.remove(path),
                (_, path) => *self.active.entry(path.to_owned()).or_default() += 1,
            }
        }
    }

    async fn catch_up(&mut self) -> OperationResult<()> {
        loop {
            match self.store().get(&key(&self.site, self.version + 1), Span::Full).await {
                Ok(object) => {
                    self.apply(&String::from_utf8_lossy(&object.body));
                    self.version += 1;
                }
                Err(StoreError::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    async fn commit(&mut self, body: String) -> OperationResult<u64> {
        let retries: u32 = self.site.settings["max-retries"].parse().expect("a number");
        for _ in 0..=retries {
            let version = self.version + 1;
            let key = key(&self.site, version);
            match self.store().put(&key, Bytes::from(body.clone()), Precondition::Absent).await {
                Ok(_) => {
                    self.version = version;
                    self.apply(&body);
                    return Ok(version);
                }
                Err(StoreError::Precondition { .. }) => self.catch_up().await?,
                Err(StoreError::Unknown { .. }) if self.unanswered == Unanswered::Verify => {
                    let there = self.store().get(&key, Span::Full).await.is_ok_and(|object| object.body == body);
                    self.catch_up().await?;
                    if there {
                        return Ok(version);
                    }
                }
                Err(StoreError::Unknown { .. }) if self.unanswered == Unanswered::Repeat => self.catch_up().await?,
                Err(error) => return Err(failed(error)),
            }
        }
        Err(OperationError { outcome: Outcome::Conflict, message: format!("lost {} times", retries + 1) })
    }
}

#[async_trait]
impl Table for Handle {
    async fn append(&mut self, files: &[DataFile]) -> OperationResult<u64> {
        self.commit(files.iter().map(|file| format!("+{}\n", file.path)).collect()).await
    }

    async fn change(&mut self, change: &Change) -> OperationResult<u64> {
        let (remove, add): (Vec<String>, &[DataFile]) = match change {
            Change::Overwrite { add } => (vec!["-*\n".to_owned()], add),
            Change::Delete { remove } => (remove.iter().map(|file| format!("-{}\n", file.path)).collect(), &[]),
            Change::Compact { remove, add } => (remove.iter().map(|file| format!("-{}\n", file.path)).collect(), add),
        };
        self.commit(remove.into_iter().chain(add.iter().map(|file| format!("+{}\n", file.path))).collect()).await
    }

    async fn fresh(&self) -> OperationResult<Box<dyn Table>> {
        LogFormat(self.unanswered).open(&self.site).await
    }

    async fn refresh(&mut self) -> OperationResult<u64> {
        self.catch_up().await?;
        Ok(self.version)
    }

    async fn files(&mut self) -> OperationResult<ActiveFiles> {
        let times = |(path, times): (&String, &u32)| std::iter::repeat_n(path.clone(), *times as usize);
        Ok(ActiveFiles { version: self.version, paths: self.active.iter().flat_map(times).collect() })
    }

    async fn commits(&mut self) -> OperationResult<Vec<u64>> {
        let prefix = format!("{}/log/", self.site.table);
        let mut query = ListQuery { prefix, ..ListQuery::default() };
        let mut versions = Vec::new();
        loop {
            let page = self.store().list(&query).await.map_err(failed)?;
            let names = page.objects.iter().filter_map(|object| object.key.strip_prefix(&query.prefix));
            versions.extend(names.filter_map(|name| name.parse::<u64>().ok()).filter(|version| *version > 0));
            match page.next {
                Some(token) => query.token = Some(token),
                None => break,
            }
        }
        versions.sort_unstable();
        Ok(versions)
    }
}

fn failed(error: StoreError) -> OperationError {
    let outcome = match &error {
        StoreError::Precondition { .. } => Outcome::Conflict,
        StoreError::Throttled { .. } => Outcome::Throttled,
        StoreError::Unknown { .. } => Outcome::Unknown,
        _ => Outcome::Error,
    };
    OperationError { outcome, message: error.to_string() }
}
