//! The store client itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use lakemark_core::store::{ListPage, ListQuery, Precondition, Span, Store, StoreError};

use crate::subject::{Ability, Answer, Failure, Folder, Known, Subject};

/// No case has as many pages: a listing that does not end fails.
const PAGES_MAX: usize = 1_000;

struct Raw(Arc<dyn Store>);

pub(crate) fn open(store: Arc<dyn Store>) -> Box<dyn Subject> {
    Box::new(Raw(store))
}

/// All pages of a listing.
pub(crate) async fn pages(store: &dyn Store, query: ListQuery) -> Result<Vec<ListPage>, StoreError> {
    let mut query = query;
    let mut pages = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = store.list(&query).await?;
        query.token.clone_from(&page.next);
        pages.push(page);
        if query.token.is_none() {
            return Ok(pages);
        }
    }
    panic!("the listing of {:?} does not end", query.prefix)
}

pub(crate) fn prefix_of(folder: &str) -> String {
    if folder.is_empty() { String::new() } else { format!("{folder}/") }
}

#[async_trait]
impl Subject for Raw {
    fn abilities(&self) -> &'static [Ability] {
        use Ability::{Condition, Copy, List, OpenSpan, Wire};
        &[Condition, Copy, List, OpenSpan, Wire]
    }

    async fn get(&self, key: &str, span: Span) -> Answer<Bytes> {
        let object = self.0.get(key, span).await?;
        assert_eq!(object.info.key, key);
        Ok(object.body)
    }

    async fn head(&self, key: &str) -> Answer<Known> {
        let info = self.0.head(key).await?;
        assert_eq!(info.key, key);
        Ok(Known { size_bytes: info.size_bytes, etag: Some(info.etag), modified_ms: Some(info.modified_ms) })
    }

    async fn put(&self, key: &str, body: Bytes, precondition: Precondition) -> Answer<Option<String>> {
        let conditional = matches!(precondition, Precondition::Match(_));
        match self.0.put(key, body, precondition).await {
            Ok(etag) => Ok(Some(etag)),
            // The answer to If-Match where no object has the key.
            Err(StoreError::NotFound { .. }) if conditional => Err(Failure::Lost(404)),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&self, key: &str) -> Answer<()> {
        Ok(self.0.delete(key).await?)
    }

    async fn list(&self, folder: &str, after: Option<&str>) -> Answer<Vec<String>> {
        let ordered = self.0.traits().ordered_list;
        let start_after = after.filter(|_| ordered).map(str::to_owned);
        let query = ListQuery { prefix: prefix_of(folder), start_after, ..ListQuery::default() };
        let pages = pages(&*self.0, query).await?;
        let keys = pages.into_iter().flat_map(|page| page.objects).map(|info| info.key);
        Ok(keys.filter(|key| after.is_none_or(|after| key.as_str() > after)).collect())
    }

    async fn list_folder(&self, folder: &str) -> Answer<Folder> {
        let query = ListQuery { prefix: prefix_of(folder), delimited: true, ..ListQuery::default() };
        let mut found = Folder::default();
        for page in pages(&*self.0, query).await? {
            found.keys.extend(page.objects.into_iter().map(|info| info.key));
            found.folders.extend(page.common_prefixes);
        }
        if !self.0.traits().ordered_list {
            // A folder is on every page on which one of its keys would be.
            found.folders = BTreeSet::from_iter(found.folders).into_iter().collect();
        }
        for folder in &mut found.folders {
            assert_eq!(folder.pop(), Some('/'), "a common prefix ends in its slash");
        }
        Ok(found)
    }

    async fn copy(&self, from: &str, to: &str, precondition: Precondition) -> Answer<()> {
        Ok(self.0.copy(from, to, precondition).await?)
    }
}
