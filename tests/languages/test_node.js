// examples/node as a program uses it: MODEL SLOW_MODEL FILE.
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const { CancelledError, Model, QwenError, Session, constants } = require(path.resolve('examples/node/qwen35.js'));

const [folder, slowFolder, file] = process.argv.slice(2);
const chat = { messages: [{ role: 'user', content: 'hello' }] };
const greedy = { preset: 'greedy' };

async function collect(iterator) {
  let text = '';
  for await (const piece of iterator) text += piece;
  return text;
}

async function tokens(model) {
  for (const text of ['', 'hello world', 'a\0b', 'Grüße 👩‍👧 \ufdfd']) {
    assert.strictEqual(model.detokenize(model.tokenize(text)), text);
  }
  assert.strictEqual(model.tokenize('<|im_end|>', { addedTokens: true }).length, 1);
  assert.ok(model.tokenize('<|im_end|>').length > 1);
  assert.ok(model.renderChat({ ...chat, enable_thinking: true }).endsWith('<think>\n'));
  assert.strictEqual(model.info.has_weights, 1);
  assert.throws(() => model.detokenize([1e6]), { statusName: 'QWEN_ERROR_INVALID_ARGUMENT' });
}

async function errors(model) {
  await assert.rejects(Model.open('/nowhere'), (error) =>
    error instanceof QwenError && error.statusName === 'QWEN_ERROR_IO' && /nowhere/.test(error.message));
  await assert.rejects(Model.open(folder, { isa: 'mmx' }), RangeError);
  await assert.rejects(model.session({ sampling: { preset: 'no' } }), RangeError);
  await assert.rejects(model.session({ sampling: { top: 1 } }), TypeError);
  await assert.rejects(model.session({ sampling: { temperature: -1 } }), QwenError);
  const session = await model.session();
  await assert.rejects(session.next(), { statusName: 'QWEN_ERROR_INVALID_STATE' });
  await assert.rejects(session.feedChat({ messages: [{ role: 'wizard', content: '' }] }), QwenError);
  await session.close();
  await assert.rejects(session.next(), /closed/);
}

async function sequences(model) {
  const session = await model.session({ sampling: { ...greedy, logitBias: { 3: -1, 4: -Infinity } } });
  const { total, computed } = await session.feedChat(chat);
  assert.ok(total > 0 && total === computed);
  assert.strictEqual((await session.feedChat(chat)).computed, 0);
  const logits = await session.logits();
  const { token } = await session.next();
  assert.ok(logits instanceof Float32Array && logits.length > 0);
  assert.strictEqual((await session.tokens()).at(-1), token);
  await session.reset();
  assert.strictEqual((await session.tokens()).length, 0);
  await session.feed([1, 2, 3]);
  await session.setSampling({ seed: 5 });
  const first = await collect(session.stream({ maxTokens: 8 }));
  await session.reset();
  await session.feed([1, 2, 3]);
  await session.setSampling({ seed: 5 });
  assert.strictEqual(await collect(session.stream({ maxTokens: 8 })), first);
  // Leaving a walk early makes nothing ahead.
  await session.feedChat(chat);
  for await (const piece of session.stream()) { assert.ok(piece); break; }
  const { length } = await session.tokens();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.strictEqual((await session.tokens()).length, length);
  await session.close();
}

async function conversations(model) {
  const session = await model.session({ sampling: greedy });
  const talk = await session.conversation({ system: 'Be brief.', thinking: false, maxTokens: 8, stop: ['never so'] });
  assert.ok((await talk.send('hello')).total > 0);
  let text = '';
  for await (const piece of talk.reply()) if (piece.kind === 'text') text += piece.text;
  assert.ok(['length', 'endOfTurn', 'stop'].includes(talk.finish), talk.finish);
  const history = await talk.history();
  assert.deepStrictEqual(history.map(({ role }) => role), ['system', 'user', 'assistant']);
  assert.strictEqual(history[2].content.trim(), text.trim());
  if (talk.finish === 'length') {
    await talk.resume();
    for await (const piece of talk.reply()) assert.ok(piece.text);
  }
  await talk.regenerate();
  for await (const piece of talk.reply()) assert.ok(piece.text);
  assert.ok((await talk.enqueue('more')).remaining > 0);
  const pieces = [];
  for (let piece; (piece = await talk.step(1)) !== undefined;) if (piece !== null) pieces.push(piece.text);
  assert.ok(pieces.length > 0 && talk.finish !== 'none');
  await talk.settle();
  assert.strictEqual((await talk.settle()).computed, 0);
  await talk.addToolResult('call', '{}');
  await talk.send();
  for await (const piece of talk.reply()) assert.ok(piece.kind);
  assert.ok(await talk.undo() > 0);
  await talk.setHistory(history);
  assert.deepStrictEqual(await talk.history(), history);
  await talk.add({ role: 'user', content: 'more' });
  await talk.configure({ maxTokens: 1 });
  await talk.send();
  session.cancel();
  await assert.rejects(collect(talk.reply()), CancelledError);
  assert.strictEqual(talk.finish, 'cancelled');
  await talk.close();
  await assert.rejects(talk.send('hello'), QwenError);
  await assert.rejects(session.conversation({ stop: [''] }), QwenError);
  await session.close();
}

