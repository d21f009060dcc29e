// The thread of a model or a session: answers the requests of qwen35.js one after the other.
'use strict';

const { parentPort, workerData } = require('node:worker_threads');
const { borrowed, bytes, check, constants, koffi, load, sampling, sized, structs, text } =
  require('./library.js');

const c = load(workerData.library);
let session = null, decoder = null;
let opened = 0;
const conversations = new Map(); // those of the session, by number

const push = (token) => text((data, length) => c.qwen_stream_decoder_push(decoder, token, data, length));
const finish = () => text((data, length) => c.qwen_stream_decoder_finish(decoder, data, length));

// The value of a constant that is named by a word: choice('isa', 'avx2') is QWEN_ISA_AVX2.
function choice(kind, word) {
  const name = `QWEN_${kind}_${word}`.toUpperCase();
  if (!(name in constants)) throw new RangeError(`there is no ${kind} "${word}"`);
  return constants[name];
}

// A struct for the library to fill.
function empty(struct) {
  const raw = {};
  for (const [name, member] of Object.entries(koffi.type(struct).members)) {
    raw[name] = koffi.type(member.type).primitive === 'Pointer' ? null : 0;
  }
  raw.struct_size = koffi.sizeof(struct);
  return raw;
}

// Takes a session over, and makes what turns its tokens into text.
function own(model, handle) {
  const made = [null];
  session = handle;
  check(c.qwen_stream_decoder_new(model, constants.QWEN_TEXT_SKIP_SPECIAL, made));
  decoder = made[0];
  return koffi.address(session);
}

function conversationOptions({ system, tools, thinking, thinkingBudget = 0, maxTokens = 0, stop = [] }) {
  const options = {
    ...empty(structs.qwen_conversation_options),
    thinking: choice('thinking', thinking === undefined ? 'default' : thinking ? 'on' : 'off'),
    thinking_budget: thinkingBudget, max_tokens: maxTokens,
    stop: stop.length > 0 ? stop : null, stop_count: stop.length,
  };
  if (system !== undefined) {
    options.system = bytes(system);
    options.system_length = options.system.length;
  }
  if (tools !== undefined) {
    options.tools = bytes(JSON.stringify(tools));
    options.tools_length = options.tools.length;
  }
  return options;
}

// Makes a call that gives the tokens in all and those computed.
function fed(call) {
  const total = [0], computed = [0];
  const status = check(call(total, computed));
  return { status, total: Number(total[0]), computed: Number(computed[0]) };
}

