// A conversation: node chat.js MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]
'use strict';

const readline = require('node:readline');
const { Model } = require('./qwen35.js');

async function main() {
  const [folder, most = '64', percent = '70'] = process.argv.slice(2);
  if (folder === undefined || process.argv.length > 5) {
    console.error('usage: node chat.js MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]');
    process.exitCode = 2;
    return;
  }
  const model = await Model.open(folder);
  const session = await model.session({
    sampling: { preset: 'greedy', temperature: Number(percent) / 100, topK: 40 },
  });
  let answering = null; // Ctrl-C cancels an answer; otherwise it leaves
  process.on('SIGINT', () => (answering === null ? process.exit(130) : answering.abort()));
  const talk = await session.conversation({ thinking: false, maxTokens: Number(most) });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    answering = new AbortController();
    const { signal } = answering;
    try {
      for await (const piece of talk.ask(line, { signal })) process.stdout.write(piece);
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    }
    answering = null;
    process.stdout.write('\n');
  }
  await session.close();
  model.close();
}

main().catch((error) => {
  console.error(`chat: ${error.message}`);
  process.exitCode = 1;
});
