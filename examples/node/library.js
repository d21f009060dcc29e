// The library with text, arrays and errors as JavaScript has them. Every call here blocks; the
// threads of worker.js make the long ones.
'use strict';

const koffi = require('koffi');
const abi = require('./abi.js');

const { constants } = abi;

// A failure: `status` is the negative number, `name` its name in qwen35.h.
class QwenError extends Error {
  constructor(message, status, name) {
    super(message);
    this.name = 'QwenError';
    this.status = status;
    this.statusName = name;
  }
}

let library = null;

// Opens the library at `path`, or the one that the system finds.
function load(path = 'libqwen35.so.0') {
  if (library !== null) return library;
  let opened;
  try {
    opened = abi.load(path);
  } catch (error) {
    throw new Error(`cannot open ${path}: ${error.message}. Run \`make install\` (and ldconfig), ` +
      'set LD_LIBRARY_PATH, or give the option `library`');
  }
  const found = opened.qwen_abi_version();
  if (found !== constants.QWEN_ABI_VERSION) {
    throw new Error(`${path} has ABI ${found}, this package needs ${constants.QWEN_ABI_VERSION}`);
  }
  library = opened;
  return library;
}

// Throws for an error; gives positive outcomes back.
function check(status) {
  if (status >= 0) return status;
  const c = load();
  throw new QwenError(c.qwen_last_error(), status, c.qwen_status_name(status));
}

const bytes = (text) => Buffer.from(String(text), 'utf8');

// Calls a function of the two-call rule: for the size, then for the contents.
function sized(Kind, call) {
  const needed = [0];
  check(call(null, 0, needed));
  const contents = new Kind(Number(needed[0]));
  if (contents.length > 0) check(call(contents, contents.length, needed));
  return contents;
}

// A copy of what a function lends.
function borrowed(Kind, call) {
  const data = [null], count = [0];
  check(call(data, count));
  const length = Number(count[0]);
  if (length === 0) return new Kind(0);
  const view = koffi.view(data[0], length * Kind.BYTES_PER_ELEMENT);
  return new Kind(view.slice(0));
}

const text = (call) => Buffer.from(borrowed(Uint8Array, call)).toString('utf8');

// Options of the C interface from { preset: 'greedy', temperature: 0.7, topK: 40, ... }.
function sampling(options = {}) {
  const { preset = 'chat', logitBias = {}, ...values } = options;
  const name = `QWEN_PRESET_${preset.toUpperCase()}`;
  if (!(name in constants)) throw new RangeError(`there is no preset "${preset}"`);
  const raw = {
    struct_size: koffi.sizeof(abi.structs.qwen_sampling_options), set: 0, preset: constants[name],
    temperature: 0, top_k: 0, top_p: 0, min_p: 0, repetition_penalty: 0, presence_penalty: 0,
    frequency_penalty: 0, penalty_window: 0, reserved: 0, seed: 0, logit_bias: null,
    logit_bias_count: 0,
  };
  for (const [key, value] of Object.entries(values)) {
    const field = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const bit = constants[`QWEN_SET_${field.toUpperCase()}`];
    if (bit === undefined) throw new TypeError(`there is no sampling option "${key}"`);
    if (value === undefined) continue;
    raw.set |= bit;
    raw[field] = value;
  }
  const entries = Object.entries(logitBias);
  if (entries.length > 0) {
    raw.logit_bias = entries.map(([token, bias]) => ({ token: Number(token), bias }));
    raw.logit_bias_count = entries.length;
  }
  return raw;
}

module.exports = { QwenError, borrowed, bytes, check, constants, koffi, load, sampling, sized,
  structs: abi.structs, text };
