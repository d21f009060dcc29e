-- A conversation: luajit chat.lua MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]
if #arg < 1 or #arg > 3 then
    io.stderr:write("usage: luajit chat.lua MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]\n")
    os.exit(2)
end

local function talk()
    local qwen35 = require("qwen35")
    local model = qwen35.open(arg[1])
    local session = model:session{
        sampling = { preset = "greedy", temperature = (tonumber(arg[3]) or 70) / 100, top_k = 40 },
    }
    local messages = {}
    local function add(role, content)
        messages[#messages + 1] = ('{"role":"%s","content":%s}'):format(role, qwen35.quote(content))
    end
    for line in io.lines() do
        add("user", line)
        session:feed_chat(('{"messages":[%s],"enable_thinking":false}'):format(table.concat(messages, ",")))
        local answer = {}
        for piece in session:stream(tonumber(arg[2]) or 64) do
            io.write(piece)
            io.flush()
            answer[#answer + 1] = piece
        end
        io.write("\n")
        add("assistant", table.concat(answer))
    end
    session:close()
    model:close()
end

local ok, problem = pcall(talk)
if not ok then
    io.stderr:write("chat: ", tostring(problem), "\n")
    os.exit(1)
end
