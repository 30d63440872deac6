//! Iceberg's storage interface over one writer's store client.
//!
//! The requests are those of the library's usual S3 client, `iceberg-storage-opendal` with its default options: a whole
//! file is one GET (no HEAD before it, because the size is not asked for), a file written in one piece is one PUT
//! without a precondition, `exists` and `metadata` are a HEAD each, a range is one ranged GET. Deletions differ: OpenDAL
//! sends up to 1,000 keys in one request, here each key is a request. No commit and no load deletes anything.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::io::{FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory};
use iceberg::{Error, ErrorKind, Result};
use lakemark_core::store::{ListQuery, Precondition, Span, Store, StoreError};
use serde::{Deserialize, Serialize};

/// URL of the bucket that every path starts with. It names no server: the store behind it is the cell's.
pub const BUCKET_URL: &str = "s3://lakemark";

/// URL of the object with a key.
pub fn location(key: &str) -> String {
    format!("{BUCKET_URL}/{key}")
}

/// Key of the object at a URL that [`location`] made; none for any other URL.
pub fn key(location: &str) -> Option<&str> {
    location.strip_prefix(BUCKET_URL)?.strip_prefix('/').filter(|key| !key.is_empty())
}

/// One writer's store client as Iceberg's `Storage`, and as the factory of itself.
///
/// Iceberg asks storages to be serializable, so that engines can send them to other processes. A live client cannot be
/// sent: it serializes to an empty object, and reading that back fails.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "Detached")]
pub struct IcebergStorage {
    #[serde(skip)]
    store: Arc<dyn Store>,
}

impl IcebergStorage {
    /// A storage whose requests go through this client.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

/// What is left of a storage that was serialized.
#[derive(Deserialize)]
struct Detached {}

impl TryFrom<Detached> for IcebergStorage {
    type Error = &'static str;

