package kernel

import "math"

// Attention is the geometry of scaled dot-product attention (Vaswani et al., 2017,
// https://arxiv.org/abs/1706.03762). Each of the Heads has Q queries and K keys of D numbers, and K
// values of V numbers. The output of a query is the mean of the values, weighted by the softmax of
// Scale times the products of the query with the keys.
type Attention struct {
	Heads, Q, K, D, V int
	Scale             float64
	Causal            bool // query i sees only keys 0 to i
}

// Block sizes of queries and keys. Only one block of scores is in memory at a time, never the whole
// matrix of all queries and keys, as in FlashAttention.
const (
	queryBlock = 64
	keyBlock   = 128
)

// Scratch slots, renamed for attention.
const (
	scoresOf = images
	keysOf   = filters
	valuesOf = firsts
	rowsOf   = seconds
)

// Attend overwrites out (Heads, Q, V) with the attention of q (Heads, Q, D) to k (Heads, K, D)
// and v (Heads, K, V). It overwrites logs (Heads, Q) with the logarithms of the sums of
// exponentials, which [AttendBackward] needs.
//
// bias returns the K numbers to add to the scores of one query of a head, or nil for none; bias
// itself may be nil. Attend only reads these numbers, and may call bias from several
// goroutines. The output of a query is zero if it sees no key, or only scores of -∞. Heads are
// divided between [Threads] goroutines.
func Attend[F Float](a Attention, q, k, v []F, bias func(head, query int) []F, out []F, logs []float64) {
	if parts := a.workerCount(); parts > 1 {
		runRanges(parts, a.Heads, func(_, lo, hi int) { attend(a, lo, hi, q, k, v, bias, out, logs) })
	} else {
		attend(a, 0, a.Heads, q, k, v, bias, out, logs)
	}
}

// attend is [Attend] for heads lo to hi-1, on the calling goroutine.
func attend[F Float](a Attention, lo, hi int, q, k, v []F, bias func(head, query int) []F, out []F,
	logs []float64) {
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	for h := lo; h < hi; h++ {
		t := headOf(a, h, q, k, v, bias, logs, space)
		t.values = blocksOf(false, a.K, a.V, t.v, space, valuesOf)
		for i := 0; i < a.Q; i += queryBlock {
			t.computeOutputs(i, min(queryBlock, a.Q-i), out[h*a.Q*a.V:])
		}
	}
}

// AttendBackward overwrites dq, dk and dv with the gradients of [Attend]. The arguments, out
// and logs must be unchanged since Attend; dy is the gradient of out.
//
// If dbias is not nil, AttendBackward calls it with d, the gradients of the scores of a head's
// query for len(d) keys, beginning with the given key. dbias must not keep d. With dbias all
// heads run on the calling goroutine.
func AttendBackward[F Float](a Attention, q, k, v []F, bias func(head, query int) []F, out []F,
	logs []float64, dy, dq, dk, dv []F, dbias func(head, query, key int, d []F)) {
	// Heads may share a bias, so dbias must not be called concurrently.
	if parts := a.workerCount(); parts > 1 && dbias == nil {
		runRanges(parts, a.Heads, func(_, lo, hi int) {
			attendBackward(a, lo, hi, q, k, v, bias, out, logs, dy, dq, dk, dv, nil)
		})
	} else {
		attendBackward(a, 0, a.Heads, q, k, v, bias, out, logs, dy, dq, dk, dv, dbias)
	}
}

