// The worker runs engine.wasm, which puts its functions into `engine`: each takes its arguments
// and two functions, one for an answer in JSON and one for the text of an error.
importScripts("wasm_exec.js");

const ready = (async () => {
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(fetch("engine.wasm"), go.importObject);
  await new Promise((resolve) => {
    self.engineReady = resolve;
    go.run(instance);
  });
})();

onmessage = async ({ data: { id, what, args } }) => {
  try {
    await ready;
    const answer = await new Promise((resolve, reject) => self.engine[what](...args, resolve, reject));
    postMessage({ id, answer });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
