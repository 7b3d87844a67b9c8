//! Rows of an answer, as they come.

use std::future::poll_fn;
use std::pin::Pin;
use std::vec;

use futures_core::Stream;
use tokio_postgres::{Row, RowStream};

pub(super) struct Rows(Source);

enum Source {
    Coming(Pin<Box<RowStream>>),
    There(vec::IntoIter<Row>),
}

impl Rows {
    pub(super) fn coming(stream: RowStream) -> Self {
        Self(Source::Coming(Box::pin(stream)))
    }

    pub(super) fn there(rows: Vec<Row>) -> Self {
        Self(Source::There(rows.into_iter()))
    }

    pub(super) async fn next(&mut self) -> Result<Option<Row>, tokio_postgres::Error> {
        match &mut self.0 {
            Source::Coming(stream) => poll_fn(|cx| stream.as_mut().poll_next(cx))
                .await
                .transpose(),
            Source::There(rows) => Ok(rows.next()),
        }
    }
}
