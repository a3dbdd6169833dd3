use crate::credentials::{FILE_VARIABLE, NKEY_VARIABLE, PASSWORD_VARIABLE, TOKEN_VARIABLE, USER_VARIABLE};

/// What `pleach help stores` says.
pub(crate) fn help() -> String {
    format!(
        "A store is named by --store, else by PLEACH_STORE, else it is file:./.pleach.

  file:PATH    In a directory. It belongs to one process at a time.
  nats://HOST  On NATS servers with JetStream, 2.12.1 or newer; tls://HOST insists on TLS.
  mem:         In memory, new and empty; gone when the command ends.

On NATS:
  nats://[USER:PASSWORD@ | TOKEN@]HOST[:PORT][,HOST[:PORT]…][/NAMESPACE][?OPTION=VALUE&…]

  Buckets are ordinary NATS key-value buckets. All hosts are servers of one cluster; any of them will do.
  NAMESPACE is what the names of all buckets of this store begin with on the servers: several stores can
  share an account. In user, password, token and values write %40 for @, %2F for /, and so on.

  OPTION    VALUE
  replicas  On how many servers each new bucket is kept: 1, 3 or 5 [default: 1]
  storage   Where new buckets are kept: file or memory [default: file]
  reads     What reads see: own (everything this command has written or seen), any (what the server that
            answers first has) or leader [default: own]
  scans     cached (in order, one snapshot, from a copy in memory) or direct (nothing is kept) [default: cached]
  synced    true if all servers run with sync_interval: always; they cannot be asked. Without it, a power cut of
            most servers of a bucket can lose what they acknowledged in the last two minutes [default: false]
  domain    The JetStream domain, if it is not that of the servers
  prefix    What subjects of the JetStream API begin with, if the account imports it under another name
  creds     A file of credentials, as --creds
  root      A file of root certificates to trust besides those of the machine; may be given several times
  timeout   Seconds that one request may take [default: 5]
  patience  Seconds to go on trying while servers do not answer [default: 20]

Who you are is said by --creds, else by the URL, else by the first of these variables that is set. What is
in a URL on the command line can be seen by others on the machine; what is in a variable cannot. No message
shows any of it.

  {FILE_VARIABLE:<20}  A file of credentials
  {NKEY_VARIABLE:<20}  The seed of an nkey
  {TOKEN_VARIABLE:<20}  A token
  {USER_VARIABLE:<20}  A user, with {PASSWORD_VARIABLE}

Commands that work on files (status, doctor, verify, rebuild, salvage, clean) are for file: stores only.
docs/engines.md says what each kind of store promises.

Examples:
  pleach --store nats://localhost kv bucket add carts
  pleach --store 'tls://one,two,three/shop_?replicas=3' --creds ann.creds kv put carts user.42 '3 apples'
  PLEACH_STORE=nats://localhost pleach kv watch carts
"
    )
}
