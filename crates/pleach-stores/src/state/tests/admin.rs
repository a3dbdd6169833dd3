use std::num::NonZeroU8;

use pleach_contract::ContractId;
use pleach_engine::{BucketConfig, Engine};
use serde_json::{Value, json};

use super::super::*;
use super::given::*;

async fn operator(given: &Given) -> StateAdmin {
    given.state.admin("olga", "ticket 7").await.unwrap()
}

fn target(principal: &str, store: &str) -> Target {
    let contract = ContractId::parse("acme.notes@v1").unwrap();
    Target { principal: principal.parse().unwrap(), contract, store: store.into() }
}

pub(super) async fn an_act_needs_a_name_and_a_reason(given: Given) {
    for (who, why) in [("", "x"), ("x", ""), ("  ", "x"), ("x", "\n")] {
        assert!(matches!(given.state.admin(who, why).await, Err(StateError::NotAccountable { .. })));
    }
}

pub(super) async fn every_act_is_recorded_before_it_is_done(given: Given) {
    let _ = applied(given.drafts().put("a", &draft("one")).await);
    let admin = operator(&given).await;
    let (drafts, ann) = (target("user:ann", "drafts"), "user:ann".parse().unwrap());
    assert!(admin.get(&drafts, Some("a")).await.unwrap().is_some());
    assert_eq!(admin.list(&drafts, ListOptions::first(10)).await.unwrap().count, 1);
    assert_eq!(admin.delete(&drafts, Some("a")).await.unwrap(), DeleteOutcome::Deleted);
    let _ = admin.find(&ann).await.unwrap();
    let _ = admin.export(&ann, None).await.unwrap();
    assert!(admin.erase(&ann).await.unwrap().done);
    let records = given.state.admin_records().await.unwrap();
    let acts: Vec<&str> = records.iter().rev().map(|record| record.act.as_str()).collect();
    assert_eq!(acts, ["get", "list", "delete", "find", "export", "erase"]);
    for record in &records {
        assert_eq!((record.who.as_str(), record.why.as_str()), ("olga", "ticket 7"));
        assert_eq!((record.at.as_str(), &record.principal), ("2027-01-15T08:00:00.000000Z", &ann));
        assert!(record.entries.is_some());
    }
    let deleted = &records[3].what;
    assert_eq!(
        (&deleted["contract"], &deleted["store"], &deleted["key"]),
        (&json!("acme.notes@v1"), &json!("drafts"), &json!("a"))
    );
}

pub(super) async fn an_act_that_failed_is_recorded_without_an_outcome(given: Given) {
    let _ = applied(given.drafts().put("a", &draft("one")).await);
    let admin = operator(&given).await;
    given.engine.fail_after(1);
    assert!(admin.delete(&target("user:ann", "drafts"), Some("a")).await.is_err());
    given.engine.fail_after(usize::MAX);
    let records = given.state.admin_records().await.unwrap();
    assert!(matches!(&records[..], [only] if only.act == "delete" && only.entries.is_none()), "{records:?}");
    assert!(matches!(given.drafts().get("a").await, Ok(GetOutcome::Found(_))));
    // If it cannot be recorded, it is not done.
    given.engine.fail_after(0);
    assert!(admin.get(&target("user:ann", "drafts"), Some("a")).await.is_err());
}

pub(super) async fn a_target_is_one_store(given: Given) {
    let _ = applied(given.drafts().put("a", &draft("one")).await);
    let admin = operator(&given).await;
    for store in ["", "drafts.NF", "*", ">", "dra fts", "drafts\u{0}"] {
        let target = target("user:ann", store);
        assert!(matches!(admin.get(&target, None).await, Err(StateError::InvalidTarget { .. })), "{store:?}");
        assert!(matches!(admin.delete(&target, Some("a")).await, Err(StateError::InvalidTarget { .. })));
        let page = admin.list(&target, ListOptions::first(1)).await;
        assert!(matches!(page, Err(StateError::InvalidTarget { .. })));
    }
    let drafts = target("user:ann", "drafts");
    assert!(matches!(admin.get(&drafts, Some("")).await, Err(StateError::KeyMissing { .. })));
    assert!(matches!(admin.get(&drafts, Some(&"k".repeat(513))).await, Err(StateError::KeyTooLong { .. })));
    assert!(admin.get(&target("user:ann", "missing"), Some("a")).await.unwrap().is_none());
    assert_eq!(given.drafts().count().await.unwrap(), 1);
}

