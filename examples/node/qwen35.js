// Qwen3.5 language models on x86-64 CPUs, for Node.js. Long calls run in threads of their own.
//
//   const { Model } = require('./qwen35.js');
//   const model = await Model.open('path/to/Qwen3.5-0.8B');
//   const session = await model.session();
//   await session.feedChat({ messages: [{ role: 'user', content: 'Hello!' }] });
//   for await (const piece of session.stream({ maxTokens: 100 })) process.stdout.write(piece);
'use strict';

const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { QwenError, bytes, check, constants, koffi, load, sized, structs } =
  require('./library.js');

// The outcome of a call that cancel() ended.
class CancelledError extends Error {
  constructor() {
    super('the call was cancelled');
    this.name = 'CancelledError';
  }
}

// A thread, and the requests that it has not answered.
class Thread {
  #worker;
  #waiting = new Map();
  #last = 0;

  constructor(library) {
    this.#worker = new Worker(path.join(__dirname, 'worker.js'), { workerData: { library } });
    this.#worker.unref();
    this.#worker.on('message', ({ id, answer, error }) => {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#worker.unref();
      if (error === undefined) return resolve(answer);
      const kinds = { RangeError, TypeError };
      reject(error.status === undefined ? new (kinds[error.kind] || Error)(error.message)
        : new QwenError(error.message, error.status, error.statusName));
    });
    const fail = (error) => {
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    this.#worker.on('error', fail);
    this.#worker.on('exit', () => fail(new Error('the session is closed')));
  }

  ask(action, request = {}) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(++this.#last, { resolve, reject });
      this.#worker.ref(); // a request keeps the process alive, an idle thread does not
      this.#worker.postMessage({ id: this.#last, action, request });
    });
  }

  end() {
    return this.#worker.terminate();
  }
}

class Model {
  #handle;
  #library;

  constructor(handle, library) {
    this.#handle = handle;
    this.#library = library;
    freed.register(this, { free: 'qwen_model_free', handle }, this);
  }

  // Opens the checkpoint in a folder. Options: threads, isa ('auto', 'scalar', 'avx2',
  // 'avx512'), weights ('stored', 'int8', 'int4'), compute ('auto', 'exact', 'fast'),
  // prefixCacheBytes (for beginnings that sessions share), tokenizerOnly, library (the path of
  // libqwen35.so).
  static async open(folder, { library, ...options } = {}) {
    load(library);
    const thread = new Thread(library);
    try {
      return new Model(await thread.ask('openModel', { path: String(folder), ...options }), library);
    } finally {
      await thread.end();
    }
  }

