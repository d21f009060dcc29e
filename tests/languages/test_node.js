// examples/node as a program uses it: MODEL SLOW_MODEL.
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const { CancelledError, Model, QwenError } = require(path.resolve('examples/node/qwen35.js'));

const [folder, slowFolder] = process.argv.slice(2);
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
  await assert.rejects(session.conversation({ stop: [''] }), QwenError);
  await session.close();
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
  for (const test of [tokens, errors, sequences, conversations, together]) await test(model);
  await longCalls();
  console.log('ok');
}

main();
