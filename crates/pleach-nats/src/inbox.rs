use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Client, Message, SubscribeError};
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

/// Where answers of several messages arrive. They all come by one subscription: one for every question would cost more than
/// the question, above all in a cluster, whose servers tell each other of each.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// What the subjects of answers begin with, with the last dot.
    prefix: String,
    questions: AtomicU64,
    waiting: Arc<Waiting>,
    task: AbortHandle,
}

/// Who waits for an answer, by the number of the question.
type Waiting = Mutex<HashMap<u64, UnboundedSender<Message>>>;

impl Inbox {
    pub(crate) async fn open(client: &Client, handle: &Handle) -> Result<Self, SubscribeError> {
        let prefix = format!("{}.", client.new_inbox());
        let mut arriving = client.subscribe(format!("{prefix}*")).await?;
        let waiting = Arc::new(Waiting::default());
        let (shared, beginning) = (Arc::clone(&waiting), prefix.len());
        let task = handle.spawn(async move {
            while let Some(message) = arriving.next().await {
                let question = message.subject.get(beginning..).and_then(|number| number.parse().ok());
                let waiting = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(sender) = question.and_then(|question: u64| waiting.get(&question)) {
                    // Whoever asked may have given up.
                    let _ = sender.send(message);
                }
            }
        });
        Ok(Self { prefix, questions: AtomicU64::new(0), waiting, task: task.abort_handle() })
    }

    /// A place for the answer to one question, which is as long as the question asks for.
    pub(crate) fn expect(&self) -> Answer<'_> {
        let question = self.questions.fetch_add(1, Ordering::Relaxed);
        let (sender, messages) = mpsc::unbounded_channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(question, sender);
        Answer { inbox: self, question, messages }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An answer of several messages.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    inbox: &'a Inbox,
    question: u64,
    messages: UnboundedReceiver<Message>,
}

impl Answer<'_> {
    /// Where it is to be sent to.
    pub(crate) fn subject(&self) -> String {
        format!("{}{}", self.inbox.prefix, self.question)
    }

    pub(crate) async fn next(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.inbox.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.question);
    }
}