pub(super) async fn an_administrator_looks_at_and_deletes_damaged_entries(given: Given) {
    given.damage("user:ann", "drafts", Some("a"), "{", &[]);
    let _ = applied(given.drafts().put("b", &draft("whole")).await);
    let (admin, drafts) = (operator(&given).await, target("user:ann", "drafts"));
    let seen = admin.get(&drafts, Some("a")).await.unwrap().expect("it is there");
    assert_eq!((seen.value, seen.state_version), (Err("{".to_owned()), None));
    assert!(seen.damage.is_some());
    let page = admin.list(&drafts, ListOptions::first(1).from(1)).await.unwrap();
    assert_eq!((page.count, page.entries[0].key.as_deref()), (2, Some("b")));
    assert_eq!((&page.entries[0].value, &page.entries[0].damage), (&Ok(draft("whole")), &None));
    assert_eq!(page.entries[0].writer_contract_digest.as_deref(), Some(first().digest().as_str()));
    assert_eq!(admin.delete(&drafts, Some("a")).await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(admin.delete(&drafts, Some("a")).await.unwrap(), DeleteOutcome::NotDeleted);
    assert_eq!(given.drafts().count().await.unwrap(), 1);
    let refused = admin.list(&drafts, ListOptions::first(LIST_LIMIT_MAX + 1)).await;
    assert!(matches!(refused, Err(StateError::LimitTooLarge { .. })));
    for limit in [0, 10] {
        let page = admin.list(&drafts, ListOptions::first(limit).from(2)).await.unwrap();
        assert_eq!((page.entries.len(), page.count), (0, 1), "{limit}");
    }
}

pub(super) async fn a_principals_whole_state_is_found_and_exported(given: Given) {
    let other = contract("acme.other@v1", json!({"things": {"kind": "map", "schema": {"schema": "Any"}}}));
    for principal in ["user:ann", "user:anna", "device:ann"] {
        let _ = applied(
            given
                .session(principal, &first())
                .value("preferences")
                .unwrap()
                .put(&json!({"theme": "x"}))
                .await,
        );
        let things = given.session(principal, &other).map::<Value>("things").unwrap();
        for key in ["1", "2", "null"] {
            let _ = applied(things.put(key, &Value::Null).await);
        }
    }
    given.damage("user:ann", "drafts", Some("bad"), "{", &[]);
    let (admin, ann) = (operator(&given).await, "user:ann".parse().unwrap());
    let holdings = admin.find(&ann).await.unwrap();
    let shown: Vec<_> = holdings
        .iter()
        .map(|held| (held.contract.as_deref().unwrap(), held.store.as_deref().unwrap(), held.entries))
        .collect();
    assert_eq!(
        shown,
        [("acme.notes@v1", "drafts", 1), ("acme.notes@v1", "preferences", 1), ("acme.other@v1", "things", 3)]
    );
    let export = admin.export(&ann, None).await.unwrap();
    assert!(export.next.is_none());
    let lines: Vec<Value> = export.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line["principal"] == "user:ann" && line.get("revision").is_some()));
    let bad = lines.iter().find(|line| line["key"] == "bad").unwrap();
    assert_eq!((&bad["valueText"], bad.get("value")), (&json!("{"), None));
    let null = lines.iter().find(|line| line["key"] == "null").unwrap();
    assert_eq!(null.get("value"), Some(&Value::Null));
}

