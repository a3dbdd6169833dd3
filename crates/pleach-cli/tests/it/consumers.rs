use crate::given::{Given, given};

/// The keys that a watch of a consumer prints.
fn consumed(given: &Given, arguments: &[&str]) -> Vec<String> {
    let watch = [&["kv", "watch", "b", "--consumer", "mails", "--idle", "50ms"], arguments].concat();
    given.json(&watch).iter().map(|change| change["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_watch_of_a_consumer_goes_on_where_the_last_one_ended() {
    let given = given("put a 1; put c 1; del a");
    assert_eq!(consumed(&given, &["--count", "2"]), ["a", "c"]);
    assert_eq!(consumed(&given, &[]), ["a"]);
    assert_eq!(consumed(&given, &[]), [""; 0]);
    given.ok(&["kv", "put", "b", "d", "1"]);
    assert_eq!(consumed(&given, &[]), ["d"]);
}

#[test]
fn a_new_consumer_begins_where_it_is_told() {
    let given = given("put a 1");
    assert_eq!(consumed(&given, &["--from", "now"]), [""; 0]);
    given.ok(&["kv", "put", "b", "c", "1"]);
    assert_eq!(consumed(&given, &["--from", "oldest"]), ["c"], "it is there already");
    given.run(&["kv", "watch", "b", "--consumer", "far", "--from", "99"]).fails(2, "in the future");
}

#[test]
fn a_watch_of_a_consumer_takes_filters() {
    let given = given("put a.1 1; put c.1 1; put a.2 1");
    assert_eq!(consumed(&given, &["a.*"]), ["a.1", "a.2"]);
}

#[test]
fn a_watch_can_begin_with_the_oldest_change() {
    let given = given("put a 1; put a 2; del a");
    let seen = given.json(&["kv", "watch", "b", "--from", "oldest", "--count", "3"]);
    let ops: Vec<_> = seen.iter().map(|change| change["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["put", "put", "delete"]);
}

#[test]
fn consumers_are_listed_and_described() {
    let given = given("put a 1; put c 1");
    assert_eq!(given.ok(&["consumer", "ls", "b"]), "");
    let none = given.run(&["consumer", "ls", "b"]);
    assert!(none.stderr.contains("`pleach kv watch b --consumer NAME`"), "{}", none.stderr);
    consumed(&given, &["--count", "1"]);
    given.ok(&["kv", "watch", "b", "none", "--consumer", "audit", "--from", "2", "--idle", "1ms"]);
    let table = given.ok(&["consumer", "ls", "b"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["CONSUMER", "NEXT", "LAG", "ACKNOWLEDGED"]);
    assert_eq!(lines[1], ["audit", "2", "2", "never"]);
    assert_eq!(lines[2][..3], ["mails", "3", "1"]);
    let listed = given.json(&["consumer", "ls", "b"]);
    assert_eq!(listed.len(), 2);
    let info = &given.json(&["consumer", "info", "b", "mails"])[0];
    assert_eq!(info, &listed[1]);
    assert_eq!((&info["bucket"], &info["consumer"], &info["v"]), (&"b".into(), &"mails".into(), &1.into()));
    assert_eq!((&info["next"], &info["lag"]), (&3.into(), &1.into()));
    assert!(info["acknowledged"].is_string() && info.get("missed_before").is_none());
    let text = given.ok(&["consumer", "info", "b", "mails"]);
    for line in ["consumer       mails", "bucket         b", "next           revision 3", "lag            1"]
    {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn a_consumer_is_reset_forward_and_back() {
    let given = given("put a 1; put c 1");
    assert_eq!(consumed(&given, &[]), ["a", "c"]);
    let text = given.ok(&["consumer", "reset", "b", "mails", "--to", "3"]);
    assert_eq!(text, "consumer mails of bucket b goes on at revision 3\n");
    assert_eq!(consumed(&given, &[]), ["c"]);
    given.ok(&["consumer", "reset", "b", "mails", "--to", "oldest"]);
    assert_eq!(consumed(&given, &[]), ["a", "c"]);
    given.ok(&["kv", "put", "b", "d", "1"]);
    let reset = &given.json(&["consumer", "reset", "b", "mails", "--to", "now"])[0];
    assert_eq!(reset["lag"], 0);
    assert_eq!(consumed(&given, &[]), [""; 0]);
    given.run(&["consumer", "reset", "b", "mails", "--to", "999"]).fails(2, "in the future");
}

#[test]
fn a_consumer_is_deleted() {
    let given = given("put a 1");
    assert_eq!(consumed(&given, &[]), ["a"]);
    let deleted = &given.json(&["consumer", "rm", "b", "mails"])[0];
    assert_eq!((&deleted["event"], &deleted["consumer"]), (&"consumer_deleted".into(), &"mails".into()));
    let run = given.run(&["consumer", "rm", "b", "mails"]);
    run.fails(3, "bucket b has no consumer mails");
    assert!(run.stderr.contains("help: list what there is with `pleach consumer ls b`"), "{}", run.stderr);
    given.run(&["consumer", "info", "nowhere", "mails"]).fails(3, "there is no bucket nowhere");
    assert_eq!(consumed(&given, &[]), ["a"], "it begins anew");
}
