//! The adapter to Iceberg's `Storage`.

use std::error::Error as _;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use iceberg::Error;
use iceberg::io::Storage;
use lakemark_core::store::{Precondition, Span, Store, StoreError};
use lakemark_stores::adapter::iceberg::{IcebergStorage, location};

use crate::subject::{Ability, Answer, Failure, Known, Subject};

struct Adapted(IcebergStorage);

pub(crate) fn open(store: Arc<dyn Store>) -> Box<dyn Subject> {
    Box::new(Adapted(IcebergStorage::new(store)))
}

fn failure(error: Error) -> Failure {
    match error.source().and_then(|source| source.downcast_ref::<StoreError>()) {
        Some(error) => error.clone().into(),
        None => Failure::Refused(format!("{error:?}")),
    }
}

#[async_trait]
impl Subject for Adapted {
    fn abilities(&self) -> &'static [Ability] {
        &[Ability::DeleteFolder, Ability::Parts]
    }

    async fn get(&self, key: &str, span: Span) -> Answer<Bytes> {
        let path = location(key);
        match span {
            Span::Full => self.0.read(&path).await.map_err(failure),
            Span::Range(range) => {
                let reader = self.0.reader(&path).await.map_err(failure)?;
                reader.read(range).await.map_err(failure)
            }
            Span::From(_) | Span::Last(_) => panic!("no words for {span:?}"),
        }
    }

    async fn head(&self, key: &str) -> Answer<Known> {
        let known = self.0.metadata(&location(key)).await.map_err(failure);
        let exists = self.0.exists(&location(key)).await.map_err(failure)?;
        assert_eq!(exists, known.is_ok(), "what exists has a size");
        Ok(Known { size_bytes: known?.size, etag: None, modified_ms: None })
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> Answer<Option<String>> {
        assert_eq!(precondition, Precondition::None, "no words for preconditions");
        self.0.write(&location(key), body).await.map_err(failure)?;
        Ok(None)
    }

    async fn delete(&self, key: &str) -> Answer<()> {
        self.0.delete(&location(key)).await.map_err(failure)
    }

    async fn put_parts(&self, key: &str, parts: &[Bytes]) -> Answer<()> {
        let mut writer = self.0.writer(&location(key)).await.map_err(failure)?;
        for part in parts {
            writer.write(part.clone()).await.map_err(failure)?;
        }
        writer.close().await.map_err(failure)
    }

    async fn delete_folder(&self, folder: &str) -> Answer<()> {
        self.0.delete_prefix(&location(folder)).await.map_err(failure)
    }
}
