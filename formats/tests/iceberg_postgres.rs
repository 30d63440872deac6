//! Iceberg with its SQL catalog on a Postgres server. Needs the server's URL, with a password, in
//! `LAKEMARK_TEST_POSTGRES`: `tools/with-postgres` starts a server and sets it.
#![cfg(feature = "iceberg")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test's helpers fail by panicking, as tests do"
)]

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_catalogs::CatalogSpec;
use lakemark_core::record::{Layer, Outcome};
use lakemark_core::store::{
    ListPage, ListQuery, Object, ObjectInfo, Precondition, Provider, Span, Store, StoreResult, Traits,
};
use lakemark_core::table::{DataFile, Format, OperationError, Site, Table};
use lakemark_core::writer::{Scope, Writer};
use lakemark_formats::iceberg::Iceberg;
use lakemark_stores::Emulated;
use lakemark_stores::profile::Profile;
use tokio::sync::Barrier;
use url::Url;
use uuid::Uuid;

const VARIABLE: &str = "LAKEMARK_TEST_POSTGRES";
const TABLE: &str = "bench/0001/table";

/// How long a writer waits for another: far longer than the other needs.
const MEETING: Duration = Duration::from_secs(60);

/// The server to test against. Without one a test says so, past the harness that hides a passing test's output.
fn server() -> Option<Url> {
    let Ok(url) = std::env::var(VARIABLE) else {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line = format!("SKIPPED {test}: {VARIABLE} is not set; run it by tools/with-postgres\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    };
    let url = Url::parse(&url).unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    assert!(url.password().is_some(), "{VARIABLE} has no password, so that nothing would show that it is kept secret");
    Some(url)
}

/// A cell: its format, with rows of its own in the server's database, and its store.
struct Cell {
    format: Arc<Iceberg>,
    provider: Arc<Emulated>,
}

impl Cell {
    fn new(server: &Url) -> Self {
        let spec: CatalogSpec = server.as_str().parse().unwrap();
        Self {
            format: Arc::new(Iceberg::new(spec, format!("test-{}", Uuid::new_v4()))),
            provider: Emulated::new(Profile::builtin("instant").unwrap(), 1),
        }
    }

    fn site(&self, writer: u32, settings: &[(&str, &str)]) -> Site {
        let writer = Writer::new(writer, Scope::of_table(self.format.clone(), TABLE));
        Site {
            store: self.provider.clone().client(writer.clone()),
            writer,
            table: TABLE.to_owned(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }

    async fn failure(&self, site: &Site) -> OperationError {
        match self.format.open(site).await {
            Ok(_) => panic!("the table opens"),
            Err(error) => error,
        }
    }
}

/// The writer's attempts since they were last asked for.
fn attempts(site: &Site) -> Vec<(Layer, Outcome)> {
    let log = site.writer.finish_operation();
    log.attempts.iter().map(|attempt| (attempt.layer, attempt.outcome)).collect()
}

fn file(number: u64) -> DataFile {
    DataFile { path: format!("data/{number:05}.parquet"), size_bytes: 1_000, rows: 10, bounds: None }
}

async fn paths(table: &mut dyn Table) -> Vec<String> {
    let mut paths = table.files().await.unwrap().paths;
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_writer_goes_on_where_the_first_one_ended() {
    let Some(server) = server() else { return };
    let cell = Cell::new(&server);
    let first = cell.site(0, &[]);
    cell.format.create(&first).await.unwrap();
    let description = cell.format.catalog_description().unwrap();
    assert!(description.starts_with("postgres PostgreSQL "), "{description}");
    assert!(description.contains("synchronous_commit="), "{description}");

    let mut table = cell.format.open(&first).await.unwrap();
    assert_eq!(attempts(&first), []);
    for number in 0..3 {
        assert_eq!(table.append(&[file(number)]).await.unwrap(), number + 1);
        assert_eq!(attempts(&first), [(Layer::Catalog, Outcome::Ok)]);
    }

    let second = cell.site(1, &[]);
    let mut table = cell.format.open(&second).await.unwrap();
    assert_eq!(table.append(&[file(3), file(4)]).await.unwrap(), 4);
    assert_eq!(attempts(&second), [(Layer::Catalog, Outcome::Ok)]);
    assert_eq!(table.commits().await.unwrap(), [1, 2, 3, 4]);
    assert_eq!(paths(&mut *table).await, (0..5).map(|number| file(number).path).collect::<Vec<_>>());
    cell.format.clean(&second).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_commits_at_once_the_database_lets_one_win() {
    let Some(server) = server() else { return };
    for retries in ["0", "4"] {
        let cell = Cell::new(&server);
        let settings = [("max-retries", retries), ("retry-min-wait-ms", "1")];
        cell.format.create(&cell.site(9, &settings)).await.unwrap();
        // Each of the two waits for the other between its read of the table and its compare-and-swap.
        let barrier = Arc::new(Barrier::new(2));
        let mut tasks = Vec::new();
        for writer in 0..2 {
            let mut site = cell.site(writer, &settings);
            site.store = Arc::new(Meeting { store: site.store, barrier: barrier.clone(), met: false.into() });
            let format = cell.format.clone();
            tasks.push(tokio::spawn(async move {
                let mut table = format.open(&site).await.unwrap();
                let result = table.append(&[file(u64::from(writer))]).await;
                (result.map_err(|error| error.outcome), attempts(&site))
            }));
        }
        let mut ended = Vec::new();
        for task in tasks {
            ended.push(task.await.unwrap());
        }
        ended.sort_by_key(|(_, attempts)| attempts[0].1 != Outcome::Ok);

        let (won, lost) = ((Layer::Catalog, Outcome::Ok), (Layer::Catalog, Outcome::Conflict));
        let loser = match retries {
            "0" => (Err(Outcome::Conflict), vec![lost]),
            _ => (Ok(2), vec![lost, won]),
        };
        let commits: Vec<u64> = if loser.0.is_ok() { vec![1, 2] } else { vec![1] };
        assert_eq!(ended, [(Ok(1), vec![won]), loser], "{retries} retries");

        let site = cell.site(9, &settings);
        let mut table = cell.format.open(&site).await.unwrap();
        assert_eq!(table.commits().await.unwrap(), commits, "{retries} retries");
        assert_eq!(paths(&mut *table).await.len(), commits.len(), "{retries} retries");
        cell.format.clean(&site).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_removes_the_cells_rows_and_no_others() {
    let Some(server) = server() else { return };
    let (cleaned, other) = (Cell::new(&server), Cell::new(&server));
    let (site, other_site) = (cleaned.site(0, &[]), other.site(0, &[]));
    // As the harness holds it.
    let format: Arc<dyn Format> = cleaned.format.clone();
    format.create(&site).await.unwrap();
    other.format.create(&other_site).await.unwrap();
    format.clean(&site).await.unwrap();

    let error = cleaned.failure(&site).await;
    assert!(error.message.contains("bench_0001_table"), "{error}");
    assert_eq!(other.format.open(&other_site).await.unwrap().append(&[file(0)]).await.unwrap(), 1);
    // Neither the table's row nor the namespace's is left: both can be made again.
    format.create(&site).await.unwrap();
    assert_eq!(format.open(&site).await.unwrap().commits().await.unwrap(), Vec::<u64>::new());
    format.clean(&site).await.unwrap();
    other.format.clean(&other_site).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_shows_the_password() {
    const WRONG: &str = "wrong-0f2b81";
    let Some(server) = server() else { return };
    let right = server.password().unwrap().to_owned();
    type Change = fn(&mut Url);
    let changes: [(&str, Change); 3] = [
        ("password", |url| url.set_password(Some(WRONG)).unwrap()),
        ("database", |url| url.set_path("/no-such-database")),
        ("port", |url| url.set_port(Some(1)).unwrap()),
    ];
    for (name, change) in changes {
        let mut url = server.clone();
        change(&mut url);
        let cell = Cell::new(&url);
        let site = cell.site(0, &[]);
        let created = cell.format.create(&site).await.unwrap_err();
        for error in [created, cell.failure(&site).await] {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(WRONG) && !shown.contains(&right), "wrong {name}: {shown}");
            assert!(error.message.contains("postgres://"), "wrong {name}: {shown}");
            assert!(error.message.contains("cannot connect"), "wrong {name}: {shown}");
            assert!(!error.message.contains('\n'), "wrong {name}: {shown}");
        }
    }
    assert!(!format!("{:?}", Cell::new(&server).format).contains(&right));
}

/// A store whose first write of a metadata.json, the last request before the compare-and-swap, returns once the other
/// writer has written its own.
#[derive(Debug)]
struct Meeting {
    store: Arc<dyn Store>,
    barrier: Arc<Barrier>,
    met: AtomicBool,
}

#[async_trait]
impl Store for Meeting {
    fn traits(&self) -> Traits {
        self.store.traits()
    }

    async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
        self.store.get(key, span).await
    }

    async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
        self.store.head(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
        let tag = self.store.put(key, body, precondition).await?;
        if key.ends_with(".metadata.json") && !self.met.swap(true, Ordering::SeqCst) {
            tokio::time::timeout(MEETING, self.barrier.wait()).await.unwrap_or_else(|_| panic!("no other writer came"));
        }
        Ok(tag)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.store.list(query).await
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        self.store.delete(key).await
    }

    async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> StoreResult<()> {
        self.store.copy(from, to, precondition).await
    }
}
