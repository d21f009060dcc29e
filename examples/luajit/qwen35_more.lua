-- Further methods of sessions, which qwen35.lua takes in: forks, marks, saving, steps, judging,
-- and conversations.
return function(internal)
    local c, check, complete, ffi = internal.c, internal.check, internal.complete, internal.ffi
    local ids, k, own, sized = internal.ids, internal.k, internal.own, internal.sized
    local Session, Conversation = internal.Session, {}
    Conversation.__index = Conversation

    -- An independent session that stands where this one does. What is computed is shared. The
    -- model must not be closed.
    function Session:fork()
        local handle = ffi.new("qwen_session *[1]")
        check(c.qwen_session_fork(self.handle, handle))
        return own(self.model, handle[0])
    end

    -- Keeps the present position for rewind(). Gives the mark's name.
    function Session:mark()
        local mark = ffi.new("uint64_t[1]")
        check(c.qwen_session_mark(self.handle, mark))
        return mark[0]
    end

    function Session:unmark(mark) check(c.qwen_session_unmark(self.handle, mark)) end

    -- Goes back to a mark, bit for bit; nothing is computed. random: the random stream goes back
    -- too.
    function Session:rewind(mark, random)
        check(c.qwen_session_rewind(self.handle, mark, random and k.QWEN_REWIND_RANDOM or 0))
    end

    -- Cuts the sequence to its first tokens. Gives whether it did (else it was cancelled), and how
    -- many were computed again for that.
    function Session:truncate(position)
        local computed = ffi.new("size_t[1]")
        local done = complete(c.qwen_session_truncate(self.handle, position, computed))
        return done, tonumber(computed[0])
    end

    -- Saves the session to a file, which is replaced at once. Restored, it goes on bit for bit.
    function Session:save(path) check(c.qwen_session_save_file(self.handle, path, #path, 0)) end

    -- Puts the session where a saved one of the same model was.
    function Session:restore(path) check(c.qwen_session_restore_file(self.handle, path, #path)) end

    -- The same in a string.
    function Session:save_string()
        return ffi.string(sized("char[?]", function(to, room, needed)
            return c.qwen_session_save_memory(self.handle, 0, to, room, needed)
        end))
    end

    function Session:restore_string(state)
        check(c.qwen_session_restore_memory(self.handle, state, #state))
    end

    -- Appends tokens for step() to compute; returns at once.
    function Session:enqueue(tokens)
        local data, count = ids(tokens)
        check(c.qwen_session_enqueue(self.handle, data, count))
    end

    -- As feed_chat(), but leaves what is not computed yet to step(). Gives the tokens in all, and
    -- those left.
    function Session:enqueue_chat(json)
        local total, left = ffi.new("size_t[1]"), ffi.new("size_t[1]")
        check(c.qwen_session_enqueue_chat(self.handle, json, #json, 0, total, left))
        return tonumber(total[0]), tonumber(left[0])
    end

    -- Goes on for about that many microseconds: with what is queued, then with the next token. For
    -- frame loops: call it once per frame until the status is not QWEN_WORKING. Gives the status
    -- and the token (nil if there is none).
    function Session:step(budget_us)
        local token = ffi.new("int32_t[1]")
        local status = check(c.qwen_session_step(self.handle, budget_us, 0, token, nil))
        return status, token[0] >= 0 and token[0] or nil
    end

    -- How likely a text is after the sequence, which must not be empty: the fields of qwen_score,
    -- or nil if it was cancelled. The session stays as it is.
    function Session:score(text)
        local score = ffi.new("qwen_score")
        score.struct_size = ffi.sizeof(score)
        return complete(c.qwen_session_score_text(self.handle, text, #text, 0, score)) and score or nil
    end

    -- What the session has done since it was made: the fields of qwen_statistics.
    function Session:statistics()
        local raw = ffi.new("qwen_statistics")
        raw.struct_size = ffi.sizeof(raw)
        check(c.qwen_session_get_statistics(self.handle, raw))
        return raw
    end

    -- Options as C has them, and what must live as long as they are used.
    local function conversation_options(options)
        options = options or {}
        local raw = ffi.new("qwen_conversation_options")
        raw.struct_size = ffi.sizeof(raw)
        raw.thinking_budget = options.thinking_budget or 0
        raw.max_tokens = options.max_tokens or 0
        if options.thinking ~= nil then
            raw.thinking = options.thinking and k.QWEN_THINKING_ON or k.QWEN_THINKING_OFF
        end
        if options.system then raw.system, raw.system_length = options.system, #options.system end
        if options.tools then raw.tools, raw.tools_length = options.tools, #options.tools end
        local stop = options.stop or {}
        local texts = ffi.new("const char *[?]", #stop + 1)
        local lengths = ffi.new("size_t[?]", #stop + 1)
        for i, text in ipairs(stop) do texts[i - 1], lengths[i - 1] = text, #text end
        raw.stop, raw.stop_lengths, raw.stop_count = texts, lengths, #stop
        return raw, texts, lengths
    end

    -- A conversation over this session. options: system, tools (JSON), thinking (true or false),
    -- thinking_budget, max_tokens, stop (a list of texts).
    function Session:conversation(options)
        local raw, texts, lengths = conversation_options(options)
        local handle = ffi.new("qwen_conversation *[1]")
        check(c.qwen_conversation_new(self.handle, raw, handle), texts, lengths)
        return setmetatable({ handle = ffi.gc(handle[0], c.qwen_conversation_free) }, Conversation)
    end

    -- Frees it; the session stays.
    function Conversation:close()
        c.qwen_conversation_free(ffi.gc(self.handle, nil))
        self.handle = nil
    end

    -- Goes on by other options from the next reply on.
    function Conversation:configure(options)
        local raw, texts, lengths = conversation_options(options)
        check(c.qwen_conversation_configure(self.handle, raw), texts, lengths)
    end

    -- Adds messages (JSON) without having them answered yet.
    function Conversation:add(json) check(c.qwen_conversation_add(self.handle, json, #json)) end

    -- Adds a user's message, if one is given, and starts the reply. False when it was cancelled.
    function Conversation:send(text)
        if text then
            return complete(c.qwen_conversation_send_text(self.handle, text, #text, nil, nil))
        end
        return complete(c.qwen_conversation_send(self.handle, nil, 0, nil, nil))
    end

    -- Drops the last reply and starts another one. False when it was cancelled.
    function Conversation:regenerate()
        return complete(c.qwen_conversation_regenerate(self.handle, nil, nil))
    end

    -- Computes now, while the user reads and types, what the next message would wait for. Gives
    -- whether it did (else it was cancelled), and how many tokens that were.
    function Conversation:settle()
        local computed = ffi.new("size_t[1]")
        local done = complete(c.qwen_conversation_settle(self.handle, nil, computed))
        return done, tonumber(computed[0])
    end

    -- Goes on with a reply that ended by its length or was cancelled.
    function Conversation:resume() check(c.qwen_conversation_resume(self.handle)) end

    -- Takes the last turn back; gives how many messages that were.
    function Conversation:undo()
        local removed = ffi.new("size_t[1]")
        check(c.qwen_conversation_undo(self.handle, removed))
        return tonumber(removed[0])
    end

    -- A piece from what the library lends; nil if there is none.
    local function piece_of(raw)
        local function lent(name)
            local length = raw[name .. "_length"]
            return length > 0 and ffi.string(raw[name], length) or ""
        end
        if raw.kind == k.QWEN_PIECE_NONE or raw.kind == k.QWEN_PIECE_END then return nil end
        return {
            kind = raw.kind, text = lent("text"), name = lent("name"), id = lent("id"),
            arguments = lent("arguments"), problem = lent("problem"), is_whole = raw.is_whole ~= 0,
        }
    end

    -- The pieces of the reply that was started: kind (a QWEN_PIECE_ constant), text, and for a
    -- tool call name, arguments (JSON), id, problem, is_whole. Then self.finish tells the end.
    function Conversation:reply()
        local raw = ffi.new("qwen_piece")
        raw.struct_size = ffi.sizeof(raw)
        return function()
            check(c.qwen_conversation_next(self.handle, raw))
            self.finish = raw.finish
            return piece_of(raw)
        end
    end

    -- As send(), but computes nothing: step() does that. Gives how many tokens there are to
    -- compute.
    function Conversation:enqueue(text)
        local left = ffi.new("size_t[1]")
        check(c.qwen_conversation_enqueue_text(self.handle, text, #text, nil, left))
        return tonumber(left[0])
    end

    -- Goes on with the reply for about that many microseconds. For frame loops: call it once per
    -- frame while it gives true; the second result is a piece if there is one. Then self.finish
    -- tells the end.
    function Conversation:step(budget_us)
        local raw = ffi.new("qwen_piece")
        raw.struct_size = ffi.sizeof(raw)
        local status = check(c.qwen_conversation_step(self.handle, budget_us, raw, nil))
        self.finish = status == k.QWEN_CANCELLED and k.QWEN_FINISH_CANCELLED or raw.finish
        local piece = piece_of(raw)
        return piece ~= nil or status == k.QWEN_WORKING, piece
    end

    -- Sends a user's message and gives the text of the answer in pieces.
    function Conversation:ask(text)
        local next_piece = self:send(text) and self:reply() or function() end
        return function()
            for piece in next_piece do
                if piece.kind == k.QWEN_PIECE_TEXT then return piece.text end
            end
        end
    end

    -- Adds the result of a tool call; send() without a message has it answered.
    function Conversation:add_tool_result(id, result)
        check(c.qwen_conversation_add_tool_result(self.handle, id, #id, result, #result))
    end

    -- The messages so far, as JSON.
    function Conversation:history()
        return ffi.string(sized("char[?]", function(to, room, needed)
            return c.qwen_conversation_history(self.handle, to, room, needed)
        end))
    end

    -- Replaces all messages (JSON).
    function Conversation:set_history(json)
        check(c.qwen_conversation_set_history(self.handle, json, #json))
    end

    -- Advances sessions of one model by one token each and reads the weights once for all. Gives
    -- the statuses and the tokens (false where there is none), each in its place.
    internal.batch_step = function(sessions)
        local count = #sessions
        local handles = ffi.new("qwen_session *[?]", count + 1)
        local tokens, statuses = ffi.new("int32_t[?]", count + 1), ffi.new("qwen_status[?]", count + 1)
        for i, session in ipairs(sessions) do handles[i - 1] = session.handle end
        if count > 0 then check(c.qwen_batch_step(handles, count, tokens, statuses)) end
        local said, made = {}, {}
        for i = 1, count do
            said[i], made[i] = statuses[i - 1], tokens[i - 1] >= 0 and tokens[i - 1]
        end
        return said, made
    end
end