// Forks, marks and saved sessions go on bit for bit; steps and batches give the same tokens.
async function branches(model) {
  const made = async (session) => {
    const ids = [];
    for (let i = 0; i < 4; i++) ids.push((await session.next()).token);
    return ids;
  };
  const root = await model.session({ sampling: { seed: 7 }, markLimit: 8 });
  await root.feed([1, 2, 3, 4, 5]);
  const mark = await root.mark(), state = await root.saveBytes();
  await root.save(file);
  assert.ok((await root.score('hello')).tokens > 0);
  const [one, two, three] = [await root.fork(), await root.fork(), await root.fork()];
  const expected = await made(root);
  assert.deepStrictEqual(await made(one), expected);
  await root.rewind(mark, { random: true });
  assert.deepStrictEqual(await made(root), expected);
  await root.restoreBytes(state);
  assert.deepStrictEqual(await made(root), expected);
  await root.restore(file);
  assert.deepStrictEqual(await made(root), expected);
  await root.truncate(2);
  assert.strictEqual((await root.tokens()).length, 2);
  await root.unmark(await root.mark());
  await assert.rejects(root.unmark(12345), QwenError);
  await assert.rejects(root.restoreBytes(new Uint8Array([1, 2, 3])), { statusName: 'QWEN_ERROR_FORMAT' });

  let step;
  do step = await two.step(2); while (step.outcome === 'working');
  assert.strictEqual(step.token, expected[0]);
  const batch = await Session.batchStep([two, three, two]);
  assert.deepStrictEqual(batch.slice(0, 2).map(({ token }) => token), [expected[1], expected[0]]);
  assert.ok(batch[2].outcome === 'error' && batch[2].error instanceof QwenError);
  await assert.rejects(Session.batchStep([two, three], { signal: AbortSignal.abort() }), { name: 'AbortError' });
  await three.reset();
  assert.ok((await three.enqueueChat(chat)).remaining > 0);
  await three.enqueue([1]);
  do step = await three.step(0); while (step.outcome === 'working');
  assert.ok((await three.statistics()).output_tokens > 0);
  await assert.rejects(three.step(-1), RangeError);
  for (const session of [root, one, two, three]) await session.close();
  await assert.rejects(Session.batchStep([two]), /closed/);
}

// A conversation that does not fit loses its oldest turns, if that is asked for.
async function limits() {
  const model = await Model.open(folder, { threads: 1, weights: 'int8', compute: 'exact', prefixCacheBytes: 1 << 20 });
  assert.strictEqual(model.info.weights, constants.QWEN_WEIGHTS_INT8);
  assert.strictEqual(model.info.compute, constants.QWEN_COMPUTE_EXACT);
  const messages = [];
  for (let i = 0; i < 20; i++) {
    messages.push({ role: 'user', content: 'hello hello hello hello' }, { role: 'assistant', content: 'hello' });
  }
  messages.push(...chat.messages);
  const session = await model.session({ contextLimit: 200 });
  await assert.rejects(session.feedChat({ messages }), { statusName: 'QWEN_ERROR_CONTEXT_OVERFLOW' });
  const other = await model.session({ contextLimit: 200, cacheNamespace: 5, dropTurns: true, kv: 'int8' });
  await assert.rejects(model.session({ kv: 'int3' }), RangeError);
  assert.ok((await other.feedChat({ messages })).total <= 200);
  await session.close();
  await other.close();
  model.close();
  await assert.rejects(Model.open(folder, { weights: 'int3' }), RangeError);
}

async function together(model) {
  const answer = async (seed) => {
    const session = await model.session({ sampling: { seed } });
    await session.feedChat(chat);
    const text = await collect(session.stream({ maxTokens: 10 }));
    await session.close();
    return text;
  };
  const at_once = await Promise.all([1, 2, 3].map(answer));
  for (const seed of [1, 2, 3]) assert.strictEqual(await answer(seed), at_once[seed - 1]);
}

async function longCalls() {
  const model = await Model.open(slowFolder, { threads: 1, isa: 'scalar' });
  const session = await model.session({ sampling: greedy });
  const long = new Array(4000).fill(1);
  // The event loop goes on meanwhile.
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  await session.feed(long.slice(0, 200));
  clearInterval(timer);
  assert.ok(ticks > 3, `only ${ticks} ticks`);
  await session.reset();
  // A signal ends a call within moments, and is not left over.
  for (let i = 0; i < 3; i++) {
    const before = Date.now();
    await assert.rejects(session.feed(long, { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' });
    assert.ok(Date.now() - before < 5000);
    await session.reset();
    await session.feed([1, 2]);
  }
  const cancelled = assert.rejects(session.feed(long), CancelledError);
  setTimeout(() => session.cancel(), 30);
  await cancelled;
  // Closing ends the call inside.
  const closed = assert.rejects(session.feed(long.slice(0, 1000)), /cancelled|closed/);
  setTimeout(() => session.close(), 30);
  await closed;
  model.close();
  assert.throws(() => model.tokenize('x'), /closed/);
}

async function main() {
  const model = await Model.open(folder);
  for (const test of [tokens, errors, sequences, conversations, branches, limits, together]) await test(model);
  await longCalls();
  console.log('ok');
}

main();
