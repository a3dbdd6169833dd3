use std::fs;
use std::path::Path;
use std::sync::Arc;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::Clock;
use serde_json::Value;

use super::super::*;
use super::given::*;
use crate::Guarded;

/// What a power cut would leave: the files of an open store as they are.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copied(&source, &target);
        } else if entry.file_name() != "LOCK" {
            fs::copy(source, target).unwrap();
        }
    }
}

#[test]
fn entries_and_counts_are_exact_after_a_crash() {
    let given = Given::embedded();
    let directory = given.directory();
    pollster::block_on(async {
        let drafts = given.drafts();
        for number in 0..60 {
            let key = format!("{number:02}");
            let options = if number % 3 == 0 { living(1000 + number) } else { PutOptions::default() };
            let _ = applied(drafts.put_with(&key, &draft(&key), options).await);
        }
        for number in (0..60).step_by(4) {
            assert_eq!(drafts.delete(&format!("{number:02}")).await.unwrap(), DeleteOutcome::Deleted);
        }
        let before = drafts.list(ListOptions::first(100)).await.unwrap();
        assert_eq!(before.count, 45);

        copied(&directory.join("store"), &directory.join("copy"));
        let clock = Arc::clone(&given.clock) as Arc<dyn Clock>;
        let engine =
            EmbeddedEngine::open_with(directory.join("copy"), Settings::default(), Arc::clone(&clock))
                .unwrap();
        let state = State::open(&Guarded::new(Arc::new(engine), clock)).await.unwrap();
        let contract = state.contract(&first()).await.unwrap();
        let session = state.session("user:ann".parse().unwrap(), &contract);
        let drafts = session.map::<Value>("drafts").unwrap();
        let after = drafts.list(ListOptions::first(100)).await.unwrap();
        assert_eq!((keys(&after), after.count), (keys(&before), 45));
        given.advance(2000);
        assert_eq!(drafts.count().await.unwrap(), 30, "those with a TTL are gone there, too");
    });
}
