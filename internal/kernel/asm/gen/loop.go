package main

// writeLoops emits the other loops over slices.
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
		if v.single() { // float64 sums use Add and Sum, and only tests need the rest in float64
			v.rowSums()
			v.columnSums()
			v.pool()
			v.poolBackward()
		}
	}
	for _, v := range vectors {
		if !v.wide { // for short rows AVX2 is as fast as AVX-512, or faster
			v.rowwise("CopyRows", "CopyRows%s writes rows of src to dst.", nil)
			v.rowwise("AddRows", "AddRows%s adds rows of src to dst.", v.add)
			v.transpose()
		} else if v.single() {
			v.transposeSixteen()
		}
	}
}
