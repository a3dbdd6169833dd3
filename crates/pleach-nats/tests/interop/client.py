"""The key-value client of nats.py, as the tests drive it: a request a line in, an answer a line out, both JSON."""

import asyncio
import json
import sys

import nats
from nats.js.api import KeyValueConfig
from nats.js.errors import KeyDeletedError, KeyNotFoundError, KeyWrongLastSequenceError, NoKeysError

# What changes are called here, by what the client calls them.
OPERATIONS = {None: "put", "DEL": "delete", "PURGE": "purge"}

# How long a change that must come may take.
SOON_SECONDS = 180


def shown(entry):
    operation = OPERATIONS[entry.operation]
    value = (entry.value or b"").decode() if operation == "put" else ""
    return {"operation": operation, "key": entry.key, "revision": entry.revision, "value": value}


class Client:
    def __init__(self, context):
        self.context = context
        self.bucket = None
        self.watcher = None

    async def create_bucket(self, bucket, history, markers):
        config = KeyValueConfig(bucket=bucket, history=history, direct=True, limit_marker_ttl=markers)
        self.bucket = await self.context.create_key_value(config)

    async def bind(self, bucket):
        self.bucket = await self.context.key_value(bucket)

    async def put(self, key, value):
        return await self.bucket.put(key, value.encode())

    async def create(self, key, value, ttl):
        return await self.bucket.create(key, value.encode(), msg_ttl=ttl)

    async def update(self, key, value, revision):
        return await self.bucket.update(key, value.encode(), last=revision)

    async def delete(self, key):
        await self.bucket.delete(key)

    async def purge(self, key):
        await self.bucket.purge(key)

    async def get(self, key):
        try:
            entry = await self.bucket.get(key)
            # It takes the marker that an expired value leaves for a value without bytes.
            return shown(entry) if entry.value else None
        except (KeyDeletedError, KeyNotFoundError):
            return None

    async def keys(self):
        try:
            return await self.bucket.keys()
        except NoKeysError:
            return []

    async def history(self, key):
        return [shown(entry) for entry in await self.bucket.history(key)]

    async def watch(self):
        self.watcher = await self.bucket.watchall()

    async def seen(self, count):
        changes = []
        while len(changes) < count:
            entry = await self.watcher.updates(timeout=SOON_SECONDS)
            # Nothing says that everything that was there has come.
            if entry is not None:
                changes.append(shown(entry))
        return changes


async def answer(client, request):
    action = request.pop("do")
    try:
        return {"done": await getattr(client, action)(**request)}
    except KeyWrongLastSequenceError:
        return {"conflict": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def main():
    connection = await nats.connect(sys.argv[1])
    client = Client(connection.jetstream())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await answer(client, json.loads(line))), flush=True)
    await connection.close()


asyncio.run(main())
