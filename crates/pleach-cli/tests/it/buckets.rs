use crate::given::{given, given_nothing};

#[test]
fn a_bucket_has_what_it_was_given() {
    let given = given_nothing();
    let add = "kv bucket add images --history 3 --ttl 1h --value-max 16MiB --durability buffered --compression lz4 \
               --marker-ttl 30days --feed-time 2h --feed-bytes 1GiB --meta team=web --meta site=main";
    given.ok(&add.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>());
    let info = &given.json(&["kv", "bucket", "info", "images"])[0];
    assert_eq!(
        info["config"],
        serde_json::json!({"history": 3, "ttl": "1h", "value_bytes_max": 16 << 20, "durability": "buffered",
            "compression": "lz4", "marker_ttl": "30days", "feed_time": "2h", "feed_bytes": 1 << 30, "metadata": {"team": "web", "site": "main"}})
    );
    assert_eq!((&info["v"], &info["bucket"], &info["entries"]), (&1.into(), &"images".into(), &0.into()));
}

#[test]
fn adding_a_bucket_again_is_fine_unless_it_would_be_another() {
    let given = given("put k 1");
    given.ok(&["kv", "bucket", "add", "b", "--history", "5"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
    given
        .run(&["kv", "bucket", "add", "b", "--ttl", "1h"])
        .fails(4, "bucket b exists with a different history, ttl");
}

#[test]
fn edit_changes_only_what_is_given() {
    let given = given("");
    given.ok(&["kv", "bucket", "edit", "b", "--ttl", "1h", "--meta", "a=1", "--meta", "c=2"]);
    let text = given.ok(&["kv", "bucket", "edit", "b", "--ttl", "none", "--unset-meta", "a"]);
    assert_eq!(text, "bucket b has a new ttl, metadata\n");
    let config = &given.json(&["kv", "bucket", "info", "b"])[0]["config"];
    assert_eq!(config["history"], 5);
    assert!(config.get("ttl").is_none_or(serde_json::Value::is_null));
    assert_eq!(config["metadata"], serde_json::json!({"c": "2"}));
    given.ok(&["kv", "bucket", "edit", "b", "--feed-time", "2h", "--feed-bytes", "5"]);
    let retention = ["--marker-ttl", "forever", "--feed-time", "default", "--feed-bytes", "default"];
    let text = given.ok(&[&["kv", "bucket", "edit", "b"], &retention[..]].concat());
    assert_eq!(text, "bucket b has a new marker ttl, feed time, feed bytes\n");
    let config = &given.json(&["kv", "bucket", "info", "b"])[0]["config"];
    assert!(config["marker_ttl"].is_null() && config.get("feed_time").is_none(), "{config}");
    given.run(&["kv", "bucket", "edit", "b"]).fails(2, "nothing to change");
    given.run(&["kv", "bucket", "edit", "other", "--history", "2"]).fails(3, "no bucket other");
    given.run(&["kv", "bucket", "edit", "b", "--history", "65"]).fails(2, "history");
    given
        .run(&["kv", "bucket", "edit", "b", "--value-max", "9GiB"])
        .fails(2, "the largest value cannot have 9 GiB");
}

#[test]
fn buckets_are_listed_by_name_in_a_table() {
    let given = given("");
    given.ok(&["kv", "bucket", "add", "a-longer-name", "--ttl", "1day"]);
    assert_eq!(
        given.ok(&["kv", "bucket", "ls"]),
        "BUCKET         HISTORY  TTL   VALUE MAX  DURABILITY  COMPRESSION  REVISION\n\
         a-longer-name        1  1day      1 MiB  synced      none                2\n\
         b                    5  none      1 MiB  synced      none                1\n"
    );
    let names: Vec<_> =
        given.json(&["kv", "bucket", "ls"]).iter().map(|info| info["bucket"].to_string()).collect();
    assert_eq!(names, ["\"a-longer-name\"", "\"b\""]);
}

#[test]
fn info_counts_entries() {
    let given = given("put x 1; put y 1; put y 2; del x");
    let text = given.ok(&["kv", "bucket", "info", "b"]);
    for line in [
        "bucket         b",
        "entries        1",
        "last revision  5",
        "history        5 records a key",
        "markers        7days",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in\n{text}");
    }
    given.run(&["kv", "bucket", "info", "other"]).fails(3, "there is no bucket other");
}

#[test]
fn a_bucket_is_deleted_only_when_someone_is_sure() {
    let given = given("put k 1");
    given.run(&["kv", "bucket", "rm", "b"]).fails(2, "needs a confirmation");
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
    given.ok(&["kv", "bucket", "rm", "b", "--yes"]);
    given.run(&["kv", "get", "b", "k"]).fails(3, "there is no bucket b");
    given.run(&["kv", "bucket", "rm", "b", "--yes"]).fails(3, "there is no bucket b");
}

#[test]
fn a_value_over_the_limit_is_refused_with_the_command_that_raises_it() {
    let given = given("");
    given.ok(&["kv", "bucket", "edit", "b", "--value-max", "3B"]);
    let run = given.run(&["kv", "put", "b", "k", "four"]);
    run.fails(2, "larger than the bucket's limit of 3");
    assert!(
        run.stderr.contains("help: raise the bucket's limit with `pleach kv bucket edit b --value-max SIZE`")
    );
}
