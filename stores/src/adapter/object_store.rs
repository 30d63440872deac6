// One adapter for two versions of `object_store`. `mod.rs` includes this file in a module for each of them, which binds
// `object_store` to that version and defines `answer!`, a struct literal with the fields that only the newer one has.
//
// What a call sends follows `AmazonS3` of the same crate, so that a format sees the requests and the errors that it
// would see on S3. `get_ranges` and `rename_opts` (copy, then delete) are left to the trait, as `AmazonS3` leaves them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future, stream};
use lakemark_core::store::{ListPage, ListQuery, ObjectInfo, Precondition, Span, Store, StoreError};
use object_store::path::{DELIMITER, Path};
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};

/// Name of the store in errors.
const STORE: &str = "lakemark";

/// Deletes under way at once; `AmazonS3` has as many where a provider has no bulk delete.
const DELETES_IN_FLIGHT: usize = 20;

/// One writer's client of a store, as an [`ObjectStore`]. Keys are paths as they are.
///
/// It differs from `AmazonS3` on the wire in two things. A multipart upload holds its parts in memory and sends one PUT
/// when it is completed, instead of a request to start, one for each part and one to complete; the metadata that
/// formats write stays below the size at which they use one. A stream of deletes sends one DELETE for each object,
/// instead of one request for each 1,000.
#[derive(Clone, Debug)]
pub struct Adapter {
    store: Arc<dyn Store>,
}

impl Adapter {
    /// An adapter to a client.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Pages of a listing, each requested when the one before has been used.
    ///
    /// A prefix is a number of whole path segments, so that on the wire it ends with a slash.
    fn pages(
        &self,
        prefix: Option<&Path>,
        delimited: bool,
        start_after: Option<&Path>,
    ) -> BoxStream<'static, Result<ListPage>> {
        let store = Arc::clone(&self.store);
        let prefix = prefix.filter(|prefix| !prefix.as_ref().is_empty());
        let query = ListQuery {
            prefix: prefix.map(|prefix| format!("{prefix}{DELIMITER}")).unwrap_or_default(),
            delimited,
            start_after: start_after.map(Path::to_string),
            token: None,
        };
        stream::try_unfold(Some(query), move |query| {
            let store = Arc::clone(&store);
            async move {
                let Some(query) = query else { return Ok(None) };
                let page = store.list(&query).await.map_err(converted)?;
                let next = page.next.clone().map(|token| ListQuery { token: Some(token), ..query });
                Ok(Some((page, next)))
            }
        })
        .boxed()
    }

    /// All objects of a listing.
    fn objects(&self, prefix: Option<&Path>, start_after: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(prefix, false, start_after)
            .map_ok(|page| stream::iter(page.objects.into_iter().map(listed)))
            .try_flatten()
            .boxed()
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(STORE)
    }
}

