// The page: it asks an engine, a server or one in WebAssembly, what models see on images.
// Engines have the functions version(), models(), classify(name, blob), detect(name, blob),
// profile(name, blob), and those with tokens have useToken(token).
import { colourOf, overlay } from "./boxes.js";

const engine = await import(document.documentElement.dataset.engine);
const at = (id) => document.getElementById(id);
const status = at("status");

let models = [];
let image = null; // the blob that was asked about last
let asked = 0; // counts questions: an answer that is overtaken by another one is dropped

const drawBoxes = overlay(at("photo"), at("boxes"));
const model = () => models.find((m) => m.name === at("model").value);

function say(text, isError = false) {
  status.textContent = text;
  status.classList.toggle("error", isError);
}

// attempt does something that may fail, says why it did, and returns whether it did not.
async function attempt(what, action) {
  say(what);
  try {
    await action();
    return true;
  } catch (error) {
    if (error.unauthorized) at("login").hidden = false;
    say(error.message, true);
    return false;
  }
}

// bars draws rows of a name, a bar and a value, and of its colour and what the name stands for, if
// these are given; the longest bar stands for `most`.
function bars(into, rows, most) {
  into.replaceChildren(
    ...rows.flatMap(([name, amount, value, colour = "", title = name]) => {
      const cell = (kind, text = "") => {
        const div = document.createElement("div");
        div.className = kind;
        div.textContent = text;
        return div;
      };
      const label = cell("name", name);
      label.title = title;
      const track = cell("track");
      const bar = cell("bar");
      bar.style.width = `${(100 * amount) / most}%`;
      bar.style.background = colour;
      track.append(bar);
      return [label, track, cell("value", value)];
    }),
  );
}

