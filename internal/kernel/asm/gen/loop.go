package main

// writeLoops writes everything else that runs over slices.
func writeLoops(vectors []vector) {
	for _, v := range vectors {
		v.axpy()
		v.scale()
		v.product()
		v.relu()
		v.reluBackward()
		v.descend()
		v.sum()
		if v.single() { // pooling in float64 is for tests
			v.pool()
			v.poolBackward()
		}
	}
	for _, v := range vectors {
		if !v.wide { // as fast as AVX-512, or faster, on what is short
			v.rowwise("CopyRows", "CopyRows%s writes rows of src to dst.", nil)
			v.rowwise("AddRows", "AddRows%s adds rows of src to dst.", v.add)
			v.transpose()
		}
	}
}
