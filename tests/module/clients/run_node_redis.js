// Runs the script with node-redis, and its own functions for filters: run_node_redis.js PORT SCRIPT.
const assert = require('node:assert').strict;
const fs = require('node:fs');
const { createClient } = require('redis');

async function main() {
  const [port, path] = process.argv.slice(2);
  const client = createClient({ socket: { host: '127.0.0.1', port: Number(port) } });
  await client.connect();
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

  await client.flushAll();
  assert.equal(await client.bf.reserve('b', 0.001, 100), 'OK');
  assert.equal(await client.bf.add('b', 'a'), true);
  assert.deepEqual(await client.bf.mAdd('b', ['a', 'b']), [false, true]);
  assert.deepEqual(await client.bf.insert('b', ['b', 'c']), [false, true]);
  assert.equal(await client.bf.exists('b', 'c'), true);
  assert.deepEqual(await client.bf.mExists('b', ['a', 'z']), [true, false]);
  assert.equal(await client.bf.card('b'), 3);
  const bloom = await client.bf.info('b');
  assert.equal(bloom.Capacity ?? bloom.capacity, 100);

  assert.equal(await client.cf.reserve('c', 1000), 'OK');
  assert.equal(await client.cf.add('c', 'a'), true);
  assert.equal(await client.cf.addNX('c', 'a'), false);
  assert.deepEqual(await client.cf.insert('c', ['a', 'b']), [true, true]);
  assert.deepEqual(await client.cf.insertNX('c', ['a', 'd']), [false, true]);
  assert.equal(await client.cf.count('c', 'a'), 2);
  assert.equal(await client.cf.exists('c', 'b'), true);
  assert.equal(await client.cf.del('c', 'a'), true);
  const cuckoo = await client.cf.info('c');
  assert.equal(cuckoo['Bucket size'] ?? cuckoo.bucketSize, 2);
  await client.disconnect();
  console.log(script.length, 'commands');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
