package kernel

import "math"

// A Norm is rows of Per·Run elements, each of which is moved and scaled to mean 0 and variance 1,
// and then by weights and biases: Groups·Per of each, of which row r has the Per from (r modulo
// Groups)·Per on, each for Run elements. A layer norm has one group and runs of 1, a group norm a
// row for each group of an example, and runs as long as a channel.
type Norm struct {
	Rows, Groups, Per, Run int
	Eps                    float64 // added to variances
}

func (n Norm) cols() int { return n.Per * n.Run }

// params returns where the weights of row r begin and end.
func (n Norm) params(r int) (lo, hi int) {
	lo = r % n.Groups * n.Per
	return lo, lo + n.Per
}

// Normalize overwrites y with the rows of x, moved and scaled, and means and scales (Rows) with
// what they were moved back and scaled by. w and b may be nil, and y may be x. Rows are divided
// between Threads goroutines.
func Normalize[F Float](n Norm, x, w, b, y []F, means, scales []float64) {
	if parts := n.workers(n.Rows); parts > 1 {
		fork(parts, n.Rows, func(_, lo, hi int) { normalizeRows(n, lo, hi, x, w, b, y, means, scales) })
	} else {
		normalizeRows(n, 0, n.Rows, x, w, b, y, means, scales)
	}
}

func normalizeRows[F Float](n Norm, lo, hi int, x, w, b, y []F, means, scales []float64) {
	cols := n.cols()
	for r := lo; r < hi; r++ {
		to := y[r*cols:][:cols]
		means[r], scales[r] = normalize(n, r, x[r*cols:][:cols], w, b, to)
	}
}

// workers is how many goroutines things are worth that all rows are divided into.
func (n Norm) workers(things int) int {
	const cost = 16 // operations for an element
	return workers(things, n.Rows*n.cols()*cost)
}

// normalize takes the mean from a row twice: the second one is of what rounding the first has left,
// which beside a mean that is much larger than the deviations would be seen.
func normalize[F Float](n Norm, r int, x, w, b, y []F) (mean, scale float64) {
	count := float64(len(x))
	first := F(Sum64(x) / count)
	sum, squares := centreTo(first, x, y)
	left := sum / count
	variance := max(squares/count-left*left, 0) // NaN stays
	scale = 1 / math.Sqrt(variance+n.Eps)
	lo, hi := n.params(r)
	if n.Run == 1 && w != nil && b != nil {
		w, b := w[lo:hi], b[lo:hi]
		for i, m := range short(len(y)) {
			inner[F]().affine(m, F(scale), F(-left*scale), &w[i], &b[i], &y[i])
		}
	} else {
		Scale(F(scale), y)
		Shift(F(-left*scale), y, y)
		affine(n, r, y, w, b)
	}
	return float64(first) + left, scale
}

// centreTo overwrites y with x-shift, and returns the sums of that and of its squares.
func centreTo[F Float](shift F, x, y []F) (sum, squares float64) {
	for i, n := range short(len(x)) {
		s, q := inner[F]().centre(n, shift, &x[i], &y[i])
		sum, squares = sum+float64(s), squares+float64(q)
	}
	return sum, squares
}

// affine multiplies row r by its weights and adds its biases.
func affine[F Float](n Norm, r int, y, w, b []F) {
	lo, hi := n.params(r)
	if n.Run > 1 {
		for p := lo; p < hi; p++ {
			run := y[(p-lo)*n.Run:][:n.Run]
			if w != nil {
				Scale(w[p], run)
			}
			if b != nil {
				Shift(b[p], run, run)
			}
		}
		return
	}
	if w != nil {
		Mul(y, w[lo:hi], y)
	}
	if b != nil {
		Add(y, b[lo:hi], y)
	}
}

