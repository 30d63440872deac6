//! The adapters to both versions of `object_store`.

macro_rules! subject {
    ($module:ident, $object_store:ident, $gate:literal) => {
        #[cfg(feature = $gate)]
        pub(crate) mod $module {
            use std::error::Error as _;
            use std::sync::Arc;

            use ::$object_store as object_store;
            use async_trait::async_trait;
            use bytes::Bytes;
            use futures::TryStreamExt;
            use lakemark_core::store::{Precondition, Span, Store, StoreError};
            use lakemark_stores::adapter::$object_store::Adapter;
            use object_store::path::Path;
            use object_store::{Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};

            use crate::subject::{Ability, Answer, Failure, Folder, Known, Subject};

            struct Adapted(Adapter);

            pub(crate) fn open(store: Arc<dyn Store>) -> Box<dyn Subject> {
                Box::new(Adapted(Adapter::new(store)))
            }

            fn path(key: &str) -> Path {
                Path::parse(key).expect("the key is a path")
            }

            fn source(error: &Error) -> Option<&StoreError> {
                error.source()?.downcast_ref()
            }

            fn refused(error: &Error) -> Failure {
                match (error, source(error)) {
                    (Error::Generic { .. }, Some(StoreError::Throttled { status, .. })) => Failure::Throttled(*status),
                    _ => Failure::Refused(format!("{error:?}")),
                }
            }

            /// What neither writes nor reads conditionally can only miss its object.
            fn failure(error: Error) -> Failure {
                match error {
                    Error::NotFound { .. } => Failure::NotFound,
                    error => refused(&error),
                }
            }

            /// The status behind an error that says that a precondition does not hold.
            fn lost(error: Error) -> Failure {
                match source(&error) {
                    Some(StoreError::Precondition { status, .. }) => Failure::Lost(*status),
                    Some(StoreError::NotFound { .. }) => Failure::Lost(404),
                    _ => refused(&error),
                }
            }

            #[async_trait]
            impl Subject for Adapted {
                fn abilities(&self) -> &'static [Ability] {
                    use Ability::{Condition, Copy, List, OpenSpan, Parts};
                    &[Condition, Copy, List, OpenSpan, Parts]
                }

                async fn get(&self, key: &str, span: Span) -> Answer<Bytes> {
                    let range = match span {
                        Span::Full => None,
                        Span::Range(range) => Some(GetRange::Bounded(range)),
                        Span::From(start) => Some(GetRange::Offset(start)),
                        Span::Last(length) => Some(GetRange::Suffix(length)),
                    };
                    let options = GetOptions { range, ..GetOptions::default() };
                    let result = self.0.get_opts(&path(key), options).await.map_err(failure)?;
                    let range = result.range.clone();
                    let body = result.bytes().await.map_err(failure)?;
                    assert_eq!(body.len() as u64, range.end - range.start, "the range is the body's");
                    Ok(body)
                }

                async fn head(&self, key: &str) -> Answer<Known> {
                    let meta = self.0.head(&path(key)).await.map_err(failure)?;
                    assert_eq!(meta.location, path(key));
                    let modified_ms = Some(meta.last_modified.timestamp_millis());
                    Ok(Known { size_bytes: meta.size, etag: meta.e_tag, modified_ms })
                }

                async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> Answer<Option<String>> {
                    let mode = match precondition {
                        Precondition::None => PutMode::Overwrite,
                        Precondition::Absent => PutMode::Create,
                        Precondition::Match(etag) => {
                            PutMode::Update(UpdateVersion { e_tag: Some(etag), version: None })
                        }
                    };
                    match self.0.put_opts(&path(key), body.into(), mode.clone().into()).await {
                        Ok(result) => Ok(result.e_tag),
                        Err(error) => Err(match (mode, error) {
                            (PutMode::Create, error @ Error::AlreadyExists { .. }) => lost(error),
                            (PutMode::Update(_), error @ Error::Precondition { .. }) => lost(error),
                            (_, error) => refused(&error),
                        }),
                    }
                }

                async fn delete(&self, key: &str) -> Answer<()> {
                    self.0.delete(&path(key)).await.map_err(failure)
                }

                async fn put_parts(&self, key: &str, parts: &[Bytes]) -> Answer<()> {
                    let mut upload = self.0.put_multipart(&path(key)).await.map_err(failure)?;
                    for part in parts {
                        upload.put_part(part.clone().into()).await.map_err(failure)?;
                    }
                    upload.complete().await.map(drop).map_err(failure)
                }

                async fn list(&self, folder: &str, after: Option<&str>) -> Answer<Vec<String>> {
                    let folder = path(folder);
                    let objects = match after {
                        None => self.0.list(Some(&folder)),
                        Some(after) => self.0.list_with_offset(Some(&folder), &path(after)),
                    };
                    objects.map_ok(|meta| meta.location.to_string()).try_collect().await.map_err(failure)
                }

                async fn list_folder(&self, folder: &str) -> Answer<Folder> {
                    let found = self.0.list_with_delimiter(Some(&path(folder))).await.map_err(failure)?;
                    Ok(Folder {
                        keys: found.objects.into_iter().map(|meta| meta.location.to_string()).collect(),
                        folders: found.common_prefixes.iter().map(Path::to_string).collect(),
                    })
                }

                async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> Answer<()> {
                    let (from, to) = (path(from), path(to));
                    match precondition {
                        Precondition::None => self.0.copy(&from, &to).await.map_err(failure),
                        Precondition::Absent => {
                            self.0.copy_if_not_exists(&from, &to).await.map_err(|error| match error {
                                error @ Error::AlreadyExists { .. } => lost(error),
                                error => failure(error),
                            })
                        }
                        Precondition::Match(_) => panic!("no words for a copy to an object with a tag"),
                    }
                }
            }
        }
    };
}

subject!(version_013, object_store_013, "delta");
subject!(version_014, object_store_014, "lance");
