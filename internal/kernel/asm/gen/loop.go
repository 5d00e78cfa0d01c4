package main

// writeLoops writes everything else that runs over slices.
func writeLoops(vectors []vector) {
	stream()
	writeRandoms()
	for _, v := range vectors {
		v.axpy()
		v.scaled("Scale", "alpha·x", v.mul)
		v.scaled("Shift", "x + alpha", v.add)
		v.pairwise("Add", "x+y", v.add)
		v.pairwise("Sub", "x-y", v.sub)
		v.pairwise("Mul", "x·y", v.mul)
		v.pairwise("Div", "x/y", v.div)
		v.relu()
		v.reluBackward()
		v.descend()
		v.adam()
		v.rmsprop()
		v.sum()
		v.dot()
		if v.single() { // in float64 Sum adds rows, and the rest is for tests
			v.rowSums()
			v.columnSums()
			v.pool()
			v.poolBackward()
		}
	}
	for _, v := range vectors {
		if !v.wide { // as fast as AVX-512, or faster, on what is short
			v.rowwise("CopyRows", "CopyRows%s writes rows of src to dst.", nil)
			v.rowwise("AddRows", "AddRows%s adds rows of src to dst.", v.add)
			v.transpose()
		} else if v.single() {
			v.transposeSixteen()
		}
	}
}
