-- Prints the table of tests/bindings.rs as LuaJIT sees the interface.
local ffi = require("ffi")
local abi = require("qwen35_abi")

for name, value in pairs(abi.constants) do
    print("const", name, (tostring(value):gsub("ULL", "")))
end
for name, fields in pairs(abi.structs) do
    print("struct", name, ffi.sizeof(name))
    local one = ffi.new(name)
    for i, field in ipairs(fields) do
        -- A field ends where the next one begins, or at most at the end: sizes by type.
        local value = ffi.new(name .. "[1]")
        local address = ffi.cast("char *", value)
        local size = 0
        ffi.fill(value, ffi.sizeof(name), 0xff)
        if type(one[field]) == "number" then
            value[0][field] = 0
        else
            value[0][field] = type(one[field]) == "cdata" and ffi.istype("uint64_t", one[field]) and 0 or nil
        end
        for at = 0, ffi.sizeof(name) - 1 do
            if address[at] == 0 then size = size + 1 end
        end
        print("field", name .. "." .. field, ffi.offsetof(name, field), size)
    end
end