// NormalizeBackward computes the gradients of [Normalize] from x, w and what it found, and dy, the
// gradient of its output: dx is overwritten, dw and db are added to. Those that are nil are
// skipped. dx is neither x nor dy. Sums over rows are the same however many goroutines there are.
func NormalizeBackward[F Float](n Norm, x, w, dy []F, means, scales []float64, dx, dw, db []F, scratch *Scratch) {
	cols, params, parts := n.cols(), n.Groups*n.Per, groups(n.Rows)
	if cols == 0 {
		return
	}
	sums := borrow[F](scratch, gradients, parts*2*params)
	clear(sums)
	room := borrow[F](scratch, images, parts*3*cols)
	all := normGradients[F]{n, parts, x, w, dy, dx, means, scales, room, sums}
	if goroutines := n.workers(parts); goroutines > 1 {
		shared := all // which is on the heap for them
		fork(goroutines, parts, func(_, from, to int) { shared.parts(from, to) })
	} else {
		all.parts(0, parts)
	}
	for part := range parts {
		own := sums[part*2*params:][:2*params]
		if dw != nil {
			Axpy(1, own[:params], dw[:params])
		}
		if db != nil {
			Axpy(1, own[params:], db[:params])
		}
	}
}

// normGradients are those of all rows, which are divided into a number of groups.
type normGradients[F Float] struct {
	Norm
	groups        int
	x, w, dy, dx  []F
	means, scales []float64
	room, sums    []F
}

func (a normGradients[F]) parts(from, to int) {
	cols, params := a.cols(), a.Groups*a.Per
	for part := from; part < to; part++ {
		g := normGradient[F]{Norm: a.Norm, w: a.w, row: a.room[part*3*cols:][:3*cols],
			sums: a.sums[part*2*params:][:2*params]}
		g.ones()
		for r := part * a.Rows / a.groups; r < (part+1)*a.Rows/a.groups; r++ {
			at := r * cols
			g.add(r, a.means[r], a.scales[r], a.x[at:][:cols], a.dy[at:][:cols], piece(a.dx, at, cols))
		}
	}
}

// piece returns n elements of x from at on, or nil.
func piece[F Float](x []F, at, n int) []F {
	if x == nil {
		return nil
	}
	return x[at:][:n]
}

// A normGradient goes over rows whose sums are its own.
type normGradient[F Float] struct {
	Norm
	w    []F
	row  []F // of weights, and of the gradients of weights and biases, where a row has not the shape of parameters
	sums []F // of the gradients of weights and of biases
}

// ones are the weights of a row where there are none.
func (g *normGradient[F]) ones() {
	for i := range g.row[:g.cols()] {
		g.row[i] = 1
	}
}

// add adds the gradients of the parameters of row r, and takes from the gradient of what it was
// before its weights the mean and the part along the row, which moving and scaling have made
// constant.
func (g *normGradient[F]) add(r int, mean, scale float64, x, dy, dx []F) {
	w, dw, db := g.spread(r)
	first := F(mean)
	left := F((float64(first) - mean) * scale)
	var sum, along F
	for i, n := range short(len(x)) {
		s, a := inner[F]().normSums(n, first, F(scale), left, &x[i], &dy[i], &w[i], &dw[i], &db[i])
		sum, along = sum+s, along+a
	}
	if g.Run > 1 {
		g.addRuns(r, dw, g.sums[:len(g.sums)/2])
		g.addRuns(r, db, g.sums[len(g.sums)/2:])
	}
	if dx == nil {
		return
	}
	count := F(len(x))
	for i, n := range short(len(x)) {
		inner[F]().normSlope(n, first, F(scale), left, sum/count, along/count, &x[i], &dy[i], &w[i], &dx[i])
	}
}

// spread returns the weights of row r, one for each element, and what the gradients of its
// parameters are added to.
func (g *normGradient[F]) spread(r int) (w, dw, db []F) {
	lo, hi := g.params(r)
	cols, half := g.cols(), len(g.sums)/2
	w, dw, db = g.row[:cols], g.sums[lo:hi], g.sums[half+lo:half+hi]
	if g.Run > 1 {
		dw, db = g.row[cols:2*cols], g.row[2*cols:]
		clear(dw)
		clear(db)
	}
	switch {
	case g.w != nil && g.Run == 1:
		w = g.w[lo:hi]
	case g.w != nil:
		for p := lo; p < hi; p++ {
			run := w[(p-lo)*g.Run:][:g.Run]
			for i := range run {
				run[i] = g.w[p]
			}
		}
	}
	return w, dw, db
}

// addRuns adds what runs of row r have to the sums that they belong to.
func (g *normGradient[F]) addRuns(r int, x, sums []F) {
	lo, hi := g.params(r)
	for p := lo; p < hi; p++ {
		sums[p] += Sum(x[(p-lo)*g.Run:][:g.Run])
	}
}
