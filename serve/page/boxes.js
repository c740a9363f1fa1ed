// Boxes over a photo, on a canvas with the pixels of the screen: lines and letters are sharp, and of
// one size whatever the photo has.

// Okabe and Ito's colours but for the dark one: they differ for whoever sees fewer colours, and black
// letters on each have a contrast of 5 and more.
const colours = ["#56b4e9", "#e69f00", "#f0e442", "#cc79a7", "#009e73", "#d55e00"];

export const colourOf = (box) => colours[box.index % colours.length];

// shownAt returns where an image is in its element, which contains all of it (object-fit: contain).
function shownAt({ clientWidth, clientHeight, naturalWidth, naturalHeight }) {
  const scale = Math.min(clientWidth / naturalWidth, clientHeight / naturalHeight);
  const [w, h] = [naturalWidth * scale, naturalHeight * scale];
  return { x: (clientWidth - w) / 2, y: (clientHeight - h) / 2, w, h };
}

// overlay returns a function that draws an answer, {width, height, boxes}, over a photo, or with null
// none. What is drawn stays in its place when the photo changes its size on the screen.
export function overlay(photo, canvas) {
  let answer = null;
  const draw = () => {
    const pixels = devicePixelRatio;
    canvas.width = Math.round(photo.clientWidth * pixels); // which clears it
    canvas.height = Math.round(photo.clientHeight * pixels);
    if (!answer || !photo.naturalWidth) return;
    const context = canvas.getContext("2d");
    context.scale(pixels, pixels);
    const at = shownAt(photo);
    const boxes = answer.boxes.map((box, i) => {
      // Lines between whole pixels are sharp.
      const [x, right] = [box.x0, box.x1].map((edge) => Math.round(at.x + (edge / answer.width) * at.w));
      const [y, bottom] = [box.y0, box.y1].map((edge) => Math.round(at.y + (edge / answer.height) * at.h));
      const text = `${i + 1} ${box.label} ${(100 * box.score).toFixed(0)} %`;
      return { x, y, w: right - x, h: bottom - y, colour: colourOf(box), text };
    });
    for (const [width, dark] of [[4, true], [2, false]])
      for (const { x, y, w, h, colour } of boxes) {
        context.lineWidth = width;
        context.strokeStyle = dark ? "#000a" : colour;
        context.strokeRect(x, y, w, h);
      }
    context.font = "600 12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const [padding, height] = [4, 17];
    for (const { x, y, colour, text } of boxes.reverse()) { // those with the highest scores on top
      const width = Math.min(context.measureText(text).width + 2 * padding, photo.clientWidth);
      const left = Math.max(0, Math.min(x - 1, photo.clientWidth - width));
      const top = y >= height ? y - height : y;
      context.fillStyle = colour;
      context.fillRect(left, top, width, height);
      context.fillStyle = "#000";
      context.fillText(text, left + padding, top + height / 2, width - 2 * padding);
    }
  };
  new ResizeObserver(draw).observe(photo);
  photo.addEventListener("load", draw);
  return (next) => {
    answer = next;
    draw();
  };
}
