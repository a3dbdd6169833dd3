use pleach_contract::Contract;
use serde_json::json;

use super::super::*;
use super::given::*;

pub(super) async fn a_put_expecting_nothing_is_applied(given: Given) {
    let drafts = given.drafts();
    let first = applied(drafts.put("a", &draft("one")).await);
    assert_eq!((first.key.as_deref(), &first.value, first.expires_at), (Some("a"), &draft("one"), None));
    assert_eq!(found(drafts.get("a").await), first, "the reply is the entry as it is read");
    let second = applied(drafts.put("a", &draft("two")).await);
    assert_ne!(first.revision, second.revision);
    assert_eq!(found(drafts.get("a").await), second);
}

pub(super) async fn a_put_expecting_absence_creates_once(given: Given) {
    let drafts = given.drafts();
    let created = applied(drafts.put_with("a", &draft("one"), expecting(Expect::Absent)).await);
    let again = drafts.put_with("a", &draft("two"), expecting(Expect::Absent)).await.unwrap();
    assert_eq!(again, PutOutcome::Present(created));
    assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::Deleted);
    let _ = applied(drafts.put_with("a", &draft("three"), expecting(Expect::Absent)).await);
    assert_eq!(found(drafts.get("a").await).value, draft("three"));
}

pub(super) async fn a_put_expecting_a_revision_replaces_that_one(given: Given) {
    let drafts = given.drafts();
    let first = applied(drafts.put("a", &draft("one")).await);
    let stale = expecting(Expect::Revision(first.revision));
    let second = applied(drafts.put_with("a", &draft("two"), stale).await);
    assert_eq!(
        drafts.put_with("a", &draft("three"), stale).await.unwrap(),
        PutOutcome::Present(second.clone())
    );
    assert_eq!(found(drafts.get("a").await), second, "nothing was written");
    let _ = drafts.delete("a").await.unwrap();
    let gone = expecting(Expect::Revision(second.revision));
    assert_eq!(drafts.put_with("a", &draft("four"), gone).await.unwrap(), PutOutcome::Absent);
    assert_eq!(drafts.put_with("never", &draft("four"), gone).await.unwrap(), PutOutcome::Absent);
    assert_eq!(drafts.count().await.unwrap(), 0);
}

pub(super) async fn the_revision_of_a_deletion_is_no_entry(given: Given) {
    let drafts = given.drafts();
    let _ = applied(drafts.put("a", &draft("one")).await);
    let _ = drafts.delete("a").await.unwrap();
    let marker = given.newest_revision("a").await;
    let revision: StateRevision = format!("r{marker}").parse().unwrap();
    let outcome = drafts.put_with("a", &draft("two"), expecting(Expect::Revision(revision))).await.unwrap();
    assert_eq!(outcome, PutOutcome::Absent);
    let options = DeleteOptions { expect: Some(revision) };
    assert_eq!(drafts.delete_with("a", options).await.unwrap(), DeleteOutcome::NotDeleted);
}

pub(super) async fn the_revision_of_another_key_is_another(given: Given) {
    let drafts = given.drafts();
    let other = applied(drafts.put("b", &draft("b")).await);
    let mine = applied(drafts.put("a", &draft("a")).await);
    let outcome =
        drafts.put_with("a", &draft("x"), expecting(Expect::Revision(other.revision))).await.unwrap();
    assert_eq!(outcome, PutOutcome::Present(mine));
}

pub(super) async fn a_delete_says_whether_it_deleted(given: Given) {
    let drafts = given.drafts();
    assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::NotDeleted);
    let first = applied(drafts.put("a", &draft("one")).await);
    let second = applied(drafts.put("a", &draft("two")).await);
    let expecting = |entry: &StateEntry<_>| DeleteOptions { expect: Some(entry.revision) };
    assert_eq!(drafts.delete_with("a", expecting(&first)).await.unwrap(), DeleteOutcome::NotDeleted);
    assert_eq!(found(drafts.get("a").await), second);
    assert_eq!(drafts.delete_with("a", expecting(&second)).await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(drafts.delete_with("a", expecting(&second)).await.unwrap(), DeleteOutcome::NotDeleted);
    assert_eq!(drafts.get("a").await.unwrap(), GetOutcome::Absent);
    let _ = applied(drafts.put("a", &draft("three")).await);
    assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::NotDeleted);
}

