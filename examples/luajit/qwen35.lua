-- Qwen3.5 language models on x86-64 CPUs, for LuaJIT.
--
--   local qwen35 = require("qwen35")
--   local model = qwen35.open("path/to/Qwen3.5-0.8B")
--   local session = model:session()
--   session:feed_chat('[{"role": "user", "content": "Hello!"}]')
--   for piece in session:stream(100) do io.write(piece) end
--
-- A failing call is a Lua error: a table with `status`, `name` and `message`, and the message
-- as its text. Handles are freed when they are collected, or at once by :close().
local ffi = require("ffi")
local abi = require("qwen35_abi")
local k = abi.constants

local loaded, c = pcall(ffi.load, "libqwen35.so.0")
if not loaded then
    error(c .. "\nRun `make install` (and ldconfig), or set LD_LIBRARY_PATH", 0)
end
if c.qwen_abi_version() ~= k.QWEN_ABI_VERSION then
    error(("libqwen35 has ABI %d, this file needs %d"):format(c.qwen_abi_version(), k.QWEN_ABI_VERSION), 0)
end

local Error = {}
Error.__index = Error
function Error:__tostring() return self.message .. " (" .. self.name .. ")" end

-- Raises for an error; gives positive outcomes back.
local function check(status)
    if status >= 0 then return status end
    error(setmetatable({
        status = status,
        name = ffi.string(c.qwen_status_name(status)),
        message = ffi.string(c.qwen_last_error()),
    }, Error), 0)
end

-- Calls a function of the two-call rule. Gives the array and its length.
local function sized(kind, call)
    local needed = ffi.new("size_t[1]")
    check(call(nil, 0, needed))
    local count = tonumber(needed[0])
    local array = ffi.new(kind, math.max(count, 1))
    if count > 0 then check(call(array, count, needed)) end
    return array, count
end

-- A Lua string of what a function lends.
local function borrowed(call)
    local data, length = ffi.new("const char *[1]"), ffi.new("size_t[1]")
    check(call(data, length))
    return ffi.string(data[0], length[0])
end

local function list(array, count)
    local tokens = {}
    for i = 1, count do tokens[i] = array[i - 1] end
    return tokens
end

