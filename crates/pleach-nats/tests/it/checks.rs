//! Checks whose answers are lost, and what other clients see of them.

use pleach_engine::{At, Batch, Check, Engine, Expectation, Operation};
use pleach_nats::{NatsEngine, NatsOptions};
use pleach_nats_testing::Link;

use crate::outcomes::{carts, impatient, key, observer};
use crate::servers;
use crate::servers::SOON;

/// With checks that travel with operations, and with such as need messages of their own.
#[tokio::test]
async fn a_commit_with_checks_whose_answer_was_lost_is_recognised() {
    let carried = Batch::new().put(key("z"), "1").checking(Check::absent(key("flag")));
    let expecting = Operation::put(key("z"), "1").expecting(Expectation::Absent);
    let carriers = Batch::from(expecting).checking(Check::absent(key("flag")));
    for batch in [carried, carriers] {
        let (observer, options) = observer().await;
        let link = Link::to(&servers::server().url());
        let patient = NatsOptions { patience: SOON, ..impatient(&link, options) };
        let engine = NatsEngine::connect(patient).await.unwrap();
        engine.commit(&carts(), Batch::new().put(key("before"), "1")).await.unwrap();
        link.silence();
        let committing = tokio::spawn(async move { engine.commit(&carts(), batch).await });
        // It is stored, and its writer does not know.
        while observer.read(&carts(), &key("z"), At::Latest).await.unwrap().is_none() {}
        link.mend();
        let told = tokio::time::timeout(SOON, committing).await.expect("it ends").unwrap().unwrap();
        let records = observer.history(&carts(), &key("z")).await.unwrap();
        let found: Vec<_> = records.iter().map(|record| record.revision).collect();
        assert_eq!((told.first, found), (told.last, vec![told.last]));
    }
}

/// The messages of checks stay one, however many commits there were, and look like a purged key to other clients.
#[tokio::test]
async fn messages_of_checks_do_not_pile_up() {
    let (engine, options) = observer().await;
    for round in 0..20 {
        let put = Operation::put(key(&format!("k{round}")), "1").expecting(Expectation::Absent);
        engine.commit(&carts(), Batch::from(put).checking(Check::absent(key("flag")))).await.unwrap();
    }
    let client = async_nats::connect(servers::server().url()).await.unwrap();
    let stream = format!("$JS.API.STREAM.INFO.KV_{}carts", options.namespace);
    let asked = r#"{"subjects_filter": ">"}"#;
    let info = client.request(stream, asked.into()).await.unwrap();
    let info: serde_json::Value = serde_json::from_slice(&info.payload).unwrap();
    let subject = format!("$KV.{}carts._kv.check", options.namespace);
    assert_eq!(info["state"]["subjects"][subject.as_str()], 1, "{info}");
}
