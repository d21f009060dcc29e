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
    local conversation = session:conversation{ thinking = false, max_tokens = tonumber(arg[2]) or 64 }
    for line in io.lines() do
        for piece in conversation:ask(line) do
            io.write(piece)
            io.flush()
        end
        io.write("\n")
    end
    conversation:close()
    session:close()
    model:close()
end

local ok, problem = pcall(talk)
if not ok then
    io.stderr:write("chat: ", tostring(problem), "\n")
    os.exit(1)
end
