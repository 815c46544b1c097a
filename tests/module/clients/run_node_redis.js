// Runs the script with node-redis in RESP2, and its own functions for filters in RESP2 and RESP3:
// run_node_redis.js PORT SCRIPT.
const assert = require('node:assert').strict;
const fs = require('node:fs');
const { createClient, RESP_TYPES } = require('redis');

async function main() {
  const [port, path] = process.argv.slice(2);
  const connect = (RESP) => createClient({ RESP, socket: { host: '127.0.0.1', port: Number(port) } }).connect();
  const client = await connect(2);
  const script = JSON.parse(fs.readFileSync(path));
  for (const [words, expected] of script) {
    let answer;
    try {
      answer = await client.sendCommand(words);
    } catch (error) {
      answer = { error: error.message };
    }
    assert.deepEqual(answer, expected, words.join(' '));
  }

  await check(client);
  await check(await connect(3));
  const { version } = require('redis/package.json');
  console.log(`node-redis ${version}: ${script.length} commands`);
}

async function check(client) {
  await client.flushAll();
  assert.equal(await client.bf.reserve('b', 0.001, 100), 'OK');
  assert.equal(await client.bf.add('b', 'a'), true);
  assert.deepEqual(await client.bf.mAdd('b', ['a', 'b']), [false, true]);
  assert.deepEqual(await client.bf.insert('b', ['b', 'c']), [false, true]);
  assert.equal(await client.bf.exists('b', 'c'), true);
  assert.deepEqual(await client.bf.mExists('b', ['a', 'z']), [true, false]);
  assert.equal(await client.bf.card('b'), 3);
  const bloom = await client.bf.info('b');
  assert.ok(bloom.Size > 0);
  assert.deepEqual({ ...bloom, Size: 0 }, {
    Capacity: 100, Size: 0, 'Number of filters': 1, 'Number of items inserted': 3, 'Expansion rate': 2,
  });
  await assert.rejects(client.bf.info('none'), { message: 'ERR not found' });
  await assert.rejects(client.bf.reserve('b', 0.001, 100), { message: 'ERR item exists' });
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  for (let at = 0; ;) {
    const { iterator, chunk } = await binary.bf.scanDump('b', at);
    if ((at = iterator) === 0) break;
    assert.equal(await client.bf.loadChunk('copy', iterator, chunk), 'OK');
  }
  assert.deepEqual(await client.bf.mExists('copy', ['a', 'c', 'z']), [true, true, false]);

  assert.equal(await client.cf.reserve('c', 1000), 'OK');
  assert.equal(await client.cf.add('c', 'a'), true);
  assert.equal(await client.cf.addNX('c', 'a'), false);
  assert.deepEqual(await client.cf.insert('c', ['a', 'b']), [true, true]);
  // Integers in both protocols; the client makes booleans of them in RESP2.
  const inserted = await client.cf.insertNX('c', ['a', 'd']);
  assert.deepEqual(inserted.map(Number), [0, 1]);
  assert.equal(await client.cf.count('c', 'a'), 2);
  assert.equal(await client.cf.exists('c', 'b'), true);
  assert.equal(await client.cf.del('c', 'a'), true);
  const cuckoo = await client.cf.info('c');
  assert.ok(cuckoo.Size > 0 && cuckoo['Number of buckets'] > 0);
  assert.deepEqual({ ...cuckoo, Size: 0, 'Number of buckets': 0 }, {
    Size: 0, 'Number of buckets': 0, 'Number of filters': 1, 'Number of items inserted': 3,
    'Number of items deleted': 1, 'Bucket size': 2, 'Expansion rate': 1, 'Max iterations': 20,
  });
  client.destroy();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