    fn try_from(_: Detached) -> std::result::Result<Self, Self::Error> {
        Err("a lakemark storage is a live client of one writer and cannot be read back in another process")
    }
}

#[typetag::serde(name = "LakemarkStorageFactory")]
impl StorageFactory for IcebergStorage {
    fn build(&self, _config: &StorageConfig) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[typetag::serde(name = "LakemarkStorage")]
#[async_trait]
impl Storage for IcebergStorage {
    async fn exists(&self, path: &str) -> Result<bool> {
        match self.store.head(key_of(path)?).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        let info = self.store.head(key_of(path)?).await.map_err(failed)?;
        Ok(FileMetadata { size: info.size_bytes })
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        let object = self.store.get(key_of(path)?, Span::Full).await.map_err(failed)?;
        Ok(object.body)
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader { store: self.store.clone(), key: key_of(path)?.to_owned() }))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.store.put(key_of(path)?, bytes, Precondition::None).await.map_err(failed)?;
        Ok(())
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        Ok(Box::new(Upload { store: self.store.clone(), key: key_of(path)?.to_owned(), parts: Some(Vec::new()) }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.store.delete(key_of(path)?).await.map_err(failed)
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        let mut query =
            ListQuery { prefix: format!("{}/", key_of(path)?.trim_end_matches('/')), ..ListQuery::default() };
        loop {
            let page = self.store.list(&query).await.map_err(failed)?;
            for object in &page.objects {
                self.store.delete(&object.key).await.map_err(failed)?;
            }
            // A provider ends its listing with a page that names no next one.
            match page.next {
                Some(token) => query.token = Some(token),
                None => return Ok(()),
            }
        }
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> Result<()> {
        while let Some(path) = paths.next().await {
            self.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

/// Reads ranges of one object, each with one request.
#[derive(Debug)]
struct Reader {
    store: Arc<dyn Store>,
    key: String,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let object = self.store.get(&self.key, Span::Range(range)).await.map_err(failed)?;
        Ok(object.body)
    }
}

/// Collects the parts of one object and sends them as one PUT when closed. Manifests and manifest lists are written in
/// one part, so nothing is copied on a commit's path.
#[derive(Debug)]
struct Upload {
    store: Arc<dyn Store>,
    key: String,
    /// None once closed.
    parts: Option<Vec<Bytes>>,
}

#[async_trait]
impl FileWrite for Upload {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let Some(parts) = &mut self.parts else { return Err(closed(&self.key)) };
        parts.push(bytes);
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        let parts = self.parts.take().ok_or_else(|| closed(&self.key))?;
        let body = match <[Bytes; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(parts) => {
                let mut joined = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
                for part in &parts {
                    joined.extend_from_slice(part);
                }
                joined.freeze()
            }
        };
        self.store.put(&self.key, body, Precondition::None).await.map_err(failed)?;
        Ok(())
    }
}

fn key_of(path: &str) -> Result<&str> {
    key(path).ok_or_else(|| {
        Error::new(ErrorKind::DataInvalid, format!("path {path:?} is not in the bucket {BUCKET_URL} of this storage"))
    })
}

fn closed(key: &str) -> Error {
    Error::new(ErrorKind::DataInvalid, format!("the writer of {key} is closed"))
}

/// What the library sees of a failed request. As with OpenDAL's errors, the kind is `Unexpected` and the library does
/// not retry; the store's error is the source, by which the outcome is classified.
fn failed(error: StoreError) -> Error {
    let kind = match error {
        StoreError::Unsupported { .. } => ErrorKind::FeatureUnsupported,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, "request to the object store failed").with_source(error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::error::Error as _;
    use std::sync::Mutex;

    use iceberg::io::{FileIO, FileIOBuilder};
    use lakemark_core::store::{ListPage, Object, ObjectInfo, StoreResult, Traits};

    use super::*;

    /// Keeps objects in memory, lists two a page, and notes every request.
    #[derive(Debug, Default)]
    struct Fake {
        objects: Mutex<BTreeMap<String, Bytes>>,
        requests: Mutex<Vec<String>>,
    }

    impl Fake {
        fn note(&self, request: String) {
            self.requests.lock().unwrap().push(request);
        }

        fn info(&self, key: &str) -> StoreResult<ObjectInfo> {
            let objects = self.objects.lock().unwrap();
            let body = objects.get(key).ok_or(StoreError::NotFound { key: key.to_owned() })?;
            Ok(ObjectInfo { key: key.to_owned(), size_bytes: body.len() as u64, etag: "e".into(), modified_ms: 0 })
        }

        fn taken(&self) -> Vec<String> {
            std::mem::take(&mut self.requests.lock().unwrap())
        }
    }

    #[async_trait]
    impl Store for Fake {
        fn traits(&self) -> Traits {
            Traits { ordered_list: true }
        }

        async fn get(&self, key: &str, span: Span) -> StoreResult<Object> {
            self.note(format!("GET {key} {span:?}"));
            let info = self.info(key)?;
            let body = self.objects.lock().unwrap()[key].clone();
            Ok(match span {
                Span::Range(range) => {
                    Object { info, start: range.start, body: body.slice(range.start as usize..range.end as usize) }
                }
                _ => Object { info, start: 0, body },
            })
        }

        async fn head(&self, key: &str) -> StoreResult<ObjectInfo> {
            self.note(format!("HEAD {key}"));
            self.info(key)
        }

        async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> StoreResult<String> {
            self.note(format!("PUT {key} {precondition:?}"));
            if key.contains("throttled") {
                return Err(StoreError::Throttled { key: key.to_owned(), status: 503 });
            }
            self.objects.lock().unwrap().insert(key.to_owned(), body);
            Ok("e".into())
        }

        async fn list(&self, query: &ListQuery) -> StoreResult<ListPage> {
            self.note(format!("LIST {}", query.prefix));
            let objects = self.objects.lock().unwrap();
            let after = query.token.clone().unwrap_or_default();
            let mut keys: Vec<_> =
                objects.keys().filter(|key| key.starts_with(&query.prefix) && **key > after).cloned().collect();
            let more = keys.len() > 2;
            keys.truncate(2);
            Ok(ListPage {
                next: more.then(|| keys[1].clone()),
                objects: keys
                    .into_iter()
                    .map(|key| ObjectInfo { key, size_bytes: 0, etag: "e".into(), modified_ms: 0 })
                    .collect(),
                common_prefixes: Vec::new(),
            })
        }

        async fn delete(&self, key: &str) -> StoreResult<()> {
            self.note(format!("DELETE {key}"));
            self.objects.lock().unwrap().remove(key);
            Ok(())
        }

        async fn copy(&self, _: &str, _: &str, _: Precondition) -> StoreResult<()> {
            Err(StoreError::Unsupported { what: "copy".into() })
        }
    }

    fn file_io() -> (Arc<Fake>, FileIO) {
        let fake = Arc::new(Fake::default());
        let io = FileIOBuilder::new(Arc::new(IcebergStorage::new(fake.clone()))).build();
        (fake, io)
    }

    #[tokio::test]
    async fn whole_files_take_one_request() {
        let (fake, io) = file_io();
        let path = location("t/metadata/a.json");
        io.new_output(&path).unwrap().write(Bytes::from_static(b"0123456789")).await.unwrap();
        assert_eq!(io.new_input(&path).unwrap().read().await.unwrap(), "0123456789");
        let reader = io.new_input(&path).unwrap().reader().await.unwrap();
        assert_eq!(reader.read(2..5).await.unwrap(), "234");
        assert!(io.exists(&path).await.unwrap());
        assert!(!io.exists(location("t/none")).await.unwrap());
        assert_eq!(
            fake.taken(),
            [
                "PUT t/metadata/a.json None",
                "GET t/metadata/a.json Full",
                "GET t/metadata/a.json Range(2..5)",
                "HEAD t/metadata/a.json",
                "HEAD t/none"
            ]
        );
    }

    #[tokio::test]
    async fn a_writer_sends_its_parts_once_and_closes_once() {
        let (fake, io) = file_io();
        let path = location("t/metadata/m.avro");
        let mut writer = io.new_output(&path).unwrap().writer().await.unwrap();
        writer.write(Bytes::from_static(b"one,")).await.unwrap();
        writer.write(Bytes::from_static(b"two")).await.unwrap();
        assert_eq!(fake.taken(), Vec::<String>::new());
        writer.close().await.unwrap();
        assert!(writer.close().await.is_err());
        assert!(writer.write(Bytes::new()).await.is_err());
        assert_eq!(fake.taken(), ["PUT t/metadata/m.avro None"]);
        assert_eq!(fake.objects.lock().unwrap()["t/metadata/m.avro"], "one,two");
    }

    #[tokio::test]
    async fn a_prefix_is_deleted_page_by_page_and_nothing_beside_it() {
        let (fake, io) = file_io();
        for key in ["t/a", "t/b", "t/c", "t/d/e", "table"] {
            fake.objects.lock().unwrap().insert(key.to_owned(), Bytes::new());
        }
        io.delete_prefix(location("t")).await.unwrap();
        assert_eq!(fake.objects.lock().unwrap().keys().collect::<Vec<_>>(), ["table"]);
    }

    #[tokio::test]
    async fn a_failure_keeps_the_stores_error_as_its_source() {
        let (_, io) = file_io();
        let error = io.new_output(location("throttled")).unwrap().write(Bytes::new()).await.unwrap_err();
        assert!(!error.retryable());
        let source = error.source().and_then(|source| source.downcast_ref::<StoreError>());
        assert_eq!(source, Some(&StoreError::Throttled { key: "throttled".into(), status: 503 }));
    }

    #[tokio::test]
    async fn paths_outside_the_bucket_are_refused() {
        let (_, io) = file_io();
        for path in ["s3://other/t/a", "s3://lakemarket/t/a", "s3://lakemark/", "t/a"] {
            let error = io.exists(path).await.unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
        }
    }

    #[test]
    fn a_storage_cannot_be_read_back() {
        let storage: Box<dyn Storage> = Box::new(IcebergStorage::new(Arc::new(Fake::default())));
        let text = serde_json::to_string(&storage).unwrap();
        assert_eq!(text, r#"{"type":"LakemarkStorage"}"#);
        let error = serde_json::from_str::<Box<dyn Storage>>(&text).unwrap_err().to_string();
        assert!(error.contains("cannot be read back"), "{error}");
    }
}