  get handle() {
    if (this.#handle === null) throw new Error('the model is closed');
    return this.#handle;
  }

  // Frees it. Sessions that are open keep what they need.
  close() {
    if (this.#handle === null) return;
    freed.unregister(this);
    load().qwen_model_free(this.#handle);
    this.#handle = null;
  }

  // The fields of qwen_model_info.
  get info() {
    const raw = {};
    for (const name of Object.keys(koffi.type(structs.qwen_model_info).members)) raw[name] = 0;
    raw.struct_size = koffi.sizeof(structs.qwen_model_info);
    check(load().qwen_model_get_info(this.handle, raw));
    return raw;
  }

  // An Int32Array of ids. addedTokens: spellings such as "<|im_end|>" become those tokens;
  // not for text that a user wrote.
  tokenize(text, { addedTokens = false } = {}) {
    const data = bytes(text), flags = addedTokens ? constants.QWEN_TEXT_ADDED_TOKENS : 0;
    return sized(Int32Array, (...to) =>
      load().qwen_tokenize(this.handle, data, data.length, flags, ...to));
  }

  detokenize(tokens, { skipSpecial = false } = {}) {
    const data = Int32Array.from(tokens), flags = skipSpecial ? constants.QWEN_TEXT_SKIP_SPECIAL : 0;
    return Buffer.from(sized(Uint8Array, (...to) =>
      load().qwen_detokenize(this.handle, data, data.length, flags, ...to))).toString('utf8');
  }

  // chat: { messages, tools, enable_thinking, add_generation_prompt }.
  renderChat(chat) {
    const data = bytes(JSON.stringify(chat));
    return Buffer.from(sized(Uint8Array, (...to) =>
      load().qwen_chat_render(this.handle, data, data.length, 0, ...to))).toString('utf8');
  }

  // A new session. Options: contextLimit, and sampling: { preset ('chat', 'greedy',
  // 'thinking', 'precise'), temperature, topK, topP, minP, repetitionPenalty,
  // presencePenalty, frequencyPenalty, penaltyWindow, seed, logitBias: { id: number } }.
  // cacheNamespace shares beginnings with the sessions that have the same number; dropTurns (and
  // overflowReserve) has a conversation that does not fit lose its oldest turns; markLimit; kv
  // ('auto', 'fp32', 'fp16', 'int8') is how keys and values are stored.
  async session(options = {}) {
    return this.#own('openSession', options);
  }

  // The session of a handle that another one was forked into.
  async adopt(session) {
    return this.#own('adoptSession', { session });
  }

  async #own(action, request) {
    const thread = new Thread(this.#library);
    try {
      return new Session(await thread.ask(action, { model: this.handle, ...request }), thread, this);
    } catch (error) {
      await thread.end();
      throw error;
    }
  }
}

// What an advance came to.
const OUTCOMES = {
  [constants.QWEN_OK]: 'token',
  [constants.QWEN_END_OF_TURN]: 'endOfTurn',
  [constants.QWEN_LIMIT_REACHED]: 'full',
  [constants.QWEN_CANCELLED]: 'cancelled',
  [constants.QWEN_WORKING]: 'working',
};

class Session {
  #handle;
  #thread;
  #model;
  #held = new Set(); // batches that it is in

  constructor(handle, thread, model) {
    this.#handle = handle;
    this.#thread = thread;
    this.#model = model;
  }

  // Makes a call; `signal` cancels it, and so does cancel().
  async #ask(action, request, signal) {
    if (this.#handle === null) throw new Error('the session is closed');
    signal?.throwIfAborted();
    let asked = false;
    const abort = () => { asked = true; this.cancel(); };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      const answer = await this.#thread.ask(action, request);
      if (answer.status === constants.QWEN_CANCELLED) {
        if (asked) throw signal.reason;
        throw new CancelledError();
      }
      if (asked) await this.#thread.ask('forget');
      return answer;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  async feed(tokens, { signal } = {}) {
    await this.#ask('feed', { tokens }, signal);
  }

  async feedText(prompt, { addedTokens, signal } = {}) {
    await this.#ask('feedText', { prompt, addedTokens }, signal);
  }

  // Makes the session hold exactly this conversation, ready for the answer. Call it once per
  // turn with all messages so far. Gives { total, computed } in tokens.
  async feedChat(chat, { signal } = {}) {
    const { total, computed } = await this.#ask('feedChat', { chat }, signal);
    return { total, computed };
  }

  // { token, endOfTurn }, or null when the context is full.
  async next({ signal } = {}) {
    const { status, token } = await this.#ask('next', {}, signal);
    if (status === constants.QWEN_LIMIT_REACHED) return null;
    return { token, endOfTurn: status === constants.QWEN_END_OF_TURN };
  }

  // Text of the next tokens in whole characters, made while it is walked. Leaving it early is
  // fine: the session stands behind the last piece that was taken.
  async *stream({ maxTokens = Infinity, signal } = {}) {
    await this.#ask('finish', {}); // of a walk that was left
    for (let left = maxTokens; left > 0; left--) {
      const { status, text } = await this.#ask('piece', {}, signal);
      if (status !== constants.QWEN_OK) break;
      if (text !== '') yield text;
    }
    const { text } = await this.#ask('finish', {});
    if (text !== '') yield text;
  }

  // An independent session that stands where this one does. What is computed is shared. The
  // model must not be closed.
  async fork() {
    if (this.#model.handle === null) return null; // throws when it is closed
    const { session } = await this.#ask('fork', {});
    try {
      return await this.#model.adopt(session);
    } catch (error) {
      load().qwen_session_free(session);
      throw error;
    }
  }

  // Keeps the present position for rewind(). Gives the mark's name.
  async mark() {
    return (await this.#ask('mark', {})).mark;
  }

  async unmark(mark) {
    await this.#ask('unmark', { mark });
  }

  // Goes back to a mark, bit for bit; nothing is computed. random: the random stream goes back
  // too.
  async rewind(mark, { random = false } = {}) {
    await this.#ask('rewind', { mark, random });
  }

  // Cuts the sequence to its first tokens; gives how many were computed again for that.
  async truncate(position, { signal } = {}) {
    return (await this.#ask('truncate', { position }, signal)).computed;
  }

  // Saves the session to a file, which is replaced at once. Restored, it goes on bit for bit.
  async save(file) {
    await this.#ask('save', { file: String(file) });
  }

  // Puts the session where a saved one of the same model was.
  async restore(file) {
    await this.#ask('restore', { file: String(file) });
  }

  // The same in memory.
  async saveBytes() {
    return (await this.#ask('saveBytes', {})).state;
  }

  async restoreBytes(state) {
    await this.#ask('restoreBytes', { state });
  }

  // Appends tokens for step() to compute.
  async enqueue(tokens) {
    await this.#ask('enqueue', { tokens });
  }

  // As feedChat(), but leaves what is not computed yet to step(). Gives { total, remaining }.
  async enqueueChat(chat) {
    const { total, remaining } = await this.#ask('enqueueChat', { chat });
    return { total, remaining };
  }

  // Goes on for about that many milliseconds: with what is queued, then with the next token.
  // Gives { outcome: 'working' | 'token' | 'endOfTurn' | 'full', token, remaining }.
  async step(milliseconds, { signal } = {}) {
    const budget = Math.round(milliseconds * 1000);
    if (!(budget >= 0)) throw new RangeError(`a budget of ${milliseconds} milliseconds`);
    const { status, token, remaining } = await this.#ask('step', { budget }, signal);
    return { outcome: OUTCOMES[status], token, remaining };
  }

  // Advances sessions of one model by one token each and reads the weights once for all. Gives
  // for each { outcome: 'token' | 'endOfTurn' | 'full' | 'cancelled' | 'error', token, error }; one
  // that cannot go on does not disturb the others.
  static async batchStep(sessions, { signal } = {}) {
    if (sessions.some((session) => session.#handle === null)) throw new Error('a session is closed');
    signal?.throwIfAborted();
    if (sessions.length === 0) return [];
    let asked = false;
    const abort = () => { asked = true; for (const session of sessions) session.cancel(); };
    signal?.addEventListener('abort', abort, { once: true });
    const handles = sessions.map((session) => session.#handle);
    const answer = sessions[0].#thread.ask('batchStep', { sessions: handles });
    for (const session of sessions) session.#held.add(answer);
    try {
      const { tokens, statuses } = await answer;
      if (asked) {
        await Promise.all(sessions.map((session) => session.#thread.ask('forget')));
        if (statuses.every((status) => status === constants.QWEN_CANCELLED)) throw signal.reason;
      }
      return Array.from(statuses, (status, i) => {
        if (status >= 0) return { outcome: OUTCOMES[status], token: tokens[i] };
        const name = load().qwen_status_name(status);
        return { outcome: 'error', token: -1,
          error: new QwenError(`session ${i} of the batch: ${name}`, status, name) };
      });
    } finally {
      signal?.removeEventListener('abort', abort);
      for (const session of sessions) session.#held.delete(answer);
    }
  }

  // How likely a text is after the sequence, which must not be empty: { logLikelihood, perplexity,
  // tokens, best }. The session stays as it is.
  async score(text, { signal } = {}) {
    const { score } = await this.#ask('score', { text }, signal);
    return { logLikelihood: score.log_likelihood, perplexity: score.perplexity,
      tokens: Number(score.token_count), best: score.best_count };
  }

  // What the session has done since it was made: the fields of qwen_statistics.
  async statistics() {
    return (await this.#ask('statistics', {})).statistics;
  }

  // A conversation over this session. Options: system, tools (as in the OpenAI API), thinking
  // (whether the model thinks first), thinkingBudget, maxTokens, stop (texts). It is freed
  // with the session, or by close().
  async conversation(options = {}) {
    const { id } = await this.#ask('openConversation', options);
    return new Conversation(id, (action, request, signal) => this.#ask(action, request, signal));
  }

  // A Float32Array of the token after the sequence.
  async logits({ signal } = {}) {
    return (await this.#ask('logits', {}, signal)).logits;
  }

  // An Int32Array of all ids, fed and generated.
  async tokens() {
    return (await this.#ask('tokens', {})).tokens;
  }

  async setSampling(sampling) {
    await this.#ask('setSampling', { sampling });
  }

  async reset() {
    await this.#ask('reset', {});
  }

  // Cancels the call in progress, or the next one. Returns at once.
  cancel() {
    if (this.#handle !== null) load().qwen_session_cancel(this.#handle);
  }

  // Frees it; a call in progress is cancelled.
  async close() {
    if (this.#handle === null) return;
    this.cancel();
    this.#handle = null;
    await Promise.allSettled(this.#held);
    await this.#thread.ask('close');
    await this.#thread.end();
  }
}

const KINDS = { 1: 'thinking', 2: 'text', 3: 'toolCall' };
const FINISHES = ['none', 'endOfTurn', 'toolCalls', 'stop', 'length', 'contextFull', 'cancelled'];

function pieceOf({ kind, text, name, id, problem, isWhole, arguments: json }) {
  if (KINDS[kind] !== 'toolCall') return { kind: KINDS[kind], text };
  return { kind: 'toolCall', text, name, id, problem, isWhole,
    arguments: json === '' ? null : JSON.parse(json) };
}

// Messages, and the session that computes the replies.
class Conversation {
  #id;
  #ask;

  constructor(id, ask) {
    this.#id = id;
    this.#ask = ask;
    this.finish = 'none'; // why the last reply ended
  }

  // Adds messages without having them answered yet.
  async add(...messages) {
    await this.#ask('add', { id: this.#id, messages });
  }

  // Adds a user's message, if one is given, and starts the reply. Gives { total, computed }.
  async send(text, { signal } = {}) {
    const { total, computed } = await this.#ask('send', { id: this.#id, text }, signal);
    return { total, computed };
  }

  // Drops the last reply and starts another one.
  async regenerate({ signal } = {}) {
    const { total, computed } = await this.#ask('regenerate', { id: this.#id }, signal);
    return { total, computed };
  }

  // Computes now, while the user reads and types, what the next message would wait for. Gives
  // { total, computed }.
  async settle({ signal } = {}) {
    const { total, computed } = await this.#ask('settle', { id: this.#id }, signal);
    return { total, computed };
  }

  // Goes on with a reply that ended by its length or was cancelled.
  async resume() {
    await this.#ask('resume', { id: this.#id });
  }

  // Takes the last turn back; gives how many messages that were.
  async undo() {
    return (await this.#ask('undo', { id: this.#id })).removed;
  }

  // The pieces of the reply that was started: { kind: 'thinking' | 'text' | 'toolCall', text },
  // and for tool calls { name, arguments, id, problem, isWhole }. Then `finish` tells the end.
  async *reply({ signal } = {}) {
    this.finish = 'cancelled'; // if the next call throws for that
    for (;;) {
      const piece = await this.#ask('nextPiece', { id: this.#id }, signal);
      if (!(piece.kind in KINDS)) {
        this.finish = FINISHES[piece.finish];
        return;
      }
      yield pieceOf(piece);
    }
  }

  // As send(), but computes nothing: step() does that. Gives { total, remaining }.
  async enqueue(text) {
    const { total, remaining } = await this.#ask('enqueueReply', { id: this.#id, text });
    return { total, remaining };
  }

  // Goes on with the reply for about that many milliseconds. Gives a piece, null if there is none
  // yet, or undefined at the end; `finish` then tells why.
  async step(milliseconds, { signal } = {}) {
    const budget = Math.round(milliseconds * 1000);
    if (!(budget >= 0)) throw new RangeError(`a budget of ${milliseconds} milliseconds`);
    this.finish = 'cancelled'; // if the next call throws for that
    const piece = await this.#ask('nextPiece', { id: this.#id, budget }, signal);
    this.finish = FINISHES[piece.finish];
    if (piece.status === constants.QWEN_WORKING) return null;
    return piece.kind in KINDS ? pieceOf(piece) : undefined;
  }

  // Sends a user's message and gives the text of the answer in pieces.
  async *ask(text, { signal } = {}) {
    await this.send(text, { signal });
    for await (const piece of this.reply({ signal })) if (piece.kind === 'text') yield piece.text;
  }

  // Adds the result of a tool call; send() without a message has it answered.
  async addToolResult(call, result) {
    await this.#ask('addToolResult', { id: this.#id, call, result });
  }

  // Goes on by other options from the next reply on.
  async configure(options) {
    await this.#ask('configure', { id: this.#id, options });
  }

  // The messages so far.
  async history() {
    return (await this.#ask('history', { id: this.#id })).messages;
  }

  async setHistory(messages) {
    await this.#ask('setHistory', { id: this.#id, messages });
  }

  async close() {
    await this.#ask('closeConversation', { id: this.#id });
  }
}

// Handles of objects that were forgotten without close().
const freed = new FinalizationRegistry(({ free, handle }) => load()[free](handle));

module.exports = { CancelledError, Conversation, Model, QwenError, Session, constants };