// Clocks of browsers have steps of 100 µs; what took no step counts as a nanosecond.
const micros = (us) => (us <= 0.001 ? "< 100 µs" : us < 1000 ? `${us.toPrecision(3)} µs` : us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`);

// drawSeen draws bytes of one channel or three, as the network reads them.
function drawSeen({ width, height, channels, bgr, pixels }) {
  const bytes = Uint8Array.from(atob(pixels), (c) => c.charCodeAt(0));
  const data = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) data.data[4 * i + c] = bytes[channels * i + (channels < 3 ? 0 : bgr ? 2 - c : c)];
    data.data[4 * i + 3] = 255;
  }
  const canvas = at("seen");
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(data, 0, 0);
}

// forget hides the answer, which is of another image or model than those that are chosen now.
function forget() {
  asked++;
  image = null;
  drawBoxes(null);
  at("result").hidden = true;
}

const percent = (part) => `${(100 * part).toFixed(1)} %`;

// showClasses shows the likeliest classes, and returns what to say of them.
function showClasses({ top, label }) {
  bars(at("classes"), top.map((c) => [c.label, c.probability, percent(c.probability)]), 1);
  return label;
}

// showBoxes draws boxes onto the photo and lists them beside it, by the same numbers, and returns
// what to say of them.
function showBoxes(answer) {
  const edges = (b) => [b.x0, b.y0, b.x1, b.y1].map(Math.round).join(" ");
  const rows = answer.boxes.map((b, i) => [`${i + 1} ${b.label}`, b.score, percent(b.score), colourOf(b), `${b.label}: ${edges(b)}`]);
  bars(at("classes"), rows, 1);
  drawBoxes(answer);
  const count = new Map();
  for (const { label } of answer.boxes) count.set(label, (count.get(label) ?? 0) + 1);
  const most = 4;
  const words = [...count].slice(0, most).map(([label, n]) => `${n} × ${label}`);
  return `Found ${words.join(", ") || "nothing"}${count.size > most ? ", …" : ""}`;
}

const noImages = "This model does not read photos. Use the API.";

// look shows the answer of an image, or none: that of another image never stays beside it.
// It returns whether there is one.
async function look(blob) {
  const m = model();
  if (!m?.input) {
    forget();
    say(noImages, true);
    return false;
  }
  drawBoxes(null);
  const question = ++asked;
  at("result").classList.add("old");
  const good = await attempt("Looking …", async () => {
    let answer;
    try {
      answer = await (m.detects ? engine.detect : engine.classify)(m.name, blob);
    } catch (error) {
      if (question === asked) throw error;
    }
    if (question !== asked) return;
    image = blob;
    const found = (m.detects ? showBoxes : showClasses)(answer);
    drawSeen(answer.seen);
    at("steps").replaceChildren();
    at("result").hidden = false;
    at("result").classList.remove("old");
    say(`${found}, in ${micros(answer.us)} on ${answer.device}`);
  });
  if (!good) forget();
  return good && question === asked;
}

async function measure() {
  const m = model();
  at("measure").disabled = true;
  await attempt("Measuring …", async () => {
    const { steps, runs, device } = await engine.profile(m.name, image);
    const rows = steps.map((s) => [`${s.name} (${s.kind})`, s.median_us, micros(s.median_us)]);
    bars(at("steps"), rows, Math.max(...steps.map((s) => s.median_us)));
    say(`Medians of ${runs} runs on ${device}`);
  });
  at("measure").disabled = false;
}

// picture shows the image that is asked about.
function picture(blob) {
  drawBoxes(null);
  const photo = at("photo");
  URL.revokeObjectURL(photo.src);
  photo.src = URL.createObjectURL(blob);
  at("view").hidden = false;
}

// show asks about an image that is no drawing. On a phone the answer is below what asks for it, but
// for boxes.
async function show(blob) {
  picture(blob);
  clearPad();
  if ((await look(blob)) && matchMedia("(max-width: 44rem)").matches)
    at(model().detects ? "drop" : "answer").scrollIntoView({ behavior: "smooth" });
}

// Samples are images of labels, in the folder samples, for models that have them all.
const samples = [..."0123456789"].map((label) => ({ label, file: `samples/digit-${label}.png`, channels: 1 }));

function offer(m) {
  const fit = m.input && !m.detects ? samples.filter((s) => s.channels === m.input.channels && m.labels?.includes(s.label)) : [];
  at("samples").replaceChildren(
    ...fit.map(({ label, file }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = `a sample of ${label}`;
      const img = document.createElement("img");
      img.src = file;
      img.alt = label;
      button.append(img);
      button.addEventListener("click", () =>
        attempt("Loading …", async () => {
          const response = await fetch(file);
          if (!response.ok) throw new Error(`${file}: the server answers ${response.status}`);
          show(await response.blob());
        }),
      );
      return button;
    }),
  );
  at("try").hidden = fit.length === 0;
  return fit.length > 0;
}

// known says what the answers of a model are.
function known({ detects, labels }) {
  if (detects) return "Boxes by score, numbered as on the photo; at most 100.";
  return labels?.length ? `The likeliest of ${labels.length} classes, whatever the image shows.` : "";
}

function describe() {
  const m = model();
  const rows = [["Device", m.device], ["Inputs", m.inputs.join(", ")], ["Outputs", m.outputs.join(", ")]];
  if (m.labels?.length) rows.push(["Labels", m.labels.slice(0, 20).join(", ") + (m.labels.length > 20 ? ", …" : "")]);
  at("about").replaceChildren(
    ...rows.flatMap(([term, text]) => {
      const dt = document.createElement("dt");
      const dd = document.createElement("dd");
      dt.textContent = term;
      dd.textContent = text;
      return [dt, dd];
    }),
  );
  at("drawing").hidden = m.input?.channels !== 1;
  at("view").hidden = true;
  at("drop").classList.toggle("detects", m.detects);
  clearPad();
  forget();
  const ways = ["choose an image", ...(offer(m) ? ["click a sample"] : []), ...(at("drawing").hidden ? [] : ["draw"])];
  at("known").textContent = known(m);
  say(m.input ? `Ready: ${ways.join(", or ")}.` : noImages);
}

async function start() {
  await attempt("Loading …", async () => {
    models = await engine.models();
    at("login").hidden = true;
    if (!models.length) return say("No model is loaded.", true);
    at("model").replaceChildren(...models.map((m) => new Option(m.name, m.name)));
    at("model").disabled = false;
    describe();
    at("version").textContent = await engine.version();
  });
}

// The pad: white strokes on black, as the digits of MNIST are, fitted and centred as they are.
const pad = at("pad").getContext("2d", { willReadFrequently: true });
function clearPad() {
  pad.fillStyle = "#000";
  pad.fillRect(0, 0, 280, 280);
  at("hint").hidden = false;
}

function fitted() {
  const size = 280;
  const { data } = pad.getImageData(0, 0, size, size);
  let [left, top, right, bottom] = [size, size, -1, -1];
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++)
      if (data[4 * (y * size + x)] > 0) {
        [left, right] = [Math.min(left, x), Math.max(right, x)];
        [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      }
  if (right < 0) return null;
  const [w, h] = [right - left + 1, bottom - top + 1];
  const scale = 200 / Math.max(w, h); // 20 of 28 pixels
  const out = document.createElement("canvas");
  out.width = out.height = size;
  const context = out.getContext("2d");
  context.fillRect(0, 0, size, size);
  context.drawImage(at("pad"), left, top, w, h, (size - w * scale) / 2, (size - h * scale) / 2, w * scale, h * scale);
  return png(out);
}

const png = (canvas) => new Promise((done) => canvas.toBlob(done, "image/png"));

let pen = null;
function draw(event) {
  at("hint").hidden = true;
  const [x, y] = [event.offsetX, event.offsetY];
  pad.strokeStyle = "#fff";
  pad.lineWidth = 22;
  pad.lineCap = pad.lineJoin = "round";
  pad.beginPath();
  pad.moveTo(...(pen ?? [x, y]));
  pad.lineTo(x, y);
  pad.stroke();
  pen = [x, y];
}
clearPad();
at("pad").addEventListener("pointerdown", (e) => {
  at("pad").setPointerCapture(e.pointerId);
  draw(e);
});
at("pad").addEventListener("pointermove", (e) => pen && draw(e));
at("pad").addEventListener("pointerup", async () => {
  pen = null;
  const blob = await (model().detects ? png(at("pad")) : fitted()); // a detector finds what is drawn
  if (!blob) return;
  picture(blob);
  look(blob);
});
at("clear").addEventListener("click", clearPad);

for (const id of ["file", "shot"])
  at(id).addEventListener("change", (e) => {
    if (e.target.files.length) show(e.target.files[0]);
    e.target.value = ""; // the same file may be chosen again
  });
const drop = at("drop");
for (const kind of ["dragenter", "dragover"])
  document.addEventListener(kind, (e) => {
    e.preventDefault();
    drop.classList.add("over");
  });
document.addEventListener("dragleave", () => drop.classList.remove("over"));
document.addEventListener("drop", (e) => {
  e.preventDefault();
  drop.classList.remove("over");
  if (e.dataTransfer.files.length) show(e.dataTransfer.files[0]);
});
document.addEventListener("paste", (e) => {
  const file = [...e.clipboardData.files].find((f) => f.type.startsWith("image/"));
  if (file) show(file);
});
at("model").addEventListener("change", describe);
at("measure").addEventListener("click", measure);
at("login").addEventListener("submit", (e) => {
  e.preventDefault();
  engine.useToken(at("token").value);
  start();
});
await start();
