use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::stream;
use pleach_engine::{
    BatchPart, Change, Clock, Entry, Headers, Key, ManualClock, Op, Revision, Timestamp, WatchEvent,
};

use super::driver::Driver;
use super::view::View;
use crate::{Store, Watch};

/// No test waits longer.
const LONG: Duration = Duration::from_secs(300);

fn view() -> View {
    View::new(&(Arc::new(ManualClock::default()) as Arc<dyn Clock>), 10_000)
}

fn entry(value: Bytes) -> Entry {
    Entry {
        key: Key::parse("a").unwrap(),
        value,
        revision: Revision::new(7),
        time: Timestamp::default(),
        expires: None,
        op: Op::Put,
        headers: Headers::new(),
    }
}

#[test]
fn a_small_value_does_not_hold_the_large_buffer_it_came_in() {
    let buffer: Arc<[u8]> = vec![0; 100_000].into();
    let view = view();
    view.apply([entry(Bytes::from_owner(Arc::clone(&buffer)).slice(..1))]).unwrap();
    assert_eq!(Arc::strong_count(&buffer), 1);
}

#[test]
fn many_small_headers_are_counted_with_what_they_take() {
    let mut headers = Headers::new();
    for number in 0..1000 {
        headers.set(&number.to_string(), "").unwrap();
    }
    let view = view();
    assert!(view.apply([Entry { headers, ..entry(Bytes::new()) }]).is_err(), "{} bytes", view.bytes());
}

#[test]
fn a_cache_that_is_never_at_rest_can_be_dropped() {
    let bucket = pollster::block_on(Store::in_memory().create_bucket("carts")).unwrap();
    let change = WatchEvent::Change(Change { entry: entry(Bytes::new()), batch: BatchPart::SINGLE });
    let watch = Watch::new(Box::pin(stream::repeat_with(move || Ok(change.clone()))));
    let driver = Driver::start(bucket, watch, Arc::new(view())).unwrap();
    let (done, finished) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || {
            drop(driver);
            done.send(()).unwrap();
        })
        .unwrap();
    finished.recv_timeout(LONG).expect("dropping it hangs");
}

/// A task that is dropped when it is woken, as one is whose executor is gone.
struct Dropped {
    task: Mutex<Option<BoxFuture<'static, ()>>>,
    done: mpsc::Sender<()>,
}

impl Wake for Dropped {
    fn wake(self: Arc<Self>) {
        let task = self.task.lock().unwrap().take();
        drop(task);
        self.done.send(()).unwrap();
    }
}

#[test]
fn a_cache_can_be_dropped_by_its_own_thread() {
    let bucket = pollster::block_on(Store::in_memory().create_bucket("carts")).unwrap();
    let (deliver, delivered) = tokio::sync::oneshot::channel();
    let events = stream::once(async {
        delivered.await.unwrap();
        Ok(WatchEvent::InitialDone { revision: Revision::new(7) })
    });
    let watch = Watch::new(Box::pin(events));
    let view = Arc::new(view());
    let driver = Driver::start(bucket, watch, Arc::clone(&view)).unwrap();
    let (done, finished) = mpsc::channel();
    let task = Arc::new(Dropped { task: Mutex::new(None), done });
    let mut waiting: BoxFuture<'static, ()> = Box::pin(async move {
        view.settled().await;
        drop(driver);
    });
    let waker = Waker::from(Arc::clone(&task));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    *task.task.lock().unwrap() = Some(waiting);
    drop((waker, task));
    deliver.send(()).unwrap();
    finished.recv_timeout(LONG).expect("the thread waits for itself");
}