#[async_trait]
impl ObjectStore for Adapter {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let precondition = match &opts.mode {
            PutMode::Overwrite => Precondition::None,
            PutMode::Create => Precondition::Absent,
            PutMode::Update(version) => {
                let tag = version.e_tag.clone().ok_or_else(|| generic("ETag required for conditional put"))?;
                Precondition::Match(tag)
            }
        };
        match self.store.put(location.as_ref(), payload.into(), precondition).await {
            Ok(tag) => Ok(written(tag)),
            Err(error) => Err(match (&opts.mode, error) {
                (PutMode::Create, error @ StoreError::Precondition { .. }) => already_exists(location, error),
                // S3 answers 404 to If-Match where no object has the key.
                (PutMode::Update(_), error @ StoreError::NotFound { .. }) => {
                    Error::Precondition { path: location.to_string(), source: Box::new(error) }
                }
                (_, error) => converted(error),
            }),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload { store: Arc::clone(&self.store), location: location.clone(), parts: Vec::new() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.version.is_some() {
            return Err(Error::NotSupported { source: "read of an object's earlier version".into() });
        }
        if let Some(range) = &options.range {
            range.is_valid().map_err(generic)?;
        }
        let (info, start, body) = if options.head {
            (self.store.head(location.as_ref()).await.map_err(converted)?, 0, None)
        } else {
            let span = match options.range.clone() {
                None => Span::Full,
                Some(GetRange::Bounded(range)) => Span::Range(range),
                Some(GetRange::Offset(start)) => Span::From(start),
                Some(GetRange::Suffix(length)) => Span::Last(length),
            };
            let object = self.store.get(location.as_ref(), span).await.map_err(converted)?;
            (object.info, object.start, Some(object.body))
        };
        let meta = described(location.clone(), info);
        // A server judges these before it sends a body. The core has no conditional read, so here the body comes too.
        options.check_preconditions(&meta)?;
        let range = match &body {
            Some(body) => start..start + body.len() as u64,
            None => 0..meta.size,
        };
        Ok(answer!(GetResult {
            payload: GetResultPayload::Stream(stream::iter(body.map(Ok)).boxed()),
            meta,
            range,
            attributes: Attributes::default(),
        }))
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = Arc::clone(&self.store);
        locations
            .map(move |location| {
                let store = Arc::clone(&store);
                async move {
                    let location = location?;
                    store.delete(location.as_ref()).await.map_err(converted)?;
                    Ok(location)
                }
            })
            .buffered(DELETES_IN_FLIGHT)
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects(prefix, None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.store.traits().ordered_list {
            return self.objects(prefix, Some(offset));
        }
        // S3 Express takes no start key: its client lists all and drops what comes before.
        let offset = offset.clone();
        self.objects(prefix, None).try_filter(move |object| future::ready(object.location > offset)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut pages = self.pages(prefix, true, None);
        let mut common_prefixes = BTreeSet::new();
        let mut objects = Vec::new();
        while let Some(page) = pages.try_next().await? {
            for prefix in page.common_prefixes {
                common_prefixes.insert(Path::parse(prefix)?);
            }
            for object in page.objects {
                objects.push(listed(object)?);
            }
        }
        Ok(answer!(ListResult { common_prefixes: common_prefixes.into_iter().collect(), objects }))
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let precondition = match options.mode {
            CopyMode::Overwrite => Precondition::None,
            CopyMode::Create => Precondition::Absent,
        };
        self.store.copy(from.as_ref(), to.as_ref(), precondition).await.map_err(|error| match error {
            StoreError::Precondition { .. } => already_exists(to, error),
            error => converted(error),
        })
    }
}

/// A multipart upload that is one PUT in the end.
#[derive(Debug)]
struct Upload {
    store: Arc<dyn Store>,
    location: Path,
    parts: Vec<Bytes>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts.extend(data);
        Box::pin(future::ready(Ok(())))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let payload: PutPayload = self.parts.drain(..).collect();
        let tag = self.store.put(self.location.as_ref(), payload.into(), Precondition::None).await;
        tag.map(written).map_err(converted)
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.clear();
        Ok(())
    }
}

fn written(tag: String) -> PutResult {
    answer!(PutResult { e_tag: Some(tag), version: None })
}

fn listed(info: ObjectInfo) -> Result<ObjectMeta> {
    Ok(described(Path::parse(&info.key)?, info))
}

fn described(location: Path, info: ObjectInfo) -> ObjectMeta {
    let modified = Duration::from_millis(u64::try_from(info.modified_ms).unwrap_or(0));
    ObjectMeta {
        location,
        last_modified: (UNIX_EPOCH + modified).into(),
        size: info.size_bytes,
        e_tag: Some(info.etag),
        version: None,
    }
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: STORE, source: source.into() }
}

fn already_exists(location: &Path, source: StoreError) -> Error {
    Error::AlreadyExists { path: location.to_string(), source: Box::new(source) }
}

/// The error that the client makes of the status, with the store's as its source.
fn converted(error: StoreError) -> Error {
    match &error {
        StoreError::NotFound { key } => Error::NotFound { path: key.clone(), source: Box::new(error) },
        StoreError::Precondition { key, status: 409 } => {
            Error::AlreadyExists { path: key.clone(), source: Box::new(error) }
        }
        StoreError::Precondition { key, .. } => Error::Precondition { path: key.clone(), source: Box::new(error) },
        StoreError::Unsupported { .. } => Error::NotSupported { source: Box::new(error) },
        StoreError::Throttled { .. } | StoreError::Unknown { .. } | StoreError::Failed { .. } => generic(error),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use lakemark_core::store::{Object, StoreResult, Traits};
    use object_store::ObjectStoreExt;

    use super::*;

    type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

    /// Keys to (tag, body), in pages of two, with a record of the listings.
    #[derive(Debug)]
    struct Memory {
        ordered_list: bool,
        conflict_status: u16,
        objects: Mutex<BTreeMap<String, (String, Bytes)>>,
        listings: Mutex<Vec<ListQuery>>,
    }

    impl Memory {
        fn holding(keys: &[&str], ordered_list: bool) -> Arc<Self> {
            let object = |key: &&str| (key.to_string(), ("0".to_owned(), Bytes::from_static(b"0123456789")));
            Arc::new(Self {
                ordered_list,
                conflict_status: 412,
                objects: Mutex::new(keys.iter().map(object).collect()),
                listings: Mutex::default(),
            })
        }

        fn listings(&self) -> Vec<ListQuery> {
            self.listings.lock().map(|listings| listings.clone()).unwrap_or_default()
        }

        fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (String, Bytes)>> {
            self.objects.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        fn info(key: &str, etag: &str, body: &Bytes) -> ObjectInfo {
            ObjectInfo { key: key.into(), size_bytes: body.len() as u64, etag: etag.into(), modified_ms: 1_500 }
        }
    }

    #[async_trait]
    impl Store for Memory {
        fn traits(&self) -> Traits {
            Traits { ordered_list: self.ordered_list }
        }

        async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
            let objects = self.objects();
            let (etag, body) = objects.get(key).ok_or_else(|| StoreError::NotFound { key: key.into() })?;
            let size = body.len() as u64;
            let (start, end) = match span {
                Span::Full => (0, size),
                Span::Range(range) => (range.start, range.end.min(size)),
                Span::From(start) => (start, size),
                Span::Last(length) => (size.saturating_sub(length), size),
            };
            Ok(Object { info: Self::info(key, etag, body), start, body: body.slice(start as usize..end as usize) })
        }

        async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
            Ok(self.get(key, Span::Full).await?.info)
        }

        async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
            let mut objects = self.objects();
            let found = objects.get(key).map(|(etag, _)| etag.clone());
            match (precondition, &found) {
                (Precondition::Match(_), None) => return Err(StoreError::NotFound { key: key.into() }),
                (Precondition::Absent, None) | (Precondition::None, _) => {}
                (Precondition::Match(wanted), Some(etag)) if wanted == *etag => {}
                _ => return Err(StoreError::Precondition { key: key.into(), status: self.conflict_status }),
            }
            let etag = format!("{}+", found.unwrap_or_default());
            objects.insert(key.into(), (etag.clone(), body));
            Ok(etag)
        }

        async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
            if let Ok(mut listings) = self.listings.lock() {
                listings.push(query.clone());
            }
            let after = query.token.clone().max(query.start_after.clone()).unwrap_or_default();
            let mut page = ListPage::default();
            let objects = self.objects();
            let matching = objects.iter().filter(|(key, _)| key.starts_with(&query.prefix) && **key > after);
            for (key, (etag, body)) in matching {
                if page.objects.len() + page.common_prefixes.len() == 2 {
                    page.next = page.objects.last().map(|object| object.key.clone());
                    break;
                }
                match key[query.prefix.len()..].split_once('/') {
                    Some((folder, _)) if query.delimited => {
                        page.common_prefixes.push(format!("{}{folder}/", query.prefix))
                    }
                    _ => page.objects.push(Self::info(key, etag, body)),
                }
            }
            Ok(page)
        }

