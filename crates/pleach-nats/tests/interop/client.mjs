// The key-value client of @nats-io/kv, as the tests drive it: a request a line in, an answer a line out, both JSON.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The packages are not beside this file but where `cargo xtask tools` has put them.
const [url, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const { connect } = require("@nats-io/transport-node");
const { Kvm } = require("@nats-io/kv");

// What changes are called here, by what the client calls them.
const OPERATIONS = { PUT: "put", DEL: "delete", PURGE: "purge" };

// Errors of the server that say that a key is not as expected.
const CONFLICTS = [10071, 10164];

// How long a change that must come may take.
const SOON_MILLISECONDS = 180_000;

const shown = (entry) => {
  const operation = OPERATIONS[entry.operation];
  return { operation, key: entry.key, revision: entry.revision, value: operation === "put" ? entry.string() : "" };
};

const collected = async (iterator, map = (item) => item) => {
  const items = [];
  for await (const item of iterator) items.push(map(item));
  return items;
};

const connection = await connect({ servers: url });
const manager = new Kvm(connection);
let bucket;
let changes;

const actions = {
  async create_bucket({ bucket: name, history, markers }) {
    bucket = await manager.create(name, { history, ...(markers && { markerTTL: markers * 1000 }) });
  },
  async bind({ bucket: name }) {
    bucket = await manager.open(name);
  },
  put: ({ key, value }) => bucket.put(key, value),
  create: ({ key, value, ttl }) => bucket.create(key, value, ttl ? `${ttl}s` : undefined),
  update: ({ key, value, revision }) => bucket.update(key, value, revision),
  delete: ({ key }) => bucket.delete(key),
  purge: ({ key }) => bucket.purge(key),
  async get({ key }) {
    const entry = await bucket.get(key);
    return entry && entry.operation === "PUT" ? shown(entry) : null;
  },
  keys: async () => collected(await bucket.keys()),
  history: async ({ key }) => collected(await bucket.history({ key }), shown),
  async watch() {
    changes = (await bucket.watch())[Symbol.asyncIterator]();
  },
  async seen({ count }) {
    const seen = [];
    while (seen.length < count) {
      const late = new Promise((_, reject) => {
        setTimeout(() => reject(new Error(`${seen.length} of ${count} changes came`)), SOON_MILLISECONDS).unref();
      });
      seen.push(shown((await Promise.race([changes.next(), late])).value));
    }
    return seen;
  },
};

const answer = async ({ do: action, ...request }) => {
  try {
    return { done: (await actions[action](request)) ?? null };
  } catch (error) {
    return CONFLICTS.includes(error.code) ? { conflict: true } : { error: `${error.name}: ${error.message}` };
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line))));
}
await connection.close();
