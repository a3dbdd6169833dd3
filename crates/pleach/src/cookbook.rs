//! Whole small programs. Each compiles and runs as it stands here.
//!
//! They use [`pollster`](https://docs.rs/pollster) to run async code; any other runtime does as well. The
//! stores are in memory; for one that lasts, write `Store::open("./data").await?`.
//!
//! # Hello
//!
//! ```
//! use pleach::Store;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let store = Store::in_memory();
//!         let greetings = store.create_bucket("greetings").await?;
//!         greetings.put("en", "hello").await?;
//!         let entry = greetings.get("en").await?.expect("just written");
//!         println!("{}, at revision {}", String::from_utf8_lossy(&entry.value), entry.revision);
//!         # assert_eq!(entry.value, "hello");
//!         store.close().await?;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Count without losing a count
//!
//! Read, compute, and write only if nobody else did meanwhile. Losing that race is an outcome, not an error,
//! so the loop has to say what it means.
//!
//! ```
//! use pleach::{Bucket, Error, Store, WriteError};
//!
//! async fn add_one(counters: &Bucket, name: &str) -> Result<u64, Error> {
//!     loop {
//!         let seen = counters.get(name).await?;
//!         let old: u64 = match &seen {
//!             Some(entry) => String::from_utf8_lossy(&entry.value).parse().unwrap_or(0),
//!             None => 0,
//!         };
//!         let new = (old + 1).to_string();
//!         let written = match seen {
//!             Some(entry) => counters.update(name, new, entry.revision).await,
//!             None => counters.create(name, new).await,
//!         };
//!         match written {
//!             Ok(_) => return Ok(old + 1),
//!             Err(WriteError::Conflict(_)) => continue, // someone was faster: look again
//!             Err(WriteError::Failed(error)) => return Err(error),
//!         }
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let store = Store::in_memory();
//!     let counters = pollster::block_on(store.create_bucket("counters"))?;
//!     std::thread::scope(|scope| {
//!         for _ in 0..4 {
//!             let counters = counters.clone();
//!             scope.spawn(move || {
//!                 for _ in 0..25 {
//!                     pollster::block_on(add_one(&counters, "visits")).expect("counted");
//!                 }
//!             });
//!         }
//!     });
//!     let visits = pollster::block_on(counters.get("visits"))?.expect("counted");
//!     assert_eq!(visits.value, "100");
//!     Ok(())
//! }
//! ```
//!
//! # Move money in one batch
//!
//! Both accounts change, or neither; and only if both are still what was read.
//!
//! ```
//! use pleach::{Bucket, Committed, Store, WriteError};
//!
//! async fn transfer(accounts: &Bucket, from: &str, to: &str, amount: i64) -> Result<Committed, WriteError> {
//!     let read = async |name: &str| accounts.get(name).await.map(|found| found.expect("an account"));
//!     let (payer, payee) = (read(from).await?, read(to).await?);
//!     let balance = |value: &[u8]| String::from_utf8_lossy(value).parse::<i64>().expect("a number");
//!     accounts
//!         .batch()
//!         .update(from, (balance(&payer.value) - amount).to_string(), payer.revision)
//!         .update(to, (balance(&payee.value) + amount).to_string(), payee.revision)
//!         .commit()
//!         .await
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let accounts = Store::in_memory().create_bucket("accounts").await?;
//!         accounts.batch().create("ann", "100").create("bob", "100").commit().await?;
//!         transfer(&accounts, "ann", "bob", 10).await?;
//!         assert_eq!(accounts.get("ann").await?.unwrap().value, "90");
//!         assert_eq!(accounts.get("bob").await?.unwrap().value, "110");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Watch a prefix
//!
//! First what is there, then a mark, then every change: nothing is missed in between.
//!
//! ```
//! use pleach::{KeyFilter, Store, WatchEvent, WatchOptions, WatchStart};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let settings = Store::in_memory().create_bucket("settings").await?;
//!         settings.put("web.port", "80").await?;
//!         settings.put("mail.port", "25").await?;
//!
//!         let filters = vec![KeyFilter::parse("web.>")?];
//!         let mut watch = settings.watch_with(WatchOptions { filters, start: WatchStart::Latest }).await?;
//!         settings.put("web.port", "8080").await?;
//!         settings.delete("web.port").await?;
//!
//!         let mut seen = Vec::new();
//!         while seen.len() < 4 {
//!             match watch.next().await?.expect("it ends only after an error") {
//!                 WatchEvent::Change(change) => seen.push(format!("{} {}", change.entry.op, change.entry.key)),
//!                 WatchEvent::InitialDone { .. } => seen.push("that was all so far".into()),
//!             }
//!         }
//!         assert_eq!(seen, ["put web.port", "that was all so far", "put web.port", "delete web.port"]);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Deal with every change, also after a restart
//!
//! A consumer is a place in the feed that the store remembers. Acknowledge when the work is done: what was not
//! acknowledged comes again.
//!
//! ```
//! use pleach::{Bucket, ConsumeOptions, ConsumerStart, Error, Store};
//!
//! /// Sends mails about `count` orders, then stops, as if the program had ended.
//! async fn send_mails(orders: &Bucket, count: usize, sent: &mut Vec<String>) -> Result<(), Error> {
//!     let options = ConsumeOptions { start: ConsumerStart::Now, ..ConsumeOptions::default() };
//!     let mut mails = orders.consume_with("mails", options).await?;
//!     for _ in 0..count {
//!         let change = mails.next().await?.expect("it ends only after an error");
//!         sent.push(change.entry.key.to_string());
//!         mails.ack(&change).await?;
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let orders = Store::in_memory().create_bucket("orders").await?;
//!         orders.put("order.0", "before there were mails").await?;
//!         let mut sent = Vec::new();
//!         send_mails(&orders, 0, &mut sent).await?; // created here, so later orders are not missed
//!         for number in 1..=3 {
//!             orders.put(format!("order.{number}"), "…").await?;
//!         }
//!         send_mails(&orders, 2, &mut sent).await?;
//!         assert_eq!(orders.consumer("mails").await?.lag, 1);
//!         send_mails(&orders, 1, &mut sent).await?;
//!         assert_eq!(sent, ["order.1", "order.2", "order.3"]);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Derive a bucket from another
//!
//! A projection reduces every change into writes to another bucket, exactly once, whatever crashes in between.
//! This one counts orders by their state, and remembers the state it has counted each with.
//!
//! ```
//! use pleach::{Change, Derived, Reduced, Reducer, Store};
//!
//! struct States;
//!
//! impl Reducer for States {
//!     async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
//!         let counted = format!("counted.{}", change.entry.key);
//!         if let Some(state) = derived.get(&counted).await? {
//!             add(derived, str::from_utf8(&state)?, -1).await?;
//!             derived.delete(&counted)?;
//!         }
//!         if change.entry.op.is_put() {
//!             add(derived, str::from_utf8(&change.entry.value)?, 1).await?;
//!             derived.put(&counted, &change.entry.value)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! async fn add(derived: &mut Derived, state: &str, more: i64) -> Reduced {
//!     let key = format!("state.{state}");
//!     let count = match derived.get(&key).await? {
//!         Some(count) => str::from_utf8(&count)?.parse()?,
//!         None => 0_i64,
//!     };
//!     derived.put(key, (count + more).to_string())?;
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let store = Store::in_memory();
//!         let orders = store.create_bucket("orders").await?;
//!         let states = store.create_bucket("states").await?;
//!         orders.put("order.1", "open").await?;
//!         orders.put("order.2", "open").await?;
//!
//!         let mut projection = orders.project("states", &states, States).await?;
//!         projection.catch_up().await?; // begins with what is there
//!         assert_eq!(states.get("state.open").await?.unwrap().value, "2");
//!
//!         orders.put("order.1", "paid").await?;
//!         orders.delete("order.2").await?;
//!         projection.catch_up().await?; // a service would call run(), which goes on for ever
//!         assert_eq!(states.get("state.open").await?.unwrap().value, "0");
//!         assert_eq!(states.get("state.paid").await?.unwrap().value, "1");
//!
//!         projection.rebuild(|progress| println!("{} of {}", progress.done, progress.total)).await?;
//!         assert_eq!(states.get("state.paid").await?.unwrap().value, "1");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Sessions that expire
//!
//! A session lives half an hour from its last use. The clock is passed in, so a test need not wait for it.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use pleach::{ManualClock, PutOptions, Store, Timestamp};
//!
//! const SESSION: Duration = Duration::from_secs(30 * 60);
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let clock = Arc::new(ManualClock::new("2026-01-01T12:00:00Z".parse::<Timestamp>()?));
//!         let sessions = Store::in_memory_with(clock.clone()).create_bucket("sessions").await?;
//!
//!         sessions.put_with("s.1", "ann", PutOptions::ttl(SESSION)).await?;
//!         clock.advance(SESSION / 2);
//!         sessions.put_with("s.1", "ann", PutOptions::ttl(SESSION)).await?; // used: half an hour again
//!         clock.advance(SESSION - Duration::from_micros(1));
//!         assert!(sessions.get("s.1").await?.is_some());
//!         clock.advance(Duration::from_micros(1));
//!         assert!(sessions.get("s.1").await?.is_none()); // gone at exactly its time
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Page through a list
//!
//! A page token can be handed to a browser and come back: all pages show one snapshot, whatever is written
//! in between.
//!
//! ```
//! use pleach::{PageToken, ScanQuery, Selection, Store};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let users = Store::in_memory().create_bucket("users").await?;
//!         for number in 10..35 {
//!             users.put(format!("user.{number}"), "…").await?;
//!         }
//!
//!         let selection = Selection::prefix("user.");
//!         let first = users.scan_page(ScanQuery { selection, limit: 20, ..ScanQuery::default() }).await?;
//!         let token: String = first.next.expect("there is more").to_string();
//!         users.delete("user.34").await?;
//!
//!         let page = Some(token.parse::<PageToken>()?);
//!         let selection = Selection::prefix("user.");
//!         let second = users.scan_page(ScanQuery { selection, limit: 20, page, ..ScanQuery::default() }).await?;
//!         assert_eq!((first.entries.len(), second.entries.len()), (20, 5));
//!         assert!(second.next.is_none());
//!
//!         // Inside one program, a scan turns the pages itself.
//!         let mut keys = users.keys("user.*")?;
//!         while let Some(key) = keys.next().await? {
//!             println!("{key}");
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Your own types
//!
//! ```
//! use pleach::codec::{Escape, Json, Lz4};
//! use pleach::{Store, TypedBucket};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Cart {
//!     items: Vec<String>,
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let store = Store::in_memory();
//!         let bucket = store.create_bucket("carts").await?;
//!
//!         // Any text as a key, in the same order; values as JSON, compressed.
//!         let carts: TypedBucket<str, Cart> = bucket.with_codecs(Escape, Json.then(Lz4::default()));
//!         carts.put("Zoë Müller", &Cart { items: vec!["apples".into()] }).await?;
//!         let cart = carts.get("Zoë Müller").await?.expect("just written");
//!         assert_eq!(cart.value.items, ["apples"]);
//!
//!         let mut all = carts.scan(Escape.prefix("Zoë"))?;
//!         while let Some(entry) = all.next().await? {
//!             println!("{}: {:?}", entry.key, entry.value.items);
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Preferences and drafts of each user
//!
//! The contract is said in Rust, with the types of its values; `pleach contract codegen` makes the same of a file. The
//! preferences had another shape once, and the compiler asks what becomes of those.
//!
//! ```
//! use pleach::Store;
//! use pleach::contract::{Contract, ContractType};
//! use pleach::state::{Caller, GetOutcome, ListOptions, PutOutcome};
//! use pleach::stores::{ApplyOptions, PlanOptions};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// Notes that follow their author.
//! #[derive(Contract)]
//! #[contract(id = "acme.notes@v1", kind = "app", name = "Notes", state = "NotesState")]
//! struct Notes {
//!     #[state(kind = "value", version = "v2", accepts(v1 = Theme))]
//!     preferences: Preferences,
//!     #[state(kind = "map")]
//!     drafts: Draft,
//! }
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Preferences {
//!     theme: String,
//!     compact: bool,
//! }
//!
//! #[derive(Debug, Serialize, Deserialize, JsonSchema)]
//! struct Theme(String);
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Draft {
//!     title: String,
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let (store, contract) = (Store::in_memory(), Notes::contract()?.contract);
//!         // Whoever deploys a new contract plans it and applies the plan, as `pleach contract` does.
//!         let plan = store.contracts().plan(&contract, PlanOptions::default()).await?;
//!         store.contracts().apply(&plan, ApplyOptions::by("olga")).await?;
//!
//!         let state = store.state().await?;
//!         let contract = state.contract(&contract).await?; // once a program
//!         let session = state.session(Caller::User("ann".into()).principal()?, &contract); // once a caller
//!         let client = session.client::<NotesState>()?;
//!
//!         let theme = match client.state().preferences().get().await? {
//!             GetOutcome::Found(entry) => entry.value.theme,
//!             GetOutcome::Absent => "light".to_owned(),
//!             GetOutcome::MigrationRequired(old) => match old.entry.value {
//!                 OldPreferences::V1(Theme(theme)) => theme,
//!             },
//!         };
//!         assert_eq!(theme, "light");
//!
//!         let inbox = client.state().drafts().prefix("inbox");
//!         match inbox.put("first", &Draft { title: "Dear".into() }).await? {
//!             PutOutcome::Applied(entry) => assert_eq!(entry.key.as_deref(), Some("first")),
//!             PutOutcome::Absent | PutOutcome::Present(_) => unreachable!("it expected nothing"),
//!         }
//!         assert_eq!(inbox.list(ListOptions::first(20)).await?.count, 1);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Read from memory
//!
//! A cached bucket follows its bucket by a watch, and is the same bucket to its users.
//!
//! ```
//! use pleach::Store;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pollster::block_on(async {
//!         let store = Store::in_memory();
//!         let flags = store.create_bucket("flags").await?;
//!         flags.put("dark-mode", "on").await?;
//!
//!         let flags = flags.cached().await?;
//!         flags.ready().await?; // before that, reads go to the bucket
//!         for _ in 0..1000 {
//!             assert_eq!(flags.get("dark-mode").await?.unwrap().value, "on");
//!         }
//!         flags.put("dark-mode", "off").await?; // its own writes are seen at once
//!         assert_eq!(flags.get("dark-mode").await?.unwrap().value, "off");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Without async
//!
//! ```
//! use std::time::Duration;
//!
//! use pleach::blocking::{Store, Waited};
//! use pleach::{Error, WatchEvent};
//!
//! fn main() -> Result<(), Error> {
//!     let store = Store::in_memory();
//!     let jobs = store.create_bucket("jobs")?;
//!     let mut watch = jobs.watch("job.>")?;
//!     jobs.put("job.1", "sweep")?;
//!     match watch.next_timeout(Duration::from_secs(10))? {
//!         Waited::Event(WatchEvent::Change(change)) => assert_eq!(change.entry.value, "sweep"),
//!         other => unreachable!("{other:?}"),
//!     }
//!     for key in jobs.keys("job.*")? {
//!         println!("{}", key?);
//!     }
//!     store.close()
//! }
//! ```
