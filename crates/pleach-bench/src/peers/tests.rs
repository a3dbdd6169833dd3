use super::*;

fn every_peer() -> impl Iterator<Item = (EngineName, Layout)> {
    use clap::ValueEnum as _;
    let built = EngineName::value_variants().iter().filter(|name| name.is_built());
    built.flat_map(|name| [(*name, Layout::Same), (*name, Layout::Raw)])
}

fn records(indices: impl Iterator<Item = u64>) -> Vec<Record> {
    indices.map(|index| Record { key: KeyText::of(index), value: vec![7; 16] }).collect()
}

#[test]
fn every_peer_reads_scans_and_replays_what_it_wrote_also_after_reopening() {
    for (name, layout) in every_peer() {
        let directory = tempfile::tempdir().unwrap();
        let opening = Opening { directory: directory.path(), layout, unflushed: false };
        let peer = open(name, opening).unwrap();
        peer.put_batch(&records(0..10)).unwrap();
        peer.sync().unwrap();
        peer.put(&KeyText::of(3), b"sixteen bytes...").unwrap();
        let mut seen = Vec::new();
        let expected = (name == EngineName::Pleach || layout == Layout::Same).then_some(11);
        assert_eq!(peer.replay(&mut |revision, _, _| seen.push(revision)).unwrap(), expected, "{name:?}");
        assert!(seen.is_sorted_by(|before, after| before < after), "{name:?}: {seen:?}");
        peer.close().unwrap();

        let peer = open(name, opening).unwrap();
        let mut value = Vec::new();
        assert!(peer.get(&KeyText::of(3), &mut |_, _, bytes| value = bytes.to_vec()).unwrap());
        assert_eq!(value, b"sixteen bytes...", "{name:?}");
        assert!(!peer.get(&KeyText::missing(3), &mut |_, _, _| ()).unwrap());
        let mut keys = Vec::new();
        let count = peer.scan(&KeyText::missing(3), 4, &mut |_, key, _| keys.push(key.to_vec())).unwrap();
        assert_eq!((count, keys), (4, (4..8).map(|index| KeyText::of(index).to_vec()).collect()), "{name:?}");
        peer.close().unwrap();
    }
}

#[test]
fn trimming_leaves_the_newest_changes() {
    for (name, layout) in every_peer().filter(|peer| *peer != (EngineName::Pleach, Layout::Same)) {
        let directory = tempfile::tempdir().unwrap();
        let opening = Opening { directory: directory.path(), layout, unflushed: false };
        let peer = open(name, opening).unwrap();
        peer.put_batch(&records(0..50)).unwrap();
        peer.trim_feed(20).unwrap();
        let left = peer.replay(&mut |_, _, _| ()).unwrap();
        if name != EngineName::Pleach {
            assert_eq!(left, (layout == Layout::Same).then_some(20), "{name:?}");
        }
        peer.close().unwrap();
    }
}