pub(super) async fn a_value_store_holds_one_value(given: Given) {
    let preferences = given.ann().value("preferences").unwrap();
    assert_eq!(preferences.get().await.unwrap(), GetOutcome::Absent);
    let first = applied(preferences.put(&json!({"theme": "dark"})).await);
    assert_eq!(first.key, None);
    let second = applied(preferences.put(&json!({"theme": "light"})).await);
    assert_eq!(found(preferences.get().await), second);
    let stale = expecting(Expect::Revision(first.revision));
    assert_eq!(
        preferences.put_with(&json!({"theme": "x"}), stale).await.unwrap(),
        PutOutcome::Present(second)
    );
    assert_eq!(preferences.delete().await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(preferences.get().await.unwrap(), GetOutcome::Absent);
}

pub(super) async fn an_expired_entry_is_absent_for_everyone(given: Given) {
    let drafts = given.drafts();
    let entry = applied(drafts.put_with("a", &draft("one"), living(1000)).await);
    let expires = entry.expires_at.expect("it has a TTL");
    assert_eq!(expires, entry.updated_at.saturating_add(scaled(1000)));
    let almost = if given.is_exact { 999 } else { 300 };
    given.advance(almost);
    assert_eq!(found(drafts.get("a").await), entry);
    assert_eq!(drafts.count().await.unwrap(), 1);
    given.advance_to(almost, 1000);
    assert_eq!(drafts.get("a").await.unwrap(), GetOutcome::Absent);
    let page = drafts.list(ListOptions::first(10)).await.unwrap();
    assert_eq!((page.entries.len(), page.count), (0, 0));
    assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::NotDeleted);
    let old = expecting(Expect::Revision(entry.revision));
    assert_eq!(drafts.put_with("a", &draft("x"), old).await.unwrap(), PutOutcome::Absent);
    let _ = applied(drafts.put_with("a", &draft("two"), expecting(Expect::Absent)).await);
}

pub(super) async fn a_put_without_a_ttl_clears_the_expiry(given: Given) {
    let drafts = given.drafts();
    let _ = applied(drafts.put_with("a", &draft("one"), living(1000)).await);
    let stays = applied(drafts.put("a", &draft("two")).await);
    assert_eq!(stays.expires_at, None);
    let _ = applied(drafts.put_with("b", &draft("one"), living(1000)).await);
    given.advance(600);
    let _ = applied(drafts.put_with("b", &draft("two"), living(1000)).await);
    given.advance(600);
    assert_eq!(found(drafts.get("b").await).value, draft("two"), "renewed");
    given.advance(1000);
    assert_eq!(found(drafts.get("a").await), stays);
    assert_eq!(drafts.get("b").await.unwrap(), GetOutcome::Absent);
}

pub(super) async fn an_expired_entry_is_absent_even_if_it_is_bad(given: Given) {
    given.damage_for(1000, "drafts", "a", "no json");
    let drafts = given.drafts();
    assert!(matches!(drafts.get("a").await, Err(StateError::Corrupt { .. })));
    given.advance_to(0, 1000);
    assert_eq!(drafts.get("a").await.unwrap(), GetOutcome::Absent);
    assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::NotDeleted);
    let _ = applied(drafts.put_with("a", &draft("one"), expecting(Expect::Absent)).await);
}

pub(super) async fn entries_survive_a_new_version_of_the_contract(given: Given) {
    let entry = applied(given.drafts().put("a", &draft("one")).await);
    assert_ne!(first().digest(), second().digest());
    let later = given.session("user:ann", &second()).map("drafts").unwrap();
    assert_eq!(found(later.get("a").await), entry);
}

