// The thread of a model or a session: answers the requests of qwen35.js one after the other.
'use strict';

const { parentPort, workerData } = require('node:worker_threads');
const { borrowed, bytes, check, constants, koffi, load, sampling, sized, structs, text } =
  require('./library.js');

const c = load(workerData.library);
let session = null, decoder = null;
const conversations = new Map(); // those of the session, by number

const push = (token) => text((data, length) => c.qwen_stream_decoder_push(decoder, token, data, length));
const finish = () => text((data, length) => c.qwen_stream_decoder_finish(decoder, data, length));

const actions = {
  openModel({ path, threads = 0, isa = 'auto', tokenizerOnly = false }) {
    const name = `QWEN_ISA_${isa.toUpperCase()}`;
    if (!(name in constants)) throw new RangeError(`there is no isa "${isa}"`);
    const options = {
      struct_size: koffi.sizeof(structs.qwen_model_options),
      flags: tokenizerOnly ? constants.QWEN_MODEL_TOKENIZER_ONLY : 0,
      threads, isa: constants[name],
    };
    const folder = bytes(path), model = [null];
    check(c.qwen_model_open(folder, folder.length, options, model));
    return koffi.address(model[0]);
  },
  openSession({ model, contextLimit = 0, sampling: how }) {
    const options = {
      struct_size: koffi.sizeof(structs.qwen_session_options), flags: 0,
      context_limit: contextLimit, sampling: how === undefined ? null : sampling(how),
    };
    const made = [null], made2 = [null];
    check(c.qwen_session_new(model, options, made));
    session = made[0];
    check(c.qwen_stream_decoder_new(model, constants.QWEN_TEXT_SKIP_SPECIAL, made2));
    decoder = made2[0];
    return koffi.address(session);
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
    const data = bytes(JSON.stringify(chat)), total = [0], computed = [0];
    const status = check(c.qwen_session_feed_chat(session, data, data.length, 0, total, computed));
    return { status, total: Number(total[0]), computed: Number(computed[0]) };
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
  // Takes back a cancel that came after the end of its call: the next call answers it.
  forget() {
    const data = [null], count = [0];
    if (c.qwen_session_logits(session, data, count) < 0) c.qwen_session_reset(session);
    return { status: 0 };
  },
  openConversation({ system, tools, thinking, thinkingBudget = 0, maxTokens = 0, stop = [] }) {
    const options = {};
    for (const name of Object.keys(koffi.type(structs.qwen_conversation_options).members)) {
      options[name] = 0;
    }
    Object.assign(options, {
      struct_size: koffi.sizeof(structs.qwen_conversation_options),
      thinking: thinking === undefined ? constants.QWEN_THINKING_DEFAULT
        : thinking ? constants.QWEN_THINKING_ON : constants.QWEN_THINKING_OFF,
      thinking_budget: thinkingBudget, max_tokens: maxTokens, system: null, tools: null,
      stop: stop.length > 0 ? stop : null, stop_lengths: null, stop_count: stop.length,
    });
    if (system !== undefined) {
      options.system = bytes(system);
      options.system_length = options.system.length;
    }
    if (tools !== undefined) {
      options.tools = bytes(JSON.stringify(tools));
      options.tools_length = options.tools.length;
    }
    const made = [null], id = conversations.size + 1;
    check(c.qwen_conversation_new(session, options, made));
    conversations.set(id, made[0]);
    return { status: 0, id };
  },
  send({ id, text: message, tokens: counts = [[0], [0]] }) {
    const data = message === undefined ? null : bytes(message);
    const status = check(data === null
      ? c.qwen_conversation_send(conversations.get(id), null, 0, ...counts)
      : c.qwen_conversation_send_text(conversations.get(id), data, data.length, ...counts));
    return { status, total: Number(counts[0][0]), computed: Number(counts[1][0]) };
  },
  addToolResult({ id, call, result }) {
    const name = bytes(call), data = bytes(result);
    return { status: check(c.qwen_conversation_add_tool_result(
      conversations.get(id), name, name.length, data, data.length)) };
  },
  nextPiece({ id }) {
    const raw = {};
    for (const name of Object.keys(koffi.type(structs.qwen_piece).members)) raw[name] = 0;
    raw.struct_size = koffi.sizeof(structs.qwen_piece);
    for (const name of ['text', 'name', 'arguments', 'id', 'problem']) raw[name] = null;
    const status = check(c.qwen_conversation_next(conversations.get(id), raw));
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
