// The thread of a model or a session: answers the requests of qwen35.js one after the other.
'use strict';

const { parentPort, workerData } = require('node:worker_threads');
const { borrowed, bytes, check, constants, koffi, load, sampling, structs, text } =
  require('./library.js');

const c = load(workerData.library);
let session = null, decoder = null;

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
  close() {
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
