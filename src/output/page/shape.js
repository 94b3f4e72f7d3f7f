// The shape of the graph: the paths of all samples, merged into a tree. Each filter changes what is
// counted in it, but not the shape. It is stored in arrays:
//
//   order                  the numbers of the samples, in the order of their paths
//   frame, parent, depth   of each node, in the order of a walk from the root (0), whose frame and
//                          parent are -1
//   end                    over node i are the nodes up to end[i]
//   first, selfEnd, last   the samples that pass through node i are those of order[first[i]] up to
//                          order[last[i]]; those that end in it come first, up to selfEnd[i]

function comparePaths(a, b) {
  const common = commonLength(a, b);
  return common < a.length && common < b.length ? a[common] - b[common] : a.length - b.length;
}

function commonLength(a, b) {
  const length = Math.min(a.length, b.length);
  let common = 0;
  while (common < length && a[common] === b[common])
    common++;
  return common;
}

class Shape {
  // paths: for each sample, root first; null if the sample is not shown.
  constructor(paths) {
    this.order = Int32Array.from([...paths.keys()].filter(i => paths[i])
      .sort((a, b) => comparePaths(paths[a], paths[b])));
    const sorted = Array.from(this.order, number => paths[number]);
    const common = sorted.map((path, i) => i ? commonLength(sorted[i - 1], path) : 0);
    this.length = sorted.reduce((sum, path, i) => sum + path.length - common[i], 1);
    for (const name of ['frame', 'parent', 'depth', 'end', 'first', 'selfEnd', 'last'])
      this[name] = new Int32Array(this.length);
    this.fill(sorted, common);
  }

  // Equal beginnings are adjacent, so that nothing is looked up.
  fill(sorted, common) {
    const {frame, parent, depth, end, first, selfEnd, last} = this;
    const branch = [0]; // the nodes of one path, the root first
    let length = 1;
    const cut = (depth, sample) => {
      while (branch.length > depth) {
        const node = branch.pop();
        end[node] = length;
        last[node] = sample;
      }
    };
    frame[0] = parent[0] = -1;
    sorted.forEach((path, sample) => {
      cut(common[sample] + 1, sample);
      for (let i = common[sample]; i < path.length; i++) {
        frame[length] = path[i];
        parent[length] = branch[i];
        depth[length] = i + 1;
        first[length] = selfEnd[length] = sample;
        branch.push(length++);
      }
      selfEnd[branch[path.length]] = sample + 1;
    });
    cut(0, sorted.length);
  }
}
