// Uses the page in headless Chromium as people do: it chooses, drops and pastes files, draws,
// presses buttons, and compares what the page shows with what `bcnn classify --json` says.
//
// usage: page.mjs URL PUPPETEER CHROMIUM ANSWERS.json SAMPLES [SCREENSHOT.png]
// ANSWERS has a line of bcnn classify for each image of the folder SAMPLES.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";

const [url, puppeteer, chromium, answersFile, samples, screenshot] = process.argv.slice(2);
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
assert.deepEqual(await page.$$eval("#model option", (o) => o.map((e) => e.value)), ["digits", "vehiclenet"]);
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
const photo = () => page.$eval("#photo", (e) => (e.hidden ? "" : e.src));

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

assert.deepEqual(faults, []);
await browser.close();
console.log(`${url}: the page answers as bcnn classify`);
