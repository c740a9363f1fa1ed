// The engine is Go in WebAssembly, in a worker, so that the page stays alive while it works.
const worker = new Worker(new URL("worker.js", import.meta.url));
const waiting = new Map(); // questions that have no answer yet
let count = 0;

worker.onmessage = ({ data: { id, answer, error } }) => {
  const { resolve, reject } = waiting.get(id);
  waiting.delete(id);
  if (error) reject(new Error(error));
  else resolve(JSON.parse(answer));
};

const failed = new Promise((_, reject) => {
  worker.onerror = (e) => reject(new Error(e.message || "the engine cannot be loaded"));
});
failed.catch(() => {}); // whoever asks is told

function ask(what, ...args) {
  const answered = new Promise((resolve, reject) => {
    waiting.set(++count, { resolve, reject });
    worker.postMessage({ id: count, what, args });
  });
  return Promise.race([answered, failed]);
}

const bytes = async (blob) => new Uint8Array(await blob.arrayBuffer());

export const version = () => ask("version");
export const models = () => ask("models");
export const classify = async (name, blob) => ask("classify", name, await bytes(blob));
export const detect = async (name, blob) => ask("detect", name, await bytes(blob));
export const profile = async (name, blob) => ask("profile", name, await bytes(blob));
