// Each function's self time and total time; a recursive function counts once per sample.

class Functions {
  // paths: for each sample, root first, numbers below `frameCount`.
  constructor(paths, frameCount) {
    this.frameCount = frameCount;
    this.leaf = Int32Array.from(paths, path => path.length ? path.at(-1) : -1);
    this.frames = []; // one sample's after the other, each frame once
    this.begin = new Int32Array(paths.length + 1); // where each sample's frames begin
    const lastSample = new Int32Array(frameCount).fill(-1);
    paths.forEach((path, sample) => {
      for (const frame of path) {
        if (lastSample[frame] !== sample)
          this.frames.push(frame);
        lastSample[frame] = sample;
      }
      this.begin[sample + 1] = this.frames.length;
    });
    this.frames = Int32Array.from(this.frames);
  }

  // Whether one of the sample's frames is wanted. isWanted: for each frame.
  hasAny(sample, isWanted) {
    for (let i = this.begin[sample]; i < this.begin[sample + 1]; i++) {
      if (isWanted[this.frames[i]])
        return true;
    }
    return false;
  }

  // Rows {frame, self, total, selfBefore, totalBefore} of the functions in the kept samples.
  count(samples, kept) {
    const {frames, begin, leaf, frameCount} = this;
    const [self, total, selfBefore, totalBefore] =
      Array.from({length: 4}, () => new Float64Array(frameCount));
    const isThere = new Uint8Array(frameCount), rows = [];
    samples.forEach(({time, before}, sample) => {
      if (!kept[sample] || leaf[sample] < 0)
        return;
      for (let i = begin[sample]; i < begin[sample + 1]; i++) {
        total[frames[i]] += time;
        totalBefore[frames[i]] += before;
        isThere[frames[i]] = 1;
      }
      self[leaf[sample]] += time;
      selfBefore[leaf[sample]] += before;
    });
    for (let frame = 0; frame < frameCount; frame++) {
      if (isThere[frame])
        rows.push({frame, self: self[frame], total: total[frame],
                   selfBefore: selfBefore[frame], totalBefore: totalBefore[frame]});
    }
    return rows;
  }
}
