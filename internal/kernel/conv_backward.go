package kernel

// Conv2dBackward computes the gradients of [Conv2d] from dy, the gradient of its output. It
// overwrites dx and adds to dw and db. Each of them may be nil and is then skipped. It panics
// like Conv2d. Images are divided between [Threads] goroutines; the result does not depend on
// their number.
func Conv2dBackward[F Float](s ConvShape, x, w, dy, dx, dw, db []F, scratch *Scratch) {
	g := newGeometry(s)
	if db != nil {
		addPlaneSums(&g, dy, db)
	}
	if s.isDilated() {
		dilatedBackward(&g, x, w, dy, dx, dw, scratch)
		return
	}
	parts := workerCount(imageGroups(s.N), s.multiplications()/g.Groups)
	g.eachGroup(func(image, filters, _, out int) {
		if dw != nil {
			filterGradient(&g, sliceFrom(x, image), sliceFrom(dy, out), dw[filters:], parts, scratch)
		}
		if dx != nil {
			imageGradient(&g, w[filters:], sliceFrom(dy, out), sliceFrom(dx, image), parts, scratch)
		}
	})
}

// imageGroups returns the number of groups, at most 8, into which images are divided for
// summation. It must not depend on the number of threads, because the order of summation would.
func imageGroups(images int) int { return min(images, 8) }

// addPlaneSums adds the sum of each output channel of y, over all images, to sums.
func addPlaneSums[F Float](g *geometry, y, sums []F) {
	channels := g.Groups * g.OutC
	if workers := workerCount(channels, g.N*channels*g.area); workers > 1 {
		images, area := g.N, g.area // g would escape to the heap
		runRanges(workers, channels, func(_, lo, hi int) { sumPlanes(images, channels, area, lo, hi, y, sums) })
	} else {
		sumPlanes(g.N, channels, g.area, 0, channels, y, sums)
	}
}

// sumPlanes is addPlaneSums for channels lo to hi-1, on the calling goroutine.
func sumPlanes[F Float](images, channels, area, lo, hi int, y, sums []F) {
	for n := range images {
		for c := lo; c < hi; c++ {
			sums[c] += Sum(y[(n*channels+c)*area:][:area])
		}
	}
}
