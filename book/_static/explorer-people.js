/* People with priors, labels and releases, all drawn from one seed, so that a link always shows the same people. */

Explorer.people = (function () {
  "use strict";

  const COUNT = 2048;
  // Bars of a hand-drawn distribution, and the largest height of a bar.
  const BARS = 20;
  const HEIGHTS = 9;

  /** Uniform numbers in [0, 1) of 53 bits: the mulberry32 generator, its state mixed from both. */
  function generator(seed, stream) {
    let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35);
    function word() {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return (mixed ^ (mixed >>> 14)) >>> 0;
    }
    for (let j = 0; j < 8; j++) word();
    return () => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992;
  }

  function normal(random) {
    return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  }

  /** Marsaglia and Tsang's rejection; a shape below 1 is raised by one and brought back by a power. */
  function gamma(shape, random) {
    if (shape < 1) return gamma(shape + 1, random) * (1 - random()) ** (1 / shape);
    const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = normal(random), v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  }

  const short = (value) => Number(value.toPrecision(6));

  function beta(a, b) {
    return {
      label: `Beta(${short(a)}, ${short(b)})`,
      draw(random) {
        const first = gamma(a, random);
        return first / (first + gamma(b, random));
      },
    };
  }

  function twoPoint(low, high, weight) {
    return {
      label: `Two points: ${short(low)}, or ${short(high)} for ${short(100 * weight)}%`,
      draw: (random) => (random() < weight ? high : low),
    };
  }

  function drawn(digits) {
    const heights = Array.from(digits, Number), total = heights.reduce((sum, height) => sum + height);
    return {
      label: "Drawn by hand",
      heights,
      draw(random) {
        let left = random() * total, bar = 0;
        while (bar < BARS - 1 && left >= heights[bar]) left -= heights[bar++];
        return (bar + random()) / BARS;
      },
    };
  }

  function numbers(text, count, low, high) {
    const parts = text.split("-").map((part) => (/^(\d+(\.\d+)?|\.\d+)$/.test(part) ? Number(part) : NaN));
    return parts.length === count && parts.every((value) => value >= low && value <= high) && parts;
  }

  /** The distribution of a name: uniform, beta-a-b, two-low-high-weight or drawn-(20 digits); else null. */
  function distributionOf(name) {
    const [kind, rest] = [name.split("-", 1)[0], name.slice(name.indexOf("-") + 1)];
    let parameters;
    if (name === "uniform") return { label: "Uniform", draw: (random) => random() };
    if (kind === "beta" && (parameters = numbers(rest, 2, 0.2, 200))) return beta(...parameters);
    if (kind === "two" && (parameters = numbers(rest, 3, 0, 1))) return twoPoint(...parameters);
    if (kind === "drawn" && /^\d{20}$/.test(rest) && /[1-9]/.test(rest)) return drawn(rest);
    return null;
  }

  /** Everyone's prior, and the uniform numbers that decide the labels and the noise.

      The uniform numbers do not change when a slider moves, so every point moves smoothly. */
  function population(name, seed) {
    const draws = generator(seed, 0), labels = generator(seed, 1), noise = generator(seed, 2);
    const chosen = distributionOf(name);
    return {
      eta: Float64Array.from({ length: COUNT }, () => chosen.draw(draws)),
      labelUniform: Float64Array.from({ length: COUNT }, labels),
      noiseUniform: Float64Array.from({ length: COUNT }, noise),
    };
  }

  /** Two-sided geometric noise from a uniform number, by the inverse distribution function. */
  function geometricNoise(epsilon, uniform) {
    const q = Math.exp(-epsilon);
    if (uniform * (1 + q) < q) return 1 - Math.ceil(Math.log(uniform * (1 + q)) / -epsilon);
    return Math.floor(Math.log((1 - uniform) * (1 + q)) / -epsilon);
  }

  function laplaceNoise(epsilon, uniform) {
    return (uniform < 0.5 ? Math.log(2 * uniform) : -Math.log(2 - 2 * uniform)) / epsilon;
  }

  /** The release of a bag with `count` ones, in counts, drawn from a uniform number as in labelaudit. */
  function release(mechanism, count, uniform) {
    const { epsilon, bagSize } = mechanism;
    if (epsilon === Infinity) return count;
    if (mechanism.continuous) return count + laplaceNoise(epsilon, Math.max(uniform, 1e-300));
    if (epsilon === 0) return uniform < 0.5 ? 0 : bagSize;
    return Math.min(Math.max(count + geometricNoise(epsilon, uniform), 0), bagSize);
  }

  /** One release for each bag of the given labels. */
  function releases(mechanism, labels, uniforms) {
    const k = mechanism.bagSize;
    return Float64Array.from({ length: Math.floor(labels.length / k) }, (_, bag) => {
      let count = 0;
      for (let i = bag * k; i < (bag + 1) * k; i++) count += labels[i];
      return release(mechanism, count, uniforms[bag]);
    });
  }

  /** How many priors fall into each of the bars. */
  function histogram(eta) {
    const counts = new Array(BARS).fill(0);
    for (const prior of eta) counts[Math.min(Math.floor(prior * BARS), BARS - 1)]++;
    return counts;
  }

  /** The name of the hand-drawn distribution with these heights, 0 to 9; all zeros become a flat line. */
  function drawnName(heights) {
    const whole = heights.map((height) => Math.min(Math.max(Math.round(height), 0), HEIGHTS));
    return `drawn-${(whole.some(Boolean) ? whole : whole.fill(1)).join("")}`;
  }

  return { COUNT, BARS, HEIGHTS, generator, distributionOf, population, releases, histogram, drawnName };
})();
