// Uses the page in headless Chromium as people do: it chooses, drops and pastes files, draws,
// presses buttons, and compares what the page shows with what `bcnn classify --json` and `bcnn detect
// --json` say.
//
// usage: page.mjs URL PUPPETEER CHROMIUM ANSWERS.json SAMPLES SPOTS [SCREENSHOT.png]
// ANSWERS has a line of bcnn classify for each image of the folder SAMPLES; the folder SPOTS has
// photo.png and boxes.json, what bcnn detect finds on it with the model spots.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";

const [url, puppeteer, chromium, answersFile, samples, spots, screenshot] = process.argv.slice(2);
const { default: driver } = await import(pathToFileURL(puppeteer).href);
const answers = (await readFile(answersFile, "utf8")).trim().split("\n").map((line) => JSON.parse(line));
const answerOf = (name) => answers.find((a) => a.file.endsWith(name));

const browser = await driver.launch({ executablePath: chromium, headless: true, args: ["--no-sandbox"] });
const page = await browser.newPage();
const faults = [];
page.on("pageerror", (e) => faults.push(e.message));
page.on("requestfailed", (r) => r.url().startsWith("blob:") || faults.push(`${r.url()}: ${r.failure()?.errorText}`));
page.on("request", (r) => {
  const { protocol, origin } = new URL(r.url());
  if (!["blob:", "data:"].includes(protocol) && origin !== new URL(url).origin) faults.push(`asks elsewhere: ${r.url()}`);
});
await page.setViewport({ width: 1000, height: 1000 });
await page.goto(url);

const text = (selector) => page.$eval(selector, (e) => e.textContent);
const statusIs = (pattern) =>
  page.waitForFunction((p) => new RegExp(p).test(document.getElementById("status").textContent), { timeout: 60000 }, pattern.source);
const shownClasses = () =>
  page.$$eval("#classes > *", (cells) => cells.map((c) => c.textContent).filter((_, i) => i % 3 !== 1));

// What the page must show of an image, to the last digit of the percentage.
function assertShows(shown, want) {
  const top = [...want.top].map((c) => [c.label, `${(100 * c.probability).toFixed(1)} %`]).flat();
  assert.deepEqual(shown, top);
}

await statusIs(/^Ready/);
const names = await page.$$eval("#model option", (o) => o.map((e) => e.value));
assert.deepEqual(names.sort(), ["digits", "light", "spots", "vehiclenet"]);
assert.match(await text("#about"), /28×28×1/);
assert.notEqual(await text("#version"), "");

// A file that is chosen, for each of the samples.
for (const want of answers) {
  await page.$eval("#status", (e) => (e.textContent = ""));
  const [chooser] = await Promise.all([page.waitForFileChooser(), page.click("#drop")]);
  await chooser.accept([join(samples, want.file.split("/").at(-1))]);
  await statusIs(new RegExp(`^${want.label}, in `));
  assertShows(await shownClasses(), want);
}
assert.match(await text("#known"), /^The likeliest of 10 classes, whatever/);
const seen = await page.$eval("#seen", (c) => [c.width, c.height]);
assert.deepEqual(seen, [28, 28]);

// The time of each step.
await page.click("#measure");
await statusIs(/^Medians of/);
assert.ok((await page.$$("#steps .bar")).length >= 4);
if (screenshot) await page.screenshot({ path: screenshot });

