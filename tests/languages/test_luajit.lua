-- examples/luajit as a program uses it: MODEL FILE.
local qwen35 = require("qwen35")
local k = qwen35.constants

local ok, problem = pcall(qwen35.open, "/nowhere")
assert(not ok and problem.name == "QWEN_ERROR_IO" and tostring(problem):find("/nowhere", 1, true))
assert(not pcall(qwen35.open, arg[1], { isa = 77 }))

local model = qwen35.open(arg[1], { threads = 1 })
assert(model:info().threads == 1)
for _, text in ipairs{ "", "hello world", "a\0b", "Gr\195\188\195\159e" } do
    assert(model:detokenize(model:tokenize(text)) == text)
end
assert(#model:tokenize("<|im_end|>", true) == 1 and #model:tokenize("<|im_end|>") > 1)

local chat = '[{"role": "user", "content": ' .. qwen35.quote('say "hi"\n\\') .. "}]"
assert(model:render_chat(chat):find('say "hi"\n\\', 1, true))
local session = model:session{ sampling = { seed = 5, top_k = 10, logit_bias = { [3] = -math.huge } } }
collectgarbage()
assert(not pcall(model.session, model, { sampling = { temperature = -1 } }))
assert(not pcall(model.session, model, { sampling = { heat = 1 } }))
assert(not pcall(session.next, session))
local done, total, computed = session:feed_chat(chat)
assert(done and total > 0 and total == computed)
local logits, count = session:logits()
assert(count > 0 and logits[0] == logits[0])
local text = {}
for piece in session:stream(5) do text[#text + 1] = piece end
assert(session.status == k.QWEN_OK or session.status == k.QWEN_END_OF_TURN)
session:cancel()
local token, status = session:next()
assert(token == nil and status == k.QWEN_CANCELLED)
session:reset()
assert(#session:tokens() == 0)
session:set_sampling{ preset = "greedy" }
assert(session:feed{ 1, 2, 3 } and session:feed_text("more"))
assert(session:tokens()[2] == 2)
session:reset()
local talk = session:conversation{
    system = "Be brief.", thinking = false, max_tokens = 4, stop = { "never so", "nor so" },
}
local text = {}
for piece in talk:ask("hello") do text[#text + 1] = piece end
assert(#table.concat(text) > 0)
assert(talk.finish == k.QWEN_FINISH_LENGTH or talk.finish == k.QWEN_FINISH_END_OF_TURN)
if talk.finish == k.QWEN_FINISH_LENGTH then
    talk:resume()
    for piece in talk:reply() do assert(piece.kind == k.QWEN_PIECE_TEXT and #piece.text > 0) end
end
local history = talk:history()
assert(history:find("Be brief.", 1, true))
assert(talk:regenerate() and talk:reply()())
for _ in talk:reply() do end
assert(talk:enqueue("more") > 0)
local pieces, goes_on, piece = 0, true, nil
while goes_on do
    goes_on, piece = talk:step(1000)
    pieces = pieces + (piece and 1 or 0)
end
assert(pieces > 0 and talk.finish ~= k.QWEN_FINISH_NONE)
assert(talk:settle() and select(2, talk:settle()) == 0)
talk:add_tool_result("call", "{}")
assert(talk:send())
for _ in talk:reply() do end
assert(talk:undo() > 0)
talk:set_history(history)
talk:add('{"role": "user", "content": "more"}')
talk:configure{ max_tokens = 1 }
assert(talk:send())
session:cancel()
for _ in talk:reply() do end
assert(talk.finish == k.QWEN_FINISH_CANCELLED)
talk:close()
assert(not pcall(session.conversation, session, { tools = "{" }))
assert(not pcall(session.conversation, session, { stop = { "" } }))

-- Forks, marks and saved sessions go on bit for bit; steps and batches give the same tokens.
local function made(one)
    local ids = {}
    for i = 1, 4 do ids[i] = one:next() end
    return table.concat(ids, " ")
end
local root = model:session{ sampling = { seed = 7 }, mark_limit = 8 }
root:feed{ 1, 2, 3, 4, 5 }
local mark, state = root:mark(), root:save_string()
root:save(arg[2])
assert(root:score("hello").token_count > 0)
local one, two, three = root:fork(), root:fork(), root:fork()
local expected = made(root)
assert(made(one) == expected)
root:rewind(mark, true)
assert(made(root) == expected)
root:restore_string(state)
assert(made(root) == expected)
root:restore(arg[2])
assert(made(root) == expected)
assert(root:truncate(2) and #root:tokens() == 2)
root:unmark(root:mark())
assert(not pcall(root.unmark, root, 12345))
assert(not pcall(root.restore_string, root, "no session"))
local status, token
repeat status, token = two:step(2000) until status ~= k.QWEN_WORKING
assert(token == tonumber(expected:match("^%d+")))
local statuses, tokens = qwen35.batch_step{ two, three, two }
assert(tokens[1] == tonumber(expected:match(" (%d+)")) and tokens[2] == token)
assert(statuses[3] < 0 and tokens[3] == false)
three:reset()
assert(select(2, three:enqueue_chat(chat)) > 0)
three:enqueue{ 1 }
repeat status = three:step(0) until status ~= k.QWEN_WORKING
assert(three:statistics().output_tokens > 0)
for _, fork in ipairs{ root, one, two, three } do fork:close() end

-- A conversation that does not fit loses its oldest turns, if that is asked for.
local small = qwen35.open(arg[1], {
    threads = 1, weights = k.QWEN_WEIGHTS_INT8, compute = k.QWEN_COMPUTE_EXACT, prefix_cache_bytes = 2^20,
})
assert(small:info().weights == k.QWEN_WEIGHTS_INT8 and small:info().compute == k.QWEN_COMPUTE_EXACT)
local turn = '{"role": "user", "content": "hello hello hello hello"},' ..
    '{"role": "assistant", "content": "hello"},'
local long = "[" .. turn:rep(20) .. chat:sub(2)
local ok, problem = pcall(small:session{ context_limit = 200 }.feed_chat, small:session{ context_limit = 200 }, long)
assert(not ok and problem.name == "QWEN_ERROR_CONTEXT_OVERFLOW")
local limited = { context_limit = 200, cache_namespace = 5, drop_turns = true, kv = k.QWEN_KV_INT8 }
assert(small:session(limited):feed_chat(long))
assert(not pcall(small.session, small, { kv = 77 }))
small:close()

model:close()
assert(session:next())
session:close()
assert(not pcall(session.next, session))