pub(super) async fn what_an_optional_field_adds_needs_no_new_version(given: Given) {
    let entry = applied(given.drafts().put("a", &draft("one")).await);
    let mut document = first().to_value();
    document["schemas"]["Draft"]["properties"]["color"] = json!({"type": "string"});
    let later = Contract::from_value(&document).unwrap().contract;
    assert_ne!(later.digest(), first().digest());
    let drafts = given.session("user:ann", &later).map("drafts").unwrap();
    assert_eq!(found(drafts.get("a").await), entry, "it is of the current version");
    let colored = json!({"title": "two", "color": "red"});
    let _ = applied(drafts.put("a", &colored).await);
    assert_eq!(found(given.drafts().get("a").await).value, colored, "and so it is for the program before");
}

pub(super) async fn replies_have_the_documented_shape(given: Given) {
    let store = given.ann().store("drafts").unwrap();
    assert_eq!(store.get(Some("a")).await.unwrap().to_json(), json!({"found": false}));
    let put = store.put(Some("a"), draft("one"), living(60_000)).await.unwrap().to_json();
    let entry = put["entry"].clone();
    assert_eq!(put["applied"], json!(true));
    let names: Vec<&String> = entry.as_object().unwrap().keys().collect();
    assert_eq!(names, ["expiresAt", "key", "revision", "updatedAt", "value"]);
    assert_eq!(
        entry["revision"].as_str().unwrap().parse::<StateRevision>().unwrap().to_string(),
        entry["revision"]
    );
    if given.is_exact {
        assert_eq!(entry["updatedAt"], json!("2027-01-15T08:00:00.000000Z"));
    }
    assert_eq!(store.get(Some("a")).await.unwrap().to_json(), json!({"found": true, "entry": entry}));
    let refused = store.put(Some("a"), draft("two"), expecting(Expect::Absent)).await.unwrap().to_json();
    assert_eq!(refused, json!({"applied": false, "found": true, "entry": entry}));
    let never = expecting(Expect::Revision("r0".parse().unwrap()));
    let refused = store.put(Some("b"), draft("two"), never).await.unwrap().to_json();
    assert_eq!(refused, json!({"applied": false, "found": false}));
    let page = store.list("", ListOptions::first(1)).await.unwrap().to_json();
    assert_eq!(page, json!({"entries": [entry], "count": 1, "offset": 0, "limit": 1}));
    let _ = applied(store.put(Some("b"), draft("two"), PutOptions::default()).await);
    let page = store.list("", ListOptions::first(1)).await.unwrap().to_json();
    assert_eq!(page, json!({"entries": [entry], "count": 2, "offset": 0, "limit": 1, "nextOffset": 1}));
    for deleted in [true, false] {
        let reply = store.delete(Some("a"), DeleteOptions::default()).await.unwrap().to_json();
        assert_eq!(reply, json!({"deleted": deleted}));
    }
    // An entry of a value store has no key, and one that stays no moment to go.
    let store = given.ann().store("preferences").unwrap();
    let put = store.put(None, json!({"theme": "dark"}), PutOptions::default()).await.unwrap().to_json();
    let names: Vec<&String> = put["entry"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["revision", "updatedAt", "value"]);
    let later = given.session("user:ann", &second()).store("preferences").unwrap();
    let migration = json!({
        "migrationRequired": true,
        "entry": put["entry"],
        "stateVersion": "preferences.v1",
        "currentStateVersion": "preferences.v2",
        "writerContractDigest": first().digest().as_str(),
    });
    assert_eq!(later.get(None).await.unwrap().to_json(), migration);
    let new = json!({"theme": "x", "compact": true});
    let refused = later.put(None, new, expecting(Expect::Absent)).await.unwrap().to_json();
    let mut expected = migration.clone();
    expected["applied"] = json!(false);
    expected["found"] = json!(true);
    assert_eq!(refused, expected);
}
