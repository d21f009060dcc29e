// Prints the table of tests/bindings.rs as koffi sees the interface.
'use strict';

const path = require('node:path');
const koffi = require('koffi');
const { constants, structs } = require(path.resolve('examples/node/abi.js'));

for (const [name, value] of Object.entries(constants)) console.log('const', name, String(value));
for (const [name, type] of Object.entries(structs)) {
  console.log('struct', name, koffi.sizeof(type));
  const { members } = koffi.type(type);
  for (const field of Object.keys(members)) {
    const { type: kind } = members[field];
    console.log(`field ${name}.${field} ${koffi.offsetof(type, field)} ${koffi.sizeof(kind)}`);
  }
}
