use pleach_stores::{KvError, KvWriteError};

use super::given::{Event, Lock, case_key, days_ago, event, event_key, on_every_engine, open};

#[test]
fn a_batch_within_an_atomic_group_is_committed_together() {
    on_every_engine(async |given| {
        let (cases, events) = (given.cases(), given.events());
        let committed = given
            .store()
            .batch()
            .create(&cases, &case_key(7), &open("a fence"))
            .create(&events, &event_key(7, days_ago(0)), &event("opened"))
            .commit()
            .await
            .unwrap();
        let case = cases.get(&case_key(7)).await.unwrap().unwrap().revision();
        let happened = events.get(&event_key(7, days_ago(0))).await.unwrap().unwrap().revision();
        assert_eq!((case, happened), (committed.first, committed.last));
        // One that fails takes the others with it.
        let lost = given
            .store()
            .batch()
            .update(&cases, &case_key(7), &open("a wall"), case)
            .create(&events, &event_key(7, days_ago(0)), &event("opened"))
            .commit()
            .await
            .unwrap_err();
        assert!(matches!(lost, KvWriteError::Conflict(_)), "{lost}");
        assert_eq!(cases.get(&case_key(7)).await.unwrap().unwrap().revision(), case);
        let gone = given.store().batch().delete_seen(&cases, &case_key(7), case);
        gone.delete(&events, &event_key(7, days_ago(0))).commit().await.unwrap();
        assert_eq!(cases.get(&case_key(7)).await.unwrap(), None);
    });
}

#[test]
fn a_batch_over_members_that_no_group_names_together_is_refused() {
    on_every_engine(async |given| {
        let locks = given.store().keyspace::<Lock>("lock").unwrap();
        let batch = given.store().batch().put(&given.cases(), &case_key(7), &open("a fence"));
        let batch = batch.put(&locks, &["acme".into(), "door".into()], &Lock { holder: "ann".into() });
        let KvWriteError::Failed(error) = batch.commit().await.unwrap_err() else {
            panic!("no race was lost")
        };
        assert_eq!(
            error.to_string(),
            "no atomic group of `cases` has case, lock together; it declares transition (case, event)"
        );
        assert_eq!(given.cases().get(&case_key(7)).await.unwrap(), None);
        // Deletes are writes, too.
        let batch = given.store().batch().put(&given.cases(), &case_key(7), &open("a fence"));
        let batch = batch.delete(&locks, &["acme".into(), "door".into()]);
        assert!(matches!(batch.commit().await, Err(KvWriteError::Failed(KvError::NotAtomic { .. }))));
    });
}

#[test]
fn a_batch_within_one_keyspace_needs_no_group() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let batch = given.store().batch().put(&cases, &case_key(1), &open("a"));
        batch.put(&cases, &case_key(2), &open("b")).commit().await.unwrap();
        assert!(cases.get(&case_key(2)).await.unwrap().is_some());
    });
}

#[test]
fn a_batch_reports_the_first_thing_that_is_wrong_and_writes_nothing() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let batch = given.store().batch().put(&cases, &case_key(1), &open("a"));
        let batch = batch.put(&cases, &case_key(2), &open("")).put(&cases, "nonsense", &open("b"));
        let error = batch.commit().await.unwrap_err();
        assert!(matches!(&error, KvWriteError::Failed(KvError::Refused { .. })), "{error:?}");
        assert_eq!(cases.get(&case_key(1)).await.unwrap(), None);
        let empty = given.store().batch().commit().await.unwrap_err();
        assert!(matches!(&empty, KvWriteError::Failed(KvError::Engine(_))), "{empty:?}");
    });
}

#[test]
fn a_batch_takes_no_keyspace_of_another_resource() {
    on_every_engine(async |given| {
        let notes = given.service.kv("notes").unwrap().entries::<Event>().unwrap();
        let batch = given.store().batch().put(&given.cases(), &case_key(1), &open("a"));
        let error = batch.put(&notes, "x", &event("b")).commit().await.unwrap_err();
        assert!(matches!(&error, KvWriteError::Failed(KvError::OtherResource { .. })), "{error:?}");
        assert_eq!(given.cases().get(&case_key(1)).await.unwrap(), None);
    });
}