// A file that is dropped, as the browser's own drag and drop has it.
async function drop(file) {
  const box = await (await page.$("#drop")).boundingBox();
  const client = await page.createCDPSession();
  const data = { items: [], files: [resolve(file)], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"])
    await client.send("Input.dispatchDragEvent", { type, x: box.x + 20, y: box.y + 20, data });
}
await page.$eval("#status", (e) => (e.textContent = ""));
await drop(join(samples, "digit-3.png"));
await statusIs(/^3, in /);
assertShows(await shownClasses(), answerOf("digit-3.png"));

// An image of the clipboard, by the keyboard.
await browser.defaultBrowserContext().overridePermissions(new URL(url).origin, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
await page.bringToFront();
await page.evaluate(async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  await navigator.clipboard.write([new ClipboardItem({ "image/png": new Blob([bytes], { type: "image/png" }) })]);
}, (await readFile(join(samples, "digit-6.png"))).toString("base64"));
await page.keyboard.down("Control");
await page.keyboard.press("KeyV");
await page.keyboard.up("Control");
await statusIs(/^6, in /);

const isHidden = (id) => page.$eval(`#${id}`, (e) => e.hidden || e.closest("[hidden]") !== null);
const photo = () => page.$eval("#photo", (e) => (e.closest("[hidden]") ? "" : e.src));

// A sample that is clicked.
assert.equal((await page.$$("#samples button")).length, 10);
await page.click('#samples button[title="a sample of 4"]');
await statusIs(/^4, in /);
assertShows(await shownClasses(), answerOf("digit-4.png"));

// A digit that is drawn: a stroke from above to below is a one. What is shown is the drawing.
const sample = await photo();
assert.equal(await isHidden("hint"), false);
const pad = await (await page.$("#pad")).boundingBox();
await page.mouse.move(pad.x + 150, pad.y + 50);
await page.mouse.down();
for (let i = 1; i <= 10; i++) await page.mouse.move(pad.x + 150 - i, pad.y + 50 + 18 * i);
await page.mouse.up();
await statusIs(/^1, in /);
assert.ok(await isHidden("hint"));
assert.notEqual(await photo(), sample);
await page.click("#clear");

// A file that is no image is answered with why, without the answer of the last one, and the next
// one is answered again.
const rubbish = join(tmpdir(), "bcnn-page-rubbish.png");
await writeFile(rubbish, "no image");
await drop(rubbish);
await statusIs(/unsupported image format/);
assert.ok(await page.$eval("#status", (e) => e.classList.contains("error")));
assert.ok(await isHidden("result"));
await drop(join(samples, "digit-8.png"));
await statusIs(/^8, in /);
assert.equal(await isHidden("result"), false);
assert.equal(await page.$eval("#result", (e) => e.classList.contains("old")), false);

// On a phone the line with the answer is in sight while one draws, and all of it after a photo.
const inSight = (id) =>
  page.$eval(`#${id}`, (e) => {
    const { top, bottom } = e.getBoundingClientRect();
    return top >= -1 && bottom <= innerHeight + 1;
  });
await page.setViewport({ width: 390, height: 700 });
await page.evaluate(() => scrollTo(0, 0));
assert.ok(await inSight("status"));
await page.click('#samples button[title="a sample of 2"]');
await statusIs(/^2, in /);
await page.waitForFunction(() => document.getElementById("classes").getBoundingClientRect().top < innerHeight / 2);
assert.ok(await inSight("classes"));
assert.ok(await inSight("status"));
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
if (screenshot) await page.screenshot({ path: screenshot.replace(/\.png$/, "-phone.png") });
await page.setViewport({ width: 1000, height: 1000 });

// Another model.
await page.select("#model", "vehiclenet");
await statusIs(/^Ready/);
assert.ok((await isHidden("drawing")) && (await isHidden("try")) && (await isHidden("result")));
assert.equal(await photo(), "");
await drop(join(samples, "digit-0.png"));
await statusIs(/^(bike|car|juggernaut|minibus|pickup|truck), in /);
assert.deepEqual(await page.$eval("#seen", (c) => [c.width, c.height]), [96, 96]);

// A detector: boxes over the photo, which are drawn anew when it has another size on the screen, and
// a list beside it. The photo and all around it stay where they are.
const { boxes } = JSON.parse(await readFile(join(spots, "boxes.json"), "utf8"));
assert.deepEqual(boxes.map((b) => b.label), ["red", "red", "blue"]);
const places = () =>
  page.$$eval("#drop, #camera, #answer, #status", (list) =>
    list.map((e) => {
      const { x, y, width, height } = e.getBoundingClientRect();
      return [x, y, width, height];
    }),
  );

// drawn returns the colours of a box on the canvas, that of its upper edge, that of its label, and
// that of the middle, where there is none; and that of its bar in the list.
const drawn = (box, row) =>
  page.evaluate(
    (box, row) => {
      const [photo, canvas] = ["photo", "boxes"].map((id) => document.getElementById(id));
      const scale = Math.min(photo.clientWidth / photo.naturalWidth, photo.clientHeight / photo.naturalHeight);
      const left = (photo.clientWidth - photo.naturalWidth * scale) / 2;
      const top = (photo.clientHeight - photo.naturalHeight * scale) / 2;
      const at = (x, y) => {
        const { data } = canvas.getContext("2d").getImageData(Math.floor(x * devicePixelRatio), Math.floor(y * devicePixelRatio), 1, 1);
        return [...data];
      };
      const [x0, x1] = [box.x0, box.x1].map((x) => Math.round(left + x * scale));
      const [y0, y1] = [box.y0, box.y1].map((y) => Math.round(top + y * scale));
      return {
        edges: [at(x0, (y0 + y1) / 2 + 9), at(x1 - 1, (y0 + y1) / 2 + 9), at((x0 + x1) / 2, y1 - 1)],
        label: at(x0 + 1, y0 >= 17 ? y0 - 2 : y0 + 2),
        inside: at((x0 + x1) / 2, (y0 + y1) / 2 + 9),
        bar: getComputedStyle(document.querySelectorAll("#classes .bar")[row]).backgroundColor,
      };
    },
    box,
    row,
  );

// The contrast of black letters on a colour, as WCAG 2 reckons it.
function contrastOfBlack(colour) {
  const [r, g, b] = colour.slice(0, 3).map((v) => (v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) / 0.05;
}

async function assertDrawn() {
  for (const [row, box] of boxes.entries()) {
    const { edges, label, inside, bar } = await drawn(box, row);
    const colour = [...bar.match(/\d+/g).map(Number), 255];
    for (const pixel of [...edges, label]) assert.deepEqual(pixel, colour, `box ${row + 1}`);
    assert.equal(inside[3], 0);
    assert.ok(contrastOfBlack(colour) >= 4.5);
  }
}
const isClear = () =>
  page.$eval("#boxes", (c) => !c.width || !c.height || c.getContext("2d").getImageData(0, 0, c.width, c.height).data.every((v) => v === 0));

await page.select("#model", "spots");
await statusIs(/^Ready/);
assert.ok((await isHidden("result")) && (await isHidden("drawing")) && (await isHidden("try")));
const empty = await places();
await drop(join(spots, "photo.png"));
await statusIs(/^Found 2 × red, 1 × blue, in /);
assert.deepEqual(await shownClasses(), boxes.flatMap((b, i) => [`${i + 1} ${b.label}`, `${(100 * b.score).toFixed(1)} %`]));
assert.equal(await page.$eval("#classes .name", (e) => e.title), "red: 80 60 160 120");
assert.deepEqual(await page.$eval("#seen", (c) => [c.width, c.height]), [64, 64]);
await page.waitForFunction(() => document.getElementById("photo").complete);
await assertDrawn();
const full = await places();
assert.deepEqual(full.slice(0, 2), empty.slice(0, 2));
assert.deepEqual(full[3], empty[3]);
await page.click("#measure");
await statusIs(/^Medians of/);
await assertDrawn();
if (screenshot) await page.screenshot({ path: screenshot.replace(/\.png$/, "-boxes.png") });
await page.setViewport({ width: 390, height: 700, deviceScaleFactor: 2 });
await page.waitForFunction(() => document.getElementById("boxes").width === 2 * document.getElementById("photo").clientWidth);
await assertDrawn();
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
await page.setViewport({ width: 1000, height: 1000 });

// A file that is no image takes the boxes away; an image with nothing on it has none.
await drop(rubbish);
await statusIs(/unsupported image format/);
assert.ok((await isClear()) && (await isHidden("result")));
await drop(join(spots, "photo.png"));
await statusIs(/^Found 2 × red/);
assert.equal(await isClear(), false);
await drop(join(samples, "digit-1.png"));
await statusIs(/^Found nothing, in /);
assert.ok(await isClear());
assert.deepEqual(await shownClasses(), []);
await drop(join(spots, "photo.png"));
await statusIs(/^Found 2 × red/);
await page.select("#model", "light");
await statusIs(/^Ready/);
assert.ok((await isClear()) && (await isHidden("result")));

// A detector of grey images finds what is drawn, where it is drawn: a stroke through cells of the
// third column.
const canvas = await (await page.$("#pad")).boundingBox();
await page.mouse.move(canvas.x + 175, canvas.y + 30);
await page.mouse.down();
for (let i = 1; i <= 10; i++) await page.mouse.move(canvas.x + 175, canvas.y + 30 + 16 * i);
await page.mouse.up();
await statusIs(/^Found 3 × light, in /);
assert.deepEqual((await page.$$eval("#classes .name", (list) => list.map((e) => e.title))).sort(), [
  "light: 140 0 210 70",
  "light: 140 140 210 210",
  "light: 140 70 210 140",
]);

assert.deepEqual(faults, []);
await browser.close();
console.log(`${url}: the page answers as bcnn classify and bcnn detect`);
