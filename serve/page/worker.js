// The worker runs engine.wasm, which puts its functions into `engine`: each takes its arguments
// and two functions, one for an answer in JSON and one for the text of an error. models.json names
// the files of models that the page has beside those that are a part of the engine.
importScripts("wasm_exec.js");

const load = async (file) => {
  const response = await fetch(file);
  if (!response.ok) throw new Error(`${file}: the server answers ${response.status}`);
  return response;
};
const ask = (what, ...args) => new Promise((resolve, reject) => self.engine[what](...args, resolve, reject));

const ready = (async () => {
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(fetch("engine.wasm"), go.importObject);
  await new Promise((resolve) => {
    self.engineReady = resolve;
    go.run(instance);
  });
  for (const file of await (await load("models.json")).json())
    await ask("add", file, new Uint8Array(await (await load(`models/${encodeURIComponent(file)}`)).arrayBuffer()));
})();

onmessage = async ({ data: { id, what, args } }) => {
  try {
    await ready;
    postMessage({ id, answer: await ask(what, ...args) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