const actions = {
  openModel({ path, threads = 0, isa = 'auto', weights = 'stored', compute = 'auto',
    prefixCacheBytes = 0, tokenizerOnly = false }) {
    const options = {
      struct_size: koffi.sizeof(structs.qwen_model_options),
      flags: tokenizerOnly ? constants.QWEN_MODEL_TOKENIZER_ONLY : 0,
      threads, isa: choice('isa', isa), weights: choice('weights', weights),
      compute: choice('compute', compute), prefix_cache_bytes: prefixCacheBytes,
    };
    const folder = bytes(path), model = [null];
    check(c.qwen_model_open(folder, folder.length, options, model));
    return koffi.address(model[0]);
  },
  openSession({ model, contextLimit = 0, sampling: how, cacheNamespace = 0, dropTurns = false,
    overflowReserve = 0, markLimit = 0, kv = 'auto' }) {
    const options = {
      struct_size: koffi.sizeof(structs.qwen_session_options), flags: 0,
      context_limit: contextLimit, sampling: how === undefined ? null : sampling(how),
      cache_namespace: cacheNamespace, overflow_reserve: overflowReserve,
      overflow: choice('overflow', dropTurns ? 'drop_turns' : 'refuse'), mark_limit: markLimit,
      kv: choice('kv', kv),
    };
    const made = [null];
    check(c.qwen_session_new(model, options, made));
    return own(model, made[0]);
  },
  // Takes over what another thread forked.
  adoptSession({ model, session: handle }) {
    return own(model, handle);
  },
  fork() {
    const made = [null];
    check(c.qwen_session_fork(session, made));
    return { status: 0, session: koffi.address(made[0]) };
  },
  mark() {
    const mark = [0];
    return { status: check(c.qwen_session_mark(session, mark)), mark: mark[0] };
  },
  unmark({ mark }) {
    return { status: check(c.qwen_session_unmark(session, mark)) };
  },
  rewind({ mark, random }) {
    return { status: check(c.qwen_session_rewind(session, mark, random ? constants.QWEN_REWIND_RANDOM : 0)) };
  },
  truncate({ position }) {
    const computed = [0];
    const status = check(c.qwen_session_truncate(session, position, computed));
    return { status, computed: Number(computed[0]) };
  },
  save({ file }) {
    const place = bytes(file);
    return { status: check(c.qwen_session_save_file(session, place, place.length, 0)) };
  },
  restore({ file }) {
    const place = bytes(file);
    return { status: check(c.qwen_session_restore_file(session, place, place.length)) };
  },
  saveBytes() {
    return { status: 0, state: sized(Uint8Array, (...to) => c.qwen_session_save_memory(session, 0, ...to)) };
  },
  restoreBytes({ state }) {
    return { status: check(c.qwen_session_restore_memory(session, state, state.length)) };
  },
  enqueue({ tokens }) {
    return { status: check(c.qwen_session_enqueue(session, Int32Array.from(tokens), tokens.length)) };
  },
  enqueueChat({ chat }) {
    const data = bytes(JSON.stringify(chat)), total = [0], remaining = [0];
    const status = check(c.qwen_session_enqueue_chat(session, data, data.length, 0, total, remaining));
    return { status, total: Number(total[0]), remaining: Number(remaining[0]) };
  },
  step({ budget }) {
    const token = [0], remaining = [0];
    const status = check(c.qwen_session_step(session, budget, 0, token, remaining));
    return { status, token: token[0], remaining: Number(remaining[0]) };
  },
  // Of this session and those of other threads, which are idle meanwhile.
  batchStep({ sessions }) {
    const tokens = new Int32Array(sessions.length), statuses = new Int32Array(sessions.length);
    check(c.qwen_batch_step(sessions, sessions.length, tokens, statuses));
    return { status: 0, tokens, statuses };
  },
  score({ text: judged }) {
    const data = bytes(judged), score = empty(structs.qwen_score);
    return { status: check(c.qwen_session_score_text(session, data, data.length, 0, score)), score };
  },
  statistics() {
    const raw = empty(structs.qwen_statistics);
    return { status: check(c.qwen_session_get_statistics(session, raw)), statistics: raw };
  },
  feed({ tokens }) {
    return { status: check(c.qwen_session_feed(session, Int32Array.from(tokens), tokens.length)) };
  },
  feedText({ prompt, addedTokens = false }) {
    const data = bytes(prompt);
    const flags = addedTokens ? constants.QWEN_TEXT_ADDED_TOKENS : 0;
    return { status: check(c.qwen_session_feed_text(session, data, data.length, flags)) };
  },
  feedChat({ chat }) {
    const data = bytes(JSON.stringify(chat));
    return fed((...to) => c.qwen_session_feed_chat(session, data, data.length, 0, ...to));
  },
  next() {
    const token = [0];
    const status = check(c.qwen_session_next_token(session, token));
    return { status, token: token[0] };
  },
  // A token and the text that it completes.
  piece() {
    const { status, token } = actions.next();
    return { status, token, text: status === constants.QWEN_OK ? push(token) : '' };
  },
  finish() {
    return { status: 0, text: finish() };
  },
  logits() {
    const data = [null], count = [0];
    const status = check(c.qwen_session_logits(session, data, count));
    if (status !== constants.QWEN_OK) return { status };
    const view = koffi.view(data[0], 4 * Number(count[0]));
    return { status, logits: new Float32Array(view.slice(0)) };
  },
  tokens() {
    return { status: 0, tokens: borrowed(Int32Array, (data, count) =>
      c.qwen_session_tokens(session, data, count)) };
  },
  setSampling({ sampling: how }) {
    return { status: check(c.qwen_session_set_sampling(session, sampling(how))) };
  },
  reset() {
    return { status: check(c.qwen_session_reset(session)) };
  },
  // Takes back a cancel that came after the end of its call.
  forget() {
    return { status: check(c.qwen_session_cancel_clear(session)) };
  },
  openConversation(options) {
    const made = [null], id = ++opened;
    check(c.qwen_conversation_new(session, conversationOptions(options), made));
    conversations.set(id, made[0]);
    return { status: 0, id };
  },
  closeConversation({ id }) {
    c.qwen_conversation_free(conversations.get(id) ?? null);
    conversations.delete(id);
    return { status: 0 };
  },
  configure({ id, options }) {
    return { status: check(c.qwen_conversation_configure(conversations.get(id), conversationOptions(options))) };
  },
  add({ id, messages }) {
    const data = bytes(JSON.stringify(messages));
    return { status: check(c.qwen_conversation_add(conversations.get(id), data, data.length)) };
  },
  send({ id, text: message }) {
    if (message === undefined) {
      return fed((...to) => c.qwen_conversation_send(conversations.get(id), null, 0, ...to));
    }
    const data = bytes(message);
    return fed((...to) => c.qwen_conversation_send_text(conversations.get(id), data, data.length, ...to));
  },
  regenerate({ id }) {
    return fed((...to) => c.qwen_conversation_regenerate(conversations.get(id), ...to));
  },
  settle({ id }) {
    return fed((...to) => c.qwen_conversation_settle(conversations.get(id), ...to));
  },
  resume({ id }) {
    return { status: check(c.qwen_conversation_resume(conversations.get(id))) };
  },
  undo({ id }) {
    const removed = [0];
    return { status: check(c.qwen_conversation_undo(conversations.get(id), removed)), removed: Number(removed[0]) };
  },
  addToolResult({ id, call, result }) {
    const name = bytes(call), data = bytes(result);
    return { status: check(c.qwen_conversation_add_tool_result(
      conversations.get(id), name, name.length, data, data.length)) };
  },
  enqueueReply({ id, text: message }) {
    const data = bytes(message), total = [0], remaining = [0];
    const status = check(c.qwen_conversation_enqueue_text(
      conversations.get(id), data, data.length, total, remaining));
    return { status, total: Number(total[0]), remaining: Number(remaining[0]) };
  },
  // With a budget: for about that many microseconds.
  nextPiece({ id, budget }) {
    const raw = empty(structs.qwen_piece), talk = conversations.get(id);
    const status = check(budget === undefined ? c.qwen_conversation_next(talk, raw)
      : c.qwen_conversation_step(talk, budget, raw, [0]));
    const lent = (name) => {
      const length = Number(raw[`${name}_length`]);
      return length === 0 ? '' : Buffer.from(koffi.view(raw[name], length)).toString('utf8');
    };
    return { status, kind: raw.kind, finish: raw.finish, isWhole: raw.is_whole !== 0,
      text: lent('text'), name: lent('name'), arguments: lent('arguments'), id: lent('id'),
      problem: lent('problem') };
  },
  history({ id }) {
    const json = sized(Uint8Array, (...to) =>
      c.qwen_conversation_history(conversations.get(id), ...to));
    return { status: 0, messages: JSON.parse(Buffer.from(json).toString('utf8')) };
  },
  setHistory({ id, messages }) {
    const data = bytes(JSON.stringify(messages));
    return { status: check(c.qwen_conversation_set_history(conversations.get(id), data, data.length)) };
  },
  close() {
    for (const talk of conversations.values()) c.qwen_conversation_free(talk);
    conversations.clear();
    c.qwen_session_free(session);
    c.qwen_stream_decoder_free(decoder);
    session = decoder = null;
    return { status: 0 };
  },
};

parentPort.on('message', ({ id, action, request }) => {
  try {
    parentPort.postMessage({ id, answer: actions[action](request) });
  } catch (error) {
    const { message, status, statusName } = error;
    parentPort.postMessage({ id, error: { message, status, statusName, kind: error.name } });
  }
});
