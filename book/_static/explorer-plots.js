/* The three plots, on canvas: a scatter with its spindles, and two distribution functions. */

Explorer.plots = (function () {
  "use strict";

  // Dashes as in labelaudit.plots, in pixels of a line two wide.
  const KINDS = {
    rr: { label: "RR", dash: [10, 4] },
    llp: { label: "LLP", dash: [] },
    geom: { label: "LLP+Geom", dash: [14, 4, 3, 4] },
    lap: { label: "LLP+Lap", dash: [3, 3] },
  };
  const MARGIN = { left: 42, right: 12, top: 12, bottom: 40 };
  const DOT = 2;

  /** The colours of the current theme, from the style sheet. */
  function palette(root) {
    const style = getComputedStyle(root);
    const names = ["ink", "muted", "line", "grid", "card", "rr", "llp", "geom", "lap"];
    return Object.fromEntries(
      names.map((name) => [name, style.getPropertyValue(`--explorer-${name}`).trim()]));
  }

  /** A cleared canvas with axes from 0; returns the functions that draw in their units. */
  function frame(canvas, colours, axes) {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
    const x = (value) => MARGIN.left + (right - MARGIN.left) * value / axes.reach;
    const y = (value) => bottom - (bottom - MARGIN.top) * value;
    const plot = { context, colours, x, y, right, bottom, reach: axes.reach };
    drawAxes(plot, axes);
    return plot;
  }

  function drawAxes({ context, colours, x, y, right, bottom, reach }, axes) {
    const family = getComputedStyle(document.body).fontFamily;
    context.font = `12px ${family}`;
    context.lineWidth = 1;
    context.setLineDash([]);
    context.strokeStyle = colours.grid;
    context.fillStyle = colours.muted;
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const tick of ticks(reach)) {
      line(context, [[x(tick), y(0)], [x(tick), y(1)]]);
      context.fillText(String(tick), x(tick), bottom + 6);
    }
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      line(context, [[x(0), y(tick)], [x(reach), y(tick)]]);
      context.fillText(axes.percent ? `${tick * 100}%` : String(tick), x(0) - 6, y(tick));
    }
    context.strokeStyle = colours.muted;
    line(context, [[x(0), y(1)], [x(0), y(0)], [x(reach), y(0)]]);
    context.fillStyle = colours.ink;
    context.textBaseline = "bottom";
    context.textAlign = "center";
    context.fillText(axes.label, 0.5 * (x(0) + right), bottom + MARGIN.bottom - 1);
  }

  function ticks(reach) {
    const rough = reach / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((unit) => unit * power).find((unit) => unit >= rough * 0.79);
    const count = Math.floor(reach / step + 1e-9);
    return Array.from({ length: count + 1 }, (_, j) => Number((j * step).toPrecision(6)));
  }

  function line(context, points) {
    context.beginPath();
    for (const [x, y] of points) context.lineTo(x, y);
    context.stroke();
  }

  /** Points whose log-odds move by `shift`, in even steps of log-odds. */
  function arc({ x, y }, shift) {
    const points = [[x(0), y(shift === Infinity ? 1 : 0)]];
    for (let logit = -12; logit <= 12; logit += 0.1) {
      points.push([x(1 / (1 + Math.exp(-logit))), y(1 / (1 + Math.exp(-logit - shift)))]);
    }
    return [...points, [x(1), y(shift === -Infinity ? 0 : 1)]];
  }

  function spindle(plot, shift, dash, fill) {
    const { context, colours } = plot, upper = arc(plot, shift), lower = arc(plot, -shift);
    if (fill) {
      context.globalAlpha = 0.1;
      context.fillStyle = fill;
      context.beginPath();
      for (const [x, y] of [...upper, ...lower.reverse()]) context.lineTo(x, y);
      context.fill();
      context.globalAlpha = 1;
    }
    context.setLineDash(dash);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.3;
    line(context, upper);
    line(context, lower);
    context.setLineDash([]);
  }

  /** A dot to stamp: two thousand circles would take longer to fill than to copy. */
  function dot(colour) {
    const stamp = document.createElement("canvas"), size = 4 * Math.ceil(DOT) * 2;
    stamp.width = stamp.height = size;
    const context = stamp.getContext("2d");
    context.globalAlpha = 0.55;
    context.fillStyle = colour;
    context.arc(size / 2, size / 2, size / 2, 0, 2 * Math.PI);
    context.fill();
    return stamp;
  }

  /** Posterior against prior, with the spindles of the guarantee and of the 98th percentile. */
  function scatter(canvas, colours, { name, epsilon, eta, posterior, quantile }) {
    const plot = frame(canvas, colours, { reach: 1, label: "prior" });
    const { context, x, y } = plot;
    if (epsilon < Infinity) spindle(plot, epsilon, [], colours[name]);
    context.strokeStyle = colours.muted;
    context.setLineDash([1, 3]);
    line(context, [[x(0), y(0)], [x(1), y(1)]]);
    const stamp = dot(colours[name]);
    for (let i = 0; i < posterior.length; i++) {
      context.drawImage(stamp, x(eta[i]) - DOT, y(posterior[i]) - DOT, 2 * DOT, 2 * DOT);
    }
    spindle(plot, quantile, [6, 4], null);
    caption(plot, "posterior", x(0) + 8, y(1) + 6, "left");
  }

  function caption({ context, colours }, text, x, y, align) {
    context.textAlign = align;
    context.textBaseline = "top";
    const width = context.measureText(text).width, left = align === "right" ? x - width : x;
    context.globalAlpha = 0.85;
    context.fillStyle = colours.card;
    context.fillRect(left - 3, y - 2, width + 6, 17);
    context.globalAlpha = 1;
    context.fillStyle = colours.ink;
    context.fillText(text, x, y);
  }

  function curve(plot, name, points, chosen) {
    const { context, colours, x, y, reach } = plot;
    context.save();
    context.beginPath();
    context.rect(x(0) - 2, y(1) - 3, x(reach) - x(0) + 4, y(0) - y(1) + 6);
    context.clip();
    context.strokeStyle = colours[name];
    context.globalAlpha = chosen ? 1 : 0.8;
    context.lineWidth = chosen ? 3.5 : 1.6;
    context.setLineDash(chosen ? [] : KINDS[name].dash);
    line(context, points.map(([t, fraction]) => [x(t), y(fraction)]));
    context.restore();
  }

  function limit(plot, value, text) {
    const { context, colours, x, y, reach } = plot;
    if (!(value < reach)) return;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.3;
    line(context, [[x(value), y(0)], [x(value), y(1)]]);
    const near = value > 0.6 * reach;
    caption(plot, text, x(value) + (near ? -6 : 6), y(0) - 22, near ? "right" : "left");
  }

  /** Distribution function of |I|: `curves` maps names to points, the chosen one drawn last. */
  function multiplicative(canvas, colours, { name, epsilon, reach, curves, infinite }) {
    const plot = frame(canvas, colours, { reach, label: "shift of the log-odds, t", percent: true });
    const { context, x, y } = plot;
    if (infinite >= 0.005) {
      context.fillStyle = colours[name];
      context.globalAlpha = 0.16;
      context.fillRect(x(0), y(1), x(reach) - x(0), y(1 - infinite) - y(1));
      context.globalAlpha = 1;
    }
    drawCurves(plot, name, curves);
    if (epsilon < Infinity) limit(plot, epsilon, "ε");
    if (infinite < 0.005) return;
    // A low curve leaves room above it, a high curve below it.
    const height = infinite > 0.12 ? 0.5 * (y(1) + y(1 - infinite)) - 7 : y(0.4);
    caption(plot, `${(100 * infinite).toFixed(1)}% at infinity`, x(reach) - 8, height, "right");
  }

  function drawCurves(plot, name, curves) {
    for (const other of Object.keys(curves)) {
      if (other !== name) curve(plot, other, curves[other], false);
    }
    curve(plot, name, curves[name], true);
  }

  /** Distribution function of the additive advantage over people. */
  function additive(canvas, colours, { name, epsilon, reach, curves }) {
    const label = "rise in the probability of a right guess, a";
    const plot = frame(canvas, colours, { reach, label, percent: true });
    drawCurves(plot, name, curves);
    const beyond = 1 - curves[name][curves[name].length - 1][1];
    if (beyond > 0) {
      const fraction = beyond < 0.0005 ? "<0.1" : (100 * beyond).toFixed(1);
      caption(plot, `${fraction}% beyond`, plot.x(reach) - 8, plot.y(0.9), "right");
    }
    if (epsilon < Infinity) limit(plot, 0.5 * Math.tanh(0.5 * epsilon), "largest that ε allows");
  }

  return { KINDS, palette, scatter, multiplicative, additive };
})();