// attendBackward is [AttendBackward] for heads lo to hi-1, on the calling goroutine.
func attendBackward[F Float](a Attention, lo, hi int, q, k, v []F, bias func(head, query int) []F, out []F,
	logs []float64, dy, dq, dk, dv []F, dbias func(head, query, key int, d []F)) {
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	for h := lo; h < hi; h++ {
		t := headOf(a, h, q, k, v, bias, logs, space)
		t.values = blocksOf(true, a.K, a.V, t.v, space, valuesOf)
		g := headGradient[F]{t, borrowSlice[F](space, gradients, queryBlock*keyBlock),
			blocksOf(false, a.K, a.D, t.k, space, rowsOf), out[h*a.Q*a.V:], dy[h*a.Q*a.V:],
			dq[h*a.Q*a.D:][:a.Q*a.D], dk[h*a.K*a.D:][:a.K*a.D], dv[h*a.K*a.V:][:a.K*a.V], dbias}
		clear(g.dq)
		clear(g.dk)
		clear(g.dv)
		for i := 0; i < a.Q; i += queryBlock {
			g.addBlockGradient(i, min(queryBlock, a.Q-i))
		}
	}
}

// workerCount returns the number of goroutines that are worthwhile for the heads.
func (a Attention) workerCount() int { return workerCount(a.Heads, a.Heads*a.Q*a.K*(a.D+a.V)) }

// head is one head of an attention, with the scores of a block of queries and keys.
type head[F Float] struct {
	Attention
	number       int
	q, k, v      []F
	keys, values blocks[F] // keys as columns; values as rows, or as columns for gradients
	bias         func(head, query int) []F
	logs         []float64
	scores       []F
}

func headOf[F Float](a Attention, h int, q, k, v []F, bias func(head, query int) []F, logs []float64,
	space *Scratch) head[F] {
	t := head[F]{Attention: a, number: h, q: q[h*a.Q*a.D:], k: k[h*a.K*a.D:], v: v[h*a.K*a.V:], bias: bias,
		logs: logs[h*a.Q:]}
	t.scores = borrowSlice[F](space, scoresOf, queryBlock*keyBlock)
	t.keys = blocksOf(true, a.K, a.D, t.k, space, keysOf)
	return t
}

// blocks is a matrix x in packed form: a sequence of factors of keyBlock rows of x each. If
// trans is set, the rows of x are the columns of the factors. blocksOf makes it.
type blocks[F Float] struct {
	trans      bool
	rows, cols int
	width      int // columns of a packed panel
	data       []F
}

// blocksOf packs x (rows×cols) into slot i of space. The result is valid until the next use of
// the slot. If trans is set, it transposes each block.
func blocksOf[F Float](trans bool, rows, cols int, x []F, space *Scratch, i slot) blocks[F] {
	data := borrowSlice[F](space, i, roundUpTo(rows, keyBlock)*roundUpTo(cols, portableLanes))
	b := blocks[F]{trans, rows, cols, loopsFor[F]().panelWidth(), data}
	for j := 0; j < rows; j += keyBlock {
		f := b.blockAt(j)
		factorOf(trans, f.n, f.k, x[j*cols:], cols, f.data, space)
	}
	return b
}

// blockAt returns the block that begins with row j, which must be a multiple of keyBlock.
func (b *blocks[F]) blockAt(j int) factor[F] {
	f := factor[F]{n: b.cols, k: min(keyBlock, b.rows-j), width: b.width}
	whole := packedSize(b.cols, keyBlock)
	if b.trans {
		f.n, f.k, whole = f.k, f.n, packedSize(keyBlock, b.cols)
	}
	f.data = b.data[j/keyBlock*whole:]
	return f
}

// visibleKeys returns the number of keys that a block of queries can see. last is the last query of
// the block.
func (a Attention) visibleKeys(last int) int {
	if a.Causal {
		return min(a.K, last+1)
	}
	return a.K
}

// computeScores overwrites t.scores with the scores of m queries from i for n keys from j, row
// by row. Hidden scores are -∞.
func (t *head[F]) computeScores(i, m, j, n int) {
	t.keys.blockAt(j).multiplySerial(m, n, t.D, F(t.Scale), t.q[i*t.D:], t.D, false, t.scores, n)
	for r := range m {
		row := t.scores[r*n:][:n]
		if t.bias != nil {
			if b := t.bias(t.number, i+r); b != nil {
				Add(row, b[j:][:n], row)
			}
		}
		if from := i + r + 1 - j; t.Causal && from < n {
			maskScores(row[max(0, from):])
		}
	}
}

