-- examples/luajit as a program uses it: MODEL.
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
local talk = session:conversation{ system = "Be brief.", thinking = false, max_tokens = 8 }
assert(talk:send("hello"))
for piece in talk:reply() do assert(piece.kind == k.QWEN_PIECE_TEXT and #piece.text > 0) end
assert(talk.finish == k.QWEN_FINISH_LENGTH or talk.finish == k.QWEN_FINISH_END_OF_TURN)
assert(talk:history():find("Be brief.", 1, true))
assert(not pcall(session.conversation, session, { tools = "{" }))
model:close()
assert(session:next())
session:close()
assert(not pcall(session.next, session))
