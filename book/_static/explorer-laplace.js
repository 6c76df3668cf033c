/* Laplace noise, where the release is a real number: the continuous half of labelaudit/kernels. */

Explorer.LaplaceAudit = (function () {
  "use strict";

  const { Audit, profile, runningSums, ROUNDING } = Explorer.auditing;

  // Parts of total = (odds one + zero) / (1 + odds), where one / zero is `ratio`.
  function zeroOf(total, odds, ratio) {
    return ratio === Infinity ? 0 : total * (1 + odds) / (1 + odds * ratio);
  }

  function oneOf(total, odds, ratio) {
    return ratio === Infinity ? total * (1 + odds) / odds : zeroOf(total, odds, ratio) * ratio;
  }

  /** The first index in low..high whose value is at least the target; the last value always is. */
  function search(values, low, high, target) {
    if (values[low] >= target) return low;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (values[middle] < target) low = middle;
      else high = middle;
    }
    return high;
  }

  /** P(y = 1, .) - P(y = 0, .) for a joint distribution with this total. */
  function excess(total, odds, ratio) {
    return ratio === Infinity ? total : total * (odds * ratio - 1) / (odds * ratio + 1);
  }

  /** Integral over [0, 1] of epsilon max(0, start e^(-epsilon t) + end e^(-epsilon (1-t))). */
  function intervalGain(start, end, epsilon, q) {
    const left = start + end * q, right = start * q + end;
    if (left <= 0 && right <= 0) return 0;
    if (left >= 0 && right >= 0) return (start + end) * -Math.expm1(-epsilon);
    const root = Math.min(Math.max(0.5 * (1 + Math.log(-start / end) / epsilon), 0), 1);
    const fall = Math.exp(-epsilon * root), rise = Math.exp(-epsilon * (1 - root));
    return right > 0 ? start * (fall - q) + end * (1 - rise) : start * (1 - fall) + end * (rise - q);
  }

  /** Releases on the whole line: Laplace noise.

      Between counts j and j + 1 the release's density mixes below[j] e^(-epsilon t) and
      above[j+1] e^(-epsilon (1-t)); both obey the recursion, with profiles `under` and `over`. */
  class LaplaceAudit extends Audit {
    allocate() {
      const { size, nBags, width } = this;
      const tables = ["under", "over", "knots", "oneUnder", "zeroUnder", "oneOver", "zeroOver"];
      for (const name of tables) this[name] = new Float64Array(size * width);
      for (const name of ["below", "above", "sums"]) this[name] = new Float64Array(nBags * width);
    }

    readBag(bag, pmf, lo, hi) {
      const { q } = this.mechanism, { width } = this, size = hi - lo + 1, row = bag * width;
      const below = this.below.subarray(row, row + size), above = this.above.subarray(row, row + size);
      runningSums(pmf, lo, hi, q, below, above);
      for (let j = 0, run = 0; j < size; j++) this.sums[row + j] = run += pmf[lo + j];
      for (let m = this.starts[bag]; m < this.starts[bag + 1]; m++) {
        const i = this.uncertain[m], at = i * width, odds = this.eta[i] / (1 - this.eta[i]);
        profile(odds, below, size, 0, 1 / q, this.under, at);
        profile(odds, above, size, q, Infinity, this.over, at);
        this.additive[i] = this.gain(i, row, odds, size - 1);
      }
    }

    /** Additive advantage of one person; fills the densities between counts on the way.

        `knots` are the likelihood ratios at the counts themselves. */
    gain(i, row, odds, top) {
      const { q, epsilon } = this.mechanism, { below, above, under, over, knots } = this;
      const { oneUnder, zeroUnder, oneOver, zeroOver } = this;
      const at = i * this.width, sign = this.eta[i] <= 0.5 ? 1 : -1;
      let gain = Math.max(0, sign * excess(above[row], odds, over[at]));
      for (let j = at, s = row; j < at + top; j++, s++) {
        oneUnder[j] = oneOf(below[s], odds, under[j]);
        zeroUnder[j] = zeroOf(below[s], odds, under[j]);
        oneOver[j] = oneOf(above[s + 1], odds, over[j + 1]);
        zeroOver[j] = zeroOf(above[s + 1], odds, over[j + 1]);
        knots[j] = (oneUnder[j] + q * oneOver[j]) / (zeroUnder[j] + q * zeroOver[j]);
        const start = sign * excess(below[s], odds, under[j]);
        const end = sign * excess(above[s + 1], odds, over[j + 1]);
        gain += intervalGain(start, end, epsilon, q);
      }
      knots[at + top] = 1 / q;
      gain += Math.max(0, sign * excess(below[row + top], odds, under[at + top]));
      return Math.min(0.5 * gain, this.eta[i], 1 - this.eta[i]);
    }

    ratio(i, bag, position) {
      const { q, epsilon } = this.mechanism;
      const x = position - this.ones[bag] - this.lo[bag];
      if (x <= 0 || x >= this.top[bag]) return x <= 0 ? q : 1 / q;
      const t = x - Math.floor(x), at = i * this.width + Math.floor(x);
      const fall = Math.exp(-epsilon * t), rise = Math.exp(-epsilon * (1 - t));
      const one = fall * this.oneUnder[at] + rise * this.oneOver[at];
      return Math.min(Math.max(one / (fall * this.zeroUnder[at] + rise * this.zeroOver[at]), q), 1 / q);
    }

    /** P(ratio <= target), for q < target < 1/q, where the target lies between two counts.

        `row` and `at` are the indices of the lower one in the bag's and the person's tables. */
    probabilityBelow(target, row, at) {
      const { q } = this.mechanism;
      const rise = target * this.zeroUnder[at] - this.oneUnder[at];
      const fall = this.oneOver[at] - target * this.zeroOver[at];
      // exp(-epsilon t) where t = (1 + log(rise / fall) / epsilon) / 2, kept within [0, 1].
      let left = rise > 0 ? Math.sqrt(q * Math.max(fall, 0) / rise) : 1;
      left = Math.min(Math.max(left, q), 1);
      const under = this.below[row] * left, over = this.above[row + 1] * q / left;
      return this.sums[row] - 0.5 * under + 0.5 * over;
    }

    /** Mass of |I| in (points[j-1], points[j]] for each j, and beyond the last. */
    masses(points) {
      const masses = new Float64Array(points.length + 1), ups = points.map(Math.exp), { width } = this;
      for (let bag = 0; bag < this.nBags; bag++) {
        for (let m = this.starts[bag]; m < this.starts[bag + 1]; m++) {
          const at = this.uncertain[m] * width;
          this.addMasses(at, bag * width, this.top[bag], points, ups, masses);
        }
      }
      return masses;
    }

    /** One person's part of the masses. Each search starts where the last one stopped. */
    addMasses(at, row, top, points, ups, masses) {
      const { knots } = this, { epsilon } = this.mechanism;
      const count = points.length;
      let up = at, down = at + top, reached = 0;
      for (let index = 0; index < count; index++) {
        let probability = 1;
        if (points[index] < epsilon) {
          const high = ups[index], low = 1 / high;
          up = search(knots, up, at + top, high);
          down = search(knots, at, down, low);
          // Releases below the window of counts have almost no probability.
          probability = up > at ? this.probabilityBelow(high, row + up - at - 1, up - 1) : 0;
          if (down > at) probability -= this.probabilityBelow(low, row + down - at - 1, down - 1);
        }
        masses[index] += Math.max(0, probability - reached);
        reached = Math.max(reached, probability);
      }
      masses[count] += 1 - reached;
    }

    /** A root of the distribution function; what is left of the mass lies at epsilon. */
    quantile(level) {
      const goal = level - ROUNDING, { epsilon } = this.mechanism;
      const excess = (t) => this.cdf(Float64Array.of(t))[0] - goal;
      let low = 0, high = epsilon * (1 - ROUNDING);
      let under = excess(low), over = excess(high);
      if (under >= 0) return 0;
      if (over < 0) return epsilon;
      // The Illinois rule: a secant whose idle end is halved.
      for (let round = 0, side = 0; round < 100 && high - low > 1e-13 * epsilon; round++) {
        const guess = (low * over - high * under) / (over - under);
        const inside = guess > low && guess < high;
        const middle = inside ? guess : 0.5 * (low + high);
        const value = excess(middle);
        if (value >= 0) {
          [high, over] = [middle, value];
          if (side === 1) under *= 0.5;
          side = 1;
        } else {
          [low, under] = [middle, value];
          if (side === -1) over *= 0.5;
          side = -1;
        }
        if (value === 0) break;
      }
      return high;
    }

    infiniteFraction() {
      return 0;
    }
  }

  return LaplaceAudit;
})();