func maskScores[F Float](scores []F) {
	none := F(math.Inf(-1))
	for c := range scores {
		scores[c] = none
	}
}

// computeOutputs overwrites the outputs and t.logs of m queries from i, at most queryBlock. out
// is the output of the whole head. It uses the online softmax of Milakov and Gimelshein (2018,
// https://arxiv.org/abs/1805.02867) and processes the keys block by block. When a block has a
// larger score than the previous ones, the accumulated sums are rescaled.
func (t *head[F]) computeOutputs(i, m int, out []F) {
	var largest, sum [queryBlock]F
	for r := range m {
		largest[r] = F(math.Inf(-1))
	}
	clear(out[i*t.V:][:m*t.V])
	seen := t.visibleKeys(i + m - 1)
	for j := 0; j < seen; j += keyBlock {
		n := min(keyBlock, seen-j)
		t.computeScores(i, m, j, n)
		for r := range m {
			row := t.scores[r*n:][:n]
			top := max(largest[r], Largest(row))
			if math.IsInf(float64(top), -1) { // no visible key so far
				clear(row)
				continue
			}
			fresh := expTo(top, row, row)
			if shrink := F(math.Exp(float64(largest[r] - top))); shrink != 1 {
				sum[r] *= shrink
				Scale(shrink, out[(i+r)*t.V:][:t.V])
			}
			largest[r], sum[r] = top, sum[r]+fresh
		}
		t.values.blockAt(j).multiplySerial(m, t.V, n, 1, t.scores, n, true, out[i*t.V:], t.V)
	}
	for r := range m {
		t.logs[i+r] = float64(largest[r]) + math.Log(float64(sum[r]))
		if sum[r] != 0 {
			Scale(1/sum[r], out[(i+r)*t.V:][:t.V])
		}
	}
}

// headGradient computes the gradients of one head.
type headGradient[F Float] struct {
	head[F]
	slopes     []F
	rows       blocks[F] // the keys, packed as rows
	out, dy    []F
	dq, dk, dv []F
	dbias      func(head, query, key int, d []F)
}

// addBlockGradient adds the gradients contributed by m queries from i to g.dq, g.dk and g.dv.
// It recomputes the softmax from the scores and the logarithms of the sums.
func (g *headGradient[F]) addBlockGradient(i, m int) {
	var along [queryBlock]F
	for r := range m {
		along[r] = Dot(g.dy[(i+r)*g.V:][:g.V], g.out[(i+r)*g.V:][:g.V])
	}
	seen := g.visibleKeys(i + m - 1)
	for j := 0; j < seen; j += keyBlock {
		n := min(keyBlock, seen-j)
		g.computeScores(i, m, j, n)
		g.values.blockAt(j).multiplySerial(m, n, g.V, 1, g.dy[i*g.V:], g.V, false, g.slopes, n)
		for r := range m {
			row, d := g.scores[r*n:][:n], g.slopes[r*n:][:n]
			if log := g.logs[i+r]; math.IsInf(log, -1) {
				clear(row)
			} else {
				expTo(F(log), row, row)
			}
			Shift(-along[r], d, d)
			Mul(d, row, d)
			if g.dbias != nil {
				g.dbias(g.number, i+r, j, d)
			}
		}
		serialGemm(true, false, n, g.V, m, 1, g.scores, n, g.dy[i*g.V:], g.V, true, g.dv[j*g.V:], g.V)
		g.rows.blockAt(j).multiplySerial(m, g.D, n, F(g.Scale), g.slopes, n, true, g.dq[i*g.D:], g.D)
		serialGemm(true, false, n, g.D, m, F(g.Scale), g.slopes, n, g.q[i*g.D:], g.D, true, g.dk[j*g.D:], g.D)
	}
}