        async fn delete(&self, key: &str) -> StoreResult<()> {
            self.objects().remove(key);
            Ok(())
        }

        async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> StoreResult<()> {
            let body = self.get(from, Span::Full).await?.body;
            self.put(to, body, precondition).await.map(drop)
        }
    }

    #[tokio::test]
    async fn create_conflicts_for_both_statuses() -> TestResult {
        for conflict_status in [409, 412] {
            let memory = Memory { conflict_status, ..Arc::into_inner(Memory::holding(&["a"], true)).ok_or("shared")? };
            let adapter = Adapter::new(Arc::new(memory));
            let lost = adapter.put_opts(&"a".into(), "1".into(), PutMode::Create.into()).await;
            assert!(matches!(lost, Err(Error::AlreadyExists { .. })), "{conflict_status}: {lost:?}");
            adapter.put_opts(&"b".into(), "1".into(), PutMode::Create.into()).await?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn update_needs_the_current_tag() -> TestResult {
        let adapter = Adapter::new(Memory::holding(&["a"], true));
        let update =
            |tag: &str| PutMode::Update(object_store::UpdateVersion { e_tag: Some(tag.into()), version: None });
        adapter.put_opts(&"a".into(), "1".into(), update("0").into()).await?;
        for key in ["a", "absent"] {
            let lost = adapter.put_opts(&key.into(), "2".into(), update("0").into()).await;
            assert!(matches!(lost, Err(Error::Precondition { .. })), "{key}: {lost:?}");
        }
        Ok(())
    }

    #[tokio::test]
    async fn pages_are_fetched_when_needed() -> TestResult {
        let memory = Memory::holding(&["t/a", "t/b", "t/c", "t/d", "t/e", "tt/f"], true);
        let adapter = Adapter::new(memory.clone());
        let mut listing = adapter.list(Some(&"t".into()));
        listing.try_next().await?;
        listing.try_next().await?;
        assert_eq!(memory.listings().len(), 1);
        assert_eq!(listing.try_collect::<Vec<_>>().await?.len(), 3);
        assert_eq!(memory.listings().len(), 3);
        assert!(memory.listings().iter().all(|query| query.prefix == "t/"));
        Ok(())
    }

    #[tokio::test]
    async fn offset_is_sent_only_where_keys_are_ordered() -> TestResult {
        for (ordered_list, requests) in [(true, 1), (false, 2)] {
            let memory = Memory::holding(&["t/a", "t/b", "t/c", "t/d"], ordered_list);
            let listing = Adapter::new(memory.clone()).list_with_offset(Some(&"t".into()), &"t/b".into());
            let keys: Vec<_> = listing.map_ok(|object| object.location.to_string()).try_collect().await?;
            assert_eq!(keys, ["t/c", "t/d"]);
            assert_eq!(memory.listings().len(), requests);
            assert_eq!(memory.listings()[0].start_after.is_some(), ordered_list);
        }
        Ok(())
    }

    #[tokio::test]
    async fn folders_are_common_prefixes() -> TestResult {
        let adapter = Adapter::new(Memory::holding(&["t/a", "t/b/c"], true));
        let found = adapter.list_with_delimiter(Some(&"t".into())).await?;
        assert_eq!(found.common_prefixes, ["t/b".into()]);
        assert_eq!(found.objects.len(), 1);
        assert_eq!(found.objects[0].location, "t/a".into());
        Ok(())
    }

    #[tokio::test]
    async fn ranges_reach_the_store() -> TestResult {
        let adapter = Adapter::new(Memory::holding(&["a"], true));
        let cases = [
            (GetRange::Bounded(2..4), 2..4, "23"),
            (GetRange::Bounded(8..20), 8..10, "89"),
            (GetRange::Offset(7), 7..10, "789"),
            (GetRange::Suffix(1), 9..10, "9"),
        ];
        for (range, covered, body) in cases {
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let result = adapter.get_opts(&"a".into(), options).await?;
            assert_eq!(result.range, covered);
            assert_eq!(result.meta.size, 10);
            assert_eq!(result.bytes().await?, body);
        }
        Ok(())
    }

    #[tokio::test]
    async fn reads_can_be_conditional() -> TestResult {
        let adapter = Adapter::new(Memory::holding(&["a"], true));
        let unchanged = GetOptions { if_none_match: Some("0".into()), ..GetOptions::default() };
        assert!(matches!(adapter.get_opts(&"a".into(), unchanged).await, Err(Error::NotModified { .. })));
        let other = GetOptions { if_match: Some("1".into()), head: true, ..GetOptions::default() };
        assert!(matches!(adapter.get_opts(&"a".into(), other).await, Err(Error::Precondition { .. })));
        assert!(matches!(adapter.head(&"b".into()).await, Err(Error::NotFound { .. })));
        assert_eq!(adapter.head(&"a".into()).await?.last_modified.timestamp_millis(), 1_500);
        Ok(())
    }

    #[tokio::test]
    async fn parts_are_joined_in_order() -> TestResult {
        let adapter = Adapter::new(Memory::holding(&[], true));
        let mut upload = adapter.put_multipart(&"a".into()).await?;
        let second = [upload.put_part("one ".into()), upload.put_part("two".into())];
        future::try_join_all(second).await?;
        assert!(adapter.head(&"a".into()).await.is_err());
        upload.complete().await?;
        assert_eq!(adapter.get(&"a".into()).await?.bytes().await?, "one two");
        Ok(())
    }

    #[tokio::test]
    async fn copies_and_renames() -> TestResult {
        let memory = Memory::holding(&["a", "b"], true);
        let adapter = Adapter::new(memory.clone());
        let lost = adapter.copy_if_not_exists(&"a".into(), &"b".into()).await;
        assert!(matches!(lost, Err(Error::AlreadyExists { .. })));
        adapter.rename(&"a".into(), &"c".into()).await?;
        adapter.delete(&"b".into()).await?;
        assert_eq!(memory.objects().keys().collect::<Vec<_>>(), ["c"]);
        Ok(())
    }

    #[test]
    fn source_of_an_error_is_the_stores() {
        let throttled = StoreError::Throttled { key: "a".into(), status: 503 };
        let error = converted(throttled.clone());
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<StoreError>());
        assert_eq!(source, Some(&throttled));
    }
}