pub(super) async fn erasing_leaves_nothing_of_one_and_everything_of_others(given: Given) {
    for principal in ["user:ann", "user:bob", "device:ann", "user:ann2"] {
        let session = given.session(principal, &first());
        let _ = applied(session.value("preferences").unwrap().put(&json!({"theme": "x"})).await);
        let _ = applied(session.map("drafts").unwrap().put("a", &draft("x")).await);
    }
    let (admin, ann) = (operator(&given).await, "user:ann".parse().unwrap());
    assert_eq!(admin.erase(&ann).await.unwrap(), Erasure { erased: 2, done: true });
    assert_eq!(admin.erase(&ann).await.unwrap(), Erasure { erased: 0, done: true });
    assert!(admin.find(&ann).await.unwrap().is_empty());
    assert_eq!(given.drafts().get("a").await.unwrap(), GetOutcome::Absent);
    for principal in ["user:bob", "device:ann", "user:ann2"] {
        let holdings = admin.find(&principal.parse().unwrap()).await.unwrap();
        assert_eq!(holdings.iter().map(|held| held.entries).sum::<u64>(), 2, "{principal}");
    }
    // Whoever was erased may begin again.
    let _ = applied(given.drafts().put_with("a", &draft("y"), expecting(Expect::Absent)).await);
}

pub(super) async fn erasing_takes_history_along(given: Given) {
    // An operator who keeps more than the newest record of each entry.
    let plain = BucketConfig::plain(given.engine.capabilities());
    let config = BucketConfig { history: NonZeroU8::new(5).unwrap(), ..plain };
    given.engine.update_bucket(&given.bucket(), config).await.unwrap();
    let drafts = given.drafts();
    for title in ["one", "two"] {
        let _ = applied(drafts.put("kept", &draft(title)).await);
        let _ = applied(drafts.put("deleted", &draft(title)).await);
    }
    let _ = drafts.delete("deleted").await.unwrap();
    let mut names = vec!["kept", "deleted"];
    if given.engine.capabilities().expired_history {
        let _ = applied(drafts.put_with("expired", &draft("x"), living(10)).await);
        given.advance(20);
        names.push("expired");
    }
    assert_eq!(
        operator(&given).await.erase(&"user:ann".parse().unwrap()).await.unwrap(),
        Erasure { erased: names.len() as u64, done: true }
    );
    for key in names {
        let records = given
            .engine
            .history(&given.bucket(), &stored_key("user:ann", "drafts", Some(key)))
            .await
            .unwrap();
        assert!(
            records.iter().all(|record| record.value.is_empty() && !record.op.is_put()),
            "{key}: {records:?}"
        );
    }
}

pub(super) async fn an_erasure_takes_so_many_at_a_time(given: Given) {
    super::lists::fill(&given, ERASE_ENTRIES_MAX + 1).await;
    let (admin, ann) = (operator(&given).await, "user:ann".parse().unwrap());
    let most = ERASE_ENTRIES_MAX as u64;
    assert_eq!(admin.erase(&ann).await.unwrap(), Erasure { erased: most, done: false });
    assert_eq!(given.drafts().count().await.unwrap(), 1);
    assert_eq!(admin.erase(&ann).await.unwrap(), Erasure { erased: 1, done: true });
}

pub(super) async fn an_erasure_goes_on_where_it_was_cut_off(given: Given) {
    let things = given.ann().map::<Value>("anything").unwrap();
    for number in 0..1_500 {
        let _ = applied(things.put(&format!("{number}"), &json!(1)).await);
    }
    let (admin, ann) = (operator(&given).await, "user:ann".parse().unwrap());
    // The record and the first batch; the second fails. A batch has a thousand entries, or one less with a check.
    given.engine.fail_after(2);
    assert!(admin.erase(&ann).await.is_err());
    given.engine.fail_after(usize::MAX);
    let left = things.count().await.unwrap();
    assert!((500..=501).contains(&left), "{left}");
    assert_eq!(admin.erase(&ann).await.unwrap(), Erasure { erased: left, done: true });
    assert_eq!(things.count().await.unwrap(), 0);
}