local function ids(tokens) return ffi.new("int32_t[?]", math.max(#tokens, 1), tokens), #tokens end

-- { preset = "greedy", temperature = 0.7, top_k = 40, logit_bias = {[id] = number}, ... }
local function sampling(options)
    local raw = ffi.new("qwen_sampling_options")
    local kept
    raw.struct_size = ffi.sizeof(raw)
    for name, value in pairs(options) do
        if name == "preset" then
            raw.preset = k["QWEN_PRESET_" .. value:upper()] or error("there is no preset " .. value, 0)
        elseif name == "logit_bias" then
            local entries = {}
            for token, bias in pairs(value) do entries[#entries + 1] = {token, bias} end
            kept = ffi.new("qwen_logit_bias[?]", math.max(#entries, 1), entries)
            raw.logit_bias, raw.logit_bias_count = kept, #entries
        else
            local bit = k["QWEN_SET_" .. name:upper()]
            if not bit then error("there is no sampling option " .. name, 0) end
            raw.set = raw.set + bit
            raw[name] = value
        end
    end
    return raw, kept
end

local Model, Session = {}, {}
Model.__index, Session.__index = Model, Session

local qwen35 = { constants = k, version = ffi.string(c.qwen_version()) }

-- options: threads, isa, weights and compute (QWEN_ISA_, QWEN_WEIGHTS_ and QWEN_COMPUTE_
-- constants), prefix_cache_bytes (for beginnings that sessions share), tokenizer_only.
function qwen35.open(path, options)
    options = options or {}
    local raw = ffi.new("qwen_model_options")
    raw.struct_size = ffi.sizeof(raw)
    raw.threads = options.threads or 0
    raw.isa = options.isa or k.QWEN_ISA_AUTO
    raw.weights = options.weights or k.QWEN_WEIGHTS_STORED
    raw.compute = options.compute or k.QWEN_COMPUTE_AUTO
    raw.prefix_cache_bytes = options.prefix_cache_bytes or 0
    raw.flags = options.tokenizer_only and k.QWEN_MODEL_TOKENIZER_ONLY or 0
    local handle = ffi.new("qwen_model *[1]")
    check(c.qwen_model_open(path, #path, raw, handle))
    return setmetatable({ handle = ffi.gc(handle[0], c.qwen_model_free) }, Model)
end

-- Frees it. Sessions that are open keep what they need.
function Model:close()
    c.qwen_model_free(ffi.gc(self.handle, nil))
    self.handle = nil
end

-- The fields of qwen_model_info.
function Model:info()
    local raw = ffi.new("qwen_model_info")
    raw.struct_size = ffi.sizeof(raw)
    check(c.qwen_model_get_info(self.handle, raw))
    return raw
end

-- A list of ids. added: spellings such as "<|im_end|>" become those tokens; not for text that
-- a user wrote.
function Model:tokenize(text, added)
    local flags = added and k.QWEN_TEXT_ADDED_TOKENS or 0
    return list(sized("int32_t[?]", function(to, room, needed)
        return c.qwen_tokenize(self.handle, text, #text, flags, to, room, needed)
    end))
end

function Model:detokenize(tokens, skip_special)
    local data, count = ids(tokens)
    local flags = skip_special and k.QWEN_TEXT_SKIP_SPECIAL or 0
    return ffi.string(sized("char[?]", function(to, room, needed)
        return c.qwen_detokenize(self.handle, data, count, flags, to, room, needed)
    end))
end

-- json: a conversation as in the OpenAI API.
function Model:render_chat(json)
    return ffi.string(sized("char[?]", function(to, room, needed)
        return c.qwen_chat_render(self.handle, json, #json, 0, to, room, needed)
    end))
end

-- A session that owns a handle.
local function own(model, handle)
    local session = setmetatable({ model = model, handle = ffi.gc(handle, c.qwen_session_free) }, Session)
    local decoder = ffi.new("qwen_stream_decoder *[1]")
    check(c.qwen_stream_decoder_new(model.handle, k.QWEN_TEXT_SKIP_SPECIAL, decoder))
    session.decoder = ffi.gc(decoder[0], c.qwen_stream_decoder_free)
    return session
end

-- options: context_limit, sampling, cache_namespace (shares beginnings with the sessions that
-- have the same number), drop_turns (a conversation that does not fit loses its oldest turns),
-- mark_limit, kv (a QWEN_KV_ constant: how keys and values are stored).
function Model:session(options)
    options = options or {}
    local raw = ffi.new("qwen_session_options")
    raw.struct_size = ffi.sizeof(raw)
    raw.context_limit = options.context_limit or 0
    raw.cache_namespace = options.cache_namespace or 0
    raw.overflow = options.drop_turns and k.QWEN_OVERFLOW_DROP_TURNS or k.QWEN_OVERFLOW_REFUSE
    raw.mark_limit = options.mark_limit or 0
    raw.kv = options.kv or k.QWEN_KV_AUTO
    local how, kept
    if options.sampling then
        how, kept = sampling(options.sampling)
        raw.sampling = how
    end
    local handle = ffi.new("qwen_session *[1]")
    check(c.qwen_session_new(self.handle, raw, handle))
    local session = own(self, handle[0])
    session.kept = kept -- the bias entries, until they were copied
    return session
end

function Session:close()
    c.qwen_session_free(ffi.gc(self.handle, nil))
    c.qwen_stream_decoder_free(ffi.gc(self.decoder, nil))
    self.handle, self.decoder = nil, nil
end

-- The long calls below return false when the call was cancelled.
local function complete(status) return check(status) ~= k.QWEN_CANCELLED end

function Session:feed(tokens)
    local data, count = ids(tokens)
    return complete(c.qwen_session_feed(self.handle, data, count))
end

function Session:feed_text(text) return complete(c.qwen_session_feed_text(self.handle, text, #text, 0)) end

-- Makes the session hold exactly this conversation (JSON), ready for the answer. Call it once
-- per turn with all messages so far. Returns also the tokens in all, and those computed.
function Session:feed_chat(json)
    local total, computed = ffi.new("size_t[1]"), ffi.new("size_t[1]")
    local done = complete(c.qwen_session_feed_chat(self.handle, json, #json, 0, total, computed))
    return done, tonumber(total[0]), tonumber(computed[0])
end

-- The next token (nil if there is none) and the status.
function Session:next()
    local token = ffi.new("int32_t[1]")
    local status = check(c.qwen_session_next_token(self.handle, token))
    return token[0] >= 0 and token[0] or nil, status
end

-- Text of the next tokens in whole characters, made while it is walked. After it
-- session.status tells what ended it: QWEN_END_OF_TURN, QWEN_LIMIT_REACHED, QWEN_CANCELLED,
-- or QWEN_OK after most_tokens.
function Session:stream(most_tokens)
    local left, ended = most_tokens or math.huge, false
    local function finish()
        return borrowed(function(data, length)
            return c.qwen_stream_decoder_finish(self.decoder, data, length)
        end)
    end
    finish() -- of a walk that was left
    return function()
        while not ended do
            local token, piece = nil, ""
            self.status = k.QWEN_OK
            if left > 0 then token, self.status = self:next() end
            if left > 0 and self.status == k.QWEN_OK then
                left = left - 1
                piece = borrowed(function(data, length)
                    return c.qwen_stream_decoder_push(self.decoder, token, data, length)
                end)
            else
                ended = true
                piece = finish()
            end
            if piece ~= "" then return piece end
        end
    end
end

-- The ids of the sequence.
function Session:tokens()
    local data, count = ffi.new("const int32_t *[1]"), ffi.new("size_t[1]")
    check(c.qwen_session_tokens(self.handle, data, count))
    return list(data[0], tonumber(count[0]))
end

-- A borrowed array (from 0) of the logits after the sequence, valid until the next call on the
-- session, and its length.
function Session:logits()
    local data, count = ffi.new("const float *[1]"), ffi.new("size_t[1]")
    check(c.qwen_session_logits(self.handle, data, count))
    return data[0], tonumber(count[0])
end

function Session:set_sampling(options)
    local raw, kept = sampling(options)
    self.kept = kept
    check(c.qwen_session_set_sampling(self.handle, raw))
end

function Session:reset() check(c.qwen_session_reset(self.handle)) end

-- Cancels the next call (from a progress callback in C: the call in progress).
function Session:cancel() c.qwen_session_cancel(self.handle) end

-- The other half of the wrapper.
local internal = { abi = abi, c = c, check = check, complete = complete, ffi = ffi, ids = ids,
    k = k, own = own, Session = Session, sized = sized }
require("qwen35_more")(internal)
qwen35.batch_step = internal.batch_step

-- Text as a JSON string.
function qwen35.quote(text)
    return '"' .. text:gsub('[%c"\\]', function(byte)
        return ("\\u%04x"):format(byte:byte())
    end) .. '"'
end

return qwen35
